"""The doors for what is already in memory: lists of texts and labels, records, tables, or matrices → Dataset."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, as_csr, as_features, checked
from ..arrays.texts import Texts
from ..errors import DataError, counted
from .containers import is_table, listed, table_matrix, table_records
from .dataset import Dataset, LabelTable, ReadReport, check_label, ordered
from .options import ReadOptions
from .parsing.fields import Fields, Reading, id_of, kind_of, labels_of, weighted
from .parsing.rows import Collector, Log


class ScipyMatrix(Protocol):
    """Any of scipy's sparse formats."""

    def tocsr(self) -> Any: ...


RowLabels = Sequence[str | int] | str | int
Labels = Iterable[RowLabels] | ScipyMatrix | Csr | NDArray[Any]  # a list for each document, or Y (n, L)


def from_lists(
    texts: Iterable[str],
    labels: object = None,
    ids: Iterable[str | int] | None = None,
    relevance: Iterable[Sequence[float]] | None = None,
    names: Sequence[str | int] | None = None,
) -> Dataset:
    """Texts with labels: a list for each (one string or number is one label), or a matrix as for `from_matrix`.

    A DataError names the row.
    """
    packed = Texts.from_strings(listed(texts, "texts"))
    matrix, known, report = _labels(labels, relevance, names, len(packed))
    return Dataset(packed, None, matrix, known, _ids(ids, len(packed)), report)


def from_matrix(
    features: object,
    labels: Labels | None = None,
    names: Sequence[str | int] | None = None,
    ids: Iterable[str | int] | None = None,
    relevance: Iterable[Sequence[float]] | None = None,
) -> Dataset:
    """Features X (n, d) with labels: lists as for `from_lists`, or a matrix Y (n, L) whose columns `names` names."""
    x = as_features(features)
    matrix, known, report = _labels(labels, relevance, names, x.rows)
    return Dataset(None, x, matrix, known, _ids(ids, x.rows), report)


def from_records(
    records: object,
    labels: Labels | None = None,
    *,
    options: ReadOptions | None = None,
    fields: Reading | None = None,
    relevance: Iterable[Sequence[float]] | None = None,
) -> Dataset:
    """Records {"title": …, "text": …, "labels": …}, or a table with such columns; `labels` go before those they hold.

    Which fields are read is said by the options, or else by their usual names, as for files.
    """
    options = options or ReadOptions()
    if labels is not None:
        options = dataclasses.replace(options, labels=None, relevance=None)
    table = is_table(records)
    rows: Any = table_records(records) if table else listed(records, "texts")
    log, reader, collector = Log(), None, None
    for number, record in enumerate(rows):
        try:
            if not isinstance(record, Mapping):
                raise DataError(f"the first document is a record, but this one is {kind_of(record)}.")
            plain = {str(name): _plain(value) for name, value in record.items()}
            if reader is None:
                log.fields = reader = Fields(plain, options, False, fields, alike=table)
                collector = Collector(log)
            assert collector is not None
            collector.add(reader.row(plain, log))
        except DataError as error:
            raise error.at(row=number) from error
    if collector is None:
        return from_lists([], labels, relevance=relevance)
    found = collector.finish()
    if labels is None:
        return found
    matrix, known, report = _labels(labels, relevance, None, len(found))
    seen = dataclasses.replace(report, fields=found.report.fields, left=found.report.left)
    return dataclasses.replace(found, labels=matrix, names=known, report=seen)


def holds_records(texts: object) -> bool:
    """Are these records rather than texts: a table, or a list whose first item is a dict?"""
    if is_table(texts):
        return True
    if isinstance(texts, list | tuple) or (isinstance(texts, np.ndarray) and texts.ndim == 1):
        return len(texts) > 0 and isinstance(texts[0], Mapping)
    return False


def _is_matrix(labels: object) -> bool:
    if isinstance(labels, np.ndarray):
        return labels.ndim == 2 and labels.dtype.kind in "fiub"
    return isinstance(labels, Csr) or hasattr(labels, "tocsr")


LabelColumns = tuple[Csr | None, tuple[str, ...], ReadReport]


def _labels(
    labels: Any, relevance: Iterable[Sequence[float]] | None, names: Sequence[str | int] | None, rows: int
) -> LabelColumns:
    if is_table(labels):
        matrix, columns = table_matrix(labels)
        labels, names = matrix, columns if names is None else names
    if _is_matrix(labels):
        if relevance is not None:
            raise DataError("relevance is for lists of labels; a label matrix Y holds its own values.")
        return _label_matrix(as_csr(labels, "Y"), names, rows)
    if names is not None:
        raise DataError("names are for the columns of a label matrix Y; lists of labels hold their names.")
    return (None, (), ReadReport(rows=rows)) if labels is None else _label_lists(labels, relevance, rows)


def _label_lists(labels: Iterable[RowLabels], relevance: Iterable[Sequence[float]] | None, rows: int) -> LabelColumns:
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
    return matrix, names, ReadReport(rows=rows, duplicate_labels=table.duplicates, no_labels=empty)


def _row(value: Any, weights: list[Any] | None, row: int) -> tuple[list[str], list[float] | None]:
    found = labels_of(_plain(value), "labels")
    if found is None:
        raise DataError("the labels are None; give [] for a document without any.")
    if weights is None or row >= len(weights):
        return found, None
    return weighted(found, _plain(weights[row]), "relevance")


def _plain(value: Any) -> Any:
    """numpy's arrays and numbers as Python's, also inside a list."""
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, list | tuple):
        return [item.item() if isinstance(item, np.generic) else item for item in value]
    return value


def _label_matrix(y: Csr, names: Sequence[str | int] | None, rows: int) -> LabelColumns:
    """Columns into the order of their sorted names; entries of 0 are dropped."""
    _same(y.rows, rows, "Y")
    given = [str(i) for i in range(y.cols)] if names is None else [check_label(_plain(name)) for name in names]
    if len(given) != y.cols:
        raise DataError(f"Y has {y.cols} columns but there are {len(given)} names; each column needs one.")
    sorted_names = ordered(given)
    twice = next((a for a, b in pairwise(sorted_names) if a == b), None)
    if twice is not None:
        raise DataError(f"two columns of Y are named {twice!r}; labels need names of their own.")
    if (y.data < 0).any():
        at = int(np.argmax(y.data < 0))
        row = int(np.searchsorted(y.indptr, at, side="right")) - 1
        raise DataError(f"Y holds {y.data[at]} in column {y.indices[at]}; a relevance is 0 or more.", row=row)
    y = y if (y.data > 0).all() else y.keep(y.data > 0)
    if sorted_names != tuple(given):
        y = _renumbered(y, given, sorted_names)
    return y, sorted_names, ReadReport(rows=rows, no_labels=int((y.counts() == 0).sum()))


def _renumbered(y: Csr, given: list[str], sorted_names: tuple[str, ...]) -> Csr:
    """The columns `given` in the order of their sorted names."""
    place = {name: i for i, name in enumerate(sorted_names)}
    columns = np.array([place[name] for name in given], np.int32)[y.indices]
    return checked(Csr(y.indptr, columns, y.data, y.cols).transpose().transpose(), "Y")  # twice: sorts each row


def _ids(ids: Iterable[str | int] | None, rows: int) -> tuple[str, ...] | None:
    if ids is None:
        return None
    return tuple(_checked_ids(listed(ids, "ids"), rows))


def _checked_ids(ids: Iterable[str | int], rows: int) -> Iterator[str]:
    count = 0
    for count, value in enumerate(ids, 1):
        try:
            yield id_of(_plain(value), "ids")
        except DataError as error:
            raise error.at(row=count - 1) from error
    _same(count, rows, "ids")


def _same(count: int, rows: int, name: str) -> None:
    if count != rows:
        seen = f"{counted(rows, 'document')} but {counted(count, 'row')} of {name}"
        raise DataError(f"there are {seen}; each document needs one.")
