"""Parquet (extra `parquet`): columns as in JSON lines; texts are strings, labels a list of strings or whole numbers."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import closing
from functools import partial
from typing import Any

from ...errors import DataError, needs
from ..parsing.input_pass import InputPass
from ..parsing.rows import Row
from .registry import Format, register

_BATCH = 1024


def rows(reading: InputPass) -> Iterator[Row]:
    """One row per record, a batch at a time, only the columns that are needed."""
    name = str(reading.path)
    with closing(_open(name)) as file:
        try:
            yield from _rows(reading, file, name)
        except DataError as error:
            raise error.at(file=name) from error


def _rows(reading: InputPass, file: Any, name: str) -> Iterator[Row]:
    found = list(_guarded(name, lambda: file.schema_arrow.names))
    fields = reading.fields(found, alike=True)
    texts = fields.names(found)
    wanted = {*texts, fields.labels, fields.id, fields.relevance}
    columns = [column for column in found if column in wanted]
    twice = next((column for column in columns if columns.count(column) > 1), None)
    if twice is not None:
        raise DataError(f"two columns are named {twice[:60]!r}; each needs a name of its own.")
    batches = _guarded(name, lambda: file.iter_batches(batch_size=_BATCH, columns=columns))
    row = -1
    while (batch := _guarded(name, lambda: next(batches, None))) is not None:
        for record in _guarded(name, partial(_records, batch, texts)):
            row += 1
            reading.log.records += 1
            try:
                ready = fields.row(record, reading.log)
            except DataError as error:
                reading.log.bad(error.at(file=name, row=row))
                continue
            yield ready


def _open(path: str) -> Any:
    with needs("reading Parquet", "parquet"):
        import pyarrow.parquet as pq
    if path == "-":
        raise DataError("Parquet is read from its end and needs a file.", file="standard input")
    return _guarded(path, lambda: pq.ParquetFile(path))


def _guarded(path: str, call: Callable[[], Any]) -> Any:
    try:
        return call()
    except Exception as error:  # for damaged files pyarrow raises its own errors, OSError, UnicodeDecodeError and more
        raise DataError(f"not a Parquet file that can be read: {error}", file=path) from error


def _records(batch: Any, texts: set[str]) -> Iterator[dict[str, Any]]:
    names = batch.schema.names
    columns = [_values(batch.column(i), name in texts) for i, name in enumerate(names)]
    return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def _values(column: Any, text: bool) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    if text and (pa.types.is_string(column.type) or pa.types.is_large_string(column.type)):
        column = column.cast(pa.large_binary())  # the bytes, to be checked as UTF-8 like those of any file
    return list(column.to_pylist())


register(
    Format(
        "parquet",
        rows,
        "columns `text`, `labels` (list of strings or whole numbers), `id`; `pip install 'labelwood[parquet]'`",
        place=4,
        magic=b"PAR1",
    )
)
