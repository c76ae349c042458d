"""Odd and hostile input through the public API (goals H1-H4, H6, H7): success, or a LabelwoodError with a place."""

from __future__ import annotations

import copy
import random
import time
import warnings
from functools import cache
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, event, given, settings
from hypothesis import strategies as st
from scipy import sparse

import labelwood as lw
from cases import DISTINCT, acting
from contract import LABELS, LISTS, TEXTS, matrices, orderly
from labelwood.base.config import describe, from_dict, merge, to_dict
from labelwood.data import Texts
from labelwood.parts.losses import NAMES
from labelwood.parts.rank_average import AVERAGES
from labelwood.parts.search import COMBINERS
from labelwood.parts.tfidf import Tfidf, TfidfConfig
from labelwood.recipes.methods import METHODS
from labelwood.recipes.recipe import Recipe
from labelwood.recipes.resolve import from_plain, resolve, tidy
from toy import keyword_set

pytestmark = pytest.mark.native
DEEP = {"tree.leaf": 2, "tree.branch": 2}
every_recipe = pytest.mark.parametrize("method", DISTINCT)
MANY = {"deadline": None, "suppress_health_check": list(HealthCheck)}


@cache
def toy() -> lw.Model:
    return lw.train(*keyword_set(), settings=DEEP, run=lw.Run(1))


@pytest.fixture(scope="module", autouse=True)
def _free_models():
    yield
    toy.cache_clear()


def sound(model: lw.Model, texts: list[str] | None = None, *, X: Any = None) -> None:
    """Whatever was trained gives finite, sorted scores for distinct labels."""
    k = len(model.labels) + 1
    orderly(*model.predict_arrays(texts, X=X, k=k, threads=1), len(model.labels))


# --- H1: anything --------------------------------------------------------------------------------

# Mostly sound, with something odd now and then: nonsense throughout would never get past the door.
words = st.sampled_from(["ab", "abc", "ba", "über", "漢字", "\x00", "\ufeff", "\r\n", " ", "1e9", "a" * 300, "?"])
good_text = st.lists(words, max_size=6).map(" ".join)
odd_text = st.one_of(st.text(max_size=8), st.sampled_from([None, "\ud800", 3, b"ab"]))
good_labels = st.lists(st.sampled_from(["a", "b", "c", "d", "e", 1]), max_size=4)
odd_labels = st.one_of(
    st.lists(
        st.sampled_from(["ä", "", " ", "\ud800", "x" * 5000, "\x00", None, True, 1.5, b"a", 10**5000]), max_size=2
    ),
    st.sampled_from([None, "a", 3, {"a": 1}]),
)
odd_texts = st.lists(st.one_of(good_text, odd_text), max_size=5)
documents = st.lists(st.tuples(good_text, good_labels), max_size=12)
odd_documents = st.one_of(
    st.just([]), st.just([]), st.lists(st.tuples(st.one_of(good_text, odd_text), odd_labels), max_size=1)
)
sound_changes = st.fixed_dictionaries(
    {"tfidf.min_df": st.just(1)},
    optional={
        "tfidf.words": st.sampled_from([(1, 1), (1, 2), "1-2"]),
        "tfidf.chars": st.sampled_from([None, (2, 3)]),
        "tree.leaf": st.integers(1, 3),
        "tree.branch": st.sampled_from([2, 3, 16, 2**16]),
        "tree.split": st.sampled_from(["bisect", "kway"]),
        "labels.top": st.sampled_from([None, 1, 3]),
        "shortlist.source": st.sampled_from(["teacher", "predicted", "union"]),
        "shortlist.parents": st.integers(1, 3),
        "linear.loss": st.sampled_from(NAMES),
        "linear.cp": st.sampled_from([1e-6, 1.0, 1e6]),
        "linear.max_iter": st.sampled_from([1, 5]),
        "linear.relevance": st.sampled_from(["off", "induce", "given"]),
        "linear.relevance_norm": st.sampled_from(["l1", "l2", "max", "none"]),
        "linear.bias": st.sampled_from([0, 1, 1e3]),
        "linear.threshold": st.sampled_from([0, 0.1, 1e300]),
        "search.beam": st.integers(1, 3),
        "search.combiner": st.sampled_from(COMBINERS),
        "features.norm": st.sampled_from(["none", "l2"]),
        "ensemble.trees": st.integers(1, 2),
        "ensemble.average": st.sampled_from(AVERAGES),
        "ensemble.candidates": st.sampled_from([1, 100]),
    },
)
odd_changes = st.one_of(
    st.just({}),
    st.just({}),
    st.just({}),
    st.lists(st.integers(0, 6), max_size=3).map(lambda sizes: {"tree.levels": tuple(sizes)}),
    st.sampled_from([{"linear.loss": ("hinge", "logistic")}, {"linear.max_iter": (2, 3)}, {"tfidf.words": (2, 1)}]),
    st.sampled_from([{"linear.cp": float("nan")}, {"search.beam": 0}, {"search.combiner": "l9-hinge"}, {"qq": 1}]),
)
changes = st.builds(lambda sound, odd: {**sound, **odd}, sound_changes, odd_changes)
numbers = st.one_of(
    st.sampled_from([0.0, -0.0, 1.0, -1.0, 1e-45, 1e-20, 1e15, -1e15, 1e38, np.nan, np.inf]), st.floats(-2, 2, width=32)
)


@settings(max_examples=1500, **MANY)
@given(
    rows=st.builds(lambda good, odd: good + odd, documents, odd_documents),
    change=changes,
    k=st.integers(1, 9) | st.integers(-1, 1),
    weigh=st.booleans(),
)
def test_any_texts_labels_and_settings(rows, change, k, weigh):
    data, labels = [text for text, _ in rows], [row for _, row in rows]
    weights = [[0.5 * (i + 1) for i in range(len(row))] if isinstance(row, list) else [] for row in labels]
    try:
        model = lw.train(data, labels, relevance=weights if weigh else None, settings=acting(change), run=lw.Run(1))
        event("trained")
        found = model.predict(["ab abc", "", *data], k=k, threads=1)
        sound(model, ["ab", "", *data])
        model.evaluate(data, labels, metrics=lw.MetricsConfig(ks=(1, k), bootstrap=10), threads=1)
    except lw.LabelwoodError:
        return
    assert all(len(row) <= k for row in found)


@settings(max_examples=1500, **MANY)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(0, 12),
    cols=st.tuples(st.integers(0, 5), st.integers(0, 3)),
    kind=st.sampled_from(["sparse", "dense", "both"]),
    odd=st.just([]) | st.lists(numbers, max_size=4),
    labels=st.integers(0, 6),
    change=changes,
)
def test_any_matrices_and_settings(seed, rows, cols, kind, odd, labels, change):
    rng = np.random.default_rng(seed)
    x = rng.normal(size=(rows, sum(cols))) * (rng.random((rows, sum(cols))) < 0.6)
    y = (rng.random((rows, labels)) < 0.4).astype(float)
    for i, value in enumerate(odd):
        target = x if i < 3 else y
        if target.size:
            target.flat[rng.integers(target.size)] = value
    a, b = x[:, : cols[0]], x[:, cols[0] :]
    features: Any = {"sparse": sparse.csr_matrix(x), "dense": x, "both": (sparse.csr_matrix(a), b)}[kind]
    try:
        with np.errstate(all="ignore"):
            model = lw.train(X=features, labels=y, settings=acting(change), run=lw.Run(1))
    except lw.LabelwoodError:
        pass
    else:
        sound(model, X=features)


@settings(max_examples=2000, **MANY)
@given(
    data=st.one_of(odd_texts, st.text(), st.none(), st.integers(), st.binary(), st.just([["a"]]), st.just(np.zeros(3))),
    x=st.sampled_from([None, np.zeros((2, 3)), "x", 3, [[1, 2], [3]], (1, 2), (), sparse.eye(3), np.zeros((1, 0))]),
    k=st.one_of(st.integers(-2, 20), st.sampled_from([None, 1.0, "3", True, 10**30, float("nan"), np.int64(2)])),
    threads=st.sampled_from([1, 1, 1, 0, -1, 10**9, None, 1.5, "2", True]),
)
def test_any_request(data, x, k, threads):
    try:
        found = toy().predict(data, X=x, k=k, threads=threads)
    except lw.LabelwoodError:
        return
    assert all(len(row) <= k and all(np.isfinite(score) for _, score in row) for row in found)


# --- H2: text ------------------------------------------------------------------------------------

PRIOR = ["", " ", "\t\r\n", "unheard of", "\x00", "﻿", "\u0301" * 1_000_000, "?" * 1000, "\ufffd", "𝔘" * 3, "a" * 5000]


@pytest.mark.parametrize("text", PRIOR, ids=lambda t: repr(t[:8]))
def test_text_without_known_words_gets_the_ranking_of_an_empty_one(text):
    expected = toy().predict([""], k=LABELS)
    assert toy().predict([text], k=LABELS) == expected
    assert len(expected[0]) >= 10
    sound(toy(), [text])


@pytest.mark.parametrize("text", ["word3\r\n", "﻿word3", "word3\x00", "\x00word3\x00word3", "Word3\u2028", " word3"])
def test_bytes_between_words_change_nothing(text):
    assert toy().predict([text], k=1)[0][0][0] == "label3"


@pytest.mark.parametrize("bad", ["\ud800", "ok \udfff", "word1\ud83d"])
def test_lone_surrogates_name_the_row(bad):
    data, labels = keyword_set()
    with pytest.raises(lw.DataError, match=r"row 2: .*lone surrogate at character"):
        toy().predict(["word1", "", bad])
    with pytest.raises(lw.DataError, match=f"row {len(data)}: .*lone surrogate"):
        lw.train([*data, bad], [*labels, ["label1"]])
    with pytest.raises(lw.DataError, match=f"row {len(data)}"):
        lw.train([*data, "word1"], [*labels, [f"label{bad}"]])


@pytest.mark.parametrize("value", [None, 3, b"bytes", ["list"]])
def test_texts_that_are_no_text_name_the_row(value):
    with pytest.raises(lw.DataError, match="row 1: a text must be a str"):
        toy().predict(["word1", value])


def test_odd_texts_train_too():
    data, labels = keyword_set()
    model = lw.train([*data, *PRIOR], [*labels, *[["label0"]] * len(PRIOR)], run=lw.Run(1))
    assert model.predict(["word5"], k=1)[0][0][0] == "label5"


def test_one_text_of_a_hundred_megabytes():
    text = "word3 filler word " * (100 * 2**20 // 18)
    start = time.monotonic()
    assert toy().predict([text], k=1)[0][0][0] == "label3"
    assert time.monotonic() - start < 5  # it takes 1 to 2 s


def test_a_million_texts_of_one_word():
    packed = Texts.from_strings([f"word{i % 20}" for i in range(1_000_000)])
    x = Tfidf.fit(Texts.from_strings(["word1 word2"] * 2), TfidfConfig(), threads=1)[0].transform(packed, threads=2)
    assert x.rows == 1_000_000
    assert x.nnz == 100_000


def test_training_needs_words():
    with pytest.raises(lw.DataError, match="none of the 3 texts holds a word"):
        lw.train(["", " ", "?"], [["a"], ["b"], ["a"]])
    with pytest.raises(lw.DataError, match="lower min_df"):
        lw.train(["ab", "cd"], [["a"], ["b"]])


# --- H3: labels ----------------------------------------------------------------------------------


@every_recipe
@pytest.mark.parametrize("labels", [None, [], [[]], [["a"]] * 71], ids=["none", "no rows", "one row", "one row less"])
def test_no_labels_or_not_enough_rows(method, labels):
    with pytest.raises(lw.DataError):
        lw.train(keyword_set()[0], labels, method=method)


@every_recipe
def test_no_label_in_any_row(method):
    data = keyword_set()[0]
    with pytest.raises(lw.DataError, match="no document has a label"):
        lw.train(data, [[]] * len(data), method=method)
    with pytest.raises(lw.DataError, match="is empty"):
        lw.train([], [], method=method)
    with pytest.raises(lw.DataError, match="no document has a label"):
        lw.train(X=np.ones((3, 2)), labels=np.zeros((3, 4)), method=method)


LABEL_SETS = {
    "one label": (lambda row, i: ["only"]),
    "one label, most rows without": (lambda row, i: ["only"] if i == 5 else []),
    "a label in every row": (lambda row, i: [*row, "everywhere"]),
    "repeats within a row": (lambda row, i: [*row, *row, row[0]]),
    "two labels": (lambda row, i: [["left", "right"][i % 2]]),
    "all labels in all rows": (lambda row, i: [f"label{j}" for j in range(12)]),
    "numbers and digits are one label": (lambda row, i: [7, "7"]),
}


@every_recipe
@pytest.mark.parametrize("shape", [{}, DEEP, {"tree.leaf": 1}], ids=["flat", "deep", "leaf 1"])
@pytest.mark.parametrize("name", LABEL_SETS)
def test_odd_label_sets_train(method, shape, name):
    data, lists = keyword_set()
    labels = [LABEL_SETS[name](row, i) for i, row in enumerate(lists)]
    model = lw.train(data, labels, method=method, settings=acting(shape, method), run=lw.Run(1))
    assert set(model.labels) == {str(v) for row in labels for v in row}
    sound(model, [*data, ""])
    best = model.predict(data, k=2)
    if name == "repeats within a row":
        assert [row[0][0] for row in best] == [row[0] for row in lists]
    if name == "a label in every row":
        assert [{n for n, _ in row} for row in best] == [{row[0], "everywhere"} for row in lists]


def test_repeats_are_counted():
    from labelwood.data import from_lists

    assert from_lists(["a", "b"], [["x", "x", "y"], ["x", "x", "x"]]).report.duplicate_labels == 3


@every_recipe
@pytest.mark.parametrize("split", ["bisect", "kway"])
@pytest.mark.parametrize("value", [0, 1], ids=["zero", "identical"])
def test_labels_that_cannot_be_told_apart(method, split, value):
    """All features zero, or all equal: still every label its place in the tree, and finite scores."""
    settings = {**DEEP, "tree.split": split}
    y = np.eye(12)[np.arange(60) % 12]
    kinds = (np.full((60, 3), value), sparse.csr_matrix(np.full((60, 3), value)))
    for x in () if METHODS[method].recipe.encoder.on else kinds:
        model = lw.train(X=x, labels=y, method=method, settings=acting(settings, method), run=lw.Run(1))
        assert all(sorted(member.tree.leaves.tolist()) == list(range(12)) for member in model.members)
        sound(model, X=x)
    same = lw.train(
        ["one text"] * 60, [[f"{i % 12}"] for i in range(60)], method=method, settings=acting(settings, method)
    )
    sound(same, ["one text", ""])


@every_recipe
@pytest.mark.parametrize("labels", [1, 2, 3])
def test_fewer_labels_than_branches(method, labels):
    data, lists = keyword_set(labels, 8)
    for branch, leaf in ((16, 1), (2**16, 1), (16, 2), (2, 2**16)):
        model = lw.train(
            data,
            lists,
            method=method,
            settings=acting({"tree.branch": branch, "tree.leaf": leaf}, method),
            run=lw.Run(1),
        )
        assert [row[0][0] for row in model.predict(data, k=1)] == [row[0] for row in lists]


# --- H4: numbers ---------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e38, -1e38, 1.1e15, 1e300])
@pytest.mark.parametrize("kind", ["sparse", "dense", "both"])
def test_numbers_that_are_refused(value, kind):
    x, dense, y = matrices()
    bad = dense.astype(np.float64)
    bad[7, 3] = value
    wrap = {"sparse": sparse.csr_matrix, "dense": np.asarray, "both": lambda m: (x, m)}[kind]
    with pytest.raises(lw.DataError, match=r"row 7: .*column 3"):
        lw.train(X=wrap(bad), labels=y)
    model = lw.train(X=wrap(dense), labels=y, run=lw.Run(1))
    with pytest.raises(lw.DataError, match=r"row 7: .*column 3"):
        model.predict(X=wrap(bad))


ODD_VALUES = [0.0, -0.0, 1e-45, -1e-45, 1e-38, 1e-20, 1e15, -1e15]


@pytest.mark.parametrize("loss", NAMES)
@pytest.mark.parametrize("combiner", COMBINERS)
@pytest.mark.parametrize("shape", [{}, {**DEEP, "tree.split": "kway"}], ids=["flat", "deep"])
def test_numbers_that_are_handled(loss, combiner, shape):
    """Mixed within rows, as whole rows and columns, as everything: what comes out is finite and sorted."""
    _, dense, y = matrices()
    settings = {**shape, "linear.loss": loss, "search.combiner": combiner, "linear.threshold": 0}
    mixed = dense.copy()
    mixed[np.arange(8), np.arange(8)] = ODD_VALUES
    mixed[8], mixed[:, 12], mixed[9, ::2], mixed[10] = 0, 1e-42, -1e15, 1e15
    tests = [mixed, *(dense * np.float32(v) for v in (1e15, 1e-45, -1e-20, 0))]
    for x in tests:
        model = lw.train(X=x, labels=y, settings=settings, run=lw.Run(1))
        for other in tests:
            sound(model, X=other)


def test_explicit_zeros_are_zeros():
    x, _, y = matrices()
    padded = x.copy()
    padded.data[:5] = 0
    plain = padded.copy()
    plain.eliminate_zeros()
    first, second = (lw.train(X=m, labels=y, run=lw.Run(1)) for m in (padded, plain))
    assert first.predict(X=x, k=12) == second.predict(X=x, k=12)


@pytest.mark.parametrize("value", [np.nan, np.inf, -1.0, 1e38])
def test_relevances_that_are_refused(value):
    _, dense, y = matrices()
    y[7, 3] = value
    with pytest.raises(lw.DataError, match="row 7"):
        lw.train(X=dense, labels=y)
    weights = [[1.0] * len(row) for row in LISTS]
    weights[7][0] = value
    with pytest.raises(lw.DataError, match="row 7"):
        lw.train(TEXTS, LISTS, relevance=weights)


@pytest.mark.parametrize("loss", NAMES)
@pytest.mark.parametrize("norm", ["l1", "l2", "max", "none"])
def test_relevances_that_are_handled(loss, norm):
    _, dense, y = matrices()
    y[80:] *= np.resize(np.array([1e-45, 1e15, 1e-20], np.float32), len(y[80:]))[:, None]
    y[0, 0], y[1, 5], y[2, 6] = 0, 1e15, 1e-45
    settings = {**DEEP, "linear.loss": loss, "linear.relevance": "given", "linear.relevance_norm": norm}
    sound(lw.train(X=dense, labels=y, settings=settings, run=lw.Run(1)), X=dense)


@pytest.mark.parametrize("loss", NAMES)
def test_extreme_settings(loss):
    _, dense, y = matrices()
    for change in (
        {"linear.cp": 1e-6, "linear.cn": 1e6},
        {"linear.cp": 1e6, "linear.cn": 1e-6},
        {"linear.alpha": 1e-12, "linear.lam": 1e-6},
        {"linear.eps": 1e-300},
        {"linear.eps": 1e300},
        {"linear.threshold": 1e300},
        {"linear.bias": 0},
        {"linear.bias": 1e3},
        {"linear.bias": 1e-300},
        {"seed": 2**63 - 1},
    ):
        sound(lw.train(X=dense, labels=y, settings={**DEEP, "linear.loss": loss, **change}, run=lw.Run(1)), X=dense)
    for lam, alpha in ((1e-7, 1.0), (1e7, 1.0), (1e-300, 1e-300), (1.0, 1e-7), (1e-320, 1.0)):
        with pytest.raises(lw.ConfigError, match=r"mean cp = .* and cn = "):
            lw.train(X=dense, labels=y, settings={"linear.loss": loss, "linear.lam": lam, "linear.alpha": alpha})


# --- H6: requests --------------------------------------------------------------------------------


@pytest.mark.parametrize("k", [0, -1, 10_001, 10**30, None, 1.0, "3", True, float("nan"), [1]])
def test_k_must_be_a_number_of_labels(k):
    with pytest.raises(lw.ConfigError, match="k must be a whole number from 1 to 10000"):
        toy().predict(["word1"], k=k)


@pytest.mark.parametrize("threads", [-1, 1025, 10**30, 1.5, "2", None, True])
def test_threads_must_be_a_number(threads):
    with pytest.raises(lw.ConfigError, match="threads must be"):
        toy().predict(["word1"], threads=threads)
    with pytest.raises(lw.ConfigError, match="threads must be"):
        lw.train(*keyword_set(), run=lw.Run(threads))


@every_recipe
def test_beams(method):
    data, lists = keyword_set()
    for beam in (0, -1, 10_001, 1.5, "wide", (), True):
        with pytest.raises(lw.ConfigError, match=r"search\.beam must be"):
            lw.train(data, lists, method=method, settings={"search.beam": beam})
    wide, wider = (
        lw.train(data, lists, method=method, settings=acting({**DEEP, "search.beam": beam}, method), run=lw.Run(1))
        for beam in (12, 10_000)
    )
    assert wide.predict(data, k=12) == wider.predict(data, k=12)
    narrow = lw.train(data, lists, method=method, settings=acting({**DEEP, "search.beam": 1}, method), run=lw.Run(1))
    for member in narrow.members:
        most = int(np.diff(member.tree.child_ptrs[-1]).max())  # the labels of one leaf
        assert all(1 <= len(row) <= most for row in member.predict(data, k=12))


@pytest.mark.parametrize("ks", [(), (0, 5), (-1, 5), (10_001,), (1.5,), ("1", 2), (True,), None])
def test_cutoffs_of_an_evaluation(ks):
    with pytest.raises(lw.ConfigError):
        toy().evaluate(*keyword_set(), metrics=lw.MetricsConfig(ks=ks))


def test_a_single_text_is_not_a_list_of_letters():
    with pytest.raises(lw.DataError, match=r"put it in a list: \[text\]"):
        toy().predict("word1")
    with pytest.raises(lw.LabelwoodError):
        lw.train("word1", [["a"]])


# --- H7: settings --------------------------------------------------------------------------------

JUNK = [
    None, True, -1, 0, 1, 2**70, 10**400, 0.5, -0.0, 1e308, float("nan"), float("inf"), "", "x", "none", "1,2,3", "[",
    "1-2", "a" * 9999, [], [1], [[1]], (1, "a"), {}, {"a": {}}, b"b", object(),
]  # fmt: skip


def mutated(table: dict[str, Any], rng: random.Random) -> dict[str, Any]:
    """One or two random edits: a value, a key, a section."""
    table = copy.deepcopy(table)
    for _ in range(rng.randint(1, 2)):
        part = rng.choice([table, *[v for v in table.values() if isinstance(v, dict)]])
        if not part:
            continue
        key = rng.choice(list(part))
        match rng.randrange(4):
            case 0:
                del part[key]
            case 1:
                letters = list(str(key))
                letters.insert(rng.randrange(len(letters) + 1), rng.choice("aeé_.0"))
                part["".join(letters)] = part.pop(key)
            case _:
                part[key] = rng.choice(JUNK)
    return table


@every_recipe
def test_thousands_of_wrong_configs(method):
    rng, plain, cases = random.Random(method), to_dict(METHODS[method].recipe), 3_000 // len(METHODS)
    lengths = []
    for case in range(cases):
        table = mutated(plain, rng)
        try:
            recipe = merge(METHODS[method].recipe, table) if case % 2 else from_dict(Recipe, table)
            assert from_plain(to_dict(recipe)) == tidy(recipe)
        except lw.ConfigError as error:
            lengths.append(len(str(error)))
    assert cases / 2 < len(lengths) < cases
    assert 10 < min(lengths) <= max(lengths) < 1000


@every_recipe
def test_every_misspelt_setting_names_the_right_one(method):
    for row in describe(METHODS[method].recipe):
        wrong = row.path + "x"
        with pytest.raises(lw.ConfigError, match=f"did you mean '{row.path}'"):
            resolve(method, settings={wrong: row.default})


@every_recipe
def test_every_setting_refuses_what_it_is_not(method):
    for row in describe(METHODS[method].recipe):
        for value in ({}, {"a": 1}, object(), b"x", [[1]]):
            with pytest.raises(lw.ConfigError, match=row.path.split(".")[-1]):
                resolve(method, settings={row.path: value})


@pytest.mark.parametrize(
    "options",
    [
        {"method": "xr-liner"}, {"method": None}, {"method": ["xr-linear"]}, {"preset": 3}, {"preset": "none"},
        {"settings": [1]}, {"settings": "seed=1"}, {"settings": {3: 4}}, {"settings": {None: 4}}, {"config": 3},
        {"config": [1]}, {"config": {"tree": 3}}, {"config": {None: 3}}, {"config": "no/such/file"}, {"seed": "x"},
        {"seed": -1}, {"seed": 2**63}, {"seed": 1.5}, {"config": "\0"}, {"config": "x" * 9999},
    ],
    ids=str,
)  # fmt: skip
def test_odd_arguments_of_train(options):
    with pytest.raises(lw.ConfigError):
        lw.train(*keyword_set(), **options)


def test_deep_configs(tmp_path):
    deep: Any = 1
    for _ in range(10_000):
        deep = {"tree": deep}
    with pytest.raises(lw.ConfigError):
        resolve(config=deep)
    path = tmp_path / "deep.toml"
    nested = ("tree = " + "{a = " * 10_000, "tree.a" + ".a" * 10_000 + " = 1", "seed = " + "[" * 10_000 + "]" * 10_000)
    for text in (*nested, "[tree" + ".a" * 10_000 + "]"):
        path.write_text(text)
        with pytest.raises(lw.ConfigError):
            resolve(config=path)
    with pytest.raises(lw.ConfigError):
        resolve(settings={"tree" + ".a" * 10_000: 1})
    with pytest.raises(lw.ConfigError):
        resolve(settings={"tree.levels": "[" * 10_000})


def test_warnings_are_not_errors():
    """Unsorted columns are sorted with one warning; nothing else of a plain run warns."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.train(*keyword_set(), run=lw.Run(1)).predict(["word1", ""])
