"""Records of several lines: cells with line feeds in them, or a quote that nobody meant as the begin of a cell?

    "Light verse,poems            here a cell begins that ends at the next quote before a comma,
    Of stars,astronomy            two lines further on: three documents are one,
    A screen of 15",hardware      and the labels of two are part of its text

Such a record has a mark: each of its lines, taken alone, has as many cells as the header. Lines of a cell that is
rightly quoted rarely have, all of them. In TSV, where hardly any text holds tabs, the mark is proof enough. In CSV it
comes about by chance, so more must speak for it: the labels of those lines occur elsewhere, or most records of several
lines have the mark.
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections.abc import Container, Sequence

from ...errors import counted

_KEPT = 1000  # suspects that are remembered


def lines_as_records(lines: Sequence[str], delimiter: str, width: int) -> list[list[str]] | None:
    """The cells of each line of a record, taken alone; None if one of them has not `width` cells, or all have one."""
    cell = re.compile(rf'"(?:[^"]++|"")*+"(?={re.escape(delimiter)}|\Z)|[^{re.escape(delimiter)}]*+')
    found: list[list[str]] = []
    for line in lines:
        cells: list[str] = []
        at, text = -1, line.rstrip("\r\n")
        while at < len(text) and len(cells) <= width:
            match = cell.match(text, at + 1)
            assert match is not None
            cells.append(match.group())
            at = match.end()
        if len(cells) != width or width < 2:
            return None
        found.append(cells)
    return found


@dataclasses.dataclass(frozen=True)
class _Suspect:
    """A record that looks like several: its lines, and the labels of those that would be lost."""

    first: int
    last: int
    labels: tuple[str, ...]


class Spanning:
    """Count of the records over several lines in one pass, and those among them that look like several records."""

    def __init__(self, label_column: int | None, separator: str) -> None:
        self._label_column, self._separator = label_column, separator
        self._records = self._suspects = 0
        self._kept: list[_Suspect] = []

    def add(self, first: int, rows: Sequence[Sequence[str]] | None) -> None:
        """Count a record by its first line; `rows` are the cells of its lines, if it looks like several."""
        self._records += 1
        if rows is None:
            return
        self._suspects += 1
        if len(self._kept) < _KEPT:
            self._kept.append(_Suspect(first, first + len(rows) - 1, self._labels(rows[:-1])))

    def warn(self, place: str, known: Container[str]) -> None:
        """Warn of records that look like several; `known` are the labels of the data."""
        sure = [suspect for suspect in self._kept if suspect.labels and all(name in known for name in suspect.labels)]
        if not sure and 2 * self._suspects <= self._records:
            return
        count, suspect = (len(sure), sure[0]) if sure else (self._suspects, self._kept[0])
        seen = f"{counted(count, 'record')} over several lines may be several records"
        why = f"which a quote without its partner joins; the first is lines {suspect.first} to {suspect.last}"
        warnings.warn(f'{place}: {seen}, {why}. If so, quote the cell, and write "" for a quote in it.', stacklevel=4)

    def _labels(self, rows: Sequence[Sequence[str]]) -> tuple[str, ...]:
        if self._label_column is None:
            return ()
        cells = [row[self._label_column].encode("latin-1").decode(errors="replace") for row in rows]
        return tuple(part.strip() for cell in cells for part in cell.strip('"').split(self._separator))
