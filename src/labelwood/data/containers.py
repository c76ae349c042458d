"""Containers that people hand over in Python, told apart by what they offer: none of their packages is imported.

A table (pandas, polars or pyarrow) is records by columns; a column or an array is a list; what would be read as
something that it is not, such as the keys of a dict as texts, is a DataError with the way out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np

from ..errors import DataError

_MOST = 10  # names of columns that a message shows


def is_table(value: object) -> bool:
    """Is it a table with named columns, of pandas, polars or pyarrow?"""
    return _columns(value) is not None


def column_names(table: object) -> list[str]:
    """The names of a table's columns."""
    names = _columns(table)
    assert names is not None
    return [str(name) for name in names]


def table_records(table: Any) -> list[dict[str, Any]]:
    """The rows of a table as records; a missing value is None."""
    names = column_names(table)
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise DataError(f"two columns of the table are named {twice[:60]!r}.")
    columns = [_plain_column(_column(table, i)) for i in range(len(names))]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def table_matrix(table: Any) -> tuple[np.ndarray[Any, Any], list[str]]:
    """A table of numbers, such as an indicator frame, as a dense matrix with the names of its columns."""
    names = column_names(table)
    columns = [np.asarray(_plain_column(_column(table, i))) for i in range(len(names))]
    for name, column in zip(names, columns, strict=True):
        if column.dtype.kind not in "fiub":
            raise DataError(
                f"the labels are a table whose column {name[:60]!r} does not hold numbers; give one column of lists "
                "(frame['labels']), or a table of 0 and 1 with a column for each label."
            )
    return np.column_stack(columns) if columns else np.zeros((0, 0)), names


def listed(value: Any, name: str) -> Any:
    """A list, or what can be gone through as one: an entry for each document; DataError for what only looks so."""
    if isinstance(value, str | bytes):
        raise _no_list(name, f"is a single {type(value).__name__}; put it in a list: [{name[:-1]}]")
    if isinstance(value, Mapping):
        raise _no_list(name, _dict_advice(value, name))
    if is_table(value):
        shown = ", ".join(repr(column)[:40] for column in column_names(value)[:_MOST])
        raise _no_list(name, f"is a table; give one of its columns ({shown})")
    if isinstance(value, np.ndarray | np.generic):
        return _array_list(value, name)
    for way in ("to_pylist", "to_list"):  # pyarrow's arrays; columns of pandas and polars
        if hasattr(value, way):
            return [None if _is_missing(item) else item for item in getattr(value, way)()]
    if isinstance(value, set | frozenset):
        raise _no_list(name, "is a set, which has no order; give a list")
    if not isinstance(value, Iterable):
        raise _no_list(name, f"is of type {type(value).__name__}")
    return value


def _array_list(value: Any, name: str) -> Any:
    if isinstance(value, np.ma.MaskedArray):
        raise _no_list(name, "is a masked array, whose masked entries would be read; give array.filled(…).tolist()")
    if np.ndim(value) != 1:
        raise _no_list(name, f"is an array of {np.ndim(value)} dimensions; give one of 1 dimension")
    if value.dtype.kind == "S":
        raise _no_list(name, "is an array of bytes; decode it first: numpy.char.decode(array, 'utf-8')")
    return value.tolist()


def _no_list(name: str, what: str) -> DataError:
    return DataError(f"{name} must be a list with one entry per document, but {what}.")


def _dict_advice(value: Mapping[Any, Any], name: str) -> str:
    keys = ", ".join(repr(key)[:40] for key in list(value)[:_MOST])
    if name == "texts":
        return f"is a dict with the keys {keys}; put a single record in a list: [record]"
    return f"is a dict with the keys {keys}, which has no order of documents; give list(….values()) in their order"


def _columns(value: object) -> list[Any] | None:
    """The names of a table's columns; None for anything else."""
    if isinstance(value, np.ndarray | type):
        return None
    names = getattr(value, "column_names", None)  # pyarrow
    if names is None and hasattr(value, "columns") and hasattr(value, "dtypes"):  # pandas, polars
        names = value.columns
    return None if names is None or callable(names) else list(names)


def _column(table: Any, place: int) -> Any:
    if hasattr(table, "iloc"):  # pandas, whose columns may share a name
        return table.iloc[:, place]
    return table.column(place) if hasattr(table, "column_names") else table[table.columns[place]]


def _plain_column(column: Any) -> list[Any]:
    found = column.to_pylist() if hasattr(column, "to_pylist") else column.to_list()
    return [None if _is_missing(item) else item for item in found]


def _is_missing(item: object) -> bool:
    """NaN, NaT and pandas' NA: none of them equals itself."""
    if isinstance(item, str | int | list | tuple | np.ndarray):
        return False
    try:
        return bool(item != item)  # noqa: PLR0124
    except (TypeError, ValueError):  # pandas.NA will not say
        return True
