"""Labels that are handed over in Python, as lists or as a matrix → Y (n, L) with its names in order."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, as_csr, checked
from ..errors import DataError, counted
from .containers import indicators, is_table, listed, plain
from .dataset import LabelTable, ReadReport, check_label, ordered
from .label_suspicions import warn_of
from .parsing.fields import id_of, labels_of, weighted


class ScipyMatrix(Protocol):
    """Any of scipy's sparse formats."""

    def tocsr(self) -> Any: ...


RowLabels = Sequence[str | int] | str | int
Labels = Iterable[RowLabels] | ScipyMatrix | Csr | NDArray[Any]  # a list for each document, or Y (n, L)
Relevance = Iterable[Sequence[float]]
ColumnNames = Iterable[str | int]
LabelColumns = tuple[Csr | None, tuple[str, ...], ReadReport]


def label_columns(labels: Any, relevance: Relevance | None, names: ColumnNames | None, rows: int) -> LabelColumns:
    """Y of so many rows, the names of its columns, and what was met: None and no names where there are no labels."""
    given = None if names is None else list(listed(names, "names", "label"))
    if is_table(labels):
        labels, columns = indicators(labels)
        given = columns if given is None else given
    if _is_matrix(labels):
        if relevance is not None:
            raise DataError("relevance is for lists of labels; a label matrix Y holds its own values.")
        return _label_matrix(as_csr(labels, "Y"), given, rows)
    if given is not None:
        raise DataError("names are for the columns of a label matrix Y; lists of labels hold their names.")
    if labels is not None:
        return _label_lists(labels, relevance, rows)
    if relevance is not None:
        raise DataError("relevance is given without labels; it says how much each of them matters.")
    return None, (), ReadReport(rows=rows)


def given_ids(ids: Iterable[str | int] | None, rows: int) -> tuple[str, ...] | None:
    """The documents' ids as text."""
    return None if ids is None else tuple(_checked_ids(listed(ids, "ids"), rows))


def _is_matrix(labels: object) -> bool:
    if isinstance(labels, np.ndarray):
        return labels.ndim == 2 and labels.dtype.kind in "fiub"
    return isinstance(labels, Csr) or hasattr(labels, "tocsr")


def _label_lists(labels: Iterable[RowLabels], relevance: Relevance | None, rows: int) -> LabelColumns:
    labels = listed(labels, "labels")
    weights = None if relevance is None else list(listed(relevance, "relevance"))
    table, count, empty = LabelTable(), 0, 0
    for count, value in enumerate(labels, 1):
        try:
            found, given = _row(value, weights, count - 1)
        except DataError as error:
            raise error.at(row=count - 1) from error
        empty += not found
        table.add(found, given)
    _same(count, rows, "labels")
    if weights is not None:
        _same(len(weights), rows, "relevance")
    matrix, names = table.finish()
    report = ReadReport(rows=rows, duplicate_labels=table.duplicates, no_labels=empty)
    warn_of(matrix, names, report)
    return matrix, names, report


def _row(value: Any, weights: list[Any] | None, row: int) -> tuple[list[str], list[float] | None]:
    found = labels_of(plain(value), "labels")
    if found is None:
        raise DataError("the labels are None; give [] for a document without any.")
    if weights is None or row >= len(weights):
        return found, None
    if isinstance(value, set | frozenset):
        raise DataError("the labels are a set, which has no order for their relevances; give a list.")
    return weighted(found, plain(weights[row]), "relevance")


def _label_matrix(y: Csr, names: list[str | int] | None, rows: int) -> LabelColumns:
    """Columns into the order of their sorted names; entries of 0 are dropped."""
    _same(y.rows, rows, "Y")
    given = [str(i) for i in range(y.cols)] if names is None else [check_label(plain(name)) for name in names]
    if len(given) != y.cols:
        raise DataError(f"Y has {y.cols} columns but there are {len(given)} names; each column needs one.")
    sorted_names = ordered(given)
    twice = next((a for a, b in pairwise(sorted_names) if a == b), None)
    if twice is not None:
        raise DataError(f"two columns of Y are named {twice!r}; labels need names of their own.")
    _check_values(y, named=names is not None)
    y = y if (y.data > 0).all() else y.keep(y.data > 0)
    if sorted_names != tuple(given):
        y = _renumbered(y, given, sorted_names)
    return y, sorted_names, ReadReport(rows=rows, no_labels=int((y.counts() == 0).sum()))


def _check_values(y: Csr, *, named: bool) -> None:
    """DataError for a relevance below 0, and for one column that holds labels' numbers."""
    below = y.data < 0
    if below.any():
        at = int(np.argmax(below))
        row = int(np.searchsorted(y.indptr, at, side="right")) - 1
        raise DataError(f"Y holds {y.data[at]} in column {y.indices[at]}; a relevance is 0 or more.", row=row)
    if y.cols == 1 and not named and not ((y.data == 0) | (y.data == 1)).all():
        raise DataError(
            "Y is a single column of numbers, which would be relevances of one label; if they are labels, give a list, "
            "array[:, 0]. If they are relevances, name the label with names=[…]."
        )


def _renumbered(y: Csr, given: list[str], sorted_names: tuple[str, ...]) -> Csr:
    """The columns `given` in the order of their sorted names."""
    place = {name: i for i, name in enumerate(sorted_names)}
    columns = np.array([place[name] for name in given], np.int32)[y.indices]
    return checked(Csr(y.indptr, columns, y.data, y.cols).transpose().transpose(), "Y")  # twice: sorts each row


def _checked_ids(ids: Iterable[str | int], rows: int) -> Iterator[str]:
    count = 0
    for count, value in enumerate(ids, 1):
        try:
            if isinstance(value, bytes):
                raise DataError("an id must be text or a whole number, but is bytes; decode it first.", field="ids")
            yield id_of(plain(value), "ids")
        except DataError as error:
            raise error.at(row=count - 1) from error
    _same(count, rows, "ids")


def _same(count: int, rows: int, name: str) -> None:
    if count != rows:
        seen = f"{counted(rows, 'document')} but {counted(count, 'row')} of {name}"
        raise DataError(f"there are {seen}; each document needs one.")
