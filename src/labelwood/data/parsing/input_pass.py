"""One pass over an input, as a format's reader is given it: path, options, log, and files that are closed for it."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack
from os import PathLike
from pathlib import Path
from typing import TYPE_CHECKING

from ...errors import ConfigError, DataError
from .fields import Fields, Reading
from .rows import Log, Row
from .source import Source, beside, is_folder

if TYPE_CHECKING:
    from ..options import ReadOptions


class InputPass:
    """One pass over one input. A reader is a function InputPass → rows; it sets `width` if it makes features."""

    def __init__(
        self, path: str | Path, options: ReadOptions, *, need_labels: bool, fields: Reading | None = None
    ) -> None:
        if not isinstance(path, str | PathLike):
            raise ConfigError(f"the input must be a path, or '-' for standard input, but is {type(path).__name__}.")
        self.path, self.options = path, options
        self._reading = fields
        self.need_labels = need_labels and options.labels is not None
        self.want_labels = options.labels is not None
        self.log = Log(options.on_bad)
        self.width = 0  # feature columns
        self.names: tuple[str, ...] = ()  # labels known before the first row, kept even if no row has them
        self._stack = ExitStack()
        self._first: Source | None = None

    def main(self) -> Source:
        """The input itself, opened once (standard input cannot be opened twice)."""
        return self._first or self.open(self.path)

    def open(self, path: str | Path) -> Source:
        source = self._stack.enter_context(Source(path))
        if self._first is None:
            self._first = self.log.source = source
        return source

    def folder(self) -> Path:
        """The input as a folder."""
        folder = Path(self.path)
        if not is_folder(folder):
            raise DataError(f"there is no such folder; the {self.options.format} format is one.", file=self.path)
        return folder

    def part(self, *names: str) -> Path:
        """A file that must be in the folder, plain or compressed; any of these names."""
        found = beside(self.folder(), *names)
        if found is None:
            raise DataError(f"the folder has no {' or '.join(names)} (plain, .gz, .xz or .zst).", file=self.path)
        return found

    def labels_part(self, *names: str) -> Path | None:
        """The same for the labels, which only training must have."""
        if self.need_labels:
            return self.part(*names)
        return beside(self.folder(), *names) if self.want_labels else None

    def fields(self, first: Iterable[str], *, alike: bool = False) -> Fields:
        """The fields to read, chosen by the names of the first record; all records of a table are `alike`."""
        self.log.fields = Fields(first, self.options, self.need_labels, self._reading, alike=alike)
        return self.log.fields

    def progress(self) -> tuple[int, int]:
        """(bytes done, bytes in all); (0, 0) where the size is unknown."""
        return (self._first.position(), self._first.size) if self._first else (0, 0)

    def close(self) -> None:
        self._stack.close()


def each_line(reading: InputPass, parse: Callable[[bytes], Row]) -> Iterator[Row]:
    """One row per line that is not blank; what is wrong with a line gets its place and goes to the log."""
    for raw in reading.main().lines():
        row = one_line(reading, raw, parse)
        if row is not None:
            yield row


def one_line(reading: InputPass, raw: bytes, parse: Callable[[bytes], Row]) -> Row | None:
    """The row of the line read last, if it is neither blank nor bad."""
    if raw.isspace():
        reading.log.blank += 1
        return None
    try:
        return parse(reading.log.utf8(raw))
    except DataError as error:
        source = reading.main()
        reading.log.bad(error.at(file=source.name, line=source.line))
        return None


def without_end(line: bytes) -> bytes:
    """The line without its line feed, or carriage return and line feed."""
    if line.endswith(b"\r\n"):
        return line[:-2]
    return line[:-1] if line.endswith(b"\n") else line
