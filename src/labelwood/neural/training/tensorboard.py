"""Training events as TensorBoard reads them: scalars by stage. Written by hand, a page, to spare a large dependency.

A file is a row of records: length, checksum of the length, bytes, checksum of the bytes (CRC-32C, masked). Each record
is a protocol buffer `Event`: wall_time = 1 (double), step = 2 (int64), file_version = 3 or summary = 5, in which
value = 1 holds tag = 1 and simple_value = 2 (float).
"""

from __future__ import annotations

import struct
import time
from pathlib import Path

from ...base.progress import Event
from ...storage import atomic_files

SCALARS = {
    "loss": "loss", "docs_per_second": "docs per second", "candidates": "candidates", "rate": "learning rate",
    "quality": "validation",
}  # fmt: skip


class EventFile:
    """A callback for `Run(on_event=…)`: appends every step to a file of its own in `folder`."""

    def __init__(self, folder: Path) -> None:
        with atomic_files.refusing(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.path = folder / f"events.out.tfevents.{time.time_ns() // 10**9}.labelwood"
        self.steps: dict[str, int] = {}
        self._write(_text(3, b"brain.Event:2"))

    def __call__(self, event: Event) -> None:
        values = b""
        for name, title in SCALARS.items():
            value = getattr(event, name)
            if value is not None:
                scalar = _text(1, f"{event.stage}/{title}".encode()) + struct.pack("<Bf", 0x15, value)
                values += _text(1, scalar)
        self._write(b"\x10" + _varint(event.step) + _text(5, values))

    def _write(self, body: bytes) -> None:
        data = struct.pack("<Bd", 0x09, time.time()) + body
        size = struct.pack("<Q", len(data))
        with atomic_files.refusing(self.path), self.path.open("ab") as stream:
            stream.write(size + _checksum(size) + data + _checksum(data))


def _text(field: int, value: bytes) -> bytes:
    return bytes([field << 3 | 2]) + _varint(len(value)) + value


def _varint(value: int) -> bytes:
    out = b""
    while value > 127:
        out, value = out + bytes([value & 127 | 128]), value >> 7
    return out + bytes([value])


def _table() -> list[int]:
    found = []
    for value in range(256):
        for _ in range(8):
            value = value >> 1 ^ (0x82F63B78 if value & 1 else 0)  # noqa: PLW2901 — shifting it is the point
        found.append(value)
    return found


_CRC = _table()


def _checksum(data: bytes) -> bytes:
    crc = 0xFFFFFFFF
    for byte in data:
        crc = _CRC[(crc ^ byte) & 255] ^ crc >> 8
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)
