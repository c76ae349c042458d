"""What a text is cut into: words, slices of the rarer ones, or stems; and the rule by which `auto` chooses (F-N3)."""

from __future__ import annotations

import copy
import json
import threading
from collections import Counter
from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest

import labelwood as lw
from labelwood import cli
from labelwood.arrays.texts import Texts
from labelwood.data import read
from labelwood.parts.inflection import FEWEST, INFLECTED, inflection
from labelwood.parts.known_words import LANGUAGES, KnownWords
from labelwood.parts.tfidf import FEW, RARER, SLICES, Tfidf, TfidfConfig
from labelwood.quickstart import quickstart_path
from reference_tfidf import matrix, terms, tokens, vocabulary

ENDINGS = ["", "n", "ssa", "sta", "lla", "lle", "ineen", "jen", "ista", "ksi"]
ROOTS = [
    "kirjasto", "kokoelma", "lainaaja", "tutkimus", "rakennus", "musiikki", "historia", "maantiede", "kalastus",
    "kasvatus", "teollisuus", "kauppala", "viljelys", "metsänhoito", "terveys", "opetusala", "kulttuuri", "liikenne",
    "taloudenhoito", "ympäristö",
]  # fmt: skip


def inflected(docs: int, seed: int = 0) -> list[str]:
    """Documents of roots with endings: most forms are seen seldom, every root often."""
    rng = np.random.default_rng(seed)
    return [
        " ".join(ROOTS[r] + ENDINGS[e] + ENDINGS[f] for r, e, f in rng.integers((20, 10, 10), size=(12, 3)))
        for _ in range(docs)
    ]


# --- the rule ---------------------------------------------------------------------------------------


def test_relatives_are_unknown_words_with_known_beginnings():
    """By hand: 1,000 documents of four words; in which half of the sample a document falls is drawn."""
    half = 2000
    known = ["libraries"] * 3 + ["reading"]
    texts = Texts.from_strings([" ".join(known)] * 1000)
    assert inflection(texts) == (0.0, half)
    order = np.random.default_rng(0).permutation(1000)
    documents = [" ".join(known)] * 1000
    for row in order[500:]:
        documents[row] = "libraries library librarians lib"  # two of four are relatives; `lib` is too short
    assert inflection(Texts.from_strings(documents)) == (0.5, half)


def test_too_few_words_tell_nothing():
    few = Texts.from_strings(inflected(FEWEST * 2 // 12))
    assert inflection(few).share > INFLECTED
    assert inflection(few).words < FEWEST
    assert not inflection(few).strong
    assert inflection(Texts.from_strings(inflected(FEWEST * 2 // 12 + 1))).strong
    assert inflection(Texts.from_strings(["", ""])) == (0.0, 0)


def test_the_rule_takes_words_in_english():
    found = inflection(read(quickstart_path("train")).texts)
    assert found.words == 25_000
    assert 0.01 < found.share < 0.05
    assert not found.strong


@pytest.mark.parametrize("text", ["機械学習の方法を教えます", "การเรียนรู้ของเครื่อง", "1234567 12345678 123456789"])
def test_scripts_without_spaces_and_numbers_do_not_inflect(text):
    rng = np.random.default_rng(1)
    texts = ["".join(rng.permutation(list(text))) + " " + text for _ in range(3000)]
    assert inflection(Texts.from_strings(texts)).share == 0


@pytest.mark.parametrize("method", ["xr-linear", "dismec"])
def test_auto_is_settled_before_the_training(method):
    plain = lw.train(read(quickstart_path("train")).take(np.arange(200)), method=method)
    assert plain.recipe.tfidf.analyser == "words"
    assert plain.recipe.tfidf.chars is None
    texts = inflected(500)
    model = lw.train(texts, [[text.split()[0][:4]] for text in texts], method=method)
    assert (model.recipe.tfidf.analyser, model.recipe.tfidf.chars) == ("slices", SLICES)
    assert model.recipe.tfidf.slice_below == FEW / 500
    many = Texts(np.zeros(0, np.uint8), np.zeros(100_001, np.int64))
    assert TfidfConfig(analyser="slices").settled(many).slice_below == RARER


def test_what_the_user_sets_is_not_overruled():
    texts = Texts.from_strings(inflected(500))
    assert TfidfConfig(chars=(3, 5)).settled(texts) == TfidfConfig(analyser="slices", chars=(3, 5))
    assert TfidfConfig(analyser="words").settled(texts) == TfidfConfig(analyser="words")
    slices = TfidfConfig(analyser="slices", slice_below=0.5).settled(texts)
    assert (slices.chars, slices.slice_below) == (SLICES, 0.5)
    assert slices.settled(texts) == slices


# --- slices of the rarer words -----------------------------------------------------------------------


def sliced_terms(text: str, config: TfidfConfig, common: set[str]) -> list[str]:
    """The slow twin: words, and slices of those that are not common."""
    words = tokens(text, config)
    plain = TfidfConfig(chars=config.chars, words=None, min_df=1)
    found = list(words)
    for word in words:
        if word not in common:
            found += terms(word, plain)
    return found


@pytest.mark.native
@pytest.mark.parametrize("share", [0.01, 0.1, 0.5, 1.0])
@pytest.mark.parametrize("threads", [1, 3])
def test_only_words_in_few_documents_are_sliced(share, threads):
    texts = [text + " yhteinen" * (i % 4 == 0) for i, text in enumerate(inflected(150))] + ["yksin", "", "ä"]
    config = TfidfConfig(analyser="slices", chars=(3, 4), slice_below=share, min_df=1, norm="none", idf="none")
    packed = Texts.from_strings(texts)
    tfidf, x = Tfidf.fit(packed, config, threads=threads)
    documents = Counter(word for text in texts for word in set(tokens(text, config)))
    common = {word for word, count in documents.items() if count > share * len(texts)}
    assert (share < 0.5) == bool(common)
    counts = [Counter(sliced_terms(text, config, common)) for text in texts]
    assert set(tfidf.terms()) == {term for row in counts for term in row}
    place = {term: column for column, term in enumerate(tfidf.terms())}
    expected = np.zeros((len(texts), tfidf.size), np.float32)
    for row, found in enumerate(counts):
        for term, count in found.items():
            expected[row, place[term]] = 1 + np.log(count)
    assert np.abs(x.to_scipy().toarray() - expected).max() < 1e-6
    again = Tfidf.from_tensors(config, tfidf.tensors()).transform(packed, threads=threads)
    assert (again.to_scipy() != x.to_scipy()).nnz == 0


@pytest.mark.native
def test_words_that_were_never_seen_are_sliced():
    config = TfidfConfig(analyser="slices", slice_below=0.1, min_df=1)
    tfidf, _ = Tfidf.fit(Texts.from_strings(inflected(300)), config, threads=1)
    row = tfidf.transform(Texts.from_strings(["kirjastottomuus"]), threads=1).row(0)[0]
    assert {"# kir", "#kirj", "#irja", "#rjas", "#jast", "#asto"} <= {tfidf.terms()[column] for column in row}


def test_slices_of_all_words_are_as_they_were():
    """`chars` alone slices every word, as it did before there was a choice."""
    texts = inflected(100)
    config = TfidfConfig(chars=(4, 4))
    tfidf, x = Tfidf.fit(Texts.from_strings(texts), config, threads=2)
    kept, idf = vocabulary(texts, config)
    assert tfidf.terms() == kept
    assert set(tfidf.tensors()) == {"term_bytes", "term_offsets", "idf"}
    assert np.abs(x.to_scipy().toarray() - matrix(texts, kept, idf, config)).max() < 1e-6


@pytest.mark.parametrize(
    "analyser", [{"tfidf.analyser": "slices"}, {"tfidf.analyser": "stems", "tfidf.stemmer": "finnish"}]
)
def test_a_model_keeps_its_analyser(tmp_path, analyser):
    texts = inflected(200)
    model = lw.train(texts, [[text.split()[0][:4]] for text in texts], settings=analyser)
    model.save(tmp_path / "m")
    loaded = lw.load(tmp_path / "m")
    new = inflected(20, seed=1)
    assert loaded.predict(new) == model.predict(new)
    assert [loaded.predict([text])[0] for text in new] == model.predict(new)
    assert copy.deepcopy(loaded.recipe.tfidf) == model.recipe.tfidf
    loaded.verify()


# --- stems --------------------------------------------------------------------------------------------


def test_stems_take_the_places_of_words():
    texts = ["the libraries are running", "a library runs", "generously GENEROUS"]
    tfidf, _ = Tfidf.fit(
        Texts.from_strings(texts), TfidfConfig(analyser="stems", stemmer="english", min_df=1), threads=1
    )
    assert sorted(tfidf.terms()) == ["are", "generous", "librari", "run", "the"]
    new = tfidf.transform(Texts.from_strings(["library library libraries", "nothing", ""]), threads=1)
    assert [[tfidf.terms()[column] for column in new.row(row)[0]] for row in range(3)] == [["librari"], [], []]
    pairs, _ = Tfidf.fit(
        Texts.from_strings(texts), TfidfConfig(analyser="stems", stemmer="english", min_df=1, words=(2, 2)), threads=1
    )
    assert "librari run" in pairs.terms()


def test_stems_are_those_of_the_library_for_any_word_and_thread():
    import Stemmer

    stemmer = Stemmer.Stemmer("finnish")
    texts = inflected(100)
    config = TfidfConfig(analyser="stems", stemmer="finnish", min_df=1)
    one, three = (Tfidf.fit(Texts.from_strings(texts), config, threads=n) for n in (1, 3))
    assert one[0].terms() == three[0].terms()
    assert (one[1].to_scipy() != three[1].to_scipy()).nnz == 0
    assert set(one[0].terms()) == {stemmer.stemWord(word) for text in texts for word in text.split()}


def test_threads_may_predict_with_stems_at_once():
    texts = inflected(200)
    config = TfidfConfig(analyser="stems", stemmer="finnish")
    tfidf, _ = Tfidf.fit(Texts.from_strings(texts), config, threads=1)
    new = [Texts.from_strings([text]) for text in inflected(100, seed=2)]
    alone = [tfidf.transform(text, threads=1).row(0)[0].tolist() for text in new]
    fresh = Tfidf.from_tensors(config, tfidf.tensors())
    found: dict[int, list[int]] = {}

    def work(part: int) -> None:
        for row in range(part, len(new), 4):
            found[row] = fresh.transform(new[row], threads=1).row(0)[0].tolist()

    threads = [threading.Thread(target=work, args=(part,)) for part in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[row] for row in range(len(new))] == alone


def test_the_languages_are_those_of_the_library():
    import Stemmer

    assert set(LANGUAGES) <= set(Stemmer.algorithms())
    assert all(len(KnownWords(stemmer=name)._stems.probe) == 32 for name in ("finnish",))


def test_another_stemmer_than_that_of_the_training_is_said():
    config = TfidfConfig(analyser="stems", stemmer="english", min_df=1)
    tfidf, _ = Tfidf.fit(Texts.from_strings(["a library"]), config, threads=1)
    tensors = {**tfidf.tensors(), "stems": np.zeros(32, np.uint8)}
    other = Tfidf.from_tensors(config, tensors)
    with pytest.warns(UserWarning, match="english stemmer that is installed gives other stems"):
        other.transform(Texts.from_strings(["libraries"]), threads=1)


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"tfidf.analyser": "stems"}, "tfidf.stemmer is none; name the language, such as german"),
        ({"tfidf.stemmer": "german"}, "tfidf.stemmer = 'german' cannot act .* with tfidf.analyser = stems"),
        ({"tfidf.analyser": "words", "tfidf.chars": (4, 4)}, r"tfidf.chars = .* with tfidf.analyser = auto or slices"),
        ({"tfidf.analyser": "stems", "tfidf.stemmer": "klingon"}, "klingon"),
    ],
)
def test_analysers_that_clash(settings, message):
    with pytest.raises(lw.ConfigError, match=message):
        lw.train(["a b", "c d"], [["x"], ["y"]], settings=settings)


def test_without_the_extra_stems_are_refused_before_any_work(monkeypatch):
    from labelwood.recipes import extras
    from labelwood.recipes.resolve import resolve

    there = extras.importlib.util.find_spec
    monkeypatch.setattr(extras.importlib.util, "find_spec", lambda name: None if name == "Stemmer" else there(name))
    recipe = resolve("xr-linear", settings={"tfidf.analyser": "stems", "tfidf.stemmer": "german"})
    with pytest.raises(lw.MissingExtraError, match=r"pip install 'labelwood\[stems\]'"):
        extras.check_extras(recipe)


@pytest.mark.parametrize("part", ["whole_bytes", "whole_offsets"])
def test_damaged_words_are_refused(part):
    config = TfidfConfig(analyser="slices", chars=(4, 4), slice_below=0.05, min_df=1)
    tfidf, _ = Tfidf.fit(Texts.from_strings(inflected(50)), config, threads=1)
    tensors = tfidf.tensors()
    assert len(list(pairwise(tensors["whole_offsets"]))) > 1
    with pytest.raises(lw.ModelFileError, match="vocabulary is damaged"):
        Tfidf.from_tensors(config, {**tensors, part: tensors[part][:-1]})
    with pytest.raises(lw.ModelFileError, match="vocabulary is damaged"):
        Tfidf.from_tensors(
            config,
            {name: array for name, array in tensors.items() if name != part} | {"whole_bytes": np.zeros(3, np.uint8)},
        )


# --- the command line -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("texts", "line"),
    [
        (inflected(500), r"  read as words and slices of rarer words: \d\d % of the words are unknown forms"),
        (["the same words again"] * 1000, "  read as words: 0 % of the words are unknown forms of known ones"),
        (["few words"] * 9, "  read as words: too few to tell how much the language inflects"),
    ],
)
def test_the_command_line_says_what_auto_chose(tmp_path: Path, capsys, texts, line):
    import re

    path = tmp_path / "d.jsonl"
    rows = [{"text": text, "labels": [text[0], f"l{i % 2}"]} for i, text in enumerate(texts)]
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert cli.main(["train", str(path), "--model", str(tmp_path / "m")]) == 0
    assert [found for found in capsys.readouterr().out.splitlines() if re.match(line, found)]


FINNISH = "Tämä on teksti kirjastosta ja sen kokoelmista, joita voi lainata, kun on ensin saanut kortin."


def test_doctor_and_compare_name_the_alternative(tmp_path: Path, capsys):
    texts = [f"{FINNISH} {text}" for text in inflected(500)]
    rows = [{"text": text, "labels": [f"l{i % 3}", f"m{i % 7}"]} for i, text in enumerate(texts)]
    finding = next(found for found in lw.doctor(rows).findings if found.name == "inflection")
    assert (
        finding.way_out
        == "Nothing needs to be done. Stems are faster: compare tfidf.analyser=stems, tfidf.stemmer=finnish."
    )
    path = tmp_path / "d.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    command = ["compare", str(path), str(path), "--methods", "xr-linear", "--out", str(tmp_path / "c")]
    assert cli.main([*command, "--threads", "1"]) == 0
    out = capsys.readouterr().out.splitlines()
    assert "  also worth a try: --set tfidf.analyser=stems --set tfidf.stemmer=finnish" in out
    assert "  text from text" in out
    assert not [found for found in lw.doctor(quickstart_path("train")).findings if found.name == "inflection"]
