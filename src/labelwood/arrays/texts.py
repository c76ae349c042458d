"""Documents as one UTF-8 arena with offsets: text as native code reads it. Python strings exist only at the edges."""

from __future__ import annotations

import dataclasses
import os
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import DataError


@dataclasses.dataclass(frozen=True, eq=False)
class Texts:
    """n documents as UTF-8: document i is arena[offsets[i]:offsets[i+1]]. Valid UTF-8 by construction."""

    arena: NDArray[np.uint8]
    offsets: NDArray[np.int64]  # (n + 1,)

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

    def take(self, rows: NDArray[np.integer[Any]]) -> Texts:
        """The named documents, in that order."""
        sizes = np.diff(self.offsets)[rows]
        offsets = np.zeros(len(rows) + 1, np.int64)
        np.cumsum(sizes, out=offsets[1:])
        pieces = [self.arena[self.offsets[r] : self.offsets[r + 1]] for r in rows]
        return Texts(np.concatenate(pieces) if pieces else np.zeros(0, np.uint8), offsets)


def _not_text(text: object, row: int) -> DataError:
    if not isinstance(text, str):
        return DataError(f"a text must be a str, but is {type(text).__name__}.", row=row)
    at = next(i for i, c in enumerate(text) if "\ud800" <= c <= "\udfff")
    return DataError(f"the text is not valid Unicode (lone surrogate at character {at}).", row=row)
