"""Side files about labels: (id, value) pairs from a JSON object, JSON lines, or CSV/TSV of two columns.

JSON object {"id": value, ...}, JSON lines {"id": ..., "value": ...} under the key names a caller knows, or a table with
or without a header. What a value means is the caller's; here belong the three layouts and the places of mistakes.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

from ...errors import DataError
from ..parsing import strict_json
from ..parsing.records import Records
from ..parsing.rows import Log
from ..parsing.source import Source, first_line

Pair = tuple[int | None, Any, Any]  # line, id, value


@dataclasses.dataclass(frozen=True)
class Layout:
    """The names under which a kind of file has its two parts."""

    ids: tuple[str, ...]
    values: tuple[str, ...]
    columns: str  # the two columns of a table, in words

    def pairs(self, source: Source) -> Iterator[Pair]:
        """Pairs of the file, in its order."""
        first = first_line(source)
        if first.lstrip().startswith(b"{"):
            return self._from_json(source)
        return self._from_table(source, "\t" if b"\t" in first else ",")

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

    def _from_table(self, source: Source, delimiter: str) -> Iterator[Pair]:
        first, records = True, Records(source, delimiter, Log())
        for raw in records:
            cells = [cell.encode("latin-1").decode().strip() for cell in raw]
            if not any(cells):
                continue
            if len(cells) != 2:
                few = f"expected two columns, {self.columns}, but found {len(cells)}."
                records.bad(DataError(few), min(len(cells), 2))
            header = first and cells[0].lower() in self.ids and cells[1].lower() in self.values
            if not header:
                yield records.line, bare(cells[0]), cells[1]
            first = False


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
