"""CSV and TSV with a header line, quoted as RFC 4180 has it (a field may hold line feeds).

The bytes are handed to Python's csv module as Latin-1, whose 256 characters are the 256 bytes: its structure is ASCII,
and each cell comes back as the UTF-8 it was.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator
from typing import Any

from .. import limits
from ..errors import DataError
from . import strictjson
from .fields import Fields
from .reading import Reading
from .rows import Row
from .source import Source


def csv_rows(reading: Reading) -> Iterator[Row]:
    """Comma separated; semicolons where the header has no comma."""
    header = reading.main().peek()
    return _rows(reading, ";" if b";" in header and b"," not in header else ",")


def tsv_rows(reading: Reading) -> Iterator[Row]:
    """Tab separated, with the quoting of CSV."""
    return _rows(reading, "\t")


def _rows(reading: Reading, delimiter: str) -> Iterator[Row]:
    source, log = reading.main(), reading.log
    records = _records(reading, source, delimiter)
    line, header = next(records, (1, []))
    try:
        names = [log.utf8(cell.encode("latin-1")).decode().strip() for cell in header]
        fields = _fields(names, reading)
    except DataError as error:
        raise error.at(file=source.name, line=line) from error
    for line, cells in records:
        try:
            row = fields.row(_record(names, cells, fields, reading), log)
        except DataError as error:
            log.bad(error.at(file=source.name, line=line))
            continue
        yield row


def _records(reading: Reading, source: Source, delimiter: str) -> Iterator[tuple[int, list[str]]]:
    """(number of its first line, cells) of every record that is not blank."""
    # The csv module refuses fields above 128 KB unless told otherwise, for the whole process; documents are longer.
    csv.field_size_limit(max(csv.field_size_limit(), limits.MAX_LINE_BYTES))
    parser = csv.reader(iter(lambda: source.readline().decode("latin-1"), ""), delimiter=delimiter, strict=True)
    while True:
        line = source.line + 1
        try:
            cells = next(parser, None)
        except csv.Error as error:
            reading.log.bad(DataError(f"not valid CSV: {error}.", file=source.name, line=line))
            continue
        if cells is None:
            return
        if cells and not (len(cells) == 1 and cells[0].isspace()):
            yield line, cells
        del cells


def _fields(names: list[str], reading: Reading) -> Fields:
    twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
    if twice is not None:
        raise DataError(f"two columns are named {twice[:60]!r}.")
    return Fields.choose(names, reading.options, reading.need_labels)


def _record(names: list[str], cells: list[str], fields: Fields, reading: Reading) -> dict[str, Any]:
    if len(cells) != len(names):
        raise DataError(f"the header has {len(names)} columns but this record {len(cells)}.")
    record: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=True):
        if name in fields.text:
            record[name] = cell.encode("latin-1")
        elif name in {fields.labels, fields.relevance}:
            record[name] = _listed(_decoded(cell, name, reading), name, reading.options.separator)
        elif name == fields.id:
            record[name] = _decoded(cell, name, reading)
    cells.clear()  # a huge cell need not be held twice
    if fields.relevance in record:
        record[fields.relevance] = [_number(item, fields.relevance) for item in record[fields.relevance]]
    return record


def _decoded(cell: str, name: str, reading: Reading) -> str:
    try:
        return reading.log.utf8(cell.encode("latin-1")).decode()
    except DataError as error:
        raise error.at(field=name) from error


def _listed(cell: str, name: str, separator: str) -> list[Any]:
    """`a|b`, or a JSON list; empty parts are left out."""
    cell = cell.strip()
    if cell.startswith("[") and cell.endswith("]"):
        try:
            found = strictjson.loads(cell.encode())
        except DataError as error:
            way = f'write ["a", "b"] or a{separator}b'
            raise DataError(f"the cell looks like a list but is {error.message} {way}.", field=name) from error
        return list(found)
    return [part for part in map(str.strip, cell.split(separator)) if part]


def _number(item: object, field: str | None) -> object:
    if not isinstance(item, str):
        return item
    try:
        return float(item)
    except ValueError as error:
        raise DataError(f"a relevance must be a number, but is {item[:40]!r}.", field=field) from error
