"""tf-idf: what a token is, which terms stay and in which order, what they weigh, and what hostile input does."""

from __future__ import annotations

import math
import os
import re
import resource
import subprocess
import sys
import threading
import time
import unicodedata
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labelwood as lw
import reference_tfidf as twin
from cases import cases
from labelwood.arrays.sparse import checked
from labelwood.arrays.texts import Texts
from labelwood.base import config as configs
from labelwood.parts.tfidf import TOKENISER_VERSION, Tfidf, TfidfConfig

pytestmark = pytest.mark.native
ALL = TfidfConfig(min_df=1)
RAW = TfidfConfig(min_df=1, min_chars=1, lowercase=False)
UNICODE_14 = unicodedata.unidata_version == "14.0.0"  # what native/text/unicode_tables.h was made from


def fit(texts, config=ALL, threads=2):
    return Tfidf.fit(Texts.from_strings(texts), config, threads=threads)


def tokens(text, config=ALL):
    """The distinct tokens of a text, in sorted order."""
    try:
        return sorted(fit([text], config)[0].terms())
    except lw.DataError:
        return []


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("The cat, the HAT!", ["cat", "hat", "the"]),
        ("a b cc", ["cc"]),
        ("snake_case x1 3.14", ["14", "snake_case", "x1"]),
        ("don't e-mail", ["don", "mail"]),
        ("Ünïcode ÄÖ ß straße", ["straße", "ünïcode", "äö"]),
        ("ΣΟΦΟΣ σοφος σοφοσ", ["σοφοσ"]),
        ("İstanbul", ["istanbul"]),
        ("cafe\u0301", ["cafe\u0301"]),
        ("\u0301ab \u0301\u0301\u0301", ["ab"]),
        ("नमस्ते", ["नमस्ते"]),
        ("機械学習", ["学習", "械学", "機械"]),
        ("第3章", ["章", "第"]),
        ("iPhone手机x11", ["iphone", "x11", "手机"]),
        ("สวัสดี", ["ดี", "วั", "สด", "สว", "ัส"]),
        ("한국어 텍스트", ["텍스트", "한국어"]),
        ("nul\0byte\ufeffbom\r\nline", ["bom", "byte", "line", "nul"]),
        ("😀ok👍🏽fine", ["fine", "ok"]),
        ("x" * 256, ["x" * 256]),
        ("x" * 257 + " ok", ["ok"]),
        ("é" * 129 + " ok", ["ok"]),
        ("", []),
        (" \t\n", []),
    ],
)
def test_tokens_by_hand(text, expected):
    assert tokens(text) == sorted(expected)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Café CAFE\u0301 cafe", ["cafe"]),
        ("Ångström İ ø", ["angstrom"]),
        ("Ἀθῆναι", ["αθηναι"]),
        ("がか", ["がか"]),
        ("한국", ["한국"]),
        ("שָׁלוֹם", ["שלום"]),
        ("नमस्ते", ["नमस्ते"]),
    ],
)
def test_accents_can_be_stripped(text, expected):
    assert tokens(text, TfidfConfig(min_df=1, accents="strip")) == expected


def test_tokeniser_version_is_documented():
    assert TOKENISER_VERSION == 1


@pytest.mark.skipif(not UNICODE_14, reason="the tables are Unicode 14")
def test_every_character_is_classified_and_folded_as_the_twin_says():
    for config in (TfidfConfig(min_df=1, min_chars=1), TfidfConfig(min_df=1, min_chars=1, accents="strip")):
        codes = [c for c in range(0x110000) if unicodedata.category(chr(c)) not in {"Cs", "Cn", "Co"}]
        codes = [c for c in codes if unicodedata.category(chr(c)) != "Lo" or c < 0x3100 or c % 16 == 0]
        texts = [f"a{chr(c)}" for c in codes]
        tfidf, x = fit(texts, config)
        names = tfidf.terms()
        for row, text in enumerate(texts):
            columns = x.indices[x.indptr[row] : x.indptr[row + 1]]
            assert sorted(names[c] for c in columns) == sorted(set(twin.tokens(text, config))), hex(codes[row])


@pytest.mark.skipif(not UNICODE_14, reason="the tables are Unicode 14")
def test_characters_are_words_exactly_where_python_says_so():
    """\\w but for marks (which continue a word), connectors other than _ and scripts without spaces."""
    texts = [chr(c) for c in range(0x110000) if not 0xD800 <= c < 0xE000]
    _, x = fit(texts, RAW)
    ours = np.diff(x.indptr) > 0
    python = np.array([re.fullmatch(r"\w", c) is not None or unicodedata.category(c) == "Pc" for c in texts])
    assert (ours == python).all()


alphabet = st.one_of(
    st.characters(max_codepoint=0x2FF, exclude_categories=["Cs"]),
    st.characters(min_codepoint=0x370, max_codepoint=0x52F),
    st.sampled_from("  ...ABCabc012__ΣςİıſKÅ\u0301\u0300\u0e31機械学習ひらカナーสวัดီမြန်\0\ufeff\u200d\u00ad"),
    st.characters(exclude_categories=["Cs", "Cn"] if UNICODE_14 else ["Cs", "Cn", "Lo", "So", "Mn", "Mc"]),
)
documents = st.lists(st.text(alphabet, max_size=90), min_size=1, max_size=8)


@cases(2000)
@given(st.text(st.characters(max_codepoint=0x2FF, exclude_categories=["Mn", "Cs"]), max_size=300))
def test_tokens_equal_pythons_regular_expression(text):
    assert tokens(text, RAW) == sorted(set(re.findall(r"\w+", text)))


grams = st.tuples(st.integers(1, 3), st.integers(0, 2)).map(lambda p: (p[0], p[0] + p[1]))
options = st.builds(
    TfidfConfig,
    lowercase=st.booleans(),
    accents=st.sampled_from(["keep", "strip"]),
    min_chars=st.integers(1, 3),
    words=grams,
    chars=st.none() | grams,
    min_df=st.integers(1, 3),
    max_df=st.sampled_from([1.0, 0.7, 0.5]),
    max_features=st.none() | st.integers(1, 20),
    sublinear=st.booleans(),
    idf=st.sampled_from(["smooth", "plain", "none"]),
    norm=st.sampled_from(["l2", "none"]),
)


@cases(2000)
@given(documents, options, st.integers(1, 3))
def test_equals_the_twin(texts, config, threads):
    names, idf = twin.vocabulary(texts, config)
    if not names:
        with pytest.raises(lw.DataError):
            fit(texts, config, threads)
        return
    tfidf, x = fit(texts, config, threads)
    assert tfidf.terms() == names
    assert tfidf.idf.tolist() == pytest.approx(idf, rel=1e-6)
    expected = twin.matrix(texts, names, tfidf.idf.tolist(), config)
    assert checked(x, "X").to_scipy().toarray() == pytest.approx(expected, rel=1e-6)
    again = tfidf.transform(Texts.from_strings(texts), threads=threads)
    assert_same(x, again)


def assert_same(a, b):
    assert a.shape == b.shape
    assert a.indptr.tolist() == b.indptr.tolist()
    assert a.indices.tobytes() == b.indices.tobytes()
    assert a.data.tobytes() == b.data.tobytes()


def test_weights_by_hand():
    tfidf, x = fit(["red red blue", "red green", "blue"], ALL)
    assert tfidf.terms() == ["blue", "red", "green"]  # df 2, 2, 1; ties by bytes
    assert tfidf.idf.tolist() == [np.float32(math.log(4 / 3) + 1)] * 2 + [np.float32(math.log(4 / 2) + 1)]
    dense = x.to_scipy().toarray()
    tf = 1 + math.log(2)
    assert dense[0] == pytest.approx([1 / math.hypot(1, tf), tf / math.hypot(1, tf), 0], rel=1e-6)
    assert dense[2].tolist() == [1.0, 0.0, 0.0]
    plain = TfidfConfig(min_df=1, sublinear=False, idf="none", norm="none")
    assert fit(["red red blue", "red green", "blue"], plain)[1].to_scipy().toarray()[0].tolist() == [1.0, 2.0, 0.0]


def test_min_df_max_df_and_max_features():
    texts = ["aa bb cc", "aa bb", "aa dd", "aa ee"]
    assert fit(texts, TfidfConfig(min_df=2))[0].terms() == ["aa", "bb"]
    assert fit(texts, TfidfConfig(min_df=1, max_df=0.5))[0].terms() == ["bb", "cc", "dd", "ee"]
    assert fit(texts, TfidfConfig(min_df=1, max_features=4))[0].terms() == ["aa", "bb", "cc", "dd"]
    assert fit(texts, TfidfConfig(min_df=1, max_features=99))[0].size == 5


def test_word_and_character_grams_are_different_features():
    tfidf, _ = fit(["ab abc"], TfidfConfig(min_df=1, words=(1, 2), chars=(2, 3)))
    words = {"ab", "abc", "ab abc"}
    chars = {"# a", "#ab", "#b ", "# ab", "#ab ", "#bc", "#c ", "#abc", "#bc "}
    assert set(tfidf.terms()) == words | chars
    assert set(fit(["ab"], TfidfConfig(min_df=1, words=None, chars=(2, 2)))[0].terms()) == {"# a", "#ab", "#b "}


def test_long_documents_keep_grams_across_the_inner_buffers():
    """Tokens and n-grams that lie on the edge of a batch (4 KB) or of a line (16 KB) are not lost."""
    rng = np.random.default_rng(0)
    words = ["w" * int(n) + chr(97 + i % 26) for i, n in enumerate(rng.integers(0, 250, 40))] + ["é", "機械", "ß" * 100]
    text = " ".join(words[i] for i in rng.integers(0, len(words), 1500))
    for config in (TfidfConfig(min_df=1, words=(1, 3)), TfidfConfig(min_df=1, words=(2, 8), chars=(3, 3))):
        tfidf, x = fit([text], config)
        names, idf = twin.vocabulary([text], config)
        assert tfidf.terms() == names
        assert x.to_scipy().toarray() == pytest.approx(twin.matrix([text], names, idf, config), rel=1e-6)


def many(n=3000):
    rng = np.random.default_rng(1)
    words = [f"w{i}é" if i % 7 == 0 else f"word{i}" for i in range(5000)]
    return [" ".join(words[j] for j in rng.zipf(1.3, 40) % 5000) for _ in range(n)] + ["", "?"]


def test_threads_do_not_change_a_bit():
    texts = Texts.from_strings(many())
    config = TfidfConfig(words=(1, 2), max_features=4000)
    first, x = Tfidf.fit(texts, config, threads=1)
    for threads in (2, 3, 7, 16):
        other, y = Tfidf.fit(texts, config, threads=threads)
        assert other.term_bytes.tobytes() == first.term_bytes.tobytes()
        assert other.idf.tobytes() == first.idf.tobytes()
        assert_same(x, y)
        assert_same(x, other.transform(texts, threads=threads))


def test_batches_do_not_change_a_bit():
    rows = many(200)
    tfidf, x = fit(rows)
    for i, row in enumerate(rows):
        alone = tfidf.transform(Texts.from_strings([row]), threads=1)
        assert alone.indices.tolist() == x.row(i)[0].tolist()
        assert alone.data.tobytes() == x.row(i)[1].tobytes()


def test_hash_seed_and_process_do_not_change_a_bit():
    code = (
        "import hashlib, numpy as np; from labelwood.parts.tfidf import *; from labelwood.data import Texts\n"
        "t = [' '.join(f'w{(i * j) % 97}' for j in range(20)) for i in range(500)]\n"
        "f, x = Tfidf.fit(Texts.from_strings(t), TfidfConfig(words=(1, 2)), threads=2)\n"
        "print(hashlib.sha256(f.term_bytes.tobytes() + f.idf.tobytes() + x.data.tobytes()).hexdigest())"
    )
    runs = {
        subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout for _ in "ab"
    }
    assert len(runs) == 1


def test_nothing_known_is_an_empty_row_and_never_nan():
    tfidf, _ = fit(["aa bb", "aa"])
    x = tfidf.transform(Texts.from_strings(["", "zz", "aa", "\0\0"]), threads=2)
    assert np.diff(x.indptr).tolist() == [0, 0, 1, 0]
    assert x.data.tolist() == [1.0]
    assert tfidf.transform(Texts.from_strings([]), threads=2).shape == (0, 2)


def test_no_vocabulary_says_why():
    with pytest.raises(lw.DataError, match="none of the 2 texts holds a word"):
        fit(["", "?"])
    with pytest.raises(lw.DataError, match=r"3 distinct terms, and none passes min_df=2.*lower min_df"):
        fit(["aa bb", "cc"], TfidfConfig())
    with pytest.raises(lw.DataError):
        fit([])


@pytest.mark.parametrize(
    "bad",
    [
        {"words": (2, 1)},
        {"words": (0, 1)},
        {"words": (1, 9)},
        {"words": None},
        {"chars": (1, 2, 3)},
        {"chars": (1, 17)},
    ],
)
def test_bad_ranges_are_config_errors(bad):
    with pytest.raises(lw.ConfigError):
        TfidfConfig(**bad)


def test_config_round_trip():
    config = TfidfConfig(words=(1, 2), chars=(3, 5), max_features=10)
    assert configs.from_dict(TfidfConfig, configs.to_dict(config)) == config
    with pytest.raises(lw.ConfigError, match="accents must be keep or strip"):
        configs.from_dict(TfidfConfig, {"accents": "drop"})
    with pytest.raises(lw.ConfigError, match="threads"):
        fit(["aa"], ALL, threads=0)


def test_tensors_round_trip():
    rows = many(300)
    tfidf, x = fit(rows, TfidfConfig(chars=(2, 3)))
    again = Tfidf.from_tensors(tfidf.config, {k: v.copy() for k, v in tfidf.tensors().items()})
    assert again.terms() == tfidf.terms()
    assert_same(x, again.transform(Texts.from_strings(rows), threads=2))


def sound():
    return {
        "term_bytes": np.frombuffer("aabbé".encode(), np.uint8).copy(),
        "term_offsets": np.array([0, 2, 4, 6], np.int64),
        "idf": np.array([1, 1.5, 2], np.float32),
    }


DAMAGES = {
    "missing": lambda t: t.pop("idf"),
    "float64": lambda t: t.update(idf=t["idf"].astype(np.float64)),
    "shape": lambda t: t.update(idf=t["idf"].reshape(3, 1)),
    "idf nan": lambda t: t["idf"].__setitem__(1, np.nan),
    "idf negative": lambda t: t["idf"].__setitem__(1, -1),
    "idf count": lambda t: t.update(idf=t["idf"][:2]),
    "falls": lambda t: t["term_offsets"].__setitem__(1, 5),
    "beyond": lambda t: t["term_offsets"].__setitem__(3, 7),
    "huge": lambda t: t["term_offsets"].__setitem__(1, 2**62),
    "negative": lambda t: t["term_offsets"].__setitem__(0, -1),
    "empty term": lambda t: t["term_offsets"].__setitem__(1, 0),
    "no offsets": lambda t: t.update(term_offsets=t["term_offsets"][:0]),
    "duplicate": lambda t: t["term_bytes"].__setitem__(slice(2, 4), ord("a")),
    "nul": lambda t: t["term_bytes"].__setitem__(1, 0),
    "not utf-8": lambda t: t["term_bytes"].__setitem__(0, 0xFF),
    "inside a character": lambda t: t["term_offsets"].__setitem__(2, 5),
    "nothing": lambda t: t.update(term_bytes=t["term_bytes"][:0], term_offsets=t["term_offsets"][:1], idf=t["idf"][:0]),
}


def test_sound_tensors_are_accepted():
    assert Tfidf.from_tensors(ALL, sound()).terms() == ["aa", "bb", "é"]


@pytest.mark.parametrize("damage", DAMAGES)
def test_damaged_tensors_are_model_file_errors(damage):
    tensors = sound()
    DAMAGES[damage](tensors)
    with pytest.raises(lw.ModelFileError):
        Tfidf.from_tensors(ALL, tensors)


@cases(2000)
@given(st.binary(max_size=200), st.lists(st.integers(-3, 210), max_size=6), st.booleans())
def test_damaged_arenas_never_crash(data, offsets, sort):
    offsets = sorted(offsets) if sort else offsets
    texts = Texts(np.frombuffer(data, np.uint8), np.array(offsets, np.int64))
    try:
        tfidf, x = Tfidf.fit(texts, RAW, threads=2)
    except lw.DataError:
        return
    assert_same(checked(x, "X"), tfidf.transform(texts, threads=1))


def test_strings_are_packed_exactly():
    rows = ["", "ascii", "latin é", "wide 機械", "astral 😀 é", "\0", "é" * 5000 + "x" * 5000 + "機"] * 700
    texts = Texts.from_strings(rows)
    assert list(texts) == rows
    assert texts.arena.tobytes() == "".join(rows).encode()
    assert list(Texts.from_strings(iter(rows[:7]))) == rows[:7]


@cases(2000)
@given(st.lists(st.text(max_size=50), max_size=5))
def test_packing_round_trip(rows):
    assert list(Texts.from_strings(rows)) == rows


def test_what_is_no_text_is_refused_with_its_row():
    with pytest.raises(lw.DataError, match="row 1: a text must be a str, but is int"):
        Texts.from_strings(["a", 3])
    with pytest.raises(lw.DataError, match=r"row 2: .*lone surrogate at character 1"):
        Texts.from_strings(["a", "b", "c\ud800d", 3])
    with pytest.raises(lw.DataError, match="row 0"):
        Texts.from_strings([b"bytes"])


@pytest.mark.parametrize(
    ("text", "terms"),
    [
        ("word " * 10_000_000, ["word"]),
        ("a" + "\u0301" * 1_000_000 + " ok", ["ok"]),
        ("x" * 100_000_000, []),
        ("機" * 3_000_000, ["機機"]),
        ("\0" * 10_000_000 + "ok", ["ok"]),
        ("— " * 3_000_000 + "ok", ["ok"]),
    ],
    ids=["tokens", "marks", "one token", "bigrams", "nul", "separators"],
)
def test_huge_documents_are_fast(text, terms):
    texts = Texts.from_strings([text])
    start = time.process_time()
    assert tokens_of(texts) == terms
    assert time.process_time() - start < 5


def tokens_of(texts):
    try:
        return sorted(Tfidf.fit(texts, ALL, threads=2)[0].terms())
    except lw.DataError:
        return []


def test_huge_document_memory():
    """100 MB of one document: the string, its arena, and little else."""
    code = (
        "import resource, numpy as np; from labelwood.parts.tfidf import *; from labelwood.data import Texts\n"
        "t = ' '.join(f'word{i % 99991}' for i in range(1000))\n"
        "t = ' '.join(t for _ in range(100_000_000 // len(t)))\n"
        "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
        "f, x = Tfidf.fit(Texts.from_strings([t]), TfidfConfig(min_df=1), threads=2)\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / len(t))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert float(run.stdout) < 3


def test_progress_and_interrupt():
    texts = Texts.from_strings(["some words here " * 4000] * 400)
    seen = []
    Tfidf.fit(texts, threads=1, progress=lambda done, total: seen.append((done, total)))
    assert all(0 <= done <= total == texts.offsets[-1] for done, total in seen)

    def stop(done, total):
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):  # the first report comes after 50 ms
        Tfidf.fit(Texts.from_strings(["some words here " * 4000] * 1600), threads=1, progress=stop)


def test_many_threads_may_use_one_vectoriser():
    rows = many(500)
    tfidf, x = fit(rows)
    texts, wrong = Texts.from_strings(rows), []

    def use():
        y = tfidf.transform(texts, threads=1)
        if y.data.tobytes() != x.data.tobytes():
            wrong.append(1)

    crew = [threading.Thread(target=use) for _ in range(8)]
    for t in crew:
        t.start()
    for t in crew:
        t.join()
    assert not wrong


def resident():
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return pages * resource.getpagesize()


@pytest.mark.skipif("ASAN_OPTIONS" in os.environ, reason="the sanitizer keeps freed memory")
def test_memory_is_returned():
    texts = Texts.from_strings(many(200))
    tfidf, _ = Tfidf.fit(texts, threads=1)
    sizes = []
    for round in range(300):
        Tfidf.fit(texts, threads=2)
        tfidf.transform(texts, threads=2)
        if round in {50, 299}:
            sizes.append(resident())
    assert sizes[1] - sizes[0] < 10_000_000  # one fit holds a few MB


def test_equals_scikit_learn():
    text = pytest.importorskip("sklearn.feature_extraction.text")
    rows = many(300)
    model = text.TfidfVectorizer(min_df=2, sublinear_tf=True)
    expected = model.fit_transform(rows)
    tfidf, x = fit(rows, TfidfConfig())
    assert set(tfidf.terms()) == set(model.vocabulary_)
    order = [model.vocabulary_[t] for t in tfidf.terms()]
    assert x.to_scipy().toarray() == pytest.approx(expected.toarray()[:, order], rel=1e-6)
