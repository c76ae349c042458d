"""Cutting ranges of labels by k-means over their features Z (native/tree/kmeans.cpp): the step trees repeat."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays.sparse import Features
from ..base.progress import Tick

_WAYS = ("bisect", "kway", "uneven")  # enum Cut of native/tree/kmeans.h

Nesting = tuple[list[NDArray[np.int64]], NDArray[np.int32]]  # child pointers of each level, order of the labels


@dataclasses.dataclass(frozen=True, eq=False)
class Cutter:
    """Z, and where the randomness of a cut comes from: (seed, tree, range), the tree being 0 in shared levels."""

    z: Features
    seed: int
    tree: int
    shared: int
    max_iter: int
    sample: int
    threads: int
    progress: Tick | None = None

    def cut(
        self, order: NDArray[np.int32], ptr: NDArray[np.int64], parts: NDArray[np.int32], way: str, level: int,
        *, first: int = 0,
    ) -> tuple[NDArray[np.int32], NDArray[np.int64]]:  # fmt: skip
        """Cut order[ptr[i]:ptr[i+1]] into parts[i] parts ("uneven" may make fewer): the new order and ptr.

        `first` is where this order begins in that of the whole level, of which it may be a part: randomness is keyed by
        the place in the whole.
        """
        tree = 0 if level < self.shared else self.tree
        way_number, z = _WAYS.index(way), self.z.parts
        return _core.split(
            *z, order, ptr, parts, way_number, self.max_iter, self.sample, self.seed, tree, first,
            self.threads, self.progress,
        )  # fmt: skip
