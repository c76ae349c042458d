"""Compressed input as bytes: gzip, xz and zstd, of one stream or of several, one after the other.

What follows a stream is another one of the same kind, padding of zeros where the kind allows it, or the end. Anything
else is `DamagedError`: Python's own readers of xz take it for the end, and lose what comes after it.
"""

from __future__ import annotations

import dataclasses
import io
import lzma
import zlib
from collections.abc import Callable
from typing import Any, BinaryIO, Protocol

import zstandard

_STEP = 2048  # compressed bytes at a time: even a bomb cannot make more than ~64 MB of them
_GZIP = 31  # zlib's number for gzip, whose checksums it compares


class DamagedError(Exception):
    """The compressed data is cut off, damaged, or followed by something else."""


class _Stream(Protocol):
    """One compressed stream, as zlib, lzma and zstandard have it."""

    @property
    def eof(self) -> bool: ...
    @property
    def unused_data(self) -> bytes: ...
    def decompress(self, data: bytes, /) -> bytes: ...


@dataclasses.dataclass(frozen=True)
class Compression:
    """A kind of compression: how a stream of it begins, and what may stand behind one."""

    name: str
    magic: tuple[bytes, ...]
    stream: Callable[[], _Stream]
    padding: int = 0  # zeros between streams come in multiples of this; 0: there are none
    inner_padding: bool = False  # may another stream follow the zeros?


_SKIPPED = tuple(bytes([low]) + b"\x2a\x4d\x18" for low in range(0x50, 0x60))  # frames of zstd without data
_KINDS = (
    Compression("gzip", (b"\x1f\x8b",), lambda: zlib.decompressobj(_GZIP), padding=1),
    Compression("xz", (b"\xfd7zXZ\0",), lambda: lzma.LZMADecompressor(lzma.FORMAT_XZ), padding=4, inner_padding=True),
    Compression("zstd", (b"\x28\xb5\x2f\xfd", *_SKIPPED), lambda: zstandard.ZstdDecompressor().decompressobj()),
)


def compression_of(magic: bytes) -> Compression | None:
    """The kind of compression that begins with these bytes; None: it is not compressed."""
    return next((kind for kind in _KINDS if magic.startswith(kind.magic)), None)


class Decompressed(io.RawIOBase):
    """The decompressed bytes of all streams of a file."""

    def __init__(self, raw: BinaryIO | io.BufferedReader, kind: Compression) -> None:
        self._raw, self._kind = raw, kind
        self._stream: _Stream | None = kind.stream()  # None: between two of them
        self._number, self._zeros = 1, 0  # of the stream; between it and the next
        self._out = memoryview(b"")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: Any) -> int:
        """Fill the buffer, or a part of it; 0 is the end."""
        while not self._out:
            chunk = self._raw.read(_STEP)
            if not chunk:
                self._end()
                return 0
            self._out = memoryview(self._decompressed(chunk))
        size = min(len(buffer), len(self._out))
        buffer[:size], self._out = self._out[:size], self._out[size:]
        return size

    def _decompressed(self, chunk: bytes) -> bytes:
        """The bytes that a chunk holds, of as many streams as it has."""
        found = []
        while chunk:
            if self._stream is None:
                chunk = self._next_stream(chunk)
                continue
            try:
                found.append(self._stream.decompress(chunk))
            except (zlib.error, lzma.LZMAError, zstandard.ZstdError, EOFError) as error:
                raise DamagedError(self._where(str(error))) from error
            chunk = b""
            if self._stream.eof:
                chunk, self._stream = self._stream.unused_data, None
        return found[0] if len(found) == 1 else b"".join(found)

    def _next_stream(self, chunk: bytes) -> bytes:
        """Begin another stream, after the zeros before it; what is left of the chunk."""
        left = chunk.lstrip(b"\0") if self._kind.padding else chunk
        self._zeros += len(chunk) - len(left)
        if left:
            if self._zeros and not self._kind.inner_padding:
                raise DamagedError(self._where("data follows the zeros behind it"))
            self._check_padding()
            self._stream, self._zeros = self._kind.stream(), 0
            self._number += 1
        return left

    def _end(self) -> None:
        if self._stream is not None:
            raise DamagedError(self._where("it has no end"))
        self._check_padding()

    def _check_padding(self) -> None:
        if self._zeros and self._zeros % self._kind.padding:
            wrong = f"{self._zeros} zeros follow it, which is no multiple of {self._kind.padding}"
            raise DamagedError(self._where(wrong))

    def _where(self, what: str) -> str:
        return f"{self._kind.name} stream {self._number}: {what}"
