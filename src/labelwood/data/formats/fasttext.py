"""fastText: `__label__a __label__b some text`. As there, a label may stand anywhere among the words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...errors import DataError
from ..dataset import check_label, check_row
from ..parsing.input_pass import InputPass, each_line, without_end
from ..parsing.rows import Row
from .registry import Format, Sign, register

PREFIX = b"__label__"
_END = re.compile(rb"\s")


def rows(reading: InputPass) -> Iterator[Row]:
    """One row per line that is not blank."""
    return each_line(reading, lambda line: _parse(without_end(line), reading.want_labels))


def _parse(line: bytes, want_labels: bool) -> Row:
    labels, words, done = [], [], 0
    at = line.find(PREFIX)
    while at >= 0:
        end = _END.search(line, at)
        stop = len(line) if end is None else end.start()
        if at == 0 or line[at - 1 : at].isspace():
            labels.append(_label(line, at, stop))
            check_row(len(labels))
            words.append(line[done:at])
            done = stop + 1  # the space after a label goes with it
        at = line.find(PREFIX, stop)
    words.append(line[done:] if done else line)
    return Row(b"".join(words), labels if want_labels else None)


def _label(line: bytes, at: int, stop: int) -> str:
    try:
        return check_label(line[at + len(PREFIX) : stop].decode())
    except DataError as error:
        raise error.at(column=len(line[:at].decode()) + 1) from error


register(
    Format(
        "fasttext",
        rows,
        "`__label__fruit __label__red a red apple`",
        place=5,
        lines=(Sign(rb"\s*__label__\S", 40),),
    )
)
