"""Label features of every kind, against the twin and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labelwood as lw
import reference
from cases import cases
from labelwood import _core
from labelwood.arrays.sparse import Csr, Features, as_csr
from labelwood.parts.label_features import LabelFeatureConfig, binary, label_features, pifa, walked
from toy import random_features, random_labels

pytestmark = pytest.mark.native


def dense_of(z: Features) -> np.ndarray:
    blocks = [] if z.sparse is None else [z.sparse.to_scipy().toarray()]
    return np.hstack([*blocks, *([] if z.dense is None else [z.dense])])


def test_by_hand():
    x = Features(as_csr(np.array([[1, 0], [0, 2], [3, 0]])))
    y = as_csr(np.array([[1, 0], [1, 1], [1, 0]]))
    z = dense_of(pifa(y, x, LabelFeatureConfig(), 1))
    assert z[0] == pytest.approx(np.array([4, 2]) / np.sqrt(20))
    assert z[1].tolist() == [0, 1]


def test_walks_stay_among_labels_that_are_seen_together():
    """Two labels that share all documents, one alone, one without any: half of the visits each, itself, itself."""
    y = as_csr(np.array([[1, 1, 0, 0], [1, 1, 0, 0], [0, 0, 1, 0]]))
    g = walked(y, 4000, 0).to_scipy().toarray()
    assert g[:2, :2] == pytest.approx(np.full((2, 2), 0.5), abs=0.03)
    assert g[2].tolist() == [0, 0, 1, 0]
    assert g[3].tolist() == [0, 0, 0, 1]
    assert np.array_equal(g, walked(y, 4000, 0).to_scipy().toarray())
    assert not np.array_equal(g, walked(y, 4000, 1).to_scipy().toarray())


def test_walks_restart_and_keep_the_most_visited():
    """A chain of labels 0 - 1 - … - 29, neighbours sharing a document: most visits are near, ten are kept."""
    rows = np.zeros((29, 30))
    rows[np.arange(29), np.arange(29)] = rows[np.arange(29), np.arange(1, 30)] = 1
    found = walked(as_csr(rows), 4000, 0)
    counts = found.counts()
    assert counts.max() <= 10
    row = found.indices[found.indptr[15] : found.indptr[16]]
    assert {14, 15, 16} <= set(row.tolist())
    assert np.abs(row - 15).max() <= 6


def test_walks_mix_the_features_of_labels():
    x = Features(as_csr(np.array([[1, 0, 0], [0, 1, 0], [0, 0, 1]])))
    y = as_csr(np.array([[1, 0, 0], [1, 1, 0], [0, 0, 1]]))
    z = dense_of(label_features(y, x, LabelFeatureConfig(walks=2000), threads=1))
    plain = dense_of(label_features(y, x, LabelFeatureConfig(), threads=1))
    assert plain[1].tolist() == [0, 1, 0]
    assert 0 < z[1, 0] < z[1, 1]
    assert z[2].tolist() == [0, 0, 1]
    assert np.linalg.norm(z, axis=1) == pytest.approx(np.ones(3))


def test_row_l2_weighting_divides_by_the_root_of_the_label_count():
    y = as_csr(np.array([[1, 1, 1, 1], [0, 1, 0, 0]]))
    assert binary(y, "row-l2").data.tolist() == [0.5, 0.5, 0.5, 0.5, 1.0]


@cases(2000)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 9),
    sparse=st.integers(0, 9),
    dense=st.integers(0, 3),
    labels=st.integers(1, 6),
    top=st.none() | st.integers(1, 4),
    threads=st.integers(1, 3),
)
def test_equals_the_twin(seed, rows, sparse, dense, labels, top, threads):
    if sparse + dense == 0:
        sparse = 1
    if dense:
        top = None  # `top` bounds the sparse block only
    rng = np.random.default_rng(seed)
    x, whole = random_features(rng, rows, sparse, dense)
    y, y_dense = random_labels(rng, rows, labels)
    z = pifa(y, x, LabelFeatureConfig(top=top), threads)
    assert dense_of(z) == pytest.approx(reference.pifa(y_dense, whole, top), abs=1e-5)


@cases(300)
@given(seed=st.integers(0, 2**32), rows=st.integers(1, 9), labels=st.integers(1, 6), most=st.integers(1, 60))
def test_without_top_the_entries_stay_bounded(seed, rows, labels, most):
    rng = np.random.default_rng(seed)
    x, whole = random_features(rng, rows, 9, 0)
    y, y_dense = random_labels(rng, rows, labels)
    member = y.transpose()
    ptr, idx, val, _ = _core.pifa(*member.parts, *x.parts, 0, most, 2, None)
    assert Csr(ptr, idx, val, 9).to_scipy().toarray() == pytest.approx(
        reference.pifa(y_dense, whole, None, most), abs=1e-5
    )
    assert len(idx) <= max(most, labels)


def unit(*rows: list[float]) -> np.ndarray:
    a = np.array(rows, float)
    return a / np.linalg.norm(a, axis=1, keepdims=True)


Y = np.array([[1, 1, 0], [1, 0, 0], [0, 0, 1]])
X = np.array([[3, 0], [0, 4], [0, 2]])
TEXTS = np.array([[0, 0], [0, 1], [1, 0]])


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        ("pifa", unit([3, 4], [1, 0], [0, 1])),
        ("cooccurrence", unit([2, 1, 0], [1, 1, 0], [0, 0, 1])),
        ("both", np.hstack([unit([3, 4], [1, 0], [0, 1]), unit([2, 1, 0], [1, 1, 0], [0, 0, 1])]) / np.sqrt(2)),
        ("text", unit([3, 4], [0, 1], [1, 0])),  # the first label has no text: its PIFA
        ("pifa+text", unit([3, 4], [1, 1], [1, 1])),
    ],
)
def test_kinds_by_hand(kind, expected):
    config = LabelFeatureConfig(kind=kind)
    z = label_features(as_csr(Y), Features(as_csr(X)), config, texts=as_csr(TEXTS), threads=1)
    assert dense_of(z) == pytest.approx(expected, abs=1e-6)


def test_both_beside_a_dense_block():
    """The dense columns come last, and all of a row has length 1."""
    x = Features(as_csr(X), np.array([[1], [0], [2]], np.float32))
    z = dense_of(label_features(as_csr(Y), x, LabelFeatureConfig(kind="both"), threads=1))
    left, middle = unit([3, 4, 1], [3, 0, 1], [0, 2, 2]), unit([2, 1, 0], [1, 1, 0], [0, 0, 1])
    assert z == pytest.approx(np.hstack([left[:, :2], middle, left[:, 2:]]) / np.sqrt(2), abs=1e-6)
    only = dense_of(label_features(as_csr(Y), Features(dense=x.dense), LabelFeatureConfig(kind="both"), threads=1))
    assert only == pytest.approx(np.hstack([middle, np.ones((3, 1))]) / np.sqrt(2), abs=1e-6)


@pytest.mark.parametrize("kind", ["text", "pifa+text"])
def test_text_without_texts_is_refused(kind):
    settings = {"labels.kind": kind, "tfidf.min_df": 1}
    with pytest.raises(lw.ConfigError, match="--label-texts"):
        lw.train(["ab cd", "ef gh"], [["x"], ["y"]], settings=settings)
    with pytest.raises(lw.ConfigError, match="documents of text"):  # features of the user: no vocabulary for words
        lw.train(X=X, labels=Y, label_texts={"0": "ab"}, settings=settings)


def test_texts_decide_where_documents_do_not():
    """Documents say nothing of who belongs together; the labels' own words do."""
    texts = [f"same words{i}" for i in range(4)]
    names = {"a": "red", "b": "blue", "c": "red", "d": "blue"}
    found = lw.train(
        [*texts, "red", "blue"],
        [["a"], ["b"], ["c"], ["d"], [], []],
        label_texts=names,
        settings={"labels.kind": "text", "tree.levels": (2,), "tfidf.min_df": 1, "tfidf.words": (1, 1)},
    ).tree
    assert sorted(sorted(found.leaves[a:b].tolist()) for a, b in ((0, 2), (2, 4))) == [[0, 2], [1, 3]]


def test_threads_do_not_change_a_bit():
    rng = np.random.default_rng(0)
    x, _ = random_features(rng, 300, 50, 4)
    y, _ = random_labels(rng, 300, 200)
    one, many = (pifa(y, x, LabelFeatureConfig(top=9), threads) for threads in (1, 7))
    assert one.sparse is not None
    assert many.sparse is not None
    assert one.sparse.data.tobytes() == many.sparse.data.tobytes()
    assert one.sparse.indices.tobytes() == many.sparse.indices.tobytes()
    assert one.dense.tobytes() == many.dense.tobytes()
