"""The doors for what is already in memory: lists of texts and labels, records, tables, or matrices → Dataset."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from ..arrays.sparse import Features, as_features
from ..arrays.texts import Texts
from ..errors import DataError
from .containers import is_table, listed, plain, table_block, table_records
from .dataset import Dataset
from .given_labels import ColumnNames, Labels, Relevance, given_ids, label_columns
from .label_suspicions import warn_of
from .options import ReadOptions
from .parsing.fields import Fields, Reading, kind_of
from .parsing.rows import Collector, Log


def from_lists(
    texts: Iterable[str],
    labels: Labels | None = None,
    ids: Iterable[str | int] | None = None,
    relevance: Relevance | None = None,
    names: ColumnNames | None = None,
) -> Dataset:
    """Texts with labels: a list for each (one string or number is one label), or a matrix as for `from_matrix`.

    A DataError names the row.
    """
    packed = texts if isinstance(texts, Texts) else Texts.from_strings(listed(texts, "texts"))
    matrix, known, report = label_columns(labels, relevance, names, len(packed))
    return Dataset(packed, None, matrix, known, given_ids(ids, len(packed)), report)


def from_matrix(
    features: object,
    labels: Labels | None = None,
    names: ColumnNames | None = None,
    ids: Iterable[str | int] | None = None,
    relevance: Relevance | None = None,
) -> Dataset:
    """Features X (n, d) with labels: lists as for `from_lists`, or a matrix Y (n, L) whose columns `names` names."""
    x = given_features(features)
    matrix, known, report = label_columns(labels, relevance, names, x.rows)
    return Dataset(None, x, matrix, known, given_ids(ids, x.rows), report)


def from_records(
    records: object,
    labels: Labels | None = None,
    *,
    options: ReadOptions | None = None,
    fields: Reading | None = None,
    relevance: Relevance | None = None,
    names: ColumnNames | None = None,
) -> Dataset:
    """Records {"title": …, "text": …, "labels": …}, or a table with such columns; `labels` go before those they hold.

    Which fields are read is said by the options, or else by their usual names, as for files.
    """
    options = options or ReadOptions()
    if labels is not None:
        options = dataclasses.replace(options, labels=None, relevance=None)
    table = is_table(records)
    rows: Any = table_records(records) if table else _as_list(listed(records, "texts"))
    labelled = any(isinstance(record, Mapping) and options.labels in record for record in rows)
    log, reader, collector = Log(), None, None
    for number, record in enumerate(rows):
        try:
            if not isinstance(record, Mapping):
                raise DataError(f"the first document is a record, but this one is {kind_of(record)}.")
            values = {str(name): plain(value) for name, value in record.items()}
            if reader is None:
                log.fields = reader = Fields(values, options, labelled, fields, alike=table)
                collector = Collector(log)
            assert collector is not None
            collector.add(reader.row(values, log))
        except DataError as error:
            raise error.at(row=number) from error
    if collector is None:
        return from_lists([], labels, relevance=relevance, names=names)
    found = collector.finish()
    if labels is None and relevance is None and names is None:
        warn_of(found.labels, found.names, found.report)
        return found
    matrix, known, report = label_columns(labels, relevance, names, len(found))
    seen = dataclasses.replace(report, fields=found.report.fields, left=found.report.left)
    return dataclasses.replace(found, labels=matrix, names=known, report=seen)


def from_documents(
    documents: object,
    labels: Labels | None = None,
    *,
    options: ReadOptions | None = None,
    fields: Reading | None = None,
    relevance: Relevance | None = None,
    names: ColumnNames | None = None,
) -> Dataset:
    """Texts as for `from_lists`, or records as for `from_records`: told by the first of them."""
    if not is_table(documents) and not isinstance(documents, Texts):
        documents = _as_list(listed(documents, "texts"))
        if not documents or not isinstance(documents[0], Mapping):
            return from_lists(documents, labels, relevance=relevance, names=names)
    if isinstance(documents, Texts):
        return from_lists(documents, labels, relevance=relevance, names=names)
    return from_records(documents, labels, options=options, fields=fields, relevance=relevance, names=names)


def given_features(features: object) -> Features:
    """X from the user: a matrix, a table of numbers, or a pair (sparse, dense)."""
    if isinstance(features, tuple) and len(features) == 2 and is_table(features[1]):
        features = features[0], table_block(features[1])
    if hasattr(features, "as_py"):  # numpy would read its bytes as numbers
        raise DataError(f"X is not a matrix, but a single value of type {type(features).__name__}.")
    return as_features(table_block(features) if is_table(features) else features)


def _as_list(documents: Iterable[Any]) -> Sequence[Any]:
    return documents if isinstance(documents, list) else list(documents)
