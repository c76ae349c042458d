"""Shortlists by hand."""

from __future__ import annotations

import numpy as np

from labelwood.arrays.sparse import as_csr
from labelwood.parts.shortlist import all_rows, from_ids, union


def test_all_rows_are_under_the_root():
    assert all_rows(3).to_scipy().toarray().tolist() == [[1], [1], [1]]


def test_from_ids_sorts_and_drops_places_without_a_node():
    m = from_ids(np.array([[4, 0, -1], [-1, -1, -1], [2, 2, 1]], np.int32), 5)
    assert m.to_scipy().toarray().tolist() == [[1, 0, 0, 0, 1], [0] * 5, [0, 1, 1, 0, 0]]


def test_union_is_zero_or_one():
    a, b = np.array([[2, 0, 1], [0, 0, 0]]), np.array([[1, 1, 0], [0, 0, 3]])
    assert union(as_csr(a), as_csr(b)).to_scipy().toarray().tolist() == [[1, 1, 1], [0, 0, 1]]
