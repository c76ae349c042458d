"""PIFA label features against the twin and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from cases import cases
from labelwood.labels import LabelFeatureConfig, binary, pifa
from labelwood.sparse import Features, as_csr
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
