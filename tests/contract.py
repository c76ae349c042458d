"""What every recipe obeys, whatever it is made of: each `check_` runs on all of them, on a flat and on a deep tree.

It speaks only to the public API and knows no recipe by name; a new recipe passes it without touching it.
"""

from __future__ import annotations

import dataclasses
import hashlib
from collections.abc import Sequence
from functools import cache
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import labelwood as lw
from cases import acting
from labelwood.arrays.sparse import as_csr
from labelwood.recipes import methods
from toy import contract_set, noisy_set

SHAPES: dict[str, dict[str, object]] = {"flat": {}, "deep": {"tree.leaf": 2, "tree.branch": 2}}
LABELS = 12
TEXTS, LISTS = contract_set(LABELS)
TRUTH = [set(row) for row in LISTS]


@dataclasses.dataclass(frozen=True)
class Case:
    """One recipe on one shape of tree, and a folder to write to."""

    method: str
    shape: str
    tmp: Path

    @property
    def model(self) -> lw.Predictor:
        """Trained on the toy set; shared, as models never change."""
        return toy_model(self.method, self.shape)

    @property
    def encodes(self) -> bool:
        """Has the recipe an encoder? It reads text alone then, and rounds by the shape of its batches."""
        return methods.method(self.method).recipe.encoder.on

    def refuses_features(self) -> bool:
        """A recipe that reads text says so when it is given features, before any work."""
        if self.encodes:
            x, _, y = matrices()
            with pytest.raises(lw.ConfigError, match="reads text"):
                self.train(X=x, labels=y)
        return self.encodes

    def train(
        self, *data: Any, settings: dict[str, object] | None = None, threads: int = 1, **options: Any
    ) -> lw.Predictor:
        changes = acting({**SHAPES[self.shape], **(settings or {})}, self.method)
        return lw.train(*data, method=self.method, settings=changes, run=lw.Run(threads), **options)

    def saved(self, model: lw.Predictor, name: str = "model") -> Path:
        model.save(self.tmp / name)
        return self.tmp / name


@cache
def toy_model(method: str, shape: str) -> lw.Predictor:
    return lw.train(TEXTS, LISTS, method=method, settings=acting(SHAPES[shape], method), run=lw.Run(1))


def digest(folder: Path) -> str:
    """Of names and bytes of all files of a folder."""
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()


def alike(case: Case, a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> bool:
    """Bit for bit; to rounding where an encoder reads the text, since matrix products of another shape round apart."""
    return bool(np.allclose(a[1], b[1], atol=5e-3)) if case.encodes else same(a, b)


def same(a: tuple[np.ndarray, np.ndarray], b: tuple[np.ndarray, np.ndarray]) -> bool:
    """Bit for bit."""
    return all(
        x.dtype == y.dtype and x.shape == y.shape and x.tobytes() == y.tobytes() for x, y in zip(a, b, strict=True)
    )


def best(found: Sequence[Sequence[tuple[str, float]]]) -> list[set[str]]:
    """The names of the best labels of each toy document, as many as it has."""
    return [{name for name, _ in row[: len(truth)]} for row, truth in zip(found, TRUTH, strict=True)]


def orderly(ids: np.ndarray, scores: np.ndarray, labels: int) -> None:
    """Ids distinct and in range, -1 only at the end; scores finite and falling."""
    assert np.isfinite(scores).all()
    for row, values in zip(ids, scores, strict=True):
        kept = row[row >= 0]
        assert (row[: len(kept)] >= 0).all()
        assert len(set(kept.tolist())) == len(kept)
        assert (kept < labels).all()
        assert all(a >= b for a, b in pairwise(values[: len(kept)].tolist()))


def matrices() -> tuple[Any, np.ndarray, np.ndarray]:
    """The toy set as X sparse, X dense and Y: column i of X is the word of label i, a last column is common."""
    x = np.zeros((len(TEXTS), LABELS + 1), np.float32)
    y = np.zeros((len(TEXTS), LABELS), np.float32)
    for row, labels in enumerate(LISTS):
        for name in labels:
            x[row, int(name[5:])] = y[row, int(name[5:])] = 1
    x[:, LABELS] = 0.5
    return sparse.csr_matrix(x), x, y


# --- right answers -------------------------------------------------------------------------------


def check_names_are_exact(case: Case) -> None:
    assert best(case.model.predict(TEXTS, k=2)) == TRUTH


def check_new_documents(case: Case) -> None:
    texts = ["word3 unheard words", "UNHEARD, Word11!", "word7 word2"]
    found = case.model.predict(texts, k=2)
    assert found[0][0][0] == "label3"
    assert found[1][0][0] == "label11"
    assert {name for name, _ in found[2]} == {"label7", "label2"}


def check_arrays_are_the_same_answer(case: Case) -> None:
    ids, scores = case.model.predict_arrays(TEXTS, k=3)
    assert (ids.dtype, scores.dtype, ids.shape) == (np.int32, np.float32, (len(TEXTS), 3))
    names = [[case.model.labels[i] for i in row if i >= 0] for row in ids]
    assert names == [[name for name, _ in row] for row in case.model.predict(TEXTS, k=3)]
    assert case.model.labels == tuple(sorted(f"label{i}" for i in range(LABELS)))


def check_evaluation_is_perfect(case: Case) -> None:
    """Documents of one label have it first, those of two have both first: P@1, R@2 and nDCG@2 are 100."""
    found = case.model.evaluate(TEXTS, LISTS, metrics=lw.MetricsConfig(ks=(1, 2)))
    assert found["P@1"] == found.values["P@1"] == 100
    assert found["R@2"] == 100
    with pytest.raises(lw.ConfigError, match=r"'P@3' was not measured; did you mean 'P@"):
        found["P@3"]


def check_file_in_and_folder_out(case: Case) -> None:
    path = case.tmp / "train.txt"
    rows = (" ".join(f"__label__{name}" for name in row) for row in LISTS)
    path.write_text("".join(f"{labels} {text}\n" for labels, text in zip(rows, TEXTS, strict=True)))
    model = case.train(path)
    assert same(model.predict_arrays(TEXTS), case.model.predict_arrays(TEXTS))


# --- order and number of answers -----------------------------------------------------------------


def check_scores_are_finite_and_sorted(case: Case) -> None:
    for k in (1, 5, LABELS):
        orderly(*case.model.predict_arrays([*TEXTS, "", "word1 word2 word3"], k=k), LABELS)


def check_ties_go_by_id(case: Case) -> None:
    """Two labels that are always together cannot be told apart; side by side they get one score."""
    if methods.method(case.method).recipe.joint:
        return  # the rows of a network's head start from different random weights
    model = case.train(TEXTS, [[*row, "twin-b", "twin-a"] for row in LISTS], settings={"tree.leaf": 100})
    for row in model.predict(TEXTS, k=LABELS + 2):
        twins = [(name, score) for name, score in row if name.startswith("twin")]
        assert [name for name, _ in twins] == ["twin-a", "twin-b"]
        assert twins[0][1] == twins[1][1]


def check_k(case: Case) -> None:
    model = case.train(TEXTS, LISTS, settings={"search.beam": 100})
    all_of_them = model.predict_arrays(TEXTS, k=LABELS)
    assert (np.sort(all_of_them[0], axis=1) == np.arange(LABELS)).all()
    assert same(model.predict_arrays(TEXTS, k=LABELS + 1), all_of_them)
    assert same(model.predict_arrays(TEXTS, k=10_000), all_of_them)
    for k in range(1, LABELS):
        assert same(model.predict_arrays(TEXTS, k=k), tuple(a[:, :k].copy() for a in all_of_them))  # type: ignore[arg-type]


def check_no_documents(case: Case) -> None:
    assert case.model.predict([]) == []
    ids, scores = case.model.predict_arrays([], k=3)
    assert ids.shape == scores.shape == (0, 3)


# --- files ---------------------------------------------------------------------------------------


def check_save_and_load(case: Case) -> None:
    loaded = lw.load(case.saved(case.model))
    assert same(loaded.predict_arrays(TEXTS, k=LABELS), case.model.predict_arrays(TEXTS, k=LABELS))
    assert loaded.labels == case.model.labels
    assert loaded.recipe == case.model.recipe


def check_round_trip_is_exact(case: Case) -> None:
    first = case.saved(case.model, "first")
    assert digest(case.saved(lw.load(first), "second")) == digest(first)


def check_label_texts_come_along(case: Case) -> None:
    """They are kept, and change nothing but the file of the labels."""
    texts = {"label3": "three, ä", "label0": "zero", "elsewhere": "?"}
    model = case.train(TEXTS, LISTS, label_texts=texts)
    assert model.label_texts == tuple(texts.get(name, "") for name in model.labels)
    first = case.saved(model, "first")
    loaded = lw.load(first)
    assert loaded.label_texts == model.label_texts
    assert digest(case.saved(loaded, "second")) == digest(first)
    assert case.model.label_texts == ()
    bare = case.saved(case.model, "bare")
    other = {p.name for p in first.iterdir()} ^ {p.name for p in bare.iterdir()}
    assert [name.partition("-")[0] for name in sorted(other)] == ["labels", "labels"]


def check_repr_is_one_line(case: Case) -> None:
    kind = type(case.model).__name__
    assert repr(case.model).startswith(f"<labelwood.{kind} {case.method}: 12 labels, {len(TEXTS)} documents, ")
    assert "\n" not in repr(case.model)
    for member in case.model.members:
        sizes = " → ".join(map(str, member.tree.sizes))
        assert repr(member) == f"<labelwood.Model {case.method}: 12 labels, {len(TEXTS)} documents, tree {sizes}>"


# --- the same bits -------------------------------------------------------------------------------


def check_same_seed_same_bytes(case: Case) -> None:
    data = noisy_set(1)
    assert len({digest(case.saved(case.train(*data, seed=5), f"{i}")) for i in range(2)}) == 1


def check_threads_change_nothing(case: Case) -> None:
    """Also where a parent's many children are cut into several jobs, and positives are outside the shortlist.

    With an encoder the same number of threads gives the same bytes.
    """
    if case.encodes:
        models = [case.train(*noisy_set(2), threads=2) for _ in range(2)]
        assert len({digest(case.saved(model, f"{i}")) for i, model in enumerate(models)}) == 1
        return
    data = noisy_set(2, docs=120, labels=60)
    for source, leaf in (("teacher", 2), ("predicted", 2), ("predicted", 30), ("union", 30)):
        settings = {"shortlist.source": source, "shortlist.parents": 1, "tree.leaf": leaf, "search.beam": 2}
        models = [case.train(*data, settings=settings, threads=t) for t in (1, 2, 3, 7, 16)]
        assert len({digest(case.saved(model, f"{i}")) for i, model in enumerate(models)}) == 1, source
        found = [models[0].predict_arrays(data[0], k=9, threads=t) for t in (1, 2, 3, 7, 16)]
        assert all(same(found[0], other) for other in found)


def check_the_seed_matters(case: Case) -> None:
    data = noisy_set(3)
    assert len({digest(case.saved(case.train(*data, seed=s), f"{s}")) for s in range(10)}) >= 9


def check_batching_changes_nothing(case: Case) -> None:
    texts = [*noisy_set(4)[0], *TEXTS, "", "unheard"]
    whole = case.model.predict_arrays(texts, k=7)
    for size in (1, 2, 7, 64):
        batches = [case.model.predict_arrays(texts[i : i + size], k=7) for i in range(0, len(texts), size)]
        assert alike(case, whole, (np.concatenate([b[0] for b in batches]), np.concatenate([b[1] for b in batches])))
    order = np.random.default_rng(0).permutation(len(texts))
    shuffled = case.model.predict_arrays([texts[i] for i in order], k=7)
    assert alike(case, (whole[0][order], whole[1][order]), shuffled)


# --- text or features ----------------------------------------------------------------------------


def check_text_and_features_do_not_mix(case: Case) -> None:
    x, _, y = matrices()
    with pytest.raises(lw.ConfigError, match="trained on text"):
        case.model.predict(X=x)
    if case.refuses_features():
        return
    of_features = case.train(X=x, labels=y)
    with pytest.raises(lw.ConfigError, match="trained on features"):
        of_features.predict(TEXTS)
    with pytest.raises(lw.ConfigError, match="either texts or X"):
        case.model.predict(TEXTS, X=x)
    with pytest.raises(lw.ConfigError, match="either texts or X"):
        case.model.predict()
    with pytest.raises(lw.ConfigError, match="13 and 0"):
        of_features.predict(X=x[:, :5])


def check_every_kind_of_features(case: Case) -> None:
    if case.refuses_features():
        return
    x, dense, y = matrices()
    for features in (x, dense, (x, dense), (x[:, :6], dense[:, 6:])):
        model = case.train(X=features, labels=sparse.csr_matrix(y))
        ids, _ = model.predict_arrays(X=features, k=2)
        names = [[model.labels[i] for i in row] for row in ids]
        assert [{f"label{n}" for n in row[: len(t)]} for row, t in zip(names, TRUTH, strict=True)] == TRUTH
        loaded = lw.load(case.saved(model))
        assert same(loaded.predict_arrays(X=features), model.predict_arrays(X=features))
        for labels in (y, sparse.csr_matrix(y), [[int(i) for i in np.flatnonzero(row)] for row in y]):
            quick = lw.MetricsConfig(bootstrap=0)
            assert model.evaluate(X=features, labels=labels, metrics=quick)["P@1"] == 100


def check_labels_may_be_numbers(case: Case) -> None:
    model = case.train(TEXTS, [[int(name[5:]) for name in row] for row in LISTS])
    assert {name for name, _ in model.predict(["word7 word11"], k=2)[0]} == {"7", "11"}


# --- odd labels and documents --------------------------------------------------------------------


def check_label_without_positives(case: Case) -> None:
    """It keeps its id, is in no beam, and comes after all others if k asks for it."""
    x, _, y = matrices()
    y[:, 4] = 0
    keep = y.sum(axis=1) > 0
    few = lw.data.from_lists(TEXTS, LISTS)
    few = dataclasses.replace(
        few.take(np.flatnonzero(keep)), names=tuple(map(str, range(LABELS))), labels=as_csr(y[keep])
    )
    given: dict[str, Any] = {"texts": TEXTS} if case.encodes else {"X": x}
    beam: dict[str, object] = {"search.beam": 100}
    model = case.train(few, settings=beam) if case.encodes else case.train(X=x[keep], labels=y[keep], settings=beam)
    nowhere = model.labels.index("4")
    assert len(model.labels) == LABELS
    ids, scores = model.predict_arrays(**given, k=LABELS)
    assert (ids[:, -1] == nowhere).all()
    assert (np.sort(ids, axis=1) == np.arange(LABELS)).all()
    orderly(ids, scores, LABELS)
    assert not (model.predict_arrays(**given, k=LABELS - 1)[0] == nowhere).any()


def check_documents_without_words(case: Case) -> None:
    """Empty, blank and unknown texts are one and the same to a model: its prior, here the most frequent label."""
    texts = [*TEXTS, *["word0 common"] * 200]
    model = case.train(texts, [*LISTS, *[["label0"]] * 200])
    unknown = ["", " \t\n"] if case.encodes else ["", " \t\n", "unheard", "?!"]  # an encoder knows every character
    ids, scores = model.predict_arrays(unknown, k=LABELS)
    orderly(ids, scores, LABELS)
    assert (ids == ids[0]).all()
    assert (scores == scores[0]).all()
    assert case.encodes or model.labels[ids[0, 0]] == "label0"  # an empty text has an embedding too


def check_training_documents_without_labels_or_words(case: Case) -> None:
    model = case.train([*TEXTS, "word1 word2", "", "common"], [*LISTS, [], ["label3"], []])
    assert best(model.predict(TEXTS, k=2)) == TRUTH


# --- settings ------------------------------------------------------------------------------------


def check_a_value_for_each_level(case: Case) -> None:
    depth = case.model.members[0].tree.depth
    model = case.train(TEXTS, LISTS, settings={"linear.threshold": (0.0,) * depth, "search.beam": (12,) * depth})
    assert best(model.predict(TEXTS, k=2)) == TRUTH
    for name, value in (("linear.threshold", 0.0), ("linear.max_iter", 50)):
        with pytest.raises(lw.ConfigError, match=f"{name} gives {depth + 1} values"):
            case.train(TEXTS, LISTS, settings={name: (value,) * (depth + 1)})


def check_a_wrong_number_of_beams_is_refused_before_training(case: Case) -> None:
    depth = case.model.members[0].tree.depth
    for name, value in (("search.beam", 5), ("search.combiner", "sigmoid"), ("shortlist.source", "union")):
        settings: dict[str, object] = {name: (value,) * (depth + 1)}
        if acting(settings, case.method):
            with pytest.raises(lw.ConfigError, match=f"{name} gives {depth + 1} values"):
                case.train(TEXTS, LISTS, settings=settings)


def check_relevance_of_the_user(case: Case) -> None:
    given = [[2.0 if i == 0 else 0.5 for i in range(len(row))] for row in LISTS]
    for norm in ("l1", "l2", "max", "none"):
        changes = {"linear.relevance": "given", "linear.relevance_norm": norm}
        model = case.train(TEXTS, LISTS, relevance=given, settings=changes)
        assert best(model.predict(TEXTS, k=2)) == TRUTH
    assert best(case.train(TEXTS, LISTS, relevance=given).predict(TEXTS, k=2)) == TRUTH


def check_every_preset(case: Case) -> None:
    from labelwood.recipes.methods import method

    for preset in method(case.method).presets:
        model = case.train(TEXTS, LISTS, preset=preset)
        assert best(model.predict(TEXTS, k=2)) == TRUTH, preset


# Every check of this file, by name.
CHECKS = {name.removeprefix("check_"): value for name, value in globals().items() if name.startswith("check_")}
