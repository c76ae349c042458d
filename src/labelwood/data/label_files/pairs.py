"""Side files about labels: (id, value) pairs from a JSON object, JSON lines, or CSV/TSV of two columns.

JSON object {"id": value, ...}, JSON lines {"id": ..., "value": ...} under the key names a caller knows, or a table with
or without a header. What a value means is the caller's; here belong the three layouts and the places of mistakes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator
from itertools import chain
from typing import Any

from ...errors import DataError
from ..parsing import strict_json
from ..parsing.records import Records
from ..parsing.rows import Log
from ..parsing.source import Source, first_line
from .headers import Header

Pair = tuple[int | None, Any, Any]  # line, id, value


@dataclasses.dataclass(frozen=True)
class Layout:
    """The names under which a kind of file has its two parts."""

    ids: tuple[str, ...]
    values: tuple[str, ...]
    columns: str  # the two columns of a table, in words
    id_marks: frozenset[str] = frozenset()  # words that mark the column of the ids, and that of the values
    value_marks: frozenset[str] = frozenset()

    def pairs(self, source: Source) -> Iterator[Pair]:
        """Pairs of the file, in its order."""
        return self.read(source)[1]

    def read(self, source: Source) -> tuple[bool, Iterator[Pair]]:
        """Pairs of the file, and whether it says which part is which: as JSON does, or a table with a header."""
        first = first_line(source)
        if first.lstrip().startswith(b"{"):
            return True, self._from_json(source)
        records = Records(source, "\t" if b"\t" in first else ",", Log())
        rows = self._rows(records)
        begin = next(rows, None)
        if begin is None:
            return False, iter(())
        places = self._places(begin[1], records)
        if places is None:
            return False, _in_order(chain([begin], rows), 0, 1)
        return True, _in_order(rows, *places)

    def _from_json(self, source: Source) -> Iterator[Pair]:
        """One object over the whole file, or one object per line: told by whether the first line is one of a record."""
        try:
            first = strict_json.loads(Log().utf8(source.peek()))
        except DataError:
            first = None  # an object over several lines, or a mistake that is reported with its place below
        if first is not None and key_of(first, self.ids) and key_of(first, self.values):
            return self._from_lines(source)
        return _from_object(source)

    def _from_lines(self, source: Source) -> Iterator[Pair]:
        for raw in source.lines():
            if raw.isspace():
                continue
            try:
                record = strict_json.loads(Log().utf8(raw))
                ident, value = key_of(record, self.ids), key_of(record, self.values)
                if not ident or not value:
                    raise DataError(f"expected an object with {either(self.ids)} and {either(self.values)}.")
            except DataError as error:
                raise error.at(file=source.name, line=source.line) from error
            yield source.line, record[ident], record[value]

    def _rows(self, records: Records) -> Iterator[tuple[int, list[str]]]:
        """Line and cells of each record that is not empty."""
        for raw in records:
            cells = [cell.encode("latin-1").decode().strip() for cell in raw]
            if not any(cells):
                continue
            if len(cells) != 2:
                few = f"expected two columns, {self.columns}, but found {len(cells)}."
                records.bad(DataError(few), min(len(cells), 2))
            yield records.line, cells

    def _places(self, cells: list[str], records: Records) -> tuple[int, int] | None:
        """The columns of id and value by the header; None where the first record is none."""
        try:
            return Header(self.ids, self.values, self.id_marks, self.value_marks).places(cells)
        except DataError as error:
            records.bad(error, 0)
            raise


def _in_order(rows: Iterable[tuple[int, list[str]]], ident: int, value: int) -> Iterator[Pair]:
    return ((line, bare(cells[ident]), cells[value]) for line, cells in rows)


def _from_object(source: Source) -> Iterator[Pair]:
    raw = b"".join(source.lines())
    try:
        found = strict_json.loads(Log().utf8(raw))
    except DataError as error:
        before = raw.decode(errors="replace")[: (error.column or 1) - 1]
        column = len(before) - before.rfind("\n")
        line = before.count("\n") + 1 if error.column else None
        raise DataError(error.message, file=source.name, line=line, column=column if error.column else None) from error
    return ((None, ident, value) for ident, value in found.items())


def entry(line: int | None, ident: object) -> str | None:
    """The place of a mistake in one object over the whole file: its key, where there is no line to name."""
    return repr(ident)[:80] if line is None else None


def bare(ident: str) -> str:
    """A URI without its angle brackets."""
    return ident.removeprefix("<").removesuffix(">")


def key_of(record: object, keys: tuple[str, ...]) -> str | None:
    """The first of these keys that the record has."""
    return next((key for key in keys if key in record), None) if isinstance(record, dict) else None


def either(keys: tuple[str, ...]) -> str:
    """The keys for a message."""
    return " or ".join(map(repr, keys))
