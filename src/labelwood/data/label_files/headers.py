"""Headers of tables of two columns: which column is which, in either order, by names that are known."""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Sequence

from ...errors import DataError

_WORD = re.compile(r"[a-z]+|[A-Z]+(?![a-z])|[A-Z][a-z]+")  # of `parent_id`, `broaderURI`, `Narrower term`
_PLAIN = re.compile(r"[A-Za-z][A-Za-z\s_:.-]*")  # a cell of such words and nothing else
_GENERIC = frozenset(
    {
        "id", "ids", "uid", "uri", "uris", "url", "iri", "label", "labels", "name", "names", "term", "terms",
        "concept", "concepts", "category", "categories", "class", "node", "topic", "subject", "code", "key",
        "notation", "pref", "preflabel", "skos", "value", "text", "title",
    }
)  # fmt: skip


@dataclasses.dataclass(frozen=True)
class Header:
    """The names of the two columns: those known by heart, and words that mark a column beside words such as `id`."""

    ids: tuple[str, ...]
    values: tuple[str, ...]
    id_marks: frozenset[str] = frozenset()
    value_marks: frozenset[str] = frozenset()

    def places(self, cells: Sequence[str]) -> tuple[int, int] | None:
        """The columns of the id and of the value, if these cells are a header; else None.

        What looks like a header and does not say which column is which is a DataError.
        """
        names = [cell.strip().lower() for cell in cells]
        for place in (0, 1):
            if names[place] in self.ids and names[1 - place] in self.values:
                return place, 1 - place
        sides = [self._side(cell) for cell in cells]
        if sorted(sides, key=str) in ([0, 1], [0, "generic"], [1, "generic"]):
            first = sides[0] == 0 or sides[1] == 1
            return (0, 1) if first else (1, 0)
        marked = next((cell for cell, side in zip(cells, sides, strict=True) if side in {0, 1}), None)
        if marked is not None:
            shown = " and ".join(repr(cell[:40]) for cell in cells)
            known = f"{self.ids[0]!r} and {self.values[0]!r}"
            raise DataError(
                f"the first line, {shown}, looks like a header, but it does not say which column is which. If it is "
                f"one, name the columns {known}; if it is not, put such a header above it."
            )
        return None

    def _side(self, cell: str) -> int | str:
        """Which of the two a cell names: 0, 1, "generic" for words that fit both, or "none" for other words."""
        words = {word.lower() for word in _WORD.findall(cell)}
        if not _PLAIN.fullmatch(cell) or not words <= self.id_marks | self.value_marks | _GENERIC:
            return "none"
        ids, values = bool(words & self.id_marks), bool(words & self.value_marks)
        return "generic" if ids == values else 0 if ids else 1
