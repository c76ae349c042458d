"""Standard output and error while a command runs: full, closed or left by its reader, each ends in one clear way.

What cannot be written to standard output is an error, once; what cannot be written to standard error is lost in
silence, for there is no place left to say so.
"""

from __future__ import annotations

import errno
import io
import os
import signal
import sys
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from typing import TextIO

from ..errors import StorageError
from ..storage.atomic_files import ADVICE


class Stopped(BaseException):
    """A signal asked us to stop. Not an Exception: nothing on the way up may take it for a failure."""

    def __init__(self, number: signal.Signals, note: str = "") -> None:
        super().__init__(number.name)
        self.signal = number
        self.note = note  # what became of the work, for people


class _Output(io.FileIO):
    """Standard output: the first refusal is an error, and what comes after it is dropped."""

    refused = False

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        if self.refused:
            return len(data)
        try:
            return super().write(data)
        except OSError as error:
            self.refused = True
            if error.errno == errno.EPIPE:
                raise Stopped(signal.SIGPIPE) from None
            raise _unwritable(error) from error


class _Errors(io.FileIO):
    """Standard error: what cannot be said is dropped."""

    def write(self, data: bytes | bytearray | memoryview) -> int:  # type: ignore[override]
        with suppress(OSError):
            return super().write(data)
        return len(data)


@contextmanager
def guarded() -> Iterator[None]:
    """Put our streams in the place of the program's own; others (of a test, of a notebook) stay."""
    before = sys.stdout, sys.stderr
    if sys.stdout is sys.__stdout__:
        sys.stdout = _stream(_Output, sys.stdout)
    if sys.stderr is sys.__stderr__:
        sys.stderr = _stream(_Errors, sys.stderr)
    try:
        yield
    finally:
        with suppress(Exception, Stopped):  # whoever cared has flushed it
            sys.stdout.flush()
        sys.stdout, sys.stderr = before


def _stream(kind: type[io.FileIO], stream: TextIO | None) -> TextIO:
    """A text stream to the same place; for a closed one, to a place that refuses every byte."""
    if stream is None:
        raw = kind(os.open(os.devnull, os.O_RDONLY), "w")
        return io.TextIOWrapper(io.BufferedWriter(raw), "utf-8", "backslashreplace", line_buffering=True)
    with suppress(OSError):
        stream.flush()
    raw = kind(stream.fileno(), "w", closefd=False)
    # backslashreplace: a terminal that cannot spell a label is no failure
    return io.TextIOWrapper(io.BufferedWriter(raw), stream.encoding, "backslashreplace", line_buffering=stream.isatty())


def _unwritable(error: OSError) -> StorageError:
    if error.errno == errno.EBADF:
        return StorageError("cannot write to standard output: it is closed; send it to a file or a program.")
    way = ADVICE.get(error.errno or 0, "Send it elsewhere")
    return StorageError(f"cannot write to standard output: {error.strerror or error}. {way}.")
