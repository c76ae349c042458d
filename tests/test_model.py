"""What a loaded model refuses, and the small promises of the Python API that are no recipe's own."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import labelwood as lw
from labelwood.data import from_lists
from labelwood.storage import model_folder

TEXTS, LABELS = ["word1 a", "word2 b", "word3 c"], [["x"], ["y"], ["x", "z"]]
Tensors = dict[str, Any]


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return lw.train(TEXTS, LABELS, label_texts={"x": "ex", "z": "zé"}, settings={"tfidf.min_df": 1})


def _bytes(text: bytes) -> np.ndarray:
    return np.frombuffer(text, np.uint8)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"texts": _bytes(b"exz\xff\xff")}, "one of the label texts is not valid UTF-8"),
        ({"texts": _bytes(b"exz")}, "the offsets of the label texts are out of order"),
        ({"text_offsets": np.array([0, 6, 2, 5])}, "the offsets of the label texts are out of order"),
        ({"text_offsets": np.array([0, 2, 5])}, "the label texts do not fit the model"),
        ({"text_offsets": np.array([0, 2, 2, 5], np.int32)}, "the label texts do not fit the model"),
        ({"texts": None}, "texts"),
        ({"text_offsets": None}, "text_offsets"),
        ({"names": _bytes(b"xy\xff")}, "one of the label names is not valid UTF-8"),
        ({"names": _bytes(b"xyx")}, "two labels have the same name"),
        ({"offsets": np.array([0, 2, 1, 3])}, "the offsets of the label names are out of order"),
        ({"counts": np.array([2, 1])}, "the label counts do not fit the model"),
        ({"counts": np.array([2, -1, 1])}, "the label counts do not fit the model"),
    ],
)
def test_a_forged_labels_part_is_refused(model: lw.Model, tmp_path: Path, change: Tensors, message: str) -> None:
    model.save(tmp_path / "m")
    found = model_folder.load(tmp_path / "m")
    labels = {name: array for name, array in {**found.part("labels"), **change}.items() if array is not None}
    model_folder.save(tmp_path / "forged", found.meta, {**found.parts, "labels": labels})
    with pytest.raises(lw.ModelFileError, match=message):
        lw.load(tmp_path / "forged")


def test_label_texts_from_a_file_or_a_mapping(model: lw.Model, tmp_path: Path) -> None:
    assert model.label_texts == ("ex", "", "zé")
    path = tmp_path / "texts.csv"
    path.write_text("x,ex\nz,zé\nother,?\n", encoding="utf-8")
    for given in (path, str(path)):
        found = lw.train(TEXTS, LABELS, label_texts=given, settings={"tfidf.min_df": 1})
        assert found.label_texts == model.label_texts
    numbers: Any = {1: "one"}
    found = lw.train(TEXTS, [[1], [2], [1]], label_texts=numbers, settings={"tfidf.min_df": 1})
    assert found.label_texts == ("one", "")


@pytest.mark.parametrize(
    ("texts", "message"),
    [
        ({"x": 3}, "a label's text must be a string, but is a whole number"),
        ({"x": "\ud800"}, "lone surrogate"),
        ({1.5: "x"}, "a label must be text or a whole number, but is float"),
        (["ex"], "label texts must map labels to texts, but are list"),
        ({"X": "ex"}, "none of the 1 label texts is for a label of the data; .* like 'x', the texts' like 'X'"),
        ({}, "none of the 0 label texts"),
    ],
)
def test_bad_label_texts(texts: Any, message: str) -> None:
    with pytest.raises(lw.DataError, match=message):
        lw.train(TEXTS, LABELS, label_texts=texts)


def test_a_data_set_with_too_few_label_texts_is_refused() -> None:
    data = dataclasses.replace(from_lists(TEXTS, LABELS), label_texts=("ex",))
    with pytest.raises(lw.DataError, match="there are 3 labels but 1 label texts"):
        lw.train(data)


def test_evaluating_nothing_says_what_is_missing(model: lw.Model) -> None:
    with pytest.raises(lw.ConfigError, match="give texts, a path, or X=features"):
        model.evaluate(labels=LABELS)
    with pytest.raises(lw.DataError, match="the data has no labels"):
        model.evaluate(TEXTS)


@pytest.mark.parametrize("call", [repr, str])
def test_a_model_is_shown_on_one_line(model: lw.Model, call: Callable[[object], str]) -> None:
    assert call(model) == "<labelwood.Model xr-linear: 3 labels, 3 documents, tree 3>"


def test_one_at_a_time_for_every_k(model):
    texts = ["word1 a", "word2 b", "", "nothing known"]
    for _ in range(2):
        for k in range(1, 80):
            many = model.predict(texts, k=k)
            assert [model.predict([text], k=k)[0] for text in texts] == many
            assert all(len(row) == min(k, 3) for row in many)


def test_one_row_of_any_type():
    rows = np.array([[1, 0, 2], [0, 3, 0], [1, 1, 0]], np.float32)
    trained = lw.train(X=sparse.csr_matrix(rows), labels=[["x"], ["y"], ["z"]])
    right = trained.predict(X=sparse.csr_matrix(rows))
    for kind in (np.float32, np.float64, np.int64, np.uint8):
        for index in (np.int32, np.int64):
            row = sparse.csr_matrix(rows[:1].astype(kind))
            row.indptr, row.indices = row.indptr.astype(index), row.indices.astype(index)
            assert trained.predict(X=row) == right[:1], (kind, index)
    for index in (np.array([-1, 2], np.int32), np.array([0, 3], np.int32), np.array([0, 2**32 + 2])):
        row = sparse.csr_matrix(rows[:1])
        row.indices = index
        with pytest.raises(lw.DataError, match=r"outside 0\.\.2|out of range"):
            trained.predict(X=row)
    with pytest.raises(lw.DataError, match="not a number within"):
        trained.predict(X=sparse.csr_matrix(np.array([[1e300, 0, 0]])))


def test_texts_of_labels_that_nobody_gave():
    """F-N7: `label_texts[i]` says why there are none, and `text_of` is empty then."""
    texts, labels = ["a red apple", "the blue sky"] * 2, [["fruit"], ["weather"]] * 2
    bare = lw.train(texts, labels)
    with pytest.raises(IndexError, match=r"no texts of labels; train it with label_texts=…, or ask model\.text_of"):
        bare.label_texts[0]
    assert list(bare.label_texts) == []
    assert bare.text_of("fruit") == bare.text_of(1) == ""
    told = lw.train(texts, labels, label_texts={"fruit": "what grows on trees"})
    assert told.text_of("fruit") == told.text_of(0) == told.label_texts[0] == "what grows on trees"
    assert told.text_of("weather") == ""
    for wrong in ("sky", 2, -1):
        with pytest.raises(lw.ConfigError, match="label"):
            told.text_of(wrong)
