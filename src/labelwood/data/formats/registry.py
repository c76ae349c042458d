"""The formats that can be read. Each is registered at the end of its own file in this folder, and nowhere else.

Sniffing, reading, the choices of `--format` and `ReadOptions(format=…)`, and the table in the docs follow from what
stands here:

    register(Format("fasttext", rows, "`__label__fruit a red apple`", place=5, lines=(Sign(rb"\\s*__label__\\S", 40),)))
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from ...errors import ConfigError

if TYPE_CHECKING:
    from ..parsing.input_pass import InputPass
    from ..parsing.rows import Row, Rows


@dataclasses.dataclass(frozen=True)
class Sign:
    """Mark with which the first line of a format begins; where several signs fit, that of the lowest rank is right."""

    pattern: bytes
    rank: int

    def fits(self, line: bytes) -> bool:
        """Does the line begin so?"""
        return re.match(self.pattern, line) is not None


@dataclasses.dataclass(frozen=True)
class Format:
    """One format: its name, its reader, and how it is told from the others."""

    name: str
    rows: Callable[[InputPass], Iterator[Row | Rows]]
    looks: str  # what it looks like, in Markdown: a row of the table in the docs
    place: int  # in lists of formats
    lines: tuple[Sign, ...] = ()  # of files of text, by their first line
    folder: tuple[str, ...] = ()  # of folders: one of these files is there, plain or compressed
    magic: bytes = b""  # of binary files: their first bytes

    @property
    def is_text(self) -> bool:
        """Is it a file of lines?"""
        return bool(self.lines)


FORMATS: dict[str, Format] = {}


def register(*formats: Format) -> None:
    """Add formats; a name or a rank that another one has is an error of whoever adds it."""
    for new in formats:
        for old in FORMATS.values():
            taken = {sign.rank for sign in old.lines} & {sign.rank for sign in new.lines}
            if new.name == old.name or new.place == old.place or taken:
                raise ConfigError(f"the format {new.name!r} has the name, the place or a rank of {old.name!r}.")
        FORMATS[new.name] = new


def in_order() -> tuple[Format, ...]:
    """All formats, as lists show them."""
    return tuple(sorted(FORMATS.values(), key=lambda known: known.place))
