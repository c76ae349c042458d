"""A level's head: one vector and one bias for each tree node, scored only on each document's own candidates.

A pair (document, node) costs one product of two vectors, forward and backward, so a step grows with its documents and
not with their square (products.py). The gradient of a node's row is a sum over its pairs. It is never held as a whole:
the optimiser makes it block by block and takes it in at once. Moments exist for rows that were ever a candidate.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Iterator, Mapping
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor
from torch.nn import functional as F

from ...parts.losses import LOSSES
from .candidates import Candidates
from .optim import Moments
from .products import RowGradients, products


class Head:
    """W and b as one table (K, d + 1), and Adam's moments for the rows that a step has ever touched."""

    def __init__(self, table: Tensor, moments: str = "full") -> None:
        self.table = table
        self.moments = Moments(len(table), table.shape[1], moments, table.device)

    @staticmethod
    def of(weight: Tensor, bias: Tensor, moments: str = "full") -> Head:
        """Make one with given weights (K, d) and biases (K,)."""
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

    def scores(self, vectors: Tensor, candidates: Candidates) -> HeadScores:
        """Logits of all pairs by vectors (n, d) of the documents."""
        wide = torch.cat([vectors, vectors.new_ones(len(vectors), 1)], 1)
        logits = products(wide, self.table, candidates)
        if not logits.requires_grad:  # an encoder that is frozen as a whole: the head learns all the same
            logits.requires_grad_()
        return HeadScores(candidates, logits, wide.detach(), None)

    def rows(self, candidates: Candidates) -> Tensor:
        """Rows (U, d + 1) of the union of all candidates, ready for gradients."""
        at = torch.from_numpy(candidates.union).to(self.table.device)
        return self.table[at].requires_grad_()

    def update(
        self, gradients: RowGradients, lr: float, clip: float | None, decay: float = 0.0, shrink: float = 0.0
    ) -> None:
        """One Adam step on the rows that have a gradient, each with the bias correction of its own steps.

        `decay` is the weight of |W|² in the loss; `shrink` is AdamW's decay, which goes past the moments.
        """
        factor = None
        if clip is not None:
            norms = [grad.norm() for *_, grad in self._blocks(gradients, decay)]
            norm = torch.stack(norms).norm() if norms else torch.zeros(())
            factor = torch.clamp(clip / (norm + 1e-6), max=1.0)
        for at, table, grad in self._blocks(gradients, decay):
            step = self.moments.direction(at, grad if factor is None else grad.mul_(factor))
            if shrink:
                step[:, :-1] += shrink * table[:, :-1]
            self.table[at] = table.sub_(step, alpha=lr)

    def _blocks(self, gradients: RowGradients, decay: float) -> Iterator[tuple[Tensor, Tensor, Tensor]]:
        """Rows, their weights and the gradients of the loss with its regulariser, a block of rows at a time."""
        for at, grad in gradients.blocks():
            table = self.table[at]
            if decay:
                grad[:, :-1] += 2 * decay * table[:, :-1]
            yield at, table, grad

    def tensors(self) -> dict[str, NDArray[Any]]:
        """All weights and moments, for a checkpoint."""
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
class HeadScores:
    """Logits (P,) of a shard's pairs, and what the gradients of the head's rows are made of after a backward pass."""

    candidates: Candidates
    logits: Tensor
    vectors: Tensor | None  # (n, d + 1) what was multiplied with the rows
    rows: Tensor | None  # (U, d + 1) rows of the union, where labels attend and autograd itself has their gradients

    def __post_init__(self) -> None:
        self.logits.retain_grad()

    def gradients(self) -> RowGradients:
        """Gradients of the head's rows."""
        if self.rows is None:
            assert self.vectors is not None
            return RowGradients.of_pairs(self.candidates, self.vectors, self.logits.grad)
        return RowGradients.of_rows(self.candidates.union, self.rows)


def loss_of(kind: str, logits: Tensor, true: Tensor) -> Tensor:
    """Losses of single candidates."""
    loss = LOSSES[kind]
    if loss.torch_name is not None:
        found: Tensor = getattr(F, loss.torch_name)(logits, true.to(logits.dtype), reduction="none")
        return found
    return cast(Tensor, loss.value(torch.where(true, logits, -logits)))


def batch_loss(kind: str, logits: Tensor, candidates: Candidates, true: Tensor, weight: Tensor) -> Tensor:
    """Sum over documents of the mean weighted loss of their pairs; logits, truth and weights are (P,)."""
    share = 1 / np.repeat(candidates.counts, candidates.counts).astype(np.float32)
    each = loss_of(kind, logits, true)
    return (each * (weight * torch.from_numpy(share).to(logits.device))).sum()
