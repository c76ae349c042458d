"""Containers that people hand over in Python, told apart by what they offer: none of their packages is imported.

A table (pandas, polars or pyarrow) is records by columns; a column or an array is a list; what would be read as
something that it is not, such as the keys of a dict as texts, is a DataError with the way out.
"""

from __future__ import annotations

import contextlib
import os
from collections.abc import ItemsView, Iterable, Iterator, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, Features, pointers
from ..errors import DataError
from .dataset import Dataset

_MOST = 10  # names of columns, or keys, that a message shows


def is_table(value: object) -> bool:
    """Is it a table with named columns, of pandas, polars or pyarrow?"""
    if type(value) in _PLAIN:
        return False
    if isinstance(value, type):
        return False
    pandas = hasattr(value, "iloc") and hasattr(value, "columns")
    polars = hasattr(value, "get_columns")
    pyarrow = hasattr(value, "column_names") and hasattr(value, "to_pydict")
    return pandas or polars or pyarrow


def table_records(table: Any) -> list[dict[str, Any]]:
    """The rows of a table as records; a missing value is None."""
    columns = [(name, _values(column)) for name, column in _columns(table)]
    names = [name for name, _ in columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*(values for _, values in columns), strict=True)]


def table_block(table: Any) -> Any:
    """A table of numbers as a dense array; one of pandas' sparse columns as a sparse matrix."""
    sparse: Any = getattr(table, "sparse", None)
    if hasattr(sparse, "to_coo"):
        with contextlib.suppress(ValueError):  # what its columns leave out may be another number than 0
            return sparse.to_coo()
    columns = [_numbers(name, column, "X") for name, column in _columns(table)]
    return np.column_stack(columns)


def indicators(table: Any) -> tuple[Csr, list[str]]:
    """A table of 0 and 1 with a column for each label: Y (n, L) and the names of its columns."""
    columns = _columns(table)
    names = [name for name, _ in columns]
    if len(names) == 1:
        way = f"give the column itself, {_spelled(names[0])}, which holds the labels of each document"
        raise DataError(f"the labels are a table of one column; {way}, or a table with a column for each label.")
    found = [_ones(name, column) for name, column in columns]
    rows = np.concatenate([rows for rows, _ in found])
    counts = np.array([len(rows) for rows, _ in found])
    return Csr(pointers(counts), rows, np.ones(len(rows), np.float32), found[0][1]).transpose(), names


def listed(value: Any, name: str, entry: str = "document") -> Any:
    """A list, or what can be gone through as one, for `name`; DataError for what only looks like it."""
    if type(value) is list:
        return value
    problem = _not_listed(value, name)
    if problem:
        raise DataError(f"{name} must be a list with one entry per {entry}, but {problem}.")
    if isinstance(value, np.ndarray):
        return value.tolist()
    return _values(value) if _is_column(value) else value


def plain(value: Any) -> Any:
    """An entry of a container: numpy's and pyarrow's arrays and numbers as Python's, also inside a list."""
    if type(value) in {str, int, float, type(None)}:
        return value
    if isinstance(value, list | tuple):
        return [item.item() if isinstance(item, np.generic) else item for item in value]
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if is_table(value):
        raise DataError(f"an entry is a table of the columns {_shown(_names(value))}, not a value or a list.")
    return _values(value) if _is_column(value) else value


_PLAIN = {list, tuple, str, int, float, dict, set, np.ndarray, type(None)}  # what is seen at a glance


def _not_listed(value: Any, name: str) -> str:
    """Why a value cannot be gone through as a list of entries, and the way out; "" if it can."""
    if value is None:
        return "is None"
    if isinstance(value, str | bytes | bytearray | memoryview):
        return f"is a single {type(value).__name__}; put it in a list: [{name.removesuffix('s')}]"
    if isinstance(value, Mapping):
        return f"is a dict with the keys {_shown(value)}{_dict_advice(name)}"
    if isinstance(value, set | frozenset):
        return "is a set, which has no order; give a list"
    if isinstance(value, ItemsView):
        return "is the items of a dict, whose keys would be read; give list(….values())"
    if isinstance(value, Dataset):
        return "is a Dataset; give its texts (data.texts) or its features (X=data.features)"
    if is_table(value):
        return f"is a table; give one of its columns: {_shown(_names(value))}"
    if isinstance(value, np.ndarray):
        return _not_one_row(value, name)
    if isinstance(value, os.PathLike):
        return "is a path; read the file first: labelwood.read_data(path)"
    if isinstance(value, Csr | Features) or hasattr(value, "tocsr"):
        return "is a matrix"
    if not isinstance(value, Iterable) or hasattr(value, "get_group"):
        return f"is of type {type(value).__name__}{_collect_advice(value)}"
    return ""


def _not_one_row(array: NDArray[Any], name: str) -> str:
    if isinstance(array, np.ma.MaskedArray):
        return "is a masked array, whose masked entries would be read; give array.filled(…)"
    if array.ndim != 1:
        way = "array.tolist() for several labels a document" if name == "labels" and array.ndim > 1 else "one of 1"
        return f"is an array of {array.ndim} dimensions; give {way}"
    if array.dtype.names is not None:
        return f"is a structured array; give one of its fields: {_shown(array.dtype.names)}"
    if array.dtype.kind == "S":
        return "is an array of bytes; decode it first: numpy.char.decode(array, 'utf-8')"
    return ""


def _dict_advice(name: str) -> str:
    if name == "texts":
        return "; put a single record in a list: [record], or give the list that is meant, such as data['text']"
    return "; give a list in the order of the documents, such as list(values.values()) where theirs is the same"


def _collect_advice(value: object) -> str:
    return "; collect it first: frame.collect()" if hasattr(value, "collect") else ""


def _columns(table: Any) -> list[tuple[str, Any]]:
    """Names and columns of a table; a name that stands twice is a DataError."""
    if hasattr(table, "iloc"):
        columns = [table.iloc[:, place] for place in range(len(table.columns))]
    else:
        columns = table.get_columns() if hasattr(table, "get_columns") else list(table.columns)
    names = _names(table)
    if not names:
        raise DataError("the table has no columns.")
    twice = next((name for name, count in _counts(names).items() if count > 1), None)
    if twice is not None:
        raise DataError(f"two columns of the table are named {twice[:60]!r}; each needs a name of its own.")
    return list(zip(names, columns, strict=True))


def _names(table: Any) -> list[str]:
    return [str(name) for name in (table.column_names if hasattr(table, "column_names") else table.columns)]


def _counts(names: list[str]) -> dict[str, int]:
    counts: dict[str, int] = {}
    for name in names:
        counts[name] = counts.get(name, 0) + 1
    return counts


def _is_column(value: object) -> bool:
    """Is it a column or an array of pandas, polars or pyarrow?"""
    return type(value) not in _PLAIN and (hasattr(value, "to_pylist") or hasattr(value, "to_list"))


def _values(column: Any) -> list[Any]:
    """The values of a column, None where one is missing."""
    way = next((way for way in ("to_pylist", "to_list") if hasattr(column, way)), None)
    if way is None:
        raise DataError(
            f"a column of type {type(column).__name__} cannot be read; give a table of pandas, polars or pyarrow."
        )
    return [None if _is_missing(item) else item for item in getattr(column, way)()]


def _is_missing(item: object) -> bool:
    """Is it NaN, NaT or pandas' NA? None of them equals itself."""
    if isinstance(item, str | int | list | tuple | dict | np.ndarray):
        return False
    try:
        return bool(item != item)  # noqa: PLR0124
    except (TypeError, ValueError):  # pandas' NA will not say
        return True


def _ones(name: str, column: Any) -> tuple[NDArray[np.int32], int]:
    """Rows of a column in which a 1 stands, and the number of all rows."""
    values = _numbers(name, column, "the labels")
    wrong = ~((values == 0) | (values == 1))
    if wrong.any():
        row = int(np.argmax(wrong))
        raise DataError(
            f"the labels are a table whose column {name[:60]!r} holds {values[row]}; a table with a column for each "
            "label holds 0 and 1. For relevances give a matrix: labels=frame.to_numpy(), names=list(frame.columns).",
            row=row,
        )
    return np.flatnonzero(values).astype(np.int32), len(values)


def _numbers(name: str, column: Any, what: str) -> NDArray[Any]:
    """A column as numbers."""
    array = np.asarray(column)
    if array.dtype.kind not in "fiub":  # numbers that may be missing are objects to numpy
        array = np.asarray(_flat(_values(column)))
    if array.dtype.kind in "fiub":
        return array
    way = "give only columns of numbers"
    if what != "X":
        way = f"give one column of lists ({_spelled(name)}), or a table of 0 and 1 with a column for each label"
    raise DataError(f"{what} must hold numbers, but the column {name[:60]!r} of the table does not; {way}.")


def _flat(values: list[Any]) -> list[Any]:
    """The values, or none of them where numpy would make a matrix of lists."""
    return ["lists"] if any(isinstance(value, Iterable) for value in values) else values


def _spelled(name: str) -> str:
    return f"frame[{name[:60]!r}]"


def _shown(names: Iterable[object]) -> str:
    shown: Iterator[str] = (repr(name)[:40] for name in list(names)[:_MOST])
    return ", ".join(shown) or "none"
