"""Products of documents and the rows of their candidates, and the gradients of those rows, pair by pair.

A pair costs one product of two vectors, read where they lie: the cost grows with the number of pairs. Where most
nodes are candidates of most documents, the whole product is cheaper, though it makes numbers that nobody asked for; a
rule by counts chooses, so that the same shapes always give the same bits (bench/heads.py --products measures it).
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from .candidates import Candidates

WHOLE = 3  # a whole product may have so many times the numbers that are asked for
BLOCK = 1024  # rows of a head whose gradients are held at once: they stay in the cache
PAIRS_AT_ONCE = 2**15  # pairs that are multiplied at once where there is no kernel for them

with warnings.catch_warnings():  # torch says once in a process that its sparse matrices are young
    warnings.simplefilter("ignore")
    torch.sparse_csr_tensor(torch.tensor([0, 1]), torch.tensor([0]), torch.tensor([1.0]), (1, 1))


def products(x: Tensor, table: Tensor, candidates: Candidates) -> Tensor:
    """Products (P,) of each pair's document, a row of x (n, w), and its node, a row of the table (K, w).

    Gradients reach x alone; those of the table are a matter of `RowGradients`.
    """
    return cast(Tensor, cast(Any, _Products.apply)(x, table, candidates))


def is_whole(documents: int, nodes: int, pairs: int) -> bool:
    """Is the product of all documents and all nodes of a level cheaper than that of the pairs?"""
    return documents * nodes <= WHOLE * pairs


class _Products(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, table: Tensor, candidates: Candidates) -> Tensor:
        ctx.candidates = candidates
        ctx.save_for_backward(table)
        if is_whole(len(candidates), len(table), candidates.pairs):
            return (x @ table.t()).view(-1)[_cells(candidates, table)]
        if x.device.type == "cpu":
            return _sampled(x, table, candidates)
        return _gathered(x, table, candidates)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        (table,) = ctx.saved_tensors
        candidates = ctx.candidates
        if is_whole(len(candidates), len(table), candidates.pairs):
            whole = grad.new_zeros(len(candidates) * len(table))
            whole[_cells(candidates, table)] = grad
            return whole.view(len(candidates), -1) @ table, None, None
        nodes, ptr = (torch.from_numpy(a).to(grad.device) for a in (candidates.nodes, candidates.ptr))
        return _sums(table, nodes, ptr, grad.contiguous()), None, None


def _cells(candidates: Candidates, table: Tensor) -> Tensor | slice:
    """Places of the pairs in the whole product (n, K), row by row."""
    if candidates.pairs == len(candidates) * len(table):
        return slice(None)
    return torch.from_numpy(candidates.rows * len(table) + candidates.nodes).to(table.device)


def _sampled(x: Tensor, table: Tensor, candidates: Candidates) -> Tensor:
    """The products by torch's kernel for a CPU, which copies no row."""
    ptr, nodes = torch.from_numpy(candidates.ptr), torch.from_numpy(candidates.nodes)
    size = len(candidates), len(table)
    pattern = torch.sparse_csr_tensor(ptr, nodes, x.new_zeros(candidates.pairs), size, check_invariants=False)
    return cast(Tensor, torch.sparse.sampled_addmm(pattern, x, table.t(), beta=0.0).values())


def _gathered(x: Tensor, table: Tensor, candidates: Candidates) -> Tensor:
    """The products by copies of both sides, some pairs at a time."""
    rows, nodes = (torch.from_numpy(a).to(x.device) for a in (candidates.rows, candidates.nodes))
    parts = [slice(begin, begin + PAIRS_AT_ONCE) for begin in range(0, max(1, len(rows)), PAIRS_AT_ONCE)]
    return torch.cat([(x[rows[part]] * table[nodes[part]]).sum(1) for part in parts])


def _sums(vectors: Tensor, index: Tensor, ptr: Tensor, scale: Tensor) -> Tensor:
    """Sum of scale[p] · vectors[index[p]] over each range p = ptr[i] … ptr[i + 1]; (len(ptr) - 1, w)."""
    if vectors.device.type == "mps":
        return _added(vectors, index, ptr, scale)
    return F.embedding_bag(index, vectors, ptr, mode="sum", per_sample_weights=scale, include_last_offset=True)


def _added(vectors: Tensor, index: Tensor, ptr: Tensor, scale: Tensor) -> Tensor:
    """The sums by a copy of every vector, where there is no kernel for them."""
    rows = torch.repeat_interleave(torch.arange(len(ptr) - 1, device=ptr.device), ptr.diff())
    sums = vectors.new_zeros(len(ptr) - 1, vectors.shape[1])
    return sums.index_add_(0, rows, vectors[index] * scale[:, None])


@dataclasses.dataclass(frozen=True, eq=False)
class RowGradients:
    """Gradients of a head's rows as sums over pairs: row nodes[p] gets scale[p] · vectors[index[p]]."""

    nodes: Tensor  # (P,)
    vectors: Tensor  # (m, w)
    index: Tensor  # (P,)
    scale: Tensor  # (P,)

    @staticmethod
    def of_pairs(candidates: Candidates, vectors: Tensor, grad: Tensor | None) -> RowGradients:
        """Gradients of rows that were multiplied with the documents' vectors (n, w); `grad` (P,) is of the logits."""
        nodes, rows = (torch.from_numpy(a).to(vectors.device) for a in (candidates.nodes, candidates.rows))
        return RowGradients(nodes, vectors, rows, vectors.new_zeros(len(nodes)) if grad is None else grad)

    @staticmethod
    def of_rows(nodes: NDArray[np.int64], rows: Tensor) -> RowGradients:
        """Gradients that autograd left at gathered rows (U, w)."""
        grad = torch.zeros_like(rows) if rows.grad is None else rows.grad
        at = torch.from_numpy(nodes).to(grad.device)
        return RowGradients(at, grad, torch.arange(len(at), device=grad.device), grad.new_ones(len(at)))

    @staticmethod
    def joined(parts: list[RowGradients]) -> RowGradients:
        """Gradients of several shards as one sum."""
        if len(parts) == 1:
            return parts[0]
        begin, shifted = 0, []
        for part in parts:
            shifted.append(part.index + begin)
            begin += len(part.vectors)
        nodes, vectors, scale = (torch.cat([getattr(p, name) for p in parts]) for name in ("nodes", "vectors", "scale"))
        return RowGradients(nodes, vectors, torch.cat(shifted), scale)

    @cached_property
    def _sorted(self) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Rows (U,) that get anything, the ends of their pairs (U + 1,), and index and scale (P,) of pairs by row."""
        nodes, order = torch.sort(self.nodes, stable=True)
        at, counts = torch.unique_consecutive(nodes, return_counts=True)
        ptr = torch.cat([counts.new_zeros(1), counts.cumsum(0)])
        return at, ptr, self.index[order], self.scale[order]

    def blocks(self) -> Iterator[tuple[Tensor, Tensor]]:
        """Rows, ascending, and their gradients (b, w), a block at a time."""
        at, ptr, index, scale = self._sorted
        begins = range(0, len(at), BLOCK)
        ends = ptr[[*begins, len(at)]].tolist()
        for i, begin in enumerate(begins):
            pairs = slice(ends[i], ends[i + 1])
            bounds = ptr[begin : begin + BLOCK + 1] - ends[i]
            yield at[begin : begin + BLOCK], _sums(self.vectors, index[pairs], bounds, scale[pairs])
