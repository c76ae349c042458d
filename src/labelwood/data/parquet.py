"""Parquet (extra `parquet`): columns as in JSON lines; texts are strings, labels a list of strings or whole numbers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from ..errors import DataError, MissingExtraError
from .fields import Fields
from .reading import Reading
from .rows import Row

_BATCH = 1024


def rows(reading: Reading) -> Iterator[Row]:
    """One row per record, a batch at a time, only the columns that are needed."""
    file, name = _open(reading.path), str(reading.path)
    try:
        found = file.schema_arrow.names
        fields = Fields.choose(found, reading.options, reading.need_labels)
        named = (*fields.text, fields.labels, fields.id, fields.relevance)
        columns = [column for column in found if column in named]
        row = 0
        for batch in _batches(file, columns, name):
            for record in _records(batch, fields):
                row += 1
                try:
                    ready = fields.row(record, reading.log)
                except DataError as error:
                    reading.log.bad(error.at(file=name, row=row - 1))
                    continue
                yield ready
    except DataError as error:
        raise error.at(file=name) from error
    finally:
        file.close()


def _open(path: str | Path) -> Any:
    try:
        import pyarrow as pa
        import pyarrow.parquet as pq
    except ImportError as error:
        raise MissingExtraError("reading Parquet needs pyarrow: pip install 'labelwood[parquet]'.") from error
    if str(path) == "-":
        raise DataError("Parquet is read from its end and needs a file; standard input cannot be one.")
    try:
        return pq.ParquetFile(path)
    except (OSError, pa.ArrowException) as error:
        raise DataError(f"not a Parquet file that can be read: {error}", file=path) from error


def _batches(file: Any, columns: list[str], name: str) -> Iterator[Any]:
    import pyarrow as pa

    batches = file.iter_batches(batch_size=_BATCH, columns=columns)
    while True:
        try:
            batch = next(batches, None)
        except (OSError, pa.ArrowException) as error:
            raise DataError(f"the Parquet data is damaged: {error}", file=name) from error
        if batch is None:
            return
        yield batch


def _records(batch: Any, fields: Fields) -> Iterator[dict[str, Any]]:
    names = batch.schema.names
    columns = [_values(batch.column(i), name in fields.text) for i, name in enumerate(names)]
    return (dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True))


def _values(column: Any, text: bool) -> list[Any]:
    import pyarrow as pa

    if pa.types.is_dictionary(column.type):
        column = column.dictionary_decode()
    stringy = pa.types.is_string(column.type) or pa.types.is_large_string(column.type)
    if text and stringy:
        column = column.cast(pa.large_binary())  # the bytes, to be checked as UTF-8 like those of any file
    try:
        return list(column.to_pylist())
    except UnicodeDecodeError as error:
        raise DataError(f"a label or id is not valid UTF-8: {error}.") from error
