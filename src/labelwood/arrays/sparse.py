"""The one door for matrices: whatever the user has becomes `Csr` or `Features`, checked, or a DataError with a place.

`Csr` is rows by int64 pointers, int32 columns (sorted, unique), float32 values (finite, ≤ limits.MAX_VALUE). scipy is
seen only here and in `scipy_formats`.
`Features` is [sparse ; dense] as two blocks that are never merged: the only type k-means, solver and beam take.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core, limits
from ..base.threads import available
from ..errors import DataError
from .scipy_formats import as_float32, check_size, csr_parts
from .tokens import Tokens


@dataclasses.dataclass(frozen=True, eq=False)
class Csr:
    """A checked sparse matrix, (rows, cols). Make one with `as_csr`; the arrays are not to be written to."""

    indptr: NDArray[np.int64]  # (rows + 1,)
    indices: NDArray[np.int32]  # (nnz,)
    data: NDArray[np.float32]  # (nnz,)
    cols: int

    @property
    def rows(self) -> int:
        return len(self.indptr) - 1

    @property
    def nnz(self) -> int:
        return len(self.indices)

    @property
    def shape(self) -> tuple[int, int]:
        return self.rows, self.cols

    @property
    def parts(self) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int]:
        """The arguments native functions take for one matrix."""
        return self.indptr, self.indices, self.data, self.cols

    def counts(self) -> NDArray[np.int64]:
        """Stored entries of each row."""
        return np.diff(self.indptr)

    def row(self, i: int) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Columns and values of one row."""
        part = slice(self.indptr[i], self.indptr[i + 1])
        return self.indices[part], self.data[part]

    def row_of(self) -> NDArray[np.int64]:
        """(nnz,) the row of each stored entry."""
        return np.repeat(np.arange(self.rows), self.counts())

    def keep(self, mask: NDArray[np.bool_]) -> Csr:
        """Only the entries where `mask` (nnz,) holds."""
        counts = np.bincount(self.row_of()[mask], minlength=self.rows)
        return Csr(pointers(counts), self.indices[mask], self.data[mask], self.cols)

    def take(self, rows: NDArray[np.integer[Any]]) -> Csr:
        """The named rows, in that order."""
        counts = self.counts()[rows]
        indptr = pointers(counts)
        where = np.repeat(self.indptr[:-1][rows] - indptr[:-1], counts) + np.arange(indptr[-1])
        return Csr(indptr, self.indices[where], self.data[where], self.cols)

    def to_scipy(self) -> Any:
        """A scipy.sparse.csr_matrix sharing this matrix's arrays."""
        from scipy import sparse

        return sparse.csr_matrix((self.data, self.indices, self.indptr), shape=self.shape, copy=False)

    def transpose(self) -> Csr:
        """(cols, rows), entries of a row in ascending order."""
        return Csr(*_core.transpose(*self.parts), self.rows)


@dataclasses.dataclass(frozen=True, eq=False)
class Features:
    """X, all that a level may read of documents: a sparse block, a dense block (float32, row-major), their tokens, or
    several of them over the same rows."""

    sparse: Csr | None = None
    dense: NDArray[np.float32] | None = None  # (rows, dense_cols)
    tokens: Tokens | None = None  # for levels whose labels attend to them

    def __post_init__(self) -> None:
        if self.sparse is None and self.dense is None and self.tokens is None:
            raise DataError("features need a sparse or a dense block; both are missing.")
        if self.sparse is not None and self.dense is not None and self.sparse.rows != len(self.dense):
            raise DataError(
                f"the sparse block has {self.sparse.rows} rows but the dense one {len(self.dense)}; "
                "row i of both must be the same document."
            )

    @property
    def rows(self) -> int:
        if self.sparse is not None:
            return self.sparse.rows
        return len(self.dense if self.dense is not None else self.tokens)  # type: ignore[arg-type]

    @property
    def sparse_cols(self) -> int:
        return self.sparse.cols if self.sparse is not None else 0

    @property
    def dense_cols(self) -> int:
        return int(self.dense.shape[1]) if self.dense is not None else 0

    @property
    def parts(
        self,
    ) -> tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int, NDArray[np.float32]]:
        """The arguments native functions take; an absent block is empty."""
        sparse = self.sparse if self.sparse is not None else empty(self.rows, 0)
        dense = self.dense if self.dense is not None else np.zeros((self.rows, 0), np.float32)
        return *sparse.parts, dense

    def take(self, rows: NDArray[np.integer[Any]]) -> Features:
        """The named rows, in that order."""
        return Features(
            None if self.sparse is None else self.sparse.take(rows),
            None if self.dense is None else np.ascontiguousarray(self.dense[rows]),
            None if self.tokens is None else self.tokens.take(rows),
        )


def unit_rows(x: Features) -> Features:
    """Every row of [sparse ; dense] scaled to length one; a row of zeros stays."""
    sparse = x.sparse
    size = (0 if sparse is None else sparse.nnz) + (0 if x.dense is None else x.dense.size)
    values, dense = _core.unit_rows(*x.parts, threads=_threads(size))
    scaled = None if sparse is None else Csr(sparse.indptr, sparse.indices, values, sparse.cols)
    return Features(scaled, None if x.dense is None else dense)


def stacked(parts: Sequence[Csr], cols: int) -> Csr:
    """One below the other."""
    indptr = pointers(np.concatenate([part.counts() for part in parts]))
    indices, data = np.concatenate([part.indices for part in parts]), np.concatenate([part.data for part in parts])
    return Csr(indptr, indices, data, cols)


def pointers(counts: NDArray[np.integer[Any]]) -> NDArray[np.int64]:
    """(rows + 1,) where each row starts and ends, from the number of entries of each row."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(counts, dtype=np.int64)))


def empty(rows: int, cols: int) -> Csr:
    """A matrix without entries."""
    return Csr(np.zeros(rows + 1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.float32), cols)


def as_csr(matrix: object, name: str = "X", *, cols: int | None = None) -> Csr:
    """Any scipy matrix or array, or a dense array, as a checked Csr.

    Unsorted or duplicate entries are sorted and summed with one warning; NaN, infinities and malformed matrices are
    a DataError that names row and column. `cols` demands a width.
    """
    if isinstance(matrix, Csr):
        found = checked(matrix, name)
    elif hasattr(matrix, "tocsr"):
        found = _from_scipy(matrix, name)
    else:
        found = _from_dense(as_dense(matrix, name))
    if cols is not None and found.cols != cols:
        raise DataError(f"{name} has {found.cols} columns but {cols} are expected; use the features of training.")
    return found


def as_dense(matrix: object, name: str = "X") -> NDArray[np.float32]:
    """A dense block: float32, row-major, finite. A float32 row-major array (or memory map) is not copied."""
    if isinstance(matrix, np.ma.MaskedArray):
        raise DataError(f"{name} is a masked array, whose masked entries would be read; give array.filled(…).")
    try:
        array = np.asarray(matrix)
    except Exception as error:  # it asks the object, which may raise anything
        raise DataError(f"{name} is not a matrix: {error}") from error
    if array.ndim == 0 and array.dtype.kind == "O":
        raise DataError(f"{name} is not a matrix, but of type {type(matrix).__name__}.")
    if array.ndim != 2:
        raise DataError(f"{name} must have two dimensions (rows, columns), but has shape {array.shape}.")
    if array.dtype.kind not in "fiub":
        raise DataError(f"{name} must hold numbers, but its type is {array.dtype}.")
    check_size(array.shape, name)
    array = as_float32(array)
    for start in range(0, len(array), 65536):
        bad = ~(np.abs(array[start : start + 65536]) <= np.float64(limits.MAX_VALUE))  # NaN too
        if bad.any():
            row, column = (int(v[0]) for v in np.nonzero(bad))
            raise DataError(
                f"{name} holds {array[start + row, column]} in column {column}; allowed are numbers up to "
                f"±{limits.MAX_VALUE:.0e}. Scale the features.",
                row=start + row,
            )
    return array


def as_features(matrix: object) -> Features:
    """X from the user: a sparse matrix, a dense array, a (sparse, dense) pair, or Features."""
    if isinstance(matrix, Features):
        sparse = None if matrix.sparse is None else as_csr(matrix.sparse)
        return Features(sparse, None if matrix.dense is None else as_dense(matrix.dense))
    if isinstance(matrix, tuple) and len(matrix) == 2 and any(map(_is_sparse, matrix)):
        if _is_sparse(matrix[1]):
            raise DataError("X is a pair whose second part is sparse; give (sparse, dense), in this order.")
        return Features(as_csr(matrix[0], "X[0]"), as_dense(matrix[1], "X[1]"))
    if _is_sparse(matrix):
        return Features(as_csr(matrix))
    return Features(dense=as_dense(matrix))


def _is_sparse(matrix: object) -> bool:
    return isinstance(matrix, Csr) or hasattr(matrix, "tocsr")


def checked(matrix: Csr, name: str) -> Csr:
    """The matrix itself, after the native validation; DataError with row and column otherwise."""
    what, row, position = _fault(matrix)
    if what:
        entry = f" (entry {position})" if position >= 0 else ""
        raise DataError(f"{name} is malformed: {what}{entry}.", row=max(row, 0))
    return matrix


def _fault(matrix: Csr) -> tuple[str, int, int]:
    return _core.validate(*matrix.parts, largest=limits.MAX_VALUE, threads=_threads(matrix.nnz + matrix.rows))


def _threads(size: int) -> int:
    """Number of threads for so many numbers: a few are not worth a thread."""
    return available() if size > 65536 else 1


def _from_scipy(matrix: Any, name: str) -> Csr:
    found = Csr(*csr_parts(matrix, name))
    what, _, _ = _fault(found)
    if what.startswith("columns are not sorted") or what.endswith("stands twice"):
        return _tidy(found, name)
    return checked(found, name)


def _tidy(matrix: Csr, name: str) -> Csr:
    """Sort columns and sum duplicates; everything else about the matrix must be sound."""
    indptr, indices = matrix.indptr, matrix.indices
    sound = indptr[0] == 0 and (np.diff(indptr) >= 0).all() and indptr[-1] == len(indices) == len(matrix.data)
    if not sound or (indices.size and (indices.min() < 0 or indices.max() >= matrix.cols)):
        raise DataError(f"{name} is malformed: row pointers or columns are out of range.", row=0)
    tidy = matrix.to_scipy().copy()
    tidy.sum_duplicates()
    if twice := matrix.nnz - tidy.nnz:
        more = "1 entry" if twice == 1 else f"{twice:,} entries"
        warnings.warn(f"{name} has {more} beyond the first at the same place; they were summed.", stacklevel=4)
    found = Csr(tidy.indptr.astype(np.int64), tidy.indices.astype(np.int32), tidy.data.astype(np.float32), matrix.cols)
    return checked(found, name)


def _from_dense(array: NDArray[np.float32]) -> Csr:
    rows, columns = np.nonzero(array)
    indptr = pointers(np.bincount(rows, minlength=len(array)))
    return Csr(indptr, columns.astype(np.int32), array[rows, columns], int(array.shape[1]))
