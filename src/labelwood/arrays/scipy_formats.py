"""The sparse formats of scipy as the plain arrays of CSR.

scipy believes what it is given and follows pointers without looking, so whatever its conversions rely on is checked
here first. The arrays that come out are checked by `arrays/sparse.py`, those of a CSR matrix among them.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import chain
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import limits
from ..errors import DataError

Parts = tuple[NDArray[np.int64], NDArray[np.int32], NDArray[np.float32], int]  # row pointers, columns, values, width


def csr_parts(matrix: Any, name: str) -> Parts:
    """The arrays of a scipy matrix of any format as those of CSR; DataError where it is none, or malformed."""
    shape = _shape(matrix, name)
    if getattr(matrix, "format", None) != "csr":
        matrix = _converted(matrix, name)
    indptr, indices = (_whole(matrix, part, name) for part in ("indptr", "indices"))
    if indptr.shape != (shape[0] + 1,):
        raise DataError(f"{name} is malformed: {indptr.size} row pointers for {shape[0]} rows.", row=0)
    if indices.dtype != np.int32 and indices.size and not 0 <= int(indices.min()) <= int(indices.max()) < shape[1]:
        wrong = indices.max() if indices.min() >= 0 else indices.min()
        raise DataError(f"{name} is malformed: column {wrong} is outside 0..{shape[1] - 1}.", row=0)
    values = as_float32(_numbers(matrix.data, name))
    if indices.ndim != 1 or values.ndim != 1:
        raise DataError(f"{name} is malformed: its indices and values must be flat arrays.")
    return np.ascontiguousarray(indptr, np.int64), np.ascontiguousarray(indices, np.int32), values, shape[1]


def as_float32(array: Any) -> NDArray[np.float32]:
    """The numbers as float32; what is too large becomes infinite, and is refused as such later."""
    if getattr(array, "dtype", None) == np.float32:
        return np.ascontiguousarray(array)
    with np.errstate(over="ignore"):
        return np.ascontiguousarray(array, dtype=np.float32)


def check_size(shape: tuple[int, ...], name: str) -> None:
    """DataError for more rows or columns than ids can number."""
    if max(shape) > limits.MAX_INDEX:
        raise DataError(f"{name} has shape {shape}; rows and columns must stay below 2^31.")


def _shape(matrix: Any, name: str) -> tuple[int, int]:
    try:
        shape = tuple(int(size) for size in matrix.shape)
    except (AttributeError, TypeError, ValueError) as error:
        raise DataError(f"{name} is not a sparse matrix of scipy: {error}") from error
    if len(shape) != 2:
        raise DataError(f"{name} must have two dimensions (rows, columns), but has shape {shape}.")
    check_size(shape, name)
    return shape


def _converted(matrix: Any, name: str) -> Any:
    convert = _CONVERSIONS.get(getattr(matrix, "format", ""))
    if convert is None:
        raise DataError(f"{name} is not a sparse matrix of scipy, but of type {type(matrix).__name__}.")
    try:
        return convert(matrix, name)
    except (ValueError, IndexError, TypeError, AttributeError, OverflowError) as error:
        raise DataError(f"{name} is malformed: {error}") from error


def _from_compressed(matrix: Any, name: str) -> Any:
    """csc and bsr: pointers of columns, or of rows of blocks."""
    pointers, indices = (_whole(matrix, part, name) for part in ("indptr", "indices"))
    values = _numbers(matrix.data, name)
    height, width = (1, 1) if matrix.format == "csc" else values.shape[1:] if values.ndim == 3 else (0, 0)
    sound = height > 0 and width > 0 and values.ndim == (1 if matrix.format == "csc" else 3)
    if not sound or matrix.shape[0] % height or matrix.shape[1] % width:
        raise DataError(f"{name} is malformed: its {matrix.format} values do not have the shape that they need.")
    major, minor = matrix.shape[0] // height, matrix.shape[1] // width
    if matrix.format == "csc":
        major, minor = minor, major
    sound = pointers.shape == (major + 1,) and pointers[0] == 0 and (pointers[1:] >= pointers[:-1]).all()
    if not sound or indices.ndim != 1 or not pointers[-1] == len(indices) == len(values) or _outside(indices, minor):
        raise DataError(f"{name} is malformed: its {matrix.format} pointers or indices are out of range.")
    return matrix.tocsr()


def _from_coo(matrix: Any, name: str) -> Any:
    rows, columns = _whole(matrix, "row", name), _whole(matrix, "col", name)
    return _from_places(rows, columns, _numbers(matrix.data, name), matrix.shape, name)


def _from_dia(matrix: Any, name: str) -> Any:
    offsets, values = _whole(matrix, "offsets", name), _numbers(matrix.data, name)
    if offsets.ndim != 1 or values.ndim != 2 or len(offsets) != len(values):
        raise DataError(f"{name} is malformed: {offsets.size} offsets for diagonals of shape {values.shape}.")
    if len(np.unique(offsets)) < len(offsets):
        raise DataError(f"{name} is malformed: a diagonal stands twice.")
    height, width = matrix.shape[0], min(matrix.shape[1], values.shape[1])
    kept = [_columns_inside(-int(offset), height, width) for offset in offsets]  # value j of a diagonal is in column j
    columns = np.concatenate([np.arange(a, b) for a, b in kept] or [np.zeros(0, np.int64)])
    rows = columns - np.repeat(offsets.astype(np.int64), [b - a for a, b in kept])
    flat = np.concatenate([row[a:b] for row, (a, b) in zip(values, kept, strict=True)] or [np.zeros(0)])
    return _from_places(rows[flat != 0], columns[flat != 0], flat[flat != 0], matrix.shape, name)


def _columns_inside(shift: int, height: int, width: int) -> tuple[int, int]:
    """Columns j of a diagonal whose rows j + shift are rows of the matrix."""
    begin = min(max(0, -shift), width)
    return begin, max(begin, min(width, height - shift))


def _from_lil(matrix: Any, name: str) -> Any:
    columns, values = list(matrix.rows), list(matrix.data)
    counts = [len(row) for row in columns]
    if len(counts) != matrix.shape[0] or counts != [len(row) for row in values]:
        raise DataError(f"{name} is malformed: its rows have other numbers of columns than of values.")
    rows = np.repeat(np.arange(len(counts)), counts)
    flat, numbers = (np.array(list(chain.from_iterable(part))) for part in (columns, values))
    return _from_places(rows, flat, numbers, matrix.shape, name)


def _from_dok(matrix: Any, name: str) -> Any:
    places = np.array(list(matrix.keys()))
    if not len(places):
        places = np.zeros((0, 2), np.int64)
    if places.ndim != 2 or places.shape[1] != 2:
        raise DataError(f"{name} is malformed: a key is not a pair of a row and a column.")
    return _from_places(places[:, 0], places[:, 1], np.array(list(matrix.values())), matrix.shape, name)


_CONVERSIONS: dict[str, Callable[[Any, str], Any]] = {
    "csc": _from_compressed,
    "bsr": _from_compressed,
    "coo": _from_coo,
    "dia": _from_dia,
    "lil": _from_lil,
    "dok": _from_dok,
}


def _from_places(rows: NDArray[Any], columns: NDArray[Any], values: NDArray[Any], shape: Any, name: str) -> Any:
    """CSR of values by their places."""
    from scipy import sparse

    if not len(rows) and not len(columns) and not len(values):  # empty lists have the type of float
        return sparse.csr_matrix(shape, dtype=np.float32)
    rows, columns = _kind(rows, "iu", "rows", name), _kind(columns, "iu", "columns", name)
    if not rows.shape == columns.shape == values.shape == (len(rows),):
        raise DataError(f"{name} is malformed: {rows.size} rows, {columns.size} columns, {values.size} values.")
    if _outside(rows, shape[0]) or _outside(columns, shape[1]):
        raise DataError(f"{name} is malformed: its rows or columns are out of range.")
    return sparse.coo_matrix((_numbers(values, name), (rows, columns)), shape=shape).tocsr()


def _outside(indices: NDArray[Any], size: int) -> bool:
    return bool(indices.size) and not 0 <= int(indices.min()) <= int(indices.max()) < size


def _whole(matrix: Any, part: str, name: str) -> NDArray[Any]:
    """An array of whole numbers that the format has under this name."""
    return _kind(_unmasked(getattr(matrix, part, None), part, name), "iu", part, name)


def _kind(array: NDArray[Any], kinds: str, part: str, name: str) -> NDArray[Any]:
    if array.dtype.kind not in kinds:
        raise DataError(f"{name} is malformed: its {part} must be whole numbers, but are of type {array.dtype}.")
    return array


def _numbers(values: Any, name: str) -> NDArray[Any]:
    array = _unmasked(values, "values", name)
    if array.dtype.kind not in "fiub":
        raise DataError(f"{name} must hold numbers, but its values are of type {array.dtype}.")
    return array


def _unmasked(values: Any, part: str, name: str) -> NDArray[Any]:
    """The values as an array, unless some are masked: numpy would hand out what lies below the mask."""
    if isinstance(values, np.ma.MaskedArray):
        raise DataError(f"{name} is malformed: its {part} are a masked array.")
    if values is None:
        raise DataError(f"{name} is malformed: it has no {part}.")
    return np.asarray(values)
