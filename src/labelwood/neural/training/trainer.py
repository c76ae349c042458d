"""The one neural training loop: steps over batches of documents, measured now and then, to be continued at any moment.

What is trained is given as tasks, one for each level that is trained together: a head, what it reads of the encoder,
its targets and its candidates. XR-Transformer and AttentionXML train one task after another, CascadeXML all at once.

Randomness is a function of (seed, stage, step): the order of the documents is drawn per epoch, dropout is seeded at
each step, and nothing of a generator is ever saved. A run that is killed and continued ends in the same bytes, on a CPU
with the same torch and threads.
"""

from __future__ import annotations

import dataclasses
import math
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from ...arrays.sparse import Csr
from ...arrays.tokens import Tokens
from ...base.progress import Event, Tick
from ...errors import TrainingError
from ...parts.shortlist import from_ids
from ..encoders.encoder import Encoder, packed
from .candidates import Candidates
from .head import Head, HeadScores, batch_loss
from .optim import Optimiser, under_prefix
from .products import RowGradients

State = dict[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True, eq=False)
class Task:
    """A level that is trained: its head, what it reads, its targets and its candidates."""

    head: Head
    reading: int  # which of the encoder's
    y: Csr  # (n, K) true nodes, with the weights of positives
    m: Csr | None  # (n, parents) whose children are the candidates; None: all nodes, or what `shortlist` says
    child_ptr: NDArray[np.int64]  # (parents + 1,)
    loss: str
    alpha: float  # weight of negatives
    head_lr: float
    dropout: float = 0.0  # share of the values that it reads dropped before the head
    weight: float = 1.0  # of its loss among those of all tasks
    shortlist: DynamicShortlist | None = None  # below what the task before finds best, as it scores now

    def candidates(self, rows: NDArray[np.integer[Any]], y: Csr, above: ScoredTask | None) -> Candidates:
        """Candidates of some documents, whose true nodes are Y; `above` are the scores of the task before."""
        if self.shortlist is not None:
            assert above is not None
            return self.shortlist.below(above, self.child_ptr, y)
        if self.m is None:
            return Candidates.every(len(rows), self.head.nodes)
        return Candidates.below(self.m.take(rows), self.child_ptr)


@dataclasses.dataclass(frozen=True)
class DynamicShortlist:
    """Dynamic shortlists (CascadeXML's eq. 2-3): the children of the best clusters, and the truth.

    union: the true nodes come in addition; replace: true clusters push the worst of the best out.
    """

    keep: int
    truth: str = "union"

    def below(self, above: ScoredTask, child_ptr: NDArray[np.int64], y: Csr) -> Candidates:
        """Candidates of documents whose clusters were just scored; Y (n, K) are their true nodes."""
        pairs, real = above.candidates.padded()  # (n, C)
        logits = above.logits.detach()
        if self.truth == "replace":
            logits = torch.where(torch.from_numpy(above.true).to(logits.device), torch.inf, logits)
        padded = logits[torch.from_numpy(pairs).to(logits.device)]
        padded = torch.where(torch.from_numpy(real).to(logits.device), padded, -torch.inf)
        value, places = torch.topk(padded, min(self.keep, padded.shape[1]), dim=1)
        best = above.candidates.nodes[np.take_along_axis(pairs, places.cpu().numpy(), 1)]
        m = from_ids(np.where(value.cpu().numpy() > -np.inf, best, -1).astype(np.int32), len(child_ptr) - 1)
        return Candidates.below(m, child_ptr, y if self.truth == "union" else None)


@dataclasses.dataclass(frozen=True, eq=False)
class ScoredTask:
    """The candidates of a shard's documents at one task, which are true, and their logits; arrays are (P,)."""

    candidates: Candidates
    true: NDArray[np.bool_]
    logits: torch.Tensor


@dataclasses.dataclass(frozen=True)
class Schedule:
    """Length of a training, its learning rates, and how often it is measured."""

    steps: int
    batch: int
    shard_tokens: int
    lr: float
    warmup: float  # share of the steps
    weight_decay: float
    head_decay: float
    clip: float | None
    checks: int
    mixed: bool = False  # bfloat16, on CUDA alone
    shape: str = "linear"
    fall: float = 0.2  # share of the steps in which a cosine falls
    head_shrink: float = 0.0  # AdamW's decay of the heads
    average_from: float | None = None  # share of the steps after which measured weights are means

    def rate(self, step: int) -> float:
        """The factor on learning rates at a step (0-based).

        linear: up in a line, then down to 0; cosine: up from 1/10, level, then down to 1/1000 in the last steps.
        """
        rise = math.ceil(self.warmup * self.steps)
        if self.shape == "cosine":
            fall = math.ceil(self.fall * self.steps)
            up = min(1.0, (step + 1) / max(1, rise))
            down = max(0.0, (step + 1 - (self.steps - fall)) / max(1, fall))
            return min(0.1 + 0.9 * _wave(up), 0.001 + 0.999 * _wave(1 - down))
        if step < rise:
            return (step + 1) / rise
        return (self.steps - step) / max(1, self.steps - rise)

    def is_check(self, step: int) -> bool:
        """Is the model measured after so many steps?"""
        return any(step == round(self.steps * (i + 1) / self.checks) for i in range(self.checks))


class StateKeeper(Protocol):
    """Keeps the state of an unfinished training."""

    def load(self) -> tuple[State, Mapping[str, Any]] | None: ...
    def save(self, state: State, meta: Mapping[str, Any]) -> None: ...
    def aside(self, state: State) -> State: ...


@dataclasses.dataclass(frozen=True, eq=False)
class Hooks:
    """Surroundings of a training: callbacks, the keeper of its state, and how often the state is kept."""

    stage: str = "fine-tuning"
    tick: Tick | None = None
    tell: Callable[[Event], None] | None = None
    keeper: StateKeeper | None = None
    every: float = 180.0  # seconds between two kept states
    later: int = 0  # steps of trainings to come
    clock: Callable[[], float] = time.monotonic


class Trainer:
    """The training loop of an encoder and the heads of its tasks."""

    def __init__(
        self, encoder: Encoder, tasks: list[Task], tokens: Tokens, rows: NDArray[np.int64], schedule: Schedule,
        *, key: tuple[int, int], measure: Callable[[], float] | None = None, hooks: Hooks = Hooks(),
    ) -> None:  # fmt: skip
        """`rows` are the documents trained on, `key` = (seed, stage), `measure` gives the quality that is best."""
        self.encoder, self.tasks, self.tokens, self.rows = encoder, tasks, tokens, rows
        self.schedule, self.key, self.measure, self.hooks = schedule, key, measure, hooks
        self.device = next(encoder.parameters()).device
        self.optimiser = Optimiser(encoder, schedule, tasks[0].head_lr)
        self.step, self.best_quality = 0, -math.inf
        self.best: State | None = None
        self.mean: State | None = None  # of the weights at `averaged` checks
        self.averaged = 0
        self.recent: list[float] = []
        self._drawn: tuple[int, NDArray[np.int64]] | None = None

    def run(self) -> float:
        """Take all steps that are left and go back to the weights that were measured best. Returns their quality."""
        with torch.random.fork_rng(devices=[self.device] if self.device.type == "cuda" else []):
            return self._run()

    def _run(self) -> float:
        self._restore()
        hooks, last = self.hooks, self.hooks.clock()
        if hooks.tick is not None:
            hooks.tick(self.step, self.schedule.steps)
        while self.step < self.schedule.steps:
            began = hooks.clock()
            loss, width = self.advance()
            if not math.isfinite(loss):
                raise TrainingError(
                    f"{hooks.stage}: the loss is {loss} at step {self.step}; the learning rates are too high for this "
                    f"data (optimiser.lr is {self.schedule.lr:g}). Lower optimiser.lr and optimiser.head_lr."
                )
            quality = self._check() if self.schedule.is_check(self.step) else None
            self._report(loss, width, hooks.clock() - began, quality)
            if hooks.keeper is not None and hooks.clock() - last >= hooks.every and self.step < self.schedule.steps:
                meta = {"step": self.step, "quality": _plain(self.best_quality), "averaged": self.averaged}
                hooks.keeper.save(self._state(), meta)
                last = hooks.clock()
        if self.best is not None:
            self._use(self.best)
        return self.best_quality

    def batch(self, step: int) -> NDArray[np.int64]:
        """The documents of a step: a slice of the epoch's order, which runs on into the next epoch's."""
        size, n = min(self.schedule.batch, len(self.rows)), len(self.rows)
        places = np.arange(step * size, (step + 1) * size)
        chosen = np.empty(size, np.int64)
        for epoch in np.unique(places // n):
            inside = places // n == epoch
            chosen[inside] = self._order(int(epoch))[places[inside] % n]
        return self.rows[chosen]

    def advance(self) -> tuple[float, float]:
        """Take one step. Returns the mean loss and candidates per document."""
        loss, width = self._step()
        self.step += 1
        return loss, width

    def _order(self, epoch: int) -> NDArray[np.int64]:
        """The order of the documents in an epoch."""
        if self._drawn is None or self._drawn[0] != epoch:
            draw = np.random.Generator(np.random.Philox(key=mixed_key(*self.key, epoch, 0)))
            self._drawn = epoch, draw.permutation(len(self.rows))
        return self._drawn[1]

    def _step(self) -> tuple[float, float]:
        """Add up the gradients of all shards and update once. Returns the mean loss and candidates per document."""
        rows = self.batch(self.step)
        self.encoder.train()
        torch.manual_seed(mixed_key(*self.key, self.step, 1) % 2**63)
        rows = rows[np.argsort(-self.tokens.lengths[rows], kind="stable")]
        gradients: list[list[RowGradients]] = [[] for _ in self.tasks]
        total, pairs = 0.0, 0
        for begin, end in self._shards(rows):
            loss, scores = self._shard(rows[begin:end], len(rows))
            total += loss
            for shards, task_scores in zip(gradients, scores, strict=True):
                shards.append(task_scores.gradients())
                pairs += task_scores.candidates.pairs
        self._update([RowGradients.joined(shards) for shards in gradients])
        return total, pairs / len(rows)

    def _shard(self, rows: NDArray[np.int64], of: int) -> tuple[float, list[HeadScores]]:
        """Gradients of some documents of a step of so many. Returns their share of the mean loss, and all scores."""
        mixed = self.schedule.mixed and self.device.type == "cuda"
        with torch.autocast(self.device.type, torch.bfloat16, enabled=mixed):
            batch = packed(self.tokens, rows, self.device)
            vectors = self.encoder(batch)
        loss, scores = torch.zeros((), device=self.device), []
        above: ScoredTask | None = None
        for task in self.tasks:
            y = task.y.take(rows)
            candidates = task.candidates(rows, y, above)
            true, value = candidates.targets(y)
            weight = np.where(true, value, np.float32(task.alpha))
            dropped = torch.nn.functional.dropout(vectors[task.reading].float(), task.dropout, training=True)
            task_scores = self.encoder.scores(task.reading, dropped, batch, task.head, candidates)
            truth = torch.from_numpy(true).to(self.device), torch.from_numpy(weight).to(self.device)
            loss = loss + task.weight * batch_loss(task.loss, task_scores.logits, candidates, *truth) / of
            above = ScoredTask(candidates, true, task_scores.logits)
            scores.append(task_scores)
        loss.backward()  # type: ignore[no-untyped-call]
        return float(loss.detach()), scores

    def _shards(self, rows: NDArray[np.int64]) -> Iterator[tuple[int, int]]:
        """Ranges of the batch that go through at once."""
        start, total = 0, 0
        for i, length in enumerate(self.tokens.lengths[rows].tolist()):
            if total + length > self.schedule.shard_tokens and i > start:
                yield start, i
                start, total = i, 0
            total += length
        yield start, len(rows)

    def _update(self, gradients: list[RowGradients]) -> None:
        schedule, factor = self.schedule, self.schedule.rate(self.step)
        self.optimiser.step(factor)
        for task, row_gradients in zip(self.tasks, gradients, strict=True):
            rate = task.head_lr * factor
            task.head.update(row_gradients, rate, schedule.clip, schedule.head_decay, schedule.head_shrink)

    def _check(self) -> float | None:
        """Measure, and keep a copy if nothing was better; of equal ones the one that has learned longer."""
        now = self._averaged()
        quality = None if self.measure is None else self.measure()
        if quality is None or quality >= self.best_quality:
            self.best = self._copy() if self.measure is not None or now is not None else None
            self.best_quality = self.best_quality if quality is None else quality
        if now is not None:
            self._use(now)
        return quality

    def _averaged(self) -> State | None:
        """Put the mean of the weights at the last checks in their place; hands back the weights, if there is a mean."""
        begin = self.schedule.average_from
        if begin is None or self.step < begin * self.schedule.steps:
            return None
        now, count = self._copy(), self.averaged
        self.mean = now if self.mean is None else {k: v + (now[k] - v) / (count + 1) for k, v in self.mean.items()}
        self.averaged = count + 1
        self._use(self.mean)
        return now

    def _report(self, loss: float, width: float, seconds: float, quality: float | None) -> None:
        hooks, schedule = self.hooks, self.schedule
        self.recent = [*self.recent[-9:], seconds]
        if hooks.tell is not None:
            each = max(1e-9, sum(self.recent)) / len(self.recent)
            left = each * (schedule.steps - self.step + hooks.later)
            rate = schedule.lr * schedule.rate(self.step - 1)
            speed = schedule.batch / each
            hooks.tell(Event(hooks.stage, self.step, schedule.steps, loss, speed, width, rate, left, quality))
        if hooks.tick is not None:
            hooks.tick(self.step, schedule.steps)

    # --- state ------------------------------------------------------------------------------------

    def _copy(self) -> State:
        """The weights as they are now; of large heads on disk."""
        weights, keeper = self._weights(), self.hooks.keeper
        return {name: value.copy() for name, value in weights.items()} if keeper is None else keeper.aside(weights)

    def _weights(self) -> State:
        state = {f"encoder.{name}": value for name, value in self.encoder.state().items()}
        for t, task in enumerate(self.tasks):
            state[f"head.{t}.table"] = task.head.table.cpu().numpy()
        return state

    def _use(self, weights: State) -> None:
        self.encoder.load(under_prefix(weights, "encoder."))
        for t, task in enumerate(self.tasks):
            task.head.use(weights[f"head.{t}.table"])

    def _state(self) -> State:
        """Everything that the rest of the training depends on."""
        state = {f"now.{name}": value for name, value in self._weights().items()}
        for t, task in enumerate(self.tasks):
            state |= {f"now.head.{t}.{name}": value for name, value in task.head.tensors().items()}
        state |= {f"adam.{name}": value for name, value in self.optimiser.tensors().items()}
        for prefix, kept in (("best.", self.best), ("mean.", self.mean)):
            state |= {f"{prefix}{name}": value for name, value in (kept or {}).items()}
        return state

    def _restore(self) -> None:
        kept = None if self.hooks.keeper is None else self.hooks.keeper.load()
        if kept is None:
            return
        state, meta = kept
        self.step = int(meta["step"])
        self.best, self.mean = (under_prefix(state, prefix) or None for prefix in ("best.", "mean."))
        self.averaged = int(meta["averaged"])
        self.best_quality = -math.inf if meta["quality"] is None else float(meta["quality"])
        now = under_prefix(state, "now.")
        self.encoder.load(under_prefix(now, "encoder."))
        for t, task in enumerate(self.tasks):
            task.head.load(under_prefix(now, f"head.{t}."))
        self.optimiser.load(under_prefix(state, "adam."))


def mixed_key(*parts: int) -> int:
    """A 128-bit key made of several numbers."""
    return int.from_bytes(np.random.SeedSequence(parts).generate_state(4, np.uint32).tobytes(), "little")


def _wave(share: float) -> float:
    """Rise from 0 to 1 as half a cosine."""
    return (1 - math.cos(math.pi * share)) / 2


def _plain(quality: float) -> float | None:
    return None if math.isinf(quality) else quality
