"""Chunk records from plain matrices, and back."""

from __future__ import annotations

import numpy as np

from labelwood import _core
from labelwood.parts.linear_level import WEIGHTS, LinearLevel


def chunk_of(
    w: np.ndarray, sparse: int, dense: int, weights: str = "float32", features: int | None = None
) -> np.ndarray:
    """The record of W (sparse + dense + 1, width); `features` widens the sparse block with empty rows."""
    w = np.asarray(w, np.float32)
    rows = np.flatnonzero((w[:sparse] != 0).any(axis=1))
    cols = [np.flatnonzero(w[f]) for f in rows]
    vals = [w[f, c] for f, c in zip(rows, cols, strict=True)]
    return _core.encode_chunk(
        rows.astype(np.int32),
        np.cumsum([len(c) for c in cols]).astype(np.int64),
        np.concatenate([*cols, []]).astype(np.uint32),
        np.concatenate([*vals, []]).astype(np.float32),
        np.ascontiguousarray(w[-1]),
        w[sparse : sparse + dense].ravel(),
        features or sparse,
        dense,
        WEIGHTS.index(weights),
    )


def weights_of(level: LinearLevel, sparse: int, dense: int, bias: float = 1.0) -> np.ndarray:
    """W (d + 1, K) from the chunks."""
    children = int(level.child_ptr[-1])
    w = np.zeros((sparse + dense + 1, children))
    for parent in range(len(level.child_ptr) - 1):
        first, last = level.child_ptr[parent], level.child_ptr[parent + 1]
        rows, end, cols, vals, biases, block = level.native.decode(parent)
        w[np.repeat(rows, np.diff(end, prepend=0)), first + cols] = vals
        w[sparse : sparse + dense, first:last] = block.reshape(dense, last - first)
        w[-1, first:last] = biases / (bias or 1)
    return w
