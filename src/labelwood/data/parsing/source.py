"""One input file, opened: plain or compressed (told by its first bytes), or standard input, read line by line.

Whatever goes wrong on the way (no such file, a folder, a cut or damaged archive, a line without end) is a DataError
that names the file and the line.
"""

from __future__ import annotations

import io
import os
import sys
from collections import deque
from collections.abc import Iterator
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol, cast

from ... import limits
from ...errors import DataError
from .decompression import DamagedError, Decompressed, compression_of

BOM = b"\xef\xbb\xbf"
SUFFIXES = ("", ".gz", ".xz", ".zst")
_BUFFER = 2**18
_PEEK_LINES = 2**20
_LIMIT = limits.MAX_LINE_BYTES + 1


class Lines(Protocol):
    """Methods that a decompressed stream must offer."""

    def readline(self, limit: int, /) -> bytes: ...
    def read1(self, size: int, /) -> bytes: ...
    def close(self) -> None: ...


class Source:
    """An open input. `line` is the number of the line read last, for messages."""

    def __init__(self, path: str | Path) -> None:
        self.name = "standard input" if str(path) == "-" else str(path)
        self.line = 0
        self._head: deque[bytes] = deque()  # lines looked at by `peek`, still to be read
        self._failed: Exception | None = None  # what stopped `block`: an error only after the lines before it
        self._raw = _open(path)
        self._ours = str(path) != "-"
        self.size = os.fstat(self._raw.fileno()).st_size if self._ours else 0
        try:
            self.magic = bytes(self._raw.peek(6)[:6])
        except OSError as error:
            self._raw.close()
            raise self._unreadable(error) from error
        self._stream = _decompressed(self._raw, self.magic)

    def __enter__(self) -> Source:
        return self

    def __exit__(self, kind: type[BaseException] | None, error: BaseException | None, at: TracebackType | None) -> None:
        self.close()

    def close(self) -> None:
        if self._ours:
            self._stream.close()
            self._raw.close()
        elif self._raw is not getattr(sys.stdin, "buffer", None):
            self._raw.detach()  # our buffer over standard input, which itself belongs to the program

    def position(self) -> int:
        """Bytes of the file (compressed, if it is) consumed so far: the measure of progress."""
        return self._raw.tell() if self.size else 0  # a pipe has no size, and no position

    def readline(self) -> bytes:
        """The next line with its line end, b"" at the end. A byte order mark at the start is dropped."""
        line = self._head.popleft() if self._head else self._next()
        if line:
            if self.line == 0 and line.startswith(BOM):
                line = line[len(BOM) :]
            self.line += 1
            if len(line) >= _LIMIT:
                raise self.error(f"the line is longer than {limits.MAX_LINE_BYTES} bytes; is this a text file?")
        return line

    def lines(self) -> Iterator[bytes]:
        """Every line that is left."""
        while line := self.readline():
            yield line

    def block(self, size: int) -> bytes:
        """Several lines, about `size` bytes; b"" where the next one is longer or cannot be read, and at the end.

        They are not counted: whoever works them off moves `line` on, and what b"" means is for `readline` to say.
        """
        pieces = list(self._head)
        self._head.clear()
        lines = self._with_more(pieces, size)
        last = lines.rfind(b"\n", 0, len(lines) - 1) + 1
        if len(lines) - last > size:
            self._head.append(lines[last:])
            lines = lines[:last]
        return lines.removeprefix(BOM) if self.line == 0 else lines

    def _with_more(self, pieces: list[bytes], size: int) -> bytes:
        """Whole lines: these pieces, and more until there are `size` bytes. A failure is kept for the next reading."""
        held = sum(map(len, pieces))
        try:
            while (
                held < size and self._failed is None and (self.size or not pieces)
            ):  # a pipe's rest may be long in coming
                piece = self._stream.read1(_BUFFER)
                if not piece:
                    break
                pieces.append(piece)
                held += len(piece)
            if pieces and not pieces[-1].endswith(b"\n"):
                pieces.append(self._stream.readline(_LIMIT))
        except (DamagedError, OSError) as error:
            self._failed = error
            found = b"".join(pieces)
            return found[: found.rfind(b"\n") + 1]
        return b"".join(pieces)

    def peek(self) -> bytes:
        """The first line that is not blank, left in place; b"" where there is none."""
        for line in self._head:
            if _content(line):
                return _content(line)
        while len(self._head) < _PEEK_LINES and (line := self._next()):
            self._head.append(line)
            if _content(line):
                return _content(line)
        return b""

    def error(self, message: str, **place: Any) -> DataError:
        """A DataError at the line read last."""
        return DataError(message, file=self.name, **({"line": self.line or None} | place))

    def _next(self) -> bytes:
        if self._failed is not None:
            raise self._unreadable(self._failed) from self._failed
        try:
            return self._stream.readline(_LIMIT)
        except (DamagedError, OSError) as error:
            raise self._unreadable(error) from error

    def _unreadable(self, error: Exception) -> DataError:
        if isinstance(error, DamagedError):
            what = f"the compressed data is cut off or damaged ({error}); fetch or write the file again."
            return DataError(what, file=self.name, line=self.line + len(self._head) + 1)
        return DataError(f"cannot be read: {getattr(error, 'strerror', None) or error}.", file=self.name)


def beside(folder: Path, *names: str) -> Path | None:
    """The first of these files in a folder, plain or compressed."""
    places = (folder / (name + suffix) for name in names for suffix in SUFFIXES)
    try:
        return next((place for place in places if place.is_file()), None)
    except OSError as error:
        raise DataError(f"the folder cannot be read: {error.strerror}.", file=folder) from error


def is_folder(path: str | Path) -> bool:
    """Is this a folder that can be seen? What else is wrong with a path is said when it is opened."""
    try:
        return str(path) != "-" and Path(path).is_dir()
    except OSError:  # a name that is too long, a parent without permission
        return False


def _content(line: bytes) -> bytes:
    line = line.removeprefix(BOM)
    return b"" if line.isspace() else line


def _open(path: str | Path) -> io.BufferedReader:
    if str(path) == "-":
        stream: Any = getattr(sys.stdin, "buffer", None)
        if stream is None:
            raise DataError("it is closed, or gives text where bytes are needed.", file="standard input")
        return cast(io.BufferedReader, stream) if hasattr(stream, "peek") else io.BufferedReader(stream)
    try:
        return cast(io.BufferedReader, Path(path).open("rb", buffering=_BUFFER))
    except IsADirectoryError as error:
        raise DataError("this is a folder; this format is one file.", file=path) from error
    except FileNotFoundError as error:
        raise DataError("there is no such file.", file=path) from error
    except (OSError, ValueError) as error:  # ValueError: a NUL in the path
        raise DataError(f"cannot be opened: {getattr(error, 'strerror', error)}.", file=path) from error


def _decompressed(raw: io.BufferedReader, magic: bytes) -> Lines:
    kind = compression_of(magic)
    return raw if kind is None else io.BufferedReader(Decompressed(raw, kind), _BUFFER)


def first_line(source: Source) -> bytes:
    """The first line that is not blank; a file without one is an error in every format."""
    if not source.magic:
        raise DataError("the file is empty.", file=source.name)
    line = source.peek()
    if not line:
        raise DataError("the file holds only blank lines.", file=source.name)
    return line
