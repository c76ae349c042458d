"""Compressed files of several streams: read as the tools of their kinds read them, or refused; nothing is lost."""

from __future__ import annotations

import gzip
import lzma
import random
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

import labelwood as lw
from labelwood.data.parsing.source import Source

Pack = Callable[[bytes], bytes]


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


PACKS: dict[str, Pack] = {"gzip": gzip.compress, "xz": lzma.compress, "zstd": zstd}
TOOLS = {"gzip": ["gzip", "-dc"], "xz": ["xz", "-dc"]}
SKIPPED = b"\x52\x2a\x4d\x18\x03\x00\x00\x00abc"  # a frame of zstd that holds no data

GZ, XZ, ZST = (tuple(pack(line) for line in (b"one\n", b"two\n")) for pack in PACKS.values())
BOTH = b"one\ntwo\n"

READ = {
    "gzip of two members": (b"".join(GZ), BOTH),
    "gzip with zeros at the end": (GZ[0] + bytes(5), b"one\n"),
    "xz of two streams": (b"".join(XZ), BOTH),
    "xz with zeros between": (XZ[0] + bytes(4) + XZ[1], BOTH),
    "xz with zeros at the end": (XZ[0] + bytes(8), b"one\n"),
    "xz with more zeros than a step": (XZ[0] + bytes(10_000) + XZ[1] + bytes(10_000), BOTH),
    "xz with an empty stream": (XZ[0] + lzma.compress(b"") + XZ[1], BOTH),
    "zstd of two frames": (b"".join(ZST), BOTH),
    "zstd that begins with a frame to be skipped": (SKIPPED + ZST[0] + SKIPPED + ZST[1] + SKIPPED, BOTH),
}

REFUSED = {
    "gzip with data behind the zeros": (GZ[0] + bytes(4) + GZ[1], "gzip stream 1: data follows the zeros"),
    "gzip and plain text": (GZ[0] + b"two\n", "gzip stream 2: "),
    "gzip and xz": (GZ[0] + XZ[1], "gzip stream 2: "),
    "gzip and half a header": (GZ[0] + b"\x1f", "gzip stream 2: it has no end"),
    "xz with three zeros between": (XZ[0] + bytes(3) + XZ[1], "xz stream 1: 3 zeros follow it"),
    "xz with three zeros at the end": (XZ[0] + bytes(3), "xz stream 1: 3 zeros follow it"),
    "xz and gzip": (XZ[0] + GZ[1], "xz stream 2: "),
    "xz, zeros and gzip": (XZ[0] + bytes(4) + GZ[1], "xz stream 2: "),
    "xz and plain text": (XZ[0] + b"two\n", "xz stream 2: "),
    "xz and a stream with a damaged first byte": (XZ[0] + b"\xfe" + XZ[1][1:], "xz stream 2: "),
    "xz and a cut stream": (XZ[0] + XZ[1][:-1], "xz stream 2: it has no end"),
    "zstd with zeros at the end": (ZST[0] + bytes(4), "zstd stream 2: "),
    "zstd and gzip": (ZST[0] + GZ[1], "zstd stream 2: "),
    "zstd and half a header": (ZST[0] + ZST[1][:2], "zstd stream 2: it has no end"),
}


def content(path: Path) -> bytes:
    with Source(path) as source:
        return b"".join(source.lines())


@pytest.mark.parametrize("name", READ)
def test_streams_are_read_as_one(tmp_path: Path, name: str) -> None:
    packed, expected = READ[name]
    (tmp_path / "data").write_bytes(packed)
    assert content(tmp_path / "data") == expected


@pytest.mark.parametrize("name", REFUSED)
def test_anything_else_behind_a_stream_is_refused(tmp_path: Path, name: str) -> None:
    packed, message = REFUSED[name]
    (tmp_path / "data").write_bytes(packed)
    with pytest.raises(lw.DataError, match="the compressed data is cut off or damaged") as caught:
        content(tmp_path / "data")
    assert message in str(caught.value)


def piece(draw: random.Random, kind: str) -> bytes:
    """Something that might stand behind a stream."""
    lines = b"".join(b"line %d\n" % draw.randrange(10**6) for _ in range(draw.choice([0, 1, 50])))
    stream = PACKS[kind](lines)
    damaged = bytearray(stream)
    damaged[draw.randrange(len(stream))] ^= 1 << draw.randrange(8)
    zeros = bytes(draw.choice([1, 2, 3, 4, 4, 8, 12, 2048, 5000]))
    other = PACKS[draw.choice(sorted(PACKS))](lines)
    return draw.choice([stream, stream, stream, zeros, zeros, other, stream[: len(stream) // 2], bytes(damaged), lines])


@pytest.mark.parametrize("kind", TOOLS)
def test_any_streams_are_read_as_by_the_tool_or_refused(tmp_path: Path, kind: str) -> None:
    """Where the tool is content we give its bytes, where it complains we refuse."""
    draw, path, content_with = random.Random(0), tmp_path / "data", 0
    for _ in range(150):
        path.write_bytes(PACKS[kind](b"first\n") + b"".join(piece(draw, kind) for _ in range(draw.randrange(4))))
        with path.open("rb") as stdin:
            tool = subprocess.run(TOOLS[kind], stdin=stdin, capture_output=True, check=False)
        if tool.returncode == 0:
            content_with += 1
            assert content(path) == tool.stdout
            continue
        with pytest.raises(lw.DataError, match="cut off or damaged"):
            content(path)
    assert 40 < content_with < 110  # both happen often
