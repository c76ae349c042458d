"""Documents as one UTF-8 arena with offsets: text as native code reads it. Python strings exist only at the edges.

A document of several fields, such as a title and a text, is one text here, its fields joined by line feeds in their
order; `cuts` say where each field begins. A field's weight multiplies the counts of its words.
"""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import DataError

if TYPE_CHECKING:
    from .._core import TextParts


_NO_CUTS = np.zeros(0, np.int64)
_ONCE = np.ones(1, np.int32)


class TextField(NamedTuple):
    """A field of a record that is read as text, and its weight."""

    name: str
    weight: int = 1


@dataclasses.dataclass(frozen=True, eq=False)
class Texts:
    """n documents as UTF-8: document i is arena[offsets[i]:offsets[i+1]]. Valid UTF-8 by construction."""

    arena: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # (n + 1,)
    fields: tuple[TextField, ...] = ()  # none: the texts are not known to come from fields
    cuts: NDArray[np.int64] | None = None  # (n, F - 1) places in the arena where the second and later fields begin

    @staticmethod
    def from_strings(strings: Iterable[str]) -> Texts:
        """Pack Python strings; a lone surrogate is a DataError that names the row."""
        rows = strings if isinstance(strings, list) else list(strings)
        arena, offsets, bad = _core.pack_strings(rows, threads=(os.cpu_count() or 1) if len(rows) > 4096 else 1)
        if bad >= 0:
            raise _not_text(rows[bad], bad)
        return Texts(arena, offsets)

    def __len__(self) -> int:
        return len(self.offsets) - 1

    def __getitem__(self, i: int) -> str:
        return self.arena[self.offsets[i] : self.offsets[i + 1]].tobytes().decode("utf-8")

    def __iter__(self) -> Iterator[str]:
        return (self[i] for i in range(len(self)))

    @property
    def parts(self) -> TextParts:
        """The arrays that native code counts words from: arena, offsets, cuts, and the weight of each field."""
        if self.cuts is None and all(field.weight == 1 for field in self.fields):
            return self.arena, self.offsets, _NO_CUTS, _ONCE
        cuts = _NO_CUTS if self.cuts is None else self.cuts.ravel()
        return self.arena, self.offsets, cuts, np.array([field.weight for field in self.fields] or [1], np.int32)

    def take(self, rows: NDArray[np.integer[Any]]) -> Texts:
        """The named documents, in that order."""
        sizes = np.diff(self.offsets)[rows]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        pieces = [self.arena[self.offsets[r] : self.offsets[r + 1]] for r in rows]
        arena = np.concatenate(pieces) if pieces else np.zeros(0, np.uint8)
        cuts = None if self.cuts is None else self.cuts[rows] + (offsets[:-1] - self.offsets[:-1][rows])[:, None]
        return Texts(arena, offsets, self.fields, cuts)

    def read_as(self, fields: Sequence[TextField]) -> Texts:
        """The texts as a model of these fields reads them; a model of no fields reads all there is, each word once.

        A text without fields is that of the last one. Fields that the model does not read are left out.
        """
        wanted = tuple(fields)
        names = [field.name for field in self.fields]
        if wanted == self.fields:
            return self
        if not wanted or not names:
            return Texts(self.arena, self.offsets, wanted[-1:])
        if names == [field.name for field in wanted]:
            return Texts(self.arena, self.offsets, wanted, self.cuts)
        kept = [field for field in wanted if field.name in names]
        if not kept:
            listed = " and ".join(field.name for field in wanted)
            raise DataError(
                f"the texts are of the fields {' and '.join(names)}, but the model reads {listed}; name those that "
                "take their places when the data is read: ReadOptions(text=…)."
            )
        return self._selected(kept, [names.index(field.name) for field in kept])

    def _selected(self, fields: Sequence[TextField], places: Sequence[int]) -> Texts:
        """Some of the fields, joined anew."""
        inner = np.zeros((len(self), 0), np.int64) if self.cuts is None else self.cuts
        bounds = np.column_stack([self.offsets[:-1], inner, self.offsets[1:]])
        data = self.arena.tobytes()
        arena = bytearray()
        starts = []
        for row in bounds.tolist():
            parts = [data[row[place] : row[place + 1]].removeprefix(b"\n") for place in places]
            text, cuts = joined(parts)
            starts.append([len(arena) + cut for cut in (0, *cuts)])
            arena += text
        cut = np.array(starts, np.int64).reshape(len(self), len(fields))
        offsets = np.append(cut[:, 0], len(arena)).astype(np.int64)
        kept = np.ascontiguousarray(cut[:, 1:]) if len(fields) > 1 else None
        return Texts(np.frombuffer(arena, np.uint8), offsets, tuple(fields), kept)


def joined(parts: Sequence[bytes]) -> tuple[bytes, tuple[int, ...]]:
    """Fields as one text, a line feed before each that is not empty but the first; and where the later ones begin."""
    held = [part for part in parts if part]
    cuts = []
    size = 0
    for number, part in enumerate(parts):
        if number:
            cuts.append(size)
        size += len(part) + (1 if part and size else 0)
    return held[0] if len(held) == 1 else b"\n".join(held), tuple(cuts)


def _not_text(text: object, row: int) -> DataError:
    if text is None:
        return DataError('a text must be a str, but is None; give "" for a document without any.', row=row)
    if not isinstance(text, str):
        return DataError(f"a text must be a str, but is {type(text).__name__}.", row=row)
    at = next(i for i, c in enumerate(text) if "\ud800" <= c <= "\udfff")
    return DataError(f"the text is not valid Unicode (lone surrogate at character {at}).", row=row)
