"""Adam, twice: torch's own for weights that every step changes, and one by rows for tables of which it touches a few.

A batch holds some hundred of an encoder's ten thousands of words. Their vectors have sparse gradients, and only they
move and have moments: a dense update would read and write the whole table three times at every step.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

if TYPE_CHECKING:
    from ..encoders.encoder import Encoder
    from .trainer import Schedule

BETAS, EPS = (0.9, 0.999), 1e-8


class Moments:
    """Adam's state by row, in a pool that grows with the rows ever touched; each counts its own steps.

    full: both moments of every weight; row: no first moment, and one second moment for a whole row (its mean square).
    """

    def __init__(self, nodes: int, width: int, kind: str, device: torch.device) -> None:
        self.kind, self.width = kind, width
        self.slots = torch.full((nodes,), -1, dtype=torch.int64, device=device)  # (K,) place in the pool
        self.used = 0
        self.first = torch.zeros(0, width if kind == "full" else 0, device=device)
        self.second = torch.zeros(0, width if kind == "full" else 1, device=device)
        self.steps = torch.zeros(0, 1, device=device)

    def direction(self, at: Tensor, grad: Tensor) -> Tensor:
        """Take the gradients (U, d + 1) of some rows in, and say where they go, at rate 1."""
        place = self._places(at)
        steps = self.steps[place] + 1
        square = grad.square() if self.kind == "full" else grad.square().mean(1, keepdim=True)
        second = self.second[place] * BETAS[1] + square * (1 - BETAS[1])
        self.steps[place], self.second[place] = steps, second
        top = grad
        if self.kind == "full":
            first = self.first[place] * BETAS[0] + grad * (1 - BETAS[0])
            self.first[place] = first
            top = first / (1 - BETAS[0] ** steps)
        return top / ((second / (1 - BETAS[1] ** steps)).sqrt() + EPS)

    def _places(self, at: Tensor) -> Tensor:
        """Places of those rows in the pool; a row that is new gets one."""
        new = at[self.slots[at] < 0]
        if len(new):
            self.slots[new] = torch.arange(self.used, self.used + len(new), device=at.device)
            self.used += len(new)
            if self.used > len(self.steps):
                size = min(len(self.slots), max(self.used, 3 * len(self.steps) // 2))
                for name in ("first", "second", "steps"):
                    old = getattr(self, name)
                    grown = torch.zeros(size, old.shape[1], device=old.device)
                    grown[: len(old)] = old
                    setattr(self, name, grown)
        return self.slots[at]

    def tensors(self) -> dict[str, NDArray[Any]]:
        return {
            "slots": self.slots.cpu().numpy(),
            **{name: getattr(self, name)[: self.used].cpu().numpy() for name in ("first", "second", "steps")},
        }

    def load(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        self.slots.copy_(torch.from_numpy(np.array(tensors["slots"])))
        self.used = len(tensors["steps"])
        for name in ("first", "second", "steps"):
            setattr(self, name, torch.from_numpy(np.array(tensors[name])).to(self.slots.device))


class Optimiser:
    """Optimiser of an encoder; heads have moments of their own."""

    def __init__(self, encoder: Encoder, schedule: Schedule, map_lr: float) -> None:
        """Maps of readings start from nothing, as heads do, and learn at `map_lr`."""
        self.schedule, device = schedule, next(encoder.parameters()).device
        self.tables = {}  # the encoder's word vectors, where sparse gradients are to be had
        for words in encoder.tables if device.type != "mps" else []:
            words.sparse = words.weight.requires_grad
            if words.sparse:
                self.tables[words.weight] = Moments(words.num_embeddings, words.embedding_dim, "full", device)
        self.dense = [p for p in encoder.parameters() if p.requires_grad and p not in self.tables]
        maps = set(encoder.maps.parameters())
        groups = []
        for own, rate in ((False, schedule.lr), (True, map_lr)):
            for flat, decay in ((False, schedule.head_shrink if own else schedule.weight_decay), (True, 0.0)):
                found = [p for p in self.dense if (p in maps) == own and (p.ndim < 2) == flat]
                groups += [{"params": found, "weight_decay": decay, "rate": rate}] if found else []
        fused = device.type in {"cpu", "cuda"}
        self.adam = torch.optim.AdamW(groups, lr=schedule.lr, betas=BETAS, eps=EPS, fused=fused) if groups else None

    def step(self, factor: float) -> None:
        """One update at this share of the rates; the gradients are used up."""
        rows = {table: table.grad.coalesce() for table in self.tables if table.grad is not None}
        values = {table: grad.values() for table, grad in rows.items()}
        if self.schedule.clip is not None:
            shorten([*(p.grad for p in self.dense if p.grad is not None), *values.values()], self.schedule.clip)
        rate, decay = self.schedule.lr * factor, self.schedule.weight_decay
        with torch.no_grad():
            for table, grad in rows.items():
                at = grad.indices()[0]
                old = table[at]
                table[at] = old - rate * (self.tables[table].direction(at, values[table]) + decay * old)
                table.grad = None
        if self.adam is not None:
            for group in self.adam.param_groups:
                group["lr"] = group["rate"] * factor
            self.adam.step()
            self.adam.zero_grad(set_to_none=True)

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Everything, for a checkpoint."""
        found: dict[str, NDArray[Any]] = {}
        for i, moments in enumerate(self.tables.values()):
            found |= {f"table.{i}.{name}": value for name, value in moments.tensors().items()}
        for i, p in enumerate(self.dense):
            assert self.adam is not None
            found |= {f"{i}.{name}": np.array(value.cpu().numpy()) for name, value in self.adam.state[p].items()}
        return found

    def load(self, tensors: Mapping[str, NDArray[Any]]) -> None:
        """The inverse of `tensors`."""
        for i, moments in enumerate(self.tables.values()):
            moments.load(under_prefix(tensors, f"table.{i}."))
        for i, p in enumerate(self.dense):
            assert self.adam is not None
            found = under_prefix(tensors, f"{i}.")
            self.adam.state[p] = {name: torch.from_numpy(np.array(a)).to(p.device) for name, a in found.items()}


def shorten(grads: list[Tensor], most: float) -> None:
    """Scale gradients in place so that all of them together are no longer than this."""
    factor = torch.clamp(most / (torch.nn.utils.get_total_norm(grads) + 1e-6), max=1.0)
    for grad in grads:
        grad.mul_(factor)


def under_prefix(tensors: Mapping[str, NDArray[Any]], prefix: str) -> dict[str, NDArray[Any]]:
    """Tensors whose names begin with the prefix, under the rest of their names."""
    return {name.removeprefix(prefix): value for name, value in tensors.items() if name.startswith(prefix)}
