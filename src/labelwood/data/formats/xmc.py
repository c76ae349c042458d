"""The Extreme Classification Repository's joint format: a header `N D L`, then `label,label feature:value ...`.

A line that starts with a space has no labels. Features may be unsorted or repeated: they are sorted and summed.
Labels are named by their numbers; those that no line has are not in the dataset.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from ... import limits
from ...errors import DataError
from ..dataset import check_row
from ..parsing.input_pass import InputPass
from ..parsing.rows import Entries, Row
from ..parsing.source import Source
from .registry import Format, Sign, register

_PAIR = rb"\d+:[-+]?(?:\d+\.?\d*|\.\d+)(?:[eE][-+]?\d+)?"
_ONE_PAIR = re.compile(_PAIR)
_PAIRS = re.compile(rb"\s*+(?:" + _PAIR + rb"(?:\s++|\Z))*+")  # possessive: nothing to remember, however long the line
_TOKEN = re.compile(rb"\S+")
_TOKEN_START = re.compile(rb"(?<=\s)\S")
_PIECE = 2**20


def rows(reading: InputPass) -> Iterator[Row]:
    """Exactly the N rows that the header promises; a blank line among them is a document without anything."""
    source = reading.main()
    count, reading.width, labels = header(source, ("documents N", "features D", "labels L"))
    reading.log.header += 1
    for raw in counted(source, count):
        try:
            row = _parse(reading.log.utf8(raw), reading.width, labels)
        except DataError as error:
            reading.log.bad(error.at(file=source.name, line=source.line))
            continue
        yield row if reading.want_labels else row._replace(labels=None)
    reading.log.blank += source.line - 1 - count


def header(source: Source, meanings: tuple[str, ...]) -> list[int]:
    """The whole numbers of the first line."""
    line = source.readline()
    parts = line.split()
    if len(parts) != len(meanings) or not all(part.isdigit() and len(part) < 20 for part in parts):
        seen = line[:60].decode(errors="replace").rstrip()
        raise source.error(f"expected a header of {len(meanings)} numbers ({', '.join(meanings)}), but found {seen!r}.")
    sizes = [int(part) for part in parts]
    for size, meaning in zip(sizes, meanings, strict=True):
        if size > limits.MAX_INDEX:
            raise source.error(f"the header gives {size} {meaning}; at most {limits.MAX_INDEX} are allowed.")
    return sizes


def counted(source: Source, count: int) -> Iterator[bytes]:
    """`count` lines; fewer, or more that are not blank, contradict the header."""
    done = 0
    for raw in source.lines():
        if done < count:
            done += 1
            yield raw
        elif not raw.isspace():
            raise source.error(f"the header promises {count} rows, but there are more.")
    if done < count:
        raise source.error(f"the header promises {count} rows, but there are {done}; is the file cut off?")


def entries(part: bytes, offset: int, width: int, what: str) -> Entries:
    """`7:0.5 9:1` → columns and values. `offset` is where the part starts in its line, for the column of an error."""
    if _PAIRS.fullmatch(part) is None:
        bad = next(m for m in _TOKEN.finditer(part) if _ONE_PAIR.fullmatch(m.group()) is None)
        seen = bad.group()[:40].decode(errors="replace")
        raise DataError(f"expected {what}:value, but found {seen!r}.", column=offset + bad.start() + 1)
    if len(part) <= _PIECE:
        return _numbers(part, (0, len(part)), width, what, offset)
    columns: list[NDArray[np.int32]] = [np.zeros(0, np.int32)]
    values: list[NDArray[np.float32]] = [np.zeros(0, np.float32)]
    for start, end in _pieces(part):
        found = _numbers(part, (start, end), width, what, offset)
        found = _summed(*found) if what == "feature" else found
        columns.append(found[0])
        values.append(found[1])
    return np.concatenate(columns), np.concatenate(values)


def _numbers(part: bytes, span: tuple[int, int], width: int, what: str, offset: int) -> Entries:
    """Columns and values of a stretch of the part."""
    text = part[slice(*span)].replace(b":", b" ")
    numbers = np.fromstring(text, sep=" ") if text.strip() else np.zeros(0)  # float64 holds both
    columns = numbers[::2]
    with np.errstate(over="ignore"):
        values = numbers[1::2].astype(np.float32)
    outside, huge = columns >= width, ~np.isfinite(values)
    if outside.any() or huge.any():
        at = int(np.argmax(outside | huge))
        bad = next(islice(_TOKEN.finditer(part, span[0]), at, None))
        number, _, value = bad.group()[:60].decode().partition(":")
        wrong = f"{what} {number} is outside 0..{width - 1} of the header." if outside[at] else f"{value} is too large."
        raise DataError(wrong, column=offset + bad.start() + 1)
    return columns.astype(np.int32), values


def _summed(columns: NDArray[np.int32], values: NDArray[np.float32]) -> Entries:
    """The entries in order of their columns, repeated ones summed: a huge line of few features is then small."""
    order = np.argsort(columns, kind="stable")
    columns = columns[order]
    starts = np.flatnonzero(np.r_[True, columns[1:] != columns[:-1]])
    with np.errstate(over="ignore"):
        return columns[starts], np.add.reduceat(values[order].astype(np.float64), starts).astype(np.float32)


def _pieces(part: bytes) -> Iterator[tuple[int, int]]:
    """Begin and end of pieces of about a megabyte, cut where a token begins: all numbers at once take much memory."""
    start = 0
    while start < len(part):
        found = _TOKEN_START.search(part, start + _PIECE)
        end = len(part) if found is None else found.start()
        if not part[start:end].isspace():
            yield start, end
        start = end


def _parse(line: bytes, width: int, labels: int) -> Row:
    first = re.match(rb"\S*", line)
    listed = first.group() if first is not None else b""
    if b":" in listed:  # some files leave out the space before the features of a document without labels
        listed = b""
    features = entries(line[len(listed) :], len(listed), width, "feature")
    return Row(labels=_labels(listed, labels), features=features)


def _labels(listed: bytes, count: int) -> list[str]:
    found, column = [], 1
    parts = listed.split(b",", limits.MAX_ROW_LABELS) if listed else []
    check_row(len(parts))
    for part in parts:
        shown = part[:40].decode(errors="replace")
        if not part.isdigit():
            raise DataError(f"expected a label number, but found {shown!r}.", column=column)
        if len(part) >= 20 or int(part) >= count:
            raise DataError(f"label {shown} is outside 0..{count - 1} of the header.", column=column)
        found.append(str(int(part)))
        column += len(part) + 1
    return found


register(
    Format(
        "xmc",
        rows,
        "`N D L`, then `3,17 0:0.5 8:1.2` per document; ` 0:1` (leading space) has no labels",
        place=7,
        lines=(Sign(rb"\s*\d+\s+\d+\s+\d+\s*\Z", 20),),
    )
)
