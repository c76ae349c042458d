"""Content digests: sha256 of equal content is equal, whatever the file, the array's layout or the number of threads.

Bytes are hashed in blocks on all cores, and the list of block digests is what gets stored or hashed again.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from itertools import accumulate
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError
from . import canonical_json
from .threads import available

Chunk = bytes | memoryview  # a memoryview is of bytes (format "B")
BLOCK = 4 * 2**20  # bytes of an array hashed together


def digest_plain(data: object) -> str:
    """sha256 of plain data in its one spelling."""
    return hashlib.sha256(canonical_json.dump(data)).hexdigest()


def digest_arrays(*arrays: NDArray[Any]) -> str:
    """sha256 over type, shape and content of each array, in order; memory layout and byte order do not matter."""
    return digest_plain([_describe(np.asarray(array)) for array in arrays])


def digest_tensors(tensors: Mapping[str, NDArray[Any]]) -> str:
    """sha256 over names and arrays, in the order of names."""
    return digest_plain([[name, digest_arrays(tensors[name])] for name in sorted(tensors)])


def digest_blocks(chunks: Sequence[Chunk], block: int = BLOCK) -> tuple[str, ...]:
    """sha256 of each `block` bytes of the chunks laid end to end; the last block may be shorter."""
    stops = list(accumulate(len(chunk) for chunk in chunks))
    total = stops[-1] if stops else 0
    count, run = -(-total // block), max(1, BLOCK // block)  # a thread takes a run of blocks

    def one(i: int) -> str:
        found = hashlib.sha256()
        for piece in _between(chunks, stops, i * block, min(total, (i + 1) * block)):
            found.update(piece)  # hashlib lets other threads run meanwhile
        return found.hexdigest()

    def some(first: int) -> list[str]:
        return [one(i) for i in range(first, min(count, first + run))]

    runs = range(0, count, run)
    threads = min(len(runs), available()) if len(runs) > 1 else 1
    if threads <= 1:
        return tuple(digest for first in runs for digest in some(first))
    with ThreadPoolExecutor(threads) as pool:
        return tuple(digest for found in pool.map(some, runs) for digest in found)


def as_bytes(array: NDArray[Any]) -> memoryview:
    """The bytes of a C-contiguous array, not copied."""
    return array.reshape(-1).view(np.uint8).data


def _between(chunks: Sequence[Chunk], stops: list[int], begin: int, end: int) -> Iterator[memoryview]:
    """The bytes begin..end of the chunks laid end to end, as pieces."""
    i = bisect_right(stops, begin)
    while begin < end:
        start = stops[i] - len(chunks[i])
        yield memoryview(chunks[i])[begin - start : end - start]
        begin = min(end, stops[i])
        i += 1


def _describe(array: NDArray[Any]) -> list[Any]:
    if array.dtype.kind not in "biufcSU":
        raise ConfigError(f"an array of type {array.dtype} has no content digest; allowed are numbers and text.")
    little = array.dtype.newbyteorder("<")
    flat = np.asarray(array, dtype=little, order="C")
    return [little.str, list(array.shape), list(digest_blocks([as_bytes(flat)]))]
