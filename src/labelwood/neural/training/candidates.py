"""Candidates: the nodes of a level that each document of a batch chooses from, a list of its own for each document.

All lists lie one after the other. A pair (document, node) has one place among them, and what belongs to a pair, as its
logit, is an array (P,) in that order: nothing has room for nodes which a document may not choose.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from ...arrays.sparse import Csr, pointers


@dataclasses.dataclass(frozen=True, eq=False)
class Candidates:
    """Nodes (P,), document after document, each document's in ascending order; document i has ptr[i] … ptr[i + 1]."""

    ptr: NDArray[np.int64]  # (n + 1,)
    nodes: NDArray[np.int64]  # (P,)

    @staticmethod
    def every(documents: int, nodes: int) -> Candidates:
        """All nodes of a level for all documents."""
        return Candidates(np.arange(documents + 1) * nodes, np.tile(np.arange(nodes), documents))

    @staticmethod
    def below(m: Csr, child_ptr: NDArray[np.int64], also: Csr | None = None) -> Candidates:
        """All children of the parents in each row of M (n, parents), and the nodes of `also` (n, K) themselves."""
        rows, begin, end = m.row_of(), child_ptr[m.indices], child_ptr[m.indices.astype(np.int64) + 1]
        if also is not None:
            parents = np.searchsorted(child_ptr, also.indices, "right") - 1
            missing = ~np.isin(also.row_of() * m.cols + parents, rows * m.cols + m.indices)
            more_rows, more = also.row_of()[missing], also.indices[missing].astype(np.int64)
            rows, begin = np.concatenate([rows, more_rows]), np.concatenate([begin, more])
            end = np.concatenate([end, more + 1])
        order = np.argsort(rows * (child_ptr[-1] + 1) + begin, kind="stable")
        widths = end - begin
        counts = np.bincount(rows, weights=widths, minlength=m.rows).astype(np.int64)
        return Candidates(pointers(counts), _ranges(begin[order], widths[order]))

    def __len__(self) -> int:
        return len(self.ptr) - 1

    @property
    def pairs(self) -> int:
        """Number of pairs, P."""
        return len(self.nodes)

    @property
    def counts(self) -> NDArray[np.int64]:
        """Candidates of each document (n,)."""
        return np.diff(self.ptr)

    @cached_property
    def rows(self) -> NDArray[np.int64]:
        """Document of each pair (P,)."""
        return np.repeat(np.arange(len(self)), self.counts)

    @cached_property
    def union(self) -> NDArray[np.int64]:
        """Nodes (U,) that are a candidate of any document, ascending."""
        among = np.zeros(int(self.nodes.max(initial=-1)) + 1, np.bool_)
        among[self.nodes] = True
        return np.flatnonzero(among)

    @cached_property
    def places(self) -> NDArray[np.int64]:
        """Place of each pair's node in the union (P,)."""
        place = np.empty(int(self.nodes.max(initial=-1)) + 1, np.int64)
        place[self.union] = np.arange(len(self.union))
        return place[self.nodes]

    def take(self, documents: NDArray[np.integer]) -> tuple[Candidates, NDArray[np.int64]]:
        """Candidates of some documents, in the order given, and the places of their pairs among all pairs."""
        counts = self.counts[documents]
        places = _ranges(self.ptr[documents], counts)
        return Candidates(pointers(counts), self.nodes[places]), places

    def padded(self) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Places (n, C) of each document's pairs, C the longest list, and which of them are real."""
        columns = np.arange(int(self.counts.max(initial=0)))
        real = columns < self.counts[:, None]
        return np.where(real, self.ptr[:-1, None] + columns, 0), real

    def targets(self, y: Csr) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """Truth of each pair by Y (n, K), and the value that Y gives it; both (P,)."""
        true, value = np.zeros(self.pairs, np.bool_), np.zeros(self.pairs, np.float32)
        if self.pairs:
            keys, wanted = self.rows * y.cols + self.nodes, y.row_of() * y.cols + y.indices
            places = np.minimum(np.searchsorted(keys, wanted), self.pairs - 1)
            known = keys[places] == wanted
            true[places[known]] = True
            value[places[known]] = y.data[known]
        return true, value


def _ranges(begin: NDArray[np.int64], widths: NDArray[np.int64]) -> NDArray[np.int64]:
    """begin[0], begin[0] + 1, … widths[0] of them, then those of begin[1], …"""
    ptr = pointers(widths)
    return np.repeat(begin - ptr[:-1], widths) + np.arange(ptr[-1])
