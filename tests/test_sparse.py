"""The door for matrices: everything a user may hand over, and everything broken (goal H5)."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import sparse

import labelwood as lw
import reference
from cases import cases
from labelwood import _core
from labelwood.arrays.sparse import Csr, Features, as_csr, as_dense, as_features, unit_rows
from toy import random_features

DENSE = np.array([[0, 2, 0], [1, 0, 3], [0, 0, 0]], np.float32)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("dtype", [np.float32, np.float64, np.int64, bool])
def test_every_scipy_format(kind, dtype):
    found = as_csr(sparse.coo_matrix(DENSE.astype(dtype)).asformat(kind))
    assert found.indptr.dtype == np.int64
    assert found.indices.dtype == np.int32
    assert found.data.dtype == np.float32
    assert found.to_scipy().toarray().tolist() == DENSE.astype(dtype).astype(float).tolist()


def test_sparse_arrays_and_int64_indices():
    m = sparse.csr_array(DENSE)
    m.indices, m.indptr = m.indices.astype(np.int64), m.indptr.astype(np.int64)
    assert as_csr(m).to_scipy().toarray().tolist() == DENSE.tolist()


def test_unsorted_and_duplicate_columns_are_summed_with_one_warning():
    m = sparse.csr_matrix((3, 3))
    m.indptr, m.indices, m.data = np.array([0, 3, 3, 3]), np.array([2, 0, 2]), np.array([1.0, 5.0, 2.0])
    with pytest.warns(UserWarning, match="1 place of the matrix is given again; such entries were summed"):
        found = as_csr(m)
    assert found.row(0)[0].tolist() == [0, 2]
    assert found.row(0)[1].tolist() == [5.0, 3.0]


@pytest.mark.parametrize("value", [np.nan, np.inf, -np.inf, 1e300])
def test_values_that_are_not_finite_are_refused_with_their_place(value):
    bad = DENSE.astype(np.float64).copy()
    bad[1, 2] = value
    with pytest.raises(lw.DataError, match="row 1"):
        as_csr(sparse.csr_matrix(bad))
    with pytest.raises(lw.DataError, match="column 2"):
        as_dense(bad)


def test_non_contiguous_read_only_and_memory_mapped_arrays(tmp_path):
    wide = np.zeros((3, 6), np.float64)
    wide[:, ::2] = DENSE
    assert as_dense(wide[:, ::2]).tolist() == DENSE.tolist()
    path = tmp_path / "x.npy"
    np.save(path, DENSE)
    mapped = np.load(path, mmap_mode="r")
    assert as_dense(mapped).tolist() == DENSE.tolist()
    assert not as_dense(mapped).flags.writeable  # float32 rows are not copied


def test_wrong_shapes_and_types():
    with pytest.raises(lw.DataError, match="two dimensions"):
        as_dense(np.zeros(3))
    with pytest.raises(lw.DataError, match="numbers"):
        as_dense(np.array([["a"]]))
    with pytest.raises(lw.DataError, match="3 columns but 5"):
        as_csr(DENSE, cols=5)
    with pytest.raises(lw.DataError, match="rows"):
        as_features((sparse.csr_matrix(DENSE), np.zeros((2, 2))))
    with pytest.raises(lw.DataError, match="missing"):
        Features()


def test_pair_of_blocks():
    both = as_features((sparse.csr_matrix(DENSE), np.ones((3, 2))))
    assert (both.rows, both.sparse_cols, both.dense_cols) == (3, 3, 2)
    part = both.take(np.array([1]))
    assert part.sparse is not None
    assert part.sparse.row(0)[1].tolist() == [1.0, 3.0]


def test_transpose_and_take_match_numpy():
    m = as_csr(DENSE)
    assert m.transpose().to_scipy().toarray().tolist() == DENSE.T.tolist()
    assert m.take(np.array([2, 1, 1])).to_scipy().toarray().tolist() == DENSE[[2, 1, 1]].tolist()


small = st.integers(-3, 6)


@cases(2000)
@given(
    ptr=st.lists(small, min_size=0, max_size=5),
    idx=st.lists(small, max_size=6),
    val=st.lists(st.sampled_from([1.0, -0.0, np.nan, np.inf, 1e-42]), max_size=6),
    kind=st.sampled_from(["csr", "csc", "raw"]),
)
def test_malformed_matrices_never_crash(ptr, idx, val, kind):
    """scipy itself segfaults on some of these; the door must end in a sound matrix or a DataError."""
    rows, cols = 3, 4
    try:
        if kind == "raw":
            found = as_csr(
                Csr(np.array(ptr or [0], np.int64), np.array(idx, np.int32), np.array(val, np.float32), cols)
            )
        else:
            m = sparse.csr_matrix((rows, cols)) if kind == "csr" else sparse.csc_matrix((rows, cols))
            m.indptr, m.indices, m.data = np.array(ptr, np.int32), np.array(idx, np.int32), np.array(val)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                found = as_csr(m)
    except lw.DataError:
        return
    assert found.indptr[-1] == found.nnz == len(found.data)
    assert np.isfinite(found.data).all()
    if found.nnz:
        assert 0 <= found.indices.min() <= found.indices.max() < found.cols


def test_out_of_range_coordinates_and_wrapping_pointers_are_refused():
    """scipy's own conversions read out of bounds on these."""
    coo = sparse.coo_matrix(DENSE)
    coo.row[1] = 10**9
    with pytest.raises(lw.DataError, match="malformed"):
        as_csr(coo)
    csc = sparse.csc_matrix(DENSE)
    csc.indptr = np.array([0, 2**63 - 1, -2, 3])
    with pytest.raises(lw.DataError, match="malformed"):
        as_csr(csc)
    csr = sparse.csr_matrix(DENSE)
    csr.data = csr.data.reshape(1, -1)
    with pytest.raises(lw.DataError, match="malformed"):
        as_csr(csr)


def test_rows_of_both_blocks_are_scaled_together():
    """[3 0 ; 4] becomes [0.6 0 ; 0.8]; a row of zeros stays; the user's arrays are left as they were."""
    dense = np.array([[4.0], [0.0]], np.float32)
    found = unit_rows(Features(as_csr([[3.0, 0.0], [0.0, 0.0]]), dense))
    assert found.sparse.to_scipy().toarray().tolist() == [[np.float32(0.6), 0], [0, 0]]
    assert found.dense.tolist() == [[np.float32(0.8)], [0]]
    assert dense.tolist() == [[4], [0]]


@pytest.mark.parametrize(("sparse", "dense"), [(5, 0), (0, 4), (5, 4)])
@pytest.mark.parametrize("rows", [0, 1, 3000])
def test_rows_of_length_one(rows, sparse, dense):
    x, plain = random_features(np.random.default_rng(rows + sparse), rows, sparse, dense)
    found = unit_rows(x)
    blocks = ([found.sparse.to_scipy().toarray()] if sparse else []) + ([found.dense] if dense else [])
    got = np.hstack([np.asarray(block, np.float64) for block in blocks])
    assert got == pytest.approx(reference.unit_rows(plain), rel=1e-7)
    for threads in (1, 2, 5):
        values, block = _core.unit_rows(*x.parts, threads=threads)
        again = Features(None if x.sparse is None else Csr(x.sparse.indptr, x.sparse.indices, values, sparse), block)
        assert all(a.tobytes() == b.tobytes() for a, b in zip(again.parts[:3], found.parts[:3], strict=True))
        assert again.parts[4].tobytes() == found.parts[4].tobytes()


def test_a_row_of_zeros_stays():
    x = Features(as_csr(np.array([[0, 0], [3, 4]], np.float32)), np.array([[0.0], [0.0]], np.float32))
    found = unit_rows(x)
    assert found.sparse.to_scipy().toarray().tolist() == [[0, 0], [np.float32(0.6), np.float32(0.8)]]
    assert found.dense.tolist() == [[0], [0]]


def test_pointers_that_do_not_fit_are_not_followed():
    with pytest.raises(ValueError, match="pointers"):
        _core.unit_rows(np.array([0, 5]), np.zeros(1, np.int32), np.zeros(1, np.float32), 1, np.zeros((1, 0), "f4"), 1)
