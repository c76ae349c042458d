"""Label names, and label texts, as one UTF-8 arena with offsets: millions of them open at once.

A name becomes a Python string when it is asked for.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any, overload

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..errors import ModelFileError
from .texts import Texts


class Names(Sequence[str]):
    """A read-only sequence of strings, equal to a tuple of the same. Threads may share it."""

    __slots__ = ("_native", "arena", "offsets")

    def __init__(self, arena: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
        self.arena, self.offsets = arena, offsets
        self._native = _core.Names(arena, offsets)

    @staticmethod
    def of(strings: Iterable[str]) -> Names:
        """Python strings, packed."""
        if isinstance(strings, Names):
            return strings
        packed = Texts.from_strings(strings)
        return Names(packed.arena, packed.offsets)

    @staticmethod
    def read(arena: NDArray[Any], offsets: NDArray[Any], count: object, what: str) -> Names:
        """`count` strings from a model folder; ModelFileError if they are not sound."""
        if arena.dtype != np.uint8 or arena.ndim != 1 or offsets.dtype != np.int64 or offsets.shape != (_after(count),):
            raise ModelFileError(f"the {what} do not fit the model.")
        try:
            found = Names(arena, offsets)
        except ValueError as error:
            raise ModelFileError(f"the offsets of the {what} are out of order.") from error
        if not _is_text(arena, offsets):
            raise ModelFileError(f"one of the {what} is not valid UTF-8.")
        return found

    def repeated(self) -> int:
        """The position of a string that stands earlier too, or -1."""
        return self._native.repeated()

    def pairs(self, ids: NDArray[np.int32], scores: NDArray[np.float32]) -> list[list[tuple[str, float]]]:
        """(name, score) for each row of ids (n, k) and scores (n, k); id -1 is none."""
        return self._native.pairs(np.ascontiguousarray(ids), np.ascontiguousarray(scores))

    def __len__(self) -> int:
        return len(self.offsets) - 1

    @overload
    def __getitem__(self, i: int) -> str: ...
    @overload
    def __getitem__(self, i: slice) -> tuple[str, ...]: ...
    def __getitem__(self, i: int | slice) -> str | tuple[str, ...]:
        if isinstance(i, int) and not len(self):  # labels are never none: these are texts that nobody gave
            raise IndexError(
                "this model has no texts of labels; train it with label_texts=…, or ask model.text_of(label), which is "
                "empty then."
            )
        places = range(len(self))[i]  # IndexError, negative positions and slices as a tuple has them
        if isinstance(places, int):
            return self._native.some(places, places + 1)[0]
        return tuple(self[place] for place in places)

    def __iter__(self) -> Iterator[str]:
        for begin in range(0, len(self), 65536):
            yield from self._native.some(begin, min(len(self), begin + 65536))

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Names):
            if self is other:
                return True
            return np.array_equal(self.offsets, other.offsets) and np.array_equal(self.arena, other.arena)
        return tuple(self) == other if isinstance(other, tuple) else NotImplemented

    def __reduce__(self) -> tuple[Any, ...]:
        return Names.of, (tuple(self),)

    def __hash__(self) -> int:
        return hash(tuple(self))

    def __repr__(self) -> str:
        more = f", and {len(self) - 5:,} more" if len(self) > 5 else ""
        return f"<Names {', '.join(map(repr, self[:5]))}{more}>"


def _after(count: object) -> int:
    return count + 1 if type(count) is int else -1


def _is_text(arena: NDArray[np.uint8], offsets: NDArray[np.int64]) -> bool:
    """Is the arena UTF-8, and does every string begin with a character?"""
    if not len(arena) or arena.max() < 0x80:
        return True
    try:
        str(arena.data, "utf-8")
    except UnicodeDecodeError:
        return False
    starts = offsets[offsets < len(arena)]
    return not (arena[starts] & 0xC0 == 0x80).any()


NO_NAMES = Names.of(())
