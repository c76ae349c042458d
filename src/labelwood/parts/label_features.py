"""Label features Z (L, D) from the label matrix Y (n, L) and features X (n, D): what stands for a label in clustering.

pifa          z_l = normalise(sum of x_i over the positives i of l), the plain sum of the papers (positive instance
              feature aggregation). `weighting="row-l2"` first scales each row of Y to unit length, so that a document
              with many labels says less about each (what the PECOS code does)
cooccurrence  z_l = normalise(row l of YᵀY): the labels it is seen with
both          the two side by side (Bonsai)
text          tf-idf of the label's own words in the model's vocabulary; a label without any has its PIFA
pifa+text     the sum of the two, both of unit length
pifa-neural   PIFA of the embeddings of a network that was trained on the clusters of `pifa` before (X-Transformer's)
text-neural   what the pretrained encoder reads in the label's own text, or in its name where it has none

With `walks`, a label's features are then mixed with those of the labels that random walks from it meet most often:
z'_l = normalise(Σ_m g_lm z_m), G the counts of visits, symmetrically normalised (as CascadeXML's code, after ECLARE).

All are sums of rows by group, so `native/tree/pifa.cpp` makes them all. Rows have unit length.
"""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays.sparse import Csr, Features, pointers
from ..base.config import setting
from ..base.progress import Tick
from ..errors import ConfigError

MOST_ENTRIES = 2**28  # of Z, unless `top` is given: 2 GB
RESTART, NEIGHBOURS = 0.8, 10  # of random walks
NEURAL_KINDS = ("pifa-neural", "text-neural")  # a network makes them, in pipeline/
KINDS = ("pifa", "cooccurrence", "both", "text", "pifa+text", *NEURAL_KINDS)
WALKED = 2**22  # visits that are held at once


@dataclasses.dataclass(frozen=True)
class LabelFeatureConfig:
    """Choice of what stands for a label when labels are clustered."""

    kind: str = setting(
        "pifa",
        "what stands for a label when labels are clustered: its documents (pifa), the labels seen with it "
        "(cooccurrence), both, the words of its own text (text, pifa+text), or embeddings of its documents or its text "
        "(pifa-neural, text-neural: for the tree of a network)",
        choices=KINDS,
    )
    weighting: str = setting(
        "sum",
        "how much a document counts among a label's documents: in full (sum), or less if it has many labels (row-l2); "
        "try row-l2 where numbers of labels differ much",
        choices=("sum", "row-l2"), rank=6,
    )  # fmt: skip
    top: int | None = setting(
        None,
        "keep only this many of a label's largest features; lower it to save memory; none: as many as fit into 2 GB",
        low=1, rank=6,
    )  # fmt: skip
    walks: int | None = setting(
        None,
        "mix a label's features with those of labels met in so many random steps (CascadeXML's code: 400); more steps "
        "reach further; try it where labels have few documents; none: no mixing",
        low=1, high=100_000, rank=6,
    )  # fmt: skip

    @property
    def reads_text(self) -> bool:
        return self.kind in {"text", "pifa+text"}


def label_features(
    y: Csr,
    x: Features,
    config: LabelFeatureConfig,
    *,
    texts: Csr | None = None,
    threads: int,
    seed: int = 0,
    progress: Tick | None = None,
) -> Features:
    """Z (L, D) for Y (n, L), X (n, D); `texts` (L, D) are the tf-idf rows of the labels' own words."""
    z = _plain(y, x, config, texts, threads=threads, progress=progress)
    return z if config.walks is None else sums(walked(y, config.walks, seed), z, threads, config.top or 0)


def _plain(
    y: Csr, x: Features, config: LabelFeatureConfig, texts: Csr | None, *, threads: int, progress: Tick | None
) -> Features:
    """Z before any walk."""
    if config.reads_text and texts is None:
        raise ConfigError(
            f"labels.kind is {config.kind!r}, which needs documents of text and the texts of labels; give them with "
            "--label-texts FILE or label_texts=, or use labels.kind = 'pifa'."
        )
    if config.kind in NEURAL_KINDS:
        raise ConfigError(
            f"labels.kind = {config.kind!r} is for the tree of a network (finetune.order = 'joint'); use 'pifa'."
        )
    if config.kind == "cooccurrence":
        return cooccurrence(y, config, threads, progress)
    z = pifa(y, x, config, threads, progress)
    if config.kind == "both":
        other = cooccurrence(y, config, threads, progress)
        assert other.sparse is not None
        right = Csr(other.sparse.indptr, other.sparse.indices + np.int32(z.sparse_cols), other.sparse.data, 0)
        return _joined(z, right, z.sparse_cols + y.cols, threads)
    if texts is None or not config.reads_text:
        return z
    if config.kind == "text":
        z = _without(z, texts.counts() > 0)
    return _joined(z, texts, z.sparse_cols, threads)


def pifa(y: Csr, x: Features, config: LabelFeatureConfig, threads: int, progress: Tick | None = None) -> Features:
    """Z (L, D) for Y (n, L), X (n, D); rows of unit length, a label without positives gets a zero row."""
    return sums(binary(y, config.weighting).transpose(), x, threads, config.top or 0, progress)


def cooccurrence(y: Csr, config: LabelFeatureConfig, threads: int, progress: Tick | None = None) -> Features:
    """Rows of YᵀY, normalised (L, L): how often each label is seen with each other, and with itself."""
    return pifa(y, Features(binary(y)), config, threads, progress)


def walked(y: Csr, steps: int, seed: int) -> Csr:
    """G (L, L): how often a walk from each label visits the others, D_r^-1/2 G D_c^-1/2 of its `NEIGHBOURS` largest.

    A step goes to a random document of the label and to a random label of it; before a step, the walk goes back to
    where it began with probability `RESTART`. A label counts itself at least once.
    """
    labels, back = y.cols, y.transpose()
    many = max(1, WALKED // steps)
    rows, columns, counts = [], [], []
    for first in range(0, labels, many):
        start = np.arange(first, min(labels, first + many))
        draw = np.random.Generator(np.random.Philox(key=[seed, first]))
        alive = start[np.diff(back.indptr)[start] > 0]
        here, visits = alive.copy(), []
        for step in range(steps):
            if step:
                here = np.where(draw.random(len(here)) < RESTART, alive, here)
            document = back.indices[_one_of(back.indptr, here, draw)]
            here = y.indices[_one_of(y.indptr, document, draw)].astype(np.int64)
            visits.append(alive * labels + here)
        pairs, often = np.unique(np.concatenate([start * labels + start, *visits]), return_counts=True)
        own = pairs // labels == pairs % labels
        often = np.where(own & (often > 1), often - 1, often)  # the label itself was put in to be there at all
        order = np.lexsort((pairs, -often, ~own, pairs // labels))
        pairs, often = pairs[order], often[order]
        place = np.arange(len(pairs)) - np.searchsorted(pairs // labels, pairs // labels)
        kept = np.sort(np.flatnonzero(place < NEIGHBOURS))
        rows.append(pairs[kept] // labels)
        columns.append(pairs[kept] % labels)
        counts.append(often[kept])
    row, column, count = (np.concatenate(parts) for parts in (rows, columns, counts))
    order = np.lexsort((column, row))
    row, column, count = row[order], column[order], count[order].astype(np.float64)
    out, into = np.bincount(row, count, labels), np.bincount(column, count, labels)
    value = count / np.sqrt(out[row] * into[column])
    return Csr(pointers(np.bincount(row, minlength=labels)), column.astype(np.int32), value.astype(np.float32), labels)


def _one_of(ptr: NDArray[np.int64], rows: NDArray[np.integer[Any]], draw: np.random.Generator) -> NDArray[np.int64]:
    """A random entry of each row."""
    begin, end = ptr[rows], ptr[rows + np.int64(1)]
    found: NDArray[np.int64] = begin + (draw.random(len(rows)) * (end - begin)).astype(np.int64)
    return found


def sums(member: Csr, x: Features, threads: int, top: int = 0, progress: Tick | None = None) -> Features:
    """normalise(member · X): rows of X summed by group and cut to their `top` largest entries (0: see MOST_ENTRIES)."""
    y_ptr, y_idx, y_val, n = member.parts
    ptr, idx, val, dense = _core.pifa(y_ptr, y_idx, y_val, n, *x.parts, top, MOST_ENTRIES, threads, progress)
    sparse = Csr(ptr, idx, val, x.sparse_cols) if x.sparse is not None else None
    return Features(sparse, dense if x.dense is not None else None)


def _joined(z: Features, more: Csr, cols: int, threads: int) -> Features:
    """normalise(z + more), row by row; `more` may have columns of its own, up to `cols`."""
    own, n = z.sparse, z.rows
    left = Csr(np.zeros(n + 1, np.int64), more.indices[:0], more.data[:0], 0) if own is None else own
    stacked = Csr(
        np.concatenate([left.indptr, left.indptr[-1] + more.indptr[1:]]),
        np.concatenate([left.indices, more.indices]),
        np.concatenate([left.data, more.data]),
        cols,
    )
    dense = None if z.dense is None else np.concatenate([z.dense, np.zeros_like(z.dense)])
    pairs = np.arange(2 * n, dtype=np.int32).reshape(2, n).T.ravel()  # row l is l and n + l of the stack
    member = Csr(pointers(np.full(n, 2)), pairs, np.ones(2 * n, np.float32), 2 * n)
    return sums(member, Features(stacked, dense), threads)


def _without(z: Features, rows: NDArray[np.bool_]) -> Features:
    """Z with these rows (L,) empty."""
    assert z.sparse is not None
    return Features(z.sparse.keep(np.repeat(~rows, z.sparse.counts())))


def binary(y: Csr, weighting: str = "sum") -> Csr:
    """Y with each stored entry 1, or 1/sqrt(labels of the row) for "row-l2"."""
    ones = np.ones(y.nnz, np.float32)
    if weighting == "row-l2":
        counts = y.counts()
        ones = np.repeat((1 / np.sqrt(np.maximum(counts, 1))).astype(np.float32), counts)
    return Csr(y.indptr, y.indices, ones, y.cols)
