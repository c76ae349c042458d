"""Sketches of texts: what a check needs to know of each, from one native pass (native/text/sketch.cpp).

A sketch has SLOTS values, each the smallest hash of a part of the text's word triples (MinHash with one permutation,
Li, Owen, Zhang 2012). Two texts agree in about as many slots as they have triples in common, of all that either has.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays.texts import Texts
from ..base.progress import Tick

SLOTS = 64
SHINGLE = 3  # words
REPLACED, TWICE, MARKUP, CONTROL = 1, 2, 4, 8  # signs of damage


@dataclasses.dataclass(frozen=True, eq=False)
class Sketches:
    """Figures, signs of damage, digests and slots of n texts."""

    words: NDArray[np.int32]  # (n,) of one character and more
    characters: NDArray[np.int32]  # (n,)
    signs: NDArray[np.uint8]  # (n,) bits: U+FFFD, encoded twice, markup, control characters
    digests: NDArray[np.uint64]  # (n,) of the words in their order; case, punctuation and spaces do not count
    slots: NDArray[np.uint32]  # (n, SLOTS)

    @staticmethod
    def of(texts: Texts, *, threads: int = 1, progress: Tick | None = None) -> Sketches:
        """Read the texts; nothing in the result depends on threads."""
        words, characters, signs, digests, slots = _core.sketch_texts(texts.arena, texts.offsets, threads, progress)
        return Sketches(words, characters, signs, digests, slots.reshape(-1, SLOTS))

    def __len__(self) -> int:
        return len(self.words)

    def __add__(self, more: Sketches) -> Sketches:
        """Both sets of texts, one behind the other."""
        fields = [field.name for field in dataclasses.fields(self)]
        return Sketches(*(np.concatenate([getattr(self, name), getattr(more, name)]) for name in fields))
