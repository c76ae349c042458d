"""Token ids of documents: one flat array with the bounds of each document, without padding."""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, eq=False)
class Tokens:
    """Token ids of documents, one after the other."""

    ids: NDArray[np.int32]
    offsets: NDArray[np.int64]  # (documents + 1,)
    frame: int = 0  # special tokens of every document: one that has no others is empty

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @cached_property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.offsets)

    def followed_by(self, others: Tokens) -> Tokens:
        """These documents, then the others."""
        offsets = np.concatenate([self.offsets, self.offsets[-1] + others.offsets[1:]])
        return Tokens(np.concatenate([self.ids, others.ids]), offsets, self.frame)

    def first(self, count: int) -> Tokens:
        """The first documents."""
        return Tokens(self.ids[: self.offsets[count]], self.offsets[: count + 1], self.frame)

    def take(self, rows: NDArray[np.integer[Any]]) -> Tokens:
        """The named documents, in that order."""
        lengths = self.lengths[rows]
        offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(lengths)])
        where = np.repeat(self.offsets[:-1][rows] - offsets[:-1], lengths) + np.arange(offsets[-1])
        return Tokens(self.ids[where], offsets, self.frame)
