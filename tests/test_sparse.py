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


def test_duplicate_entries_are_summed_with_one_warning():
    m = sparse.csr_matrix((3, 3))
    m.indptr, m.indices, m.data = np.array([0, 3, 3, 3]), np.array([2, 0, 2]), np.array([1.0, 5.0, 2.0])
    with pytest.warns(UserWarning, match="X has 1 entry beyond the first at the same place"):
        found = as_csr(m)
    assert found.row(0)[0].tolist() == [0, 2]
    assert found.row(0)[1].tolist() == [5.0, 3.0]


def test_unsorted_columns_are_sorted_without_a_word():
    """Every matrix of scikit-learn's tf-idf has them."""
    m = sparse.csr_matrix((np.array([1.0, 5.0]), np.array([2, 0]), np.array([0, 2])), shape=(1, 3))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = as_csr(m)
    assert (found.row(0)[0].tolist(), found.row(0)[1].tolist()) == ([0, 2], [5.0, 1.0])
    assert m.indices.tolist() == [2, 0]  # the user's own stay as they were


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


def malformed(kind, **parts):
    matrix = sparse.coo_matrix(DENSE).asformat(kind)
    for name, value in parts.items():
        setattr(matrix, name, value)
    return matrix


def lists(*rows):
    made = np.empty(len(rows), object)
    made[:] = [list(row) for row in rows]
    return made


def dict_of_keys(items):
    matrix = sparse.dok_matrix((3, 3))
    matrix._dict = items
    return matrix


@pytest.mark.parametrize(
    "matrix",
    [
        malformed("csr", data=None),
        malformed("csr", indices=None),
        malformed("csr", indptr=np.array([0.0, 1, 3, 3])),
        malformed("csr", indices=np.array([1.0, 0.5, 2.0])),
        malformed("csr", data=np.array([1, 2, "a"], object)),
        malformed("csr", data=np.ma.masked_array([1.0, 2, 3], [0, 1, 0])),
        malformed("csr", data=np.array([1j, 2, 3])),
        malformed("csr", indices=np.array([1, 0, 2**40])),
        malformed("csr", data=np.float32(1)),
        malformed("csc", data=None),
        malformed("csc", indices=np.array([1.0, 0.0, 1.0])),
        malformed("csc", data=np.ones((3, 1))),
        malformed("bsr", data=np.ones(3)),
        malformed("bsr", indices=np.array([0.5])),
        malformed("bsr", data=np.ones((9, 0, 1))),
        malformed("coo", data=None),
        malformed("coo", data=np.ones(2)),
        malformed("coo", coords=(np.array([0.0, 1, 1]), np.array([1, 0, 2]))),
        malformed("coo", coords=(np.array([0, 1, 1]), np.array([1, 0, -2]))),
        malformed("dia", data=None),
        malformed("dia", data=np.ones(3)),
        malformed("dia", offsets=np.array([0.5])),
        malformed("dia", offsets=np.array([0, 0]), data=np.ones((2, 3))),
        malformed("lil", rows=lists([1], [0, 2])),
        malformed("lil", rows=lists([1], [0, 2], []), data=lists([1.0], [2.0], [])),
        malformed("lil", rows=lists([1], [0, 9], [])),
        malformed("lil", rows=lists([1], [0, -1], [])),
        malformed("lil", rows=lists([1], [0, 0.5], [])),
        malformed("lil", data=lists([1.0], [2.0, "x"], [])),
        malformed("lil", data=None),
        dict_of_keys({(0, 9): 1.0}),
        dict_of_keys({(0, 0.5): 1.0}),
        dict_of_keys({0: 1.0}),
        dict_of_keys({(0, 1): "x"}),
        dict_of_keys({(0, 1, 2): 1.0}),
        sparse.coo_array(np.ones(3)),
        sparse.coo_array(np.ones((2, 2, 2))),
    ],
)
def test_malformed_matrices_of_every_format_are_refused(matrix):
    with pytest.raises(lw.DataError, match=r"X (is malformed|must)"):
        as_csr(matrix)


@pytest.mark.parametrize("kind", ["csr", "csc", "coo", "lil", "dok", "bsr", "dia"])
@pytest.mark.parametrize("shape", [(0, 3), (3, 0), (2, 5), (5, 2)])
def test_formats_of_any_shape(kind, shape):
    dense = np.arange(shape[0] * shape[1], dtype=np.float32).reshape(shape) % 3
    found = as_csr(sparse.coo_matrix(dense).asformat(kind))
    assert found.shape == shape
    assert found.to_scipy().toarray().tolist() == dense.tolist()


def test_diagonals_that_leave_the_matrix():
    matrix = sparse.dia_matrix((np.array([[1, 2, 3, 4, 5], [6, 7, 8, 9, 10]]), np.array([-1, 7])), shape=(3, 4))
    assert as_csr(matrix).to_scipy().toarray().tolist() == matrix.toarray().tolist()


def test_what_only_looks_like_a_matrix_of_scipy():
    class Other:
        shape = (2, 2)

        def tocsr(self):
            return self

    with pytest.raises(lw.DataError, match="not a sparse matrix of scipy, but of type Other"):
        as_csr(Other())


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
