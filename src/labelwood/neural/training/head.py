"""A level's head: one vector and one bias for each tree node, scored only on the candidates of a batch.

The children of a parent are neighbours, so a shortlist of parents is a list of ranges. A batch gathers the rows of all
its candidates once, (U, d), and multiplies; what a document may not choose from is masked. Gradients exist for those
rows alone, and the optimiser's state for rows that were ever among them: nothing of it is as large as the head.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ...arrays.sparse import Csr, pointers
from ...recipes.network_settings import LOSSES
from .optim import Moments


@dataclasses.dataclass(frozen=True, eq=False)
class Candidates:
    """What the documents of a batch choose from: nodes (U,), and which of them each document may (n, U)."""

    nodes: NDArray[np.int64]
    mask: NDArray[np.bool_]

    @staticmethod
    def below(m: Csr, child_ptr: NDArray[np.int64], also: Csr | None = None) -> Candidates:
        """All children of the parents in each row of M (n, parents), and the nodes of `also` (n, K) themselves."""
        used = m.indices
        if also is not None:
            used = np.concatenate([used, np.searchsorted(child_ptr, also.indices, "right") - 1])
        parents, inverse = np.unique(used, return_inverse=True)
        begin, end = child_ptr[parents], child_ptr[parents + 1]
        nodes = _ranges(begin, end)
        chosen = np.zeros((m.rows, len(parents)), np.bool_)
        chosen[m.row_of(), inverse[: m.nnz]] = True
        mask = np.repeat(chosen, end - begin, axis=1)
        if also is not None:
            mask[also.row_of(), np.searchsorted(nodes, also.indices)] = True
        return Candidates(nodes, mask)

    def part(self, rows: slice) -> Candidates:
        """Of some documents."""
        return Candidates(self.nodes, self.mask[rows])

    def targets(self, y: Csr) -> tuple[NDArray[np.bool_], NDArray[np.float32]]:
        """(n, U) which candidates are true by Y (n, K), and the value that Y gives them."""
        at = np.searchsorted(self.nodes, y.indices)
        at[at == len(self.nodes)] = 0
        known = self.nodes[at] == y.indices
        rows, at = y.row_of()[known], at[known]
        true, value = np.zeros(self.mask.shape, np.bool_), np.zeros(self.mask.shape, np.float32)
        true[rows, at], value[rows, at] = True, y.data[known]
        return true & self.mask, value


class Head:
    """W and b as one table (K, d + 1), and Adam's moments for the rows that a step has ever touched."""

    def __init__(self, table: Tensor, moments: str = "full") -> None:
        self.table = table
        self.moments = Moments(len(table), table.shape[1], moments, table.device)

    @staticmethod
    def of(weight: Tensor, bias: Tensor, moments: str = "full") -> Head:
        """With given weights (K, d) and biases (K,)."""
        return Head(torch.cat([weight, bias[:, None]], 1), moments)

    @staticmethod
    def random(
        nodes: int, width: int, generator: torch.Generator, device: torch.device | str = "cpu", *,
        glorot: bool = False, moments: str = "full",
    ) -> Head:  # fmt: skip
        """N(0, 0.02²), or Glorot's uniform weights; biases 0. Drawn in place: a large head is held once."""
        table, most = torch.zeros(nodes, width + 1), math.sqrt(6 / (nodes + width))
        if glorot:
            table[:, :-1].uniform_(-most, most, generator=generator)
        else:
            table[:, :-1].normal_(0, 0.02, generator=generator)
        return Head(table.to(device), moments)

    @property
    def nodes(self) -> int:
        return len(self.table)

    @property
    def weights(self) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """W (K, d) and b (K,); on a CPU not copied, so they change with the next step."""
        table = self.table.cpu().numpy()
        return table[:, :-1], table[:, -1]

    def gather(self, nodes: NDArray[np.int64]) -> Rows:
        """The rows of some nodes, ready for gradients."""
        at = torch.from_numpy(nodes).to(self.table.device)
        return Rows(at, self.table[at].requires_grad_())

    def update(self, rows: Rows, lr: float, clip: float | None, decay: float = 0.0, shrink: float = 0.0) -> None:
        """One Adam step on those rows, each with the bias correction of its own steps.

        `decay` is the weight of |W|² in the loss; `shrink` is AdamW's decay, which goes past the moments.
        """
        table = rows.table.detach()
        grad = torch.zeros_like(table) if rows.table.grad is None else rows.table.grad
        if decay:
            grad = grad + 2 * decay * torch.cat([table[:, :-1], torch.zeros_like(table[:, -1:])], 1)
        if clip is not None:
            grad = grad * torch.clamp(clip / (grad.norm() + 1e-6), max=1.0)
        step = self.moments.direction(rows.at, grad)
        if shrink:
            step[:, :-1] += shrink * table[:, :-1]
        self.table[rows.at] = table.sub_(step, alpha=lr)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Everything, for a checkpoint."""
        return {"table": self.table.cpu().numpy(), **self.moments.tensors()}

    def load(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """The inverse of `tensors`."""
        self.use(tensors["table"])
        self.moments.load(tensors)

    def use(self, table: NDArray[np.float32]) -> None:
        """Take over weights; the moments stay."""
        if self.table.device.type == "cpu":
            np.copyto(self.table.numpy(), table)
        else:
            self.table.copy_(torch.from_numpy(np.array(table)))


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Rows of a head on the tape."""

    at: Tensor  # (U,)
    table: Tensor  # (U, d + 1)

    def __call__(self, embedding: Tensor) -> Tensor:
        """(n, U) logits."""
        return F.linear(embedding, self.table[:, :-1], self.table[:, -1])

    @staticmethod
    def merged(parts: list[Rows]) -> Rows:
        """Rows that several shards gathered, with the sum of their gradients."""
        if len(parts) == 1:
            return parts[0]
        at, inverse = torch.unique(torch.cat([rows.at for rows in parts]), return_inverse=True)
        table = parts[0].table.new_zeros(len(at), parts[0].table.shape[1])
        grad, done = torch.zeros_like(table), 0
        for rows in parts:
            here = inverse[done : done + len(rows.at)]
            table[here] = rows.table.detach()
            if rows.table.grad is not None:
                grad.index_add_(0, here, rows.table.grad)
            done += len(rows.at)
        found = Rows(at, table.requires_grad_())
        found.table.grad = grad
        return found


def loss_of(kind: str, logits: Tensor, true: Tensor) -> Tensor:
    """(n, U) losses of single candidates."""
    if kind == "logistic":
        return F.binary_cross_entropy_with_logits(logits, true.to(logits.dtype), reduction="none")
    assert kind in LOSSES
    short = F.relu(1 - torch.where(true, logits, -logits))
    return short.square() if kind == "squared-hinge" else short


def batch_loss(kind: str, logits: Tensor, batch: tuple[Tensor, Tensor, Tensor]) -> Tensor:
    """Sum over documents of their mean weighted loss; batch = (mask, true, weight), each (n, U)."""
    mask, true, weight = batch
    each = loss_of(kind, logits, true) * weight * mask
    return (each.sum(1) / mask.sum(1).clamp(min=1)).sum()


def _ranges(begin: NDArray[np.int64], end: NDArray[np.int64]) -> NDArray[np.int64]:
    """begin[0] … end[0]-1, begin[1] … end[1]-1, …"""
    widths = end - begin
    ptr = pointers(widths)
    return np.repeat(begin - ptr[:-1], widths) + np.arange(ptr[-1])
