"""Label features Z (L, D) from the label matrix Y (n, L) and features X (n, D).

PIFA (positive instance feature aggregation): z_l = normalise(sum of x_i over the positives i of l), the plain sum of
the papers. `weighting="row-l2"` first scales each row of Y to unit length, so that a document with many labels says
less about each (what the PECOS code does).
"""

from __future__ import annotations

import dataclasses

import numpy as np

from . import _core
from .config import setting
from .progress import Tick
from .sparse import Csr, Features


@dataclasses.dataclass(frozen=True)
class LabelFeatureConfig:
    """What stands for a label when labels are clustered."""

    weighting: str = setting(
        "sum",
        "positives' features are summed as they are (sum), or after scaling each row of Y to length 1 (row-l2)",
        choices=("sum", "row-l2"),
    )
    top: int | None = setting(None, "keep only this many largest entries per label, so that Z stays bounded", low=1)


def pifa(y: Csr, x: Features, config: LabelFeatureConfig, threads: int, progress: Tick | None = None) -> Features:
    """Z (L, D) for Y (n, L), X (n, D); rows of unit length, a label without positives gets a zero row."""
    yt = binary(y, config.weighting).transpose()
    y_ptr, y_idx, y_val, n = yt.parts
    ptr, idx, val, dense = _core.pifa(y_ptr, y_idx, y_val, n, *x.parts, config.top or 0, threads, progress)
    sparse = Csr(ptr, idx, val, x.sparse_cols) if x.sparse is not None else None
    return Features(sparse, dense if x.dense is not None else None)


def binary(y: Csr, weighting: str = "sum") -> Csr:
    """Y with each stored entry 1, or 1/sqrt(labels of the row) for "row-l2"."""
    ones = np.ones(y.nnz, np.float32)
    if weighting == "row-l2":
        counts = y.counts()
        ones = np.repeat(1 / np.sqrt(np.maximum(counts, 1)), counts).astype(np.float32)
    return Csr(y.indptr, y.indices, ones, y.cols)
