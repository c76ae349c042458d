"""CSV and TSV with a header line, quoted as RFC 4180 has it (a field may hold line feeds)."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import Any

from ... import limits
from ...errors import DataError, counted
from ..dataset import check_row
from ..parsing import strict_json
from ..parsing.fields import Fields
from ..parsing.input_pass import InputPass
from ..parsing.records import Records
from ..parsing.rows import Row
from ..parsing.spanning import Spanning
from .registry import Format, Sign, register

_DECLARED = re.compile(rb'"?(?i:sep)=([,;|:^~ \t])"?')


def csv_rows(reading: InputPass) -> Iterator[Row]:
    """Comma separated; semicolons where the header has no comma, or whatever a first line `sep=;` says."""
    declared = _declared(reading)
    header = reading.main().peek()
    return _rows(reading, declared or (";" if b";" in header and b"," not in header else ","))


def tsv_rows(reading: InputPass) -> Iterator[Row]:
    """Tab separated, with the quoting of CSV."""
    return _rows(reading, _declared(reading) or "\t")


def _declared(reading: InputPass) -> str | None:
    """The separator of columns that a first line declares, as Excel writes and reads it; the line is read."""
    source = reading.main()
    found = _DECLARED.fullmatch(source.peek().strip(b"\r\n"))
    if found is None:
        return None
    while source.readline().isspace():
        reading.log.blank += 1
    reading.log.header += 1
    return found[1].decode()


def _rows(reading: InputPass, delimiter: str) -> Iterator[Row]:
    source = reading.main()
    records = Records(source, delimiter, reading.log)
    each = iter(records)
    header = [_decoded(cell).strip() for cell in next(each, [])]
    names = _without_empty_end(header, 0)
    try:
        fields = _fields(names, reading)
    except DataError as error:
        raise error.at(file=source.name, line=records.line) from error
    separator = reading.options.separator
    used = _used(names, fields)
    reading.log.spanning = Spanning(names.index(fields.labels) if fields.labels in names else None, separator)
    for record in each:
        cells = record if len(header) == len(names) else _without_empty_end(record, len(names))
        if len(cells) != len(names):
            unnamed = len(names) < len(cells) <= len(header)
            records.bad(
                _wrong_number(cells, names, unnamed), len(cells) - 1 if unnamed else min(len(cells), len(names))
            )
            continue
        try:
            row = fields.row(_record(used, cells, fields, separator), reading.log)
        except DataError as error:
            records.bad(error, names.index(error.field) if error.field in names else 0)
            continue
        yield row


def _without_empty_end(cells: list[str], least: int) -> list[str]:
    """Cells without empty ones at the end, as Excel writes for columns that once held something."""
    size = len(cells)
    while size > least and not cells[size - 1].strip():
        size -= 1
    return cells[:size]


def _wrong_number(cells: list[str], names: list[str], unnamed: bool) -> DataError:
    if unnamed:
        return DataError("this cell is not empty, but its column has no name; name it in the header, or empty it.")
    return DataError(f"the header has {counted(len(names), 'column')} but this record {len(cells)}.")


def _fields(names: list[str], reading: InputPass) -> Fields:
    try:
        twice = next((name for i, name in enumerate(names) if name in names[:i]), None)
        if twice is not None:
            raise DataError(f"two columns are named {twice[:60]!r}.")
        return reading.fields(names, alike=True)
    except DataError as error:
        raise DataError(f"{error.message} The first line must name the columns.", field=error.field) from error


def _used(names: list[str], fields: Fields) -> list[tuple[int, str, str]]:
    """Columns that are read: place, name, and what they hold; a text goes before labels, and those before an id."""
    texts, lists = fields.names(names), {fields.labels, fields.relevance}
    found = []
    for place, name in enumerate(names):
        kind = "text" if name in texts else "list" if name in lists else "id" if name == fields.id else ""
        if kind:
            found.append((place, name, kind))
    return found


def _record(used: list[tuple[int, str, str]], cells: list[str], fields: Fields, separator: str) -> dict[str, Any]:
    record: dict[str, Any] = {}
    for place, name, kind in used:
        if kind == "text":
            record[name] = cells[place].encode("latin-1")
        elif kind == "list":
            record[name] = _split(_decoded(cells[place]), separator, name)
        else:
            record[name] = _decoded(cells[place])
    cells.clear()  # a huge cell need not be held twice
    if fields.relevance in record:
        record[fields.relevance] = [_number(item, fields.relevance) for item in record[fields.relevance]]
    return record


def _decoded(cell: str) -> str:
    return cell if cell.isascii() else cell.encode("latin-1").decode()


def _split(cell: str, separator: str, name: str) -> list[Any]:
    """`a|b`, or a JSON list; empty parts are left out."""
    cell = cell.strip()
    if cell.startswith("[") and cell.endswith("]"):
        return _json(cell, separator, name)
    parts = cell.split(separator, limits.MAX_ROW_LABELS)
    try:
        check_row(len(parts))
    except DataError as error:
        raise error.at(field=name) from error
    return [part for part in map(str.strip, parts) if part]


def _json(cell: str, separator: str, name: str) -> list[Any]:
    try:
        return list(strict_json.loads(cell.encode(), lean=True))
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
        lines=(
            Sign(rb"\"?(?i:sep)=[,;|:^~ ]\"?\s*\Z", 55),
            Sign(rb"[^\n]*[,;]|\s*\"?(text|title|content)\"?\s*\Z", 70),
        ),
    ),
    Format(
        "tsv",
        tsv_rows,
        "the same with tabs, and the same quoting",
        place=3,
        lines=(Sign(rb"[^,\t]*\t", 60), Sign(rb"[^\n]*\t", 80)),
    ),
)
