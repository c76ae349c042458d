"""CSV and TSV with a header line, quoted as RFC 4180 has it (a field may hold line feeds)."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ...errors import DataError, counted
from ..parsing import strict_json
from ..parsing.fields import Fields
from ..parsing.input_pass import InputPass
from ..parsing.records import Records
from ..parsing.rows import Row
from .registry import Format, Sign, register


def csv_rows(reading: InputPass) -> Iterator[Row]:
    """Comma separated; semicolons where the header has no comma."""
    header = reading.main().peek()
    return _rows(reading, ";" if b";" in header and b"," not in header else ",")


def tsv_rows(reading: InputPass) -> Iterator[Row]:
    """Tab separated, with the quoting of CSV."""
    return _rows(reading, "\t")


def _rows(reading: InputPass, delimiter: str) -> Iterator[Row]:
    source = reading.main()
    records = Records(source, delimiter, reading.log)
    each = iter(records)
    names = [cell.encode("latin-1").decode().strip() for cell in next(each, [])]
    try:
        fields = _fields(names, reading)
    except DataError as error:
        raise error.at(file=source.name, line=records.line) from error
    separator, texts = reading.options.separator, fields.names(names)
    for cells in each:
        if len(cells) != len(names):
            few = f"the header has {counted(len(names), 'column')} but this record {len(cells)}."
            records.bad(DataError(few), min(len(cells), len(names)))
            continue
        try:
            row = fields.row(_record(names, texts, cells, fields, separator), reading.log)
        except DataError as error:
            records.bad(error, names.index(error.field) if error.field in names else 0)
            continue
        yield row


def _fields(names: list[str], reading: InputPass) -> Fields:
    try:
        twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            raise DataError(f"two columns are named {twice[:60]!r}.")
        return reading.fields(names, alike=True)
    except DataError as error:
        raise DataError(f"{error.message} The first line must name the columns.", field=error.field) from error


def _record(names: list[str], texts: set[str], cells: list[str], fields: Fields, separator: str) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for name, cell in zip(names, cells, strict=True):
        if name in texts:
            record[name] = cell.encode("latin-1")
        elif name in {fields.labels, fields.relevance}:
            record[name] = _split(_decoded(cell), separator, name)
        elif name == fields.id:
            record[name] = _decoded(cell)
    cells.clear()  # a huge cell need not be held twice
    if fields.relevance in record:
        record[fields.relevance] = [_number(item, fields.relevance) for item in record[fields.relevance]]
    return record


def _decoded(cell: str) -> str:
    return cell.encode("latin-1").decode()


def _split(cell: str, separator: str, name: str) -> list[Any]:
    """`a|b`, or a JSON list; empty parts are left out."""
    cell = cell.strip()
    if cell.startswith("[") and cell.endswith("]"):
        return _json(cell, separator, name)
    return [part for part in map(str.strip, cell.split(separator)) if part]


def _json(cell: str, separator: str, name: str) -> list[Any]:
    try:
        return list(strict_json.loads(cell.encode()))
    except DataError as error:
        way = f'write ["a", "b"] or a{separator}b'
        raise DataError(f"the cell looks like a list but is {error.message} {way}.", field=name) from error


def _number(item: object, field: str | None) -> object:
    if not isinstance(item, str):
        return item
    try:
        return float(item)
    except ValueError as error:
        raise DataError(f"a relevance must be a number, but is {item[:40]!r}.", field=field) from error


# Almost anything holds a comma or a tab: these come last. A tab before any comma is a sign of tsv, a later one only
# where there is no comma.
register(
    Format(
        "csv",
        csv_rows,
        r'a header line, then `7,"a red apple",fruit\|red` (semicolons if the header has no comma)',
        place=2,
        lines=(Sign(rb"[^\n]*[,;]|\s*\"?(text|title|content)\"?\s*\Z", 70),),
    ),
    Format(
        "tsv",
        tsv_rows,
        "the same with tabs, and the same quoting",
        place=3,
        lines=(Sign(rb"[^,\t]*\t", 60), Sign(rb"[^\n]*\t", 80)),
    ),
)
