"""Shortlists M (n, K): for each document the parent clusters whose children it helps to train (eq. 8).

teacher    the parents of its true labels (teacher forcing)
predicted  the parents the levels above would predict for it (matcher-aware hard negatives)
union      both
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, pointers
from ..base.config import Acts, PerLevel, each, setting


@dataclasses.dataclass(frozen=True)
class ShortlistConfig:
    """Source of the negatives of a level."""

    source: PerLevel[str] = setting(
        "teacher",
        "clusters whose labels a document helps to train: its true ones (teacher), the predicted ones (predicted), or "
        "both (union); union gives harder negatives and takes longer",
        choices=("teacher", "predicted", "union"), rank=2,
    )  # fmt: skip
    parents: PerLevel[int] = setting(
        10,
        "predicted clusters of a document whose labels are candidates; more give harder negatives and take longer",
        low=1, rank=2,
        acts=Acts(
            lambda own, recipe: set(each(own.source)) != {"teacher"} or recipe.whole_network,
            "with shortlist.source = predicted or union",
        ),
    )  # fmt: skip


def all_rows(rows: int) -> Csr:
    """The first level's shortlist: every document, under the root."""
    return Csr(np.arange(rows + 1), np.zeros(rows, np.int32), np.ones(rows, np.float32), 1)


def from_ids(ids: NDArray[np.int32], cols: int) -> Csr:
    """M from the ids (n, k) a search returned; -1 = none."""
    ordered = np.sort(ids, axis=1)
    kept = ordered >= 0
    kept[:, 1:] &= ordered[:, 1:] != ordered[:, :-1]
    flat = ordered[kept]
    return Csr(pointers(kept.sum(axis=1)), flat, np.ones(len(flat), np.float32), cols)


def chosen(source: str, teacher: Csr, predicted: Csr) -> Csr:
    """M by its source."""
    if source == "union":
        return union(teacher, predicted)
    return teacher if source == "teacher" else predicted


def union(a: Csr, b: Csr) -> Csr:
    """Entries of either, as a 0/1 matrix."""
    keys = np.unique(np.concatenate([m.row_of() * m.cols + m.indices for m in (a, b)]))
    indptr = pointers(np.bincount(keys // a.cols, minlength=a.rows))
    return Csr(indptr, (keys % a.cols).astype(np.int32), np.ones(len(keys), np.float32), a.cols)
