"""Duplicates among texts: the same words in the same order, or nearly the same.

Near duplicates are found by bands of their sketches (Broder 1997): texts that agree in all slots of a band are compared
with the first and the last one before them in it. What is found is right within the error of a sketch, about 0.05; a
text whose only likeness lies in the middle of a large group may be missed, so counts are lower bounds.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..base.progress import QUIET, Progress
from .sketches import SLOTS, Sketches

BAND = 4  # slots: texts with 0.8 in common agree in one of 16 bands but for 2 of 10,000
ALIKE = 0.8  # share of common word triples from which texts are near duplicates
LEAST_WORDS = 10  # shorter texts have too few triples to tell
_MIX = np.array([0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F, 0x8EBC6AF09C88C6E3], np.uint64)


class Duplicates(NamedTuple):
    """The earlier text that each text repeats, or -1; and how much near duplicates share."""

    same: NDArray[np.int64]  # (n,) the first text of the same words
    near: NDArray[np.int64]  # (n,) an earlier text that has nearly the same words
    shared: NDArray[np.float64]  # (n,) of their word triples


def duplicates(sketches: Sketches, begin: int = 0, progress: Progress = QUIET) -> Duplicates:
    """Repeats within one set; or, from text `begin` on, repeats of the texts before it."""
    n = len(sketches)
    source = np.ones(n, bool) if not begin else np.arange(n) < begin
    target = np.ones(n, bool) if not begin else ~source
    same = _same(sketches, source, target)
    clear = (same < 0) & (sketches.words >= LEAST_WORDS)
    near, shared = np.full(n, -1, np.int64), np.zeros(n)
    rows = np.flatnonzero(clear & (source | target))
    with progress.stage("comparing texts", SLOTS // BAND, "bands") as tick:
        for band in range(0, SLOTS, BAND):
            earlier, later = _candidates(sketches.slots[rows, band : band + BAND], source[rows], target[rows])
            _keep_best(sketches.slots, rows[earlier], rows[later], near, shared)
            tick(band // BAND + 1, SLOTS // BAND)
    near[shared < ALIKE] = -1
    return Duplicates(same, near, np.where(near < 0, 0.0, shared))


def _same(sketches: Sketches, source: NDArray[np.bool_], target: NDArray[np.bool_]) -> NDArray[np.int64]:
    """The first source of the same words before each target, or -1; texts without a word repeat nothing."""
    found = np.full(len(sketches), -1, np.int64)
    rows = np.flatnonzero(sketches.words > 0)
    if not len(rows):
        return found
    _, first, group = np.unique(sketches.digests[rows], return_index=True, return_inverse=True)
    origin = rows[first[group]]
    repeats = target[rows] & source[origin] & (origin < rows)
    found[rows[repeats]] = origin[repeats]
    return found


def _candidates(
    band: NDArray[np.uint32], source: NDArray[np.bool_], target: NDArray[np.bool_]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Pairs (earlier, later) of positions that agree in a band: each target with the first and the last source."""
    keys = (band * _MIX).sum(axis=1, dtype=np.uint64)
    order = np.argsort(keys, kind="stable")
    place = np.arange(len(order))
    begins = np.r_[True, keys[order][1:] != keys[order][:-1]] if len(order) else np.zeros(0, bool)
    start = np.maximum.accumulate(np.where(begins, place, 0)) if len(order) else place
    last = np.maximum.accumulate(np.where(source[order], place, -1)) if len(order) else place
    before = np.r_[-1, last[:-1]]
    paired = target[order] & (before >= start)
    later, first, nearest = order[paired], order[start[paired]], order[before[paired]]
    return np.concatenate([first, nearest]), np.concatenate([later, later])


def _keep_best(
    slots: NDArray[np.uint32],
    earlier: NDArray[np.int64],
    later: NDArray[np.int64],
    near: NDArray[np.int64],
    shared: NDArray[np.float64],
) -> None:
    """Note the pairs that share more than what is known of the later text; the earliest of equals stays."""
    known = (near[later] == earlier) | (shared[later] >= 1.0)
    earlier, later = earlier[~known], later[~known]
    agreement = (slots[earlier] == slots[later]).sum(axis=1) / SLOTS
    order = np.lexsort((earlier, -agreement, later))
    earlier, later, agreement = earlier[order], later[order], agreement[order]
    first = np.r_[True, later[1:] != later[:-1]] if len(later) else np.zeros(0, bool)
    better = first & (agreement > shared[later])
    near[later[better]] = earlier[better]
    shared[later[better]] = agreement[better]
