"""Estimate of a run before it starts: memory by stage from the stages' own formulas, time from two small trials."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import TYPE_CHECKING

from ..base import memory_budget
from ..base.run import Run
from ..data import Dataset
from ..errors import BudgetError
from ..pipeline import levels, networks, trees, words
from ..pipeline.costs import Cost, Sizes
from ..pipeline.facts import facts_of
from ..pipeline.training_set import prepare
from ..recipes.checks import check
from ..recipes.recipe import Recipe
from .trial import sizes_of, stage_seconds, trials

if TYPE_CHECKING:
    from ..neural.training.pace import Pace

SLACK = 1.1  # of what a stage adds: allocators round up
SPARE = 8 * 2**20  # and what no formula sees


@dataclasses.dataclass(frozen=True)
class Part:
    """A stage to come: the most memory the process will hold in it, and the CPU time of all threads together."""

    name: str
    memory: int  # bytes
    cpu_seconds: float


@dataclasses.dataclass(frozen=True)
class Plan:
    """Plan of a run: memory, time and size."""

    parts: tuple[Part, ...]
    model: int  # bytes on disk
    threads: int
    parameters: int = 0  # of the encoder
    network: Mapping[str, int] = dataclasses.field(default_factory=dict)  # bytes of its largest level in training

    @property
    def peak(self) -> Part:
        """The stage that holds most."""
        return max(self.parts, key=lambda part: part.memory)

    @property
    def memory(self) -> int:
        """Bytes that the process will hold at most."""
        return self.peak.memory

    @property
    def cpu_seconds(self) -> float:
        """CPU time of all stages."""
        return sum(part.cpu_seconds for part in self.parts)


@dataclasses.dataclass(frozen=True)
class Measured:
    """Findings of trials: sizes, seconds of each stage, and the pace of the encoder where there is one."""

    sizes: Sizes
    seconds: Mapping[str, float] = dataclasses.field(default_factory=dict)
    pace: Pace | None = None
    tuned: tuple[int, ...] = ()  # clusters of the levels that are fine-tuned


def plan(data: Dataset, recipe: Recipe, run: Run) -> Plan:
    """Memory and time by stage, and the size of the model."""
    return _planned(_measured(data, recipe, run), recipe, run.workers)


def within(data: Dataset, recipe: Recipe, run: Run) -> Run:
    """The run with as many threads as its budget allows; BudgetError with the figure it would need if none do."""
    budget = run.budget
    if budget is None:
        return run
    measured = _measured(data, recipe, run)
    for threads in range(run.workers, 0, -1):
        found = _planned(measured, recipe, threads)
        if found.memory <= budget:
            return dataclasses.replace(run, threads=threads)
    raise _refused(found, measured.sizes, recipe, budget)


def _measured(data: Dataset, recipe: Recipe, run: Run) -> Measured:
    """Two trials, and a few steps of an encoder."""
    held, problem = memory_budget.held(), prepare(data)
    recipe = words.settled(recipe, data)
    check(recipe, facts_of(data, recipe))
    pair = trials(data, problem, recipe, run)
    sizes = sizes_of(data, problem, recipe, run, pair, held=held)
    seconds = stage_seconds(*pair, len(data))
    if not recipe.encoder.on:
        return Measured(sizes, seconds)
    from .timing import measure, tuned_levels

    pace = measure(data, recipe, run)
    tuned = tuned_levels(sizes.labels, recipe) if recipe.finetune.on else ()
    model = sizes.model + _encoder_bytes(pace, sum(sizes.levels), recipe)
    now = max(held, memory_budget.held())  # torch is loaded, as it is in a run
    return Measured(dataclasses.replace(sizes, held=now, dense=pace.width, model=model), seconds, pace, tuned)


def _encoder_bytes(pace: Pace, nodes: int, recipe: Recipe) -> int:
    """Bytes that encoders add to a model: weights, and a float16 for each node and each value of the embedding."""
    return 4 * pace.parameters * recipe.ensemble.runs + 2 * pace.width * nodes * recipe.ensemble.members


def _planned(measured: Measured, recipe: Recipe, threads: int) -> Plan:
    """The plan for so many threads: every stage is asked what it costs."""
    s, pace = dataclasses.replace(measured.sizes, threads=threads), measured.pace
    network: dict[str, int] = {}
    costs = words.costs(s)
    if pace is not None:
        costs += networks.costs(s, pace, measured.tuned, recipe)
        network = networks.training_memory(pace, max(measured.tuned), recipe) if measured.tuned else {}
    costs += [*trees.costs(s), *levels.costs(s), Cost("saving", "saving", s.models)]
    parts = tuple(_part(cost, s, measured.seconds) for cost in costs)
    return Plan(parts, s.model, threads, 0 if pace is None else pace.parameters, network)


def _part(cost: Cost, s: Sizes, seconds: Mapping[str, float]) -> Part:
    """A stage's cost beside what the process holds anyway, and its share of the measured time."""
    spent = seconds.get(cost.stage, 0.0) * cost.share if cost.seconds is None else cost.seconds
    return Part(cost.title, int(s.base + SLACK * cost.memory + SPARE), spent)


def _refused(found: Plan, s: Sizes, recipe: Recipe, most: int) -> BudgetError:
    """The refusal, with the figure and the way out."""
    way = "give more memory, or less data"
    if not s.spills:
        way = "give work=FOLDER, where finished stages go instead of staying in memory, or more memory"
    elif found.peak.name in {trees.FEATURES, trees.TREE} and recipe.labels.top is None:
        spare = most - (found.memory - SLACK * s.z_bytes)
        top = int(spare / (SLACK * s.z_bytes) * s.z / s.labels)
        if top > 0:
            way = f"bound the label features with labels.top = {top} (another model, then), or give more memory"
    return BudgetError(
        f"the run needs about {memory_budget.show(found.memory)} of memory (in stage {found.peak.name!r}, with one "
        f"thread), but the budget is {memory_budget.show(most)}; {way}."
    )
