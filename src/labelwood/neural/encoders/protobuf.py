"""Protobuf as far as an ONNX graph needs it: fields by number, written and read without copying weights.

A message is a row of fields: a tag (number · 8 + type), then a number of variable length (type 0), four bytes (5), or a
length with so many bytes (2): text, an array, or another message.
"""

from __future__ import annotations

import struct
from collections.abc import Iterable, Iterator, Sequence

from ...base.digests import Chunk
from ...errors import ModelFileError

Value = int | memoryview  # a number, or the bytes of a field
NUMBER, EIGHT, BYTES, FOUR = 0, 1, 2, 5


def number(field: int, value: int) -> bytes:
    """A field that holds a whole number; negative ones have ten bytes."""
    return _varint(8 * field + NUMBER) + _varint(value % 2**64)


def real(field: int, value: float) -> bytes:
    """A field that holds a float32."""
    return _varint(8 * field + FOUR) + struct.pack("<f", value)


def text(field: int, value: str) -> bytes:
    """A field that holds text."""
    return b"".join(message(field, [value.encode("utf-8")]))


def message(field: int, chunks: Sequence[Chunk]) -> list[Chunk]:
    """A field that holds bytes or a message, in pieces."""
    return [_varint(8 * field + BYTES) + _varint(sum(map(len, chunks))), *chunks]


def fields(data: memoryview) -> Iterator[tuple[int, int, Value]]:
    """The fields of a message: number, type and value; ModelFileError where it is none."""
    at = 0
    while at < len(data):
        tag, at = _read_varint(data, at)
        kind = tag % 8
        if kind == NUMBER:
            value, at = _read_varint(data, at)
            yield tag // 8, kind, value
            continue
        if kind == BYTES:
            size, at = _read_varint(data, at)
        elif kind in {FOUR, EIGHT}:
            size = 4 if kind == FOUR else 8
        else:
            raise ModelFileError(f"the model's graph holds a field of type {kind}, which is not known.")
        if size > len(data) - at:
            raise ModelFileError("the model's graph ends within a field.")
        yield tag // 8, kind, data[at : at + size]
        at += size


def numbers(data: memoryview) -> Iterator[int]:
    """Whole numbers that are laid end to end."""
    at = 0
    while at < len(data):
        value, at = _read_varint(data, at)
        yield value


def signed(value: int) -> int:
    """A whole number that may be negative, as it was before it was written."""
    return value - 2**64 if value >= 2**63 else value


def joined(chunks: Iterable[Chunk]) -> bytes:
    """All pieces as one."""
    return b"".join(chunks)


def _varint(value: int) -> bytes:
    found = bytearray()
    while value > 127:
        found.append(value % 128 + 128)
        value //= 128
    found.append(value)
    return bytes(found)


def _read_varint(data: memoryview, at: int) -> tuple[int, int]:
    """The number that begins at a byte, and where it ends."""
    value = 0
    for shift in range(0, 70, 7):
        if at >= len(data):
            raise ModelFileError("the model's graph ends within a number.")
        byte = data[at]
        at += 1
        value |= (byte & 127) << shift
        if byte < 128:
            return value % 2**64, at
    raise ModelFileError("the model's graph holds a number of more than ten bytes.")
