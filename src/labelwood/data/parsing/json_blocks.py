"""JSON lines in blocks: the native core turns plain lines into rows, all others are read one by one in their places.

Both ways follow the same rules. What is odd in any way, such as bad UTF-8, a name that stands twice or a label that is
no label, goes the second way, which has the messages.
"""

from __future__ import annotations

from collections.abc import Generator, Iterator
from typing import TYPE_CHECKING, Protocol

from ... import limits
from ..._core import JsonLines
from ...base.threads import available
from .fields import Fields, Shape
from .input_pass import InputPass, one_line
from .rows import Row, Rows

if TYPE_CHECKING:
    from ..._core import OddLine

_BLOCK = 2**22  # bytes that are read at once
_FIRST = 2**16  # of these, the bytes that are worked off at first, and after a record with new names
_MANY = 8  # where one line in so many is odd, to go back and forth costs more than to read them all one by one


class OneByOne(Protocol):
    """Reads single lines."""

    names: tuple[str, ...]  # of the fields in the line read last; none if it holds no record

    @property
    def fields(self) -> Fields | None: ...

    def row(self, line: bytes) -> Row: ...


class JsonBlocks:
    """The rows of one input, in order."""

    def __init__(self, reading: InputPass, records: OneByOne) -> None:
        self._reading, self._records = reading, records
        self._source = reading.main()
        self._window = _FIRST
        self._native: NativeRecords | None = None  # there is none until a record has said which fields are read

    def rows(self) -> Iterator[Row | Rows]:
        """All of them; plain lines come many at once."""
        while True:
            block = self._source.block(_BLOCK)
            begin = 0
            while begin < len(block):
                if self._native is None:
                    begin = yield from self._one_by_one(block, begin, begin + 1)
                    self._native = self._understood()
                else:
                    begin = yield from self._many(self._native, block, begin)
            if not block:
                line = self._source.readline()  # a long one
                if not line:
                    return
                yield from self._row(line)

    def _many(self, native: NativeRecords, block: bytes, begin: int) -> Generator[Row | Rows, None, int]:
        """The rows of a window of lines; the next line begins at what is returned."""
        rows, odd, lines, end = native.read(block, begin, self._window)
        known = not any(fresh for *_, fresh in odd)
        if known and _MANY * len(odd) > lines:
            return (yield from self._one_by_one(block, begin, end))
        first, done = self._source.line, 0
        for number, (row, line, start, stop, fresh) in enumerate(odd, 1):
            if row > done:
                yield rows.part(done, row)
                done = row
            self._source.line = first + line
            yield from self._row(block[start:stop])
            if fresh and native.learn(self._records.names):  # from here on once more, as more can be read
                self._reading.log.blank += line - row - number
                self._window = _FIRST
                return stop
        if done < len(rows):
            yield rows.part(done, len(rows))
        self._reading.log.blank += lines - len(rows) - len(odd)
        self._source.line = first + lines
        self._window = min(2 * self._window, _BLOCK)
        return end

    def _one_by_one(self, block: bytes, begin: int, end: int) -> Generator[Row, None, int]:
        """The rows of the lines that begin before `end`; the next line begins at what is returned."""
        while begin < end:
            after = block.find(b"\n", begin) + 1 or len(block)
            self._source.line += 1
            yield from self._row(block[begin:after])
            begin = after
        return begin

    def _row(self, line: bytes) -> Iterator[Row]:
        row = one_line(self._reading, line, self._records.row)
        if row is not None:
            yield row

    def _understood(self) -> NativeRecords | None:
        fields = self._records.fields
        return None if fields is None else NativeRecords(fields, self._reading.need_labels)


class NativeRecords:
    """Many lines to rows. Records are understood whose names, in their order, were learned."""

    def __init__(self, fields: Fields, need_labels: bool) -> None:
        self._fields = fields
        self._native = JsonLines(fields=len(fields.text), need_labels=need_labels, label_bytes=limits.MAX_LABEL_BYTES)
        self._learned: set[tuple[str, ...]] = set()
        self._shapes: list[Shape] = []
        self._labels: list[str] = []

    def learn(self, names: tuple[str, ...]) -> bool:
        """Learn what records of these names hold. False: that is known, or there are too many kinds of records."""
        if not names or names in self._learned:
            return False
        self._learned.add(names)
        shape = self._fields.known(names)
        place = {name: number for number, name in enumerate(names)}
        texts = [-1] * len(self._fields.text)
        for field, name in () if shape is None else shape.texts:
            texts[field] = place[name]
        labels, ident = (-1 if name is None else place.get(name, -1) for name in (self._fields.labels, self._fields.id))
        self._shapes.append(shape or Shape((), ()))
        return self._native.learn(list(names), texts, labels, ident, refused=shape is None)

    def read(self, block: bytes, begin: int, size: int) -> tuple[Rows, list[OddLine], int, int]:
        """About so many bytes: their rows, the lines that are none, the number of lines, and where the next begins."""
        ids = self._fields.id is not None
        found, odd, lines, end = self._native.read(block, begin, size, ids=ids, threads=available())
        self._labels += self._native.names(len(self._labels))
        text, ends, cuts, counts, duplicates, labels, shape, idents = found
        cuts = cuts.reshape(len(counts), len(self._fields.text) - 1)
        rows = Rows(text, ends, cuts, counts, duplicates, labels, shape, idents, self._labels, self._shapes)
        return rows, odd, lines, end
