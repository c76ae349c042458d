"""fastText: `__label__a __label__b some text`. As there, a label may stand anywhere among the words."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ..errors import DataError
from .dataset import check_label
from .reading import Reading, each_line, without_end
from .rows import Row

PREFIX = b"__label__"
_LABEL = re.compile(rb"(?<!\S)__label__(\S*)\s?")


def rows(reading: Reading) -> Iterator[Row]:
    """One row per line that is not blank."""
    return each_line(reading, lambda line: _parse(without_end(line), reading.want_labels))


def _parse(line: bytes, want_labels: bool) -> Row:
    if PREFIX not in line:
        return Row(line, [] if want_labels else None)
    labels = []
    for match in _LABEL.finditer(line):
        try:
            labels.append(check_label(match.group(1).decode()))
        except DataError as error:
            raise DataError(error.message, column=len(line[: match.start()].decode()) + 1) from error
    return Row(_LABEL.sub(b"", line), labels if want_labels else None)
