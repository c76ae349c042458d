"""What a run will take, before it starts: memory by stage from formulas, time and model size from two small runs.

Memory follows from the sizes of X, Y, Z and the tree (docs/planning.md has the formulas). Time and model size depend on
what the solver meets, so two samples of the documents are trained, one twice the other, and drawn out to the whole by
the power law through both: expect a factor of two either way.
"""

from __future__ import annotations

import dataclasses
import math
import time
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from ..arrays.sparse import Csr, Features
from ..base import memory_budget
from ..base.config import at, each, last_level
from ..base.progress import Silent
from ..data import Dataset
from ..errors import BudgetError
from ..models.predictor import Predictor
from ..parts.label_features import MOST_ENTRIES, NEURAL_KINDS, pifa
from ..parts.tfidf import Tfidf
from ..parts.tree import level_sizes
from ..pipeline.facts import facts_of
from ..pipeline.run_options import Run
from ..pipeline.train import train
from ..pipeline.training_set import Problem, prepare
from ..recipes.checks import check
from ..recipes.network_settings import EncoderConfig, FinetuneConfig
from ..recipes.recipe import Recipe, check_depth

if TYPE_CHECKING:
    from ..neural.training.pace import Pace

SAMPLE = 4000  # documents of the larger sample, at most
LABELS = 1000  # labels whose features are counted
GROWTH = (0.8, 1.4)  # exponents that are believed
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
    """What a run will take."""

    parts: tuple[Part, ...]
    model: int  # bytes on disk
    threads: int
    z_entries: int  # of the label features
    parameters: int = 0  # of the encoder
    network: Mapping[str, int] = dataclasses.field(default_factory=dict)  # bytes of its largest level in training

    @property
    def peak(self) -> Part:
        """The stage that holds most."""
        return max(self.parts, key=lambda part: part.memory)

    @property
    def memory(self) -> int:
        return self.peak.memory

    @property
    def cpu_seconds(self) -> float:
        return sum(part.cpu_seconds for part in self.parts)


@dataclasses.dataclass(frozen=True)
class Sizes:
    """All that the formulas know of a problem."""

    held: int  # bytes the process holds before the run
    rows: int
    x: int  # entries of the sparse block
    cols: int
    dense: int  # columns of the dense block
    y: int  # entries
    z: int  # entries
    labels: int  # with positives
    levels: tuple[int, ...]  # K_1 … K_D
    listed: tuple[int, ...]  # entries of Y summed up to level t, if labels fell into clusters by chance
    model: int
    shares: tuple[float, ...]  # of the model, by level
    text: bool
    copied: bool  # X is scaled into a copy of its own
    spills: bool  # finished stages are on disk
    maps: bool  # and the user's own features too
    pace: Pace | None = None  # of the encoder, where there is one
    tuned: tuple[int, ...] = ()  # clusters of the levels that are fine-tuned


def plan(data: Dataset, recipe: Recipe, run: Run) -> Plan:
    """Memory and time by stage, and the size of the model."""
    sizes, seconds = _measured(data, recipe, run)
    return _planned(sizes, recipe, run.workers, seconds)


def within(data: Dataset, recipe: Recipe, run: Run) -> Run:
    """The run with as many threads as its budget allows; BudgetError with the figure it would need if none do."""
    if run.memory is None:
        return run
    sizes, seconds = _measured(data, recipe, run)
    for threads in range(run.workers, 0, -1):
        found = _planned(sizes, recipe, threads, seconds)
        if found.memory <= run.memory:
            return dataclasses.replace(run, threads=threads)
    raise _refused(found, sizes, recipe, run.memory)


def _measured(data: Dataset, recipe: Recipe, run: Run) -> tuple[Sizes, dict[str, float]]:
    """The sizes of the problem, and seconds by group of stages, from two trials."""
    held, few, many = memory_budget.held(), *_counts(len(data))
    problem = prepare(data)
    check(recipe, facts_of(data, recipe))
    labels = len(problem.seen)
    bare = _bare(recipe)
    trials = _Trial(data, bare, run, few, labels), _Trial(data, bare, run, many, labels)
    sizes = _sizes(data, problem, bare, run, trials, held=held)
    if recipe.encoder.on:
        from .timing import measure, tuned_levels

        pace = measure(data, recipe, run)
        tuned = tuned_levels(labels, recipe) if recipe.finetune.on else ()
        model = sizes.model + _encoder_bytes(pace, sum(sizes.levels), recipe)
        now = max(held, memory_budget.held())  # torch is loaded, as it is in a run
        sizes = dataclasses.replace(sizes, held=now, pace=pace, tuned=tuned, dense=pace.width, model=model)
    return sizes, trials[1].seconds(trials[0], len(data))


def _bare(recipe: Recipe) -> Recipe:
    """The recipe on words alone: its classifiers, on the tree that they will stand on."""
    if not recipe.encoder.on:
        return recipe
    ensemble = dataclasses.replace(recipe.ensemble, encoders=None, labels=None)
    kind = "pifa" if recipe.labels.kind in NEURAL_KINDS else recipe.labels.kind
    starts = tuple("zero" if start == "network" else start for start in each(recipe.linear.start))
    linear = dataclasses.replace(recipe.linear, start=starts if len(starts) > 1 else starts[0])
    return dataclasses.replace(
        recipe, linear=linear, encoder=EncoderConfig(), finetune=FinetuneConfig(), ranker="tree", ensemble=ensemble,
        tree=recipe.stand, labels=dataclasses.replace(recipe.labels, kind=kind),
    )  # fmt: skip


def _encoder_bytes(pace: Pace, nodes: int, recipe: Recipe) -> int:
    """What encoders add to a model: their weights, and a float16 for each node and each value of the embedding."""
    return 4 * pace.parameters * recipe.ensemble.runs + 2 * pace.width * nodes * recipe.ensemble.members


def _refused(found: Plan, sizes: Sizes, recipe: Recipe, most: int) -> BudgetError:
    way = "give more memory, or less data"
    if not sizes.spills:
        way = "give work=FOLDER, where finished stages go instead of staying in memory, or more memory"
    elif found.peak.name in {"label features", "label tree"} and recipe.labels.top is None:
        spare = most - (found.memory - SLACK * _z_bytes(sizes))
        top = int(spare / (SLACK * _z_bytes(sizes)) * sizes.z / sizes.labels)
        if top > 0:
            way = f"bound the label features with labels.top = {top} (another model, then), or give more memory"
    return BudgetError(
        f"the run needs about {memory_budget.show(found.memory)} of memory (in stage {found.peak.name!r}, with one "
        f"thread), but the budget is {memory_budget.show(most)}; {way}."
    )


class _Trial:
    """The recipe trained on evenly spaced documents: what it took, and what came out."""

    def __init__(self, data: Dataset, recipe: Recipe, run: Run, count: int, labels: int) -> None:
        rows = np.linspace(0, len(data) - 1, count).astype(np.int64)
        self.rows, self.progress = count, Silent(time.process_time)  # CPU time: others may be at work here
        part, start = data.take(np.unique(rows)), time.process_time()
        if part.features is None and part.texts is not None and not recipe.labels.reads_text:
            x = Tfidf.fit(part.texts, recipe.tfidf, threads=run.workers)[1]
            part = dataclasses.replace(part, texts=None, features=Features(x))
        self.words = time.process_time() - start
        self.x = part.features
        recipe = _for_sample(recipe, len(prepare(part).seen), labels)
        with warnings.catch_warnings():  # what holds for a sample need not hold for the data
            warnings.simplefilter("ignore")
            self.model: Predictor = train(part, recipe, Run(run.threads, self.progress))
        self.bytes = sum(a.nbytes for member in self.model.members for p in member.parts().values() for a in p.values())
        self.records = [sum(a.nbytes for a in level.tensors().values()) for level in self.model.members[0].levels]
        self.sizes = self.model.members[0].tree.sizes
        self.z = 0 if self.x is None else _label_entries(prepare(part), self.x, recipe, run.workers)

    def seconds(self, small: _Trial, rows: int) -> dict[str, float]:
        """By group of stages, drawn out from the smaller trial and this one to all rows."""
        names = ("words", "label features", "label tree")
        mine, other = (dict.fromkeys((*names, "levels"), 0.0) for _ in range(2))
        for trial, sums in ((self, mine), (small, other)):
            sums["words"] = trial.words
            for name, value in trial.progress.timings.items():
                sums[next((key for key in names if key in name), "levels")] += value
        return {name: drawn_out(other[name], mine[name], small.rows, self.rows, rows) for name in mine}


def _for_sample(recipe: Recipe, labels: int, of: int) -> Recipe:
    """The recipe for some of the labels: their tree may have fewer levels, and must have smaller ones."""
    recipe = last_level(recipe)
    if recipe.tree.levels is None:
        return recipe
    sizes = {max(1, size * labels // of) for size in recipe.tree.levels}
    levels = tuple(sorted(size for size in sizes if size < labels)) or None
    return dataclasses.replace(recipe, tree=dataclasses.replace(recipe.tree, levels=levels))


def drawn_out(small: float, large: float, few: int, many: int, rows: int) -> float:
    """The power law through (few, small) and (many, large) at `rows`; its exponent is kept within GROWTH."""
    if large <= 0 or rows <= many:
        return large
    slope = math.log(large / small) / math.log(many / few) if small > 0 and many > few else 1.0
    return large * math.pow(rows / many, min(max(slope, GROWTH[0]), GROWTH[1]))


def _counts(rows: int) -> tuple[int, int]:
    large = min(SAMPLE, max(min(rows, 200), rows // 8))
    return max(1, large // 2), large


def _label_entries(problem: Problem, x: Features, recipe: Recipe, threads: int) -> int:
    """Entries of Z, from the rows of some labels."""
    if x.sparse is None or recipe.tree.kind == "flat":
        return 0
    seen = problem.seen
    some = np.unique(seen[np.linspace(0, len(seen) - 1, min(len(seen), LABELS)).astype(np.int64)])
    rank = np.full(problem.y.cols, -1, np.int32)
    rank[some] = np.arange(len(some), dtype=np.int32)
    y = problem.y.keep(rank[problem.y.indices] >= 0)
    z = pifa(Csr(y.indptr, rank[y.indices], y.data, len(some)), x, recipe.labels, threads)
    assert z.sparse is not None
    return min(MOST_ENTRIES, z.sparse.nnz * len(seen) // len(some))


def _sizes(
    data: Dataset, problem: Problem, recipe: Recipe, run: Run, trials: tuple[_Trial, _Trial], *, held: int
) -> Sizes:
    small, large = trials
    x, y, labels = data.features, problem.y, len(problem.seen)

    def whole(a: float, b: float) -> int:
        return int(drawn_out(a, b, small.rows, large.rows, y.rows))

    if x is None:
        nx = whole(*(0 if trial.x is None or trial.x.sparse is None else trial.x.sparse.nnz for trial in trials))
        cols = whole(*(trial.model.members[0].sparse_cols for trial in trials))
        z = min(MOST_ENTRIES, whole(small.z, large.z))
    else:
        nx, cols = (x.sparse.nnz if x.sparse is not None else 0), x.sparse_cols
        z = _label_entries(problem, x, recipe, run.workers)
    levels = (*large.sizes[:-1], labels)
    if recipe.tree.kind == "balanced":
        levels = level_sizes(labels, recipe.tree)
        check_depth(recipe, len(levels))
    return Sizes(
        held=held,
        rows=y.rows,
        x=nx,
        cols=cols,
        dense=0 if x is None else x.dense_cols,
        y=y.nnz,
        z=z,
        labels=labels,
        levels=levels,
        listed=tuple(int((size * -np.expm1(y.counts() * np.log1p(-1 / (size + 1)))).sum()) for size in levels),
        model=whole(small.bytes, large.bytes),
        shares=_shares(large.records, len(levels)),
        text=x is None,
        copied=x is not None and recipe.features.norm != "none",
        spills=run.work is not None,
        maps=run.work is not None and run.memory is not None,
    )


def _shares(records: list[int], depth: int) -> tuple[float, ...]:
    """The part of each level in the model: as in the trial, counted from the labels up; levels it lacks have little."""
    found = [size / max(1, sum(records)) for size in records]
    return tuple([0.05] * (depth - len(found)) + found[-depth:])


def _planned(sizes: Sizes, recipe: Recipe, threads: int, seconds: dict[str, float]) -> Plan:
    memory = needs(sizes, recipe.ensemble.members, threads)
    level_names = [name for name in memory if name.startswith("level ")]
    weight = _work(sizes)
    took = {"reading words": seconds.get("words", 0.0), **seconds}
    took |= {name: seconds.get("levels", 0.0) * share for name, share in zip(level_names, weight, strict=True)}
    parts = [Part(name, size, took.get(name, 0.0)) for name, size in memory.items()]
    if sizes.pace is not None:
        place = next(i for i, part in enumerate(parts) if part.name == "label features")
        parts[place:place] = _neural(sizes, sizes.pace, recipe, threads)
    if sizes.pace is None:
        return Plan(tuple(parts), sizes.model, threads, sizes.z)
    return Plan(tuple(parts), sizes.model, threads, sizes.z, sizes.pace.parameters, _network(sizes, sizes.pace, recipe))


def _network(s: Sizes, pace: Pace, recipe: Recipe) -> dict[str, int]:
    """What the training of the largest level holds, by what for; nothing where the encoder is not trained."""
    from .timing import memory

    return memory(pace, max(s.tuned), recipe) if s.tuned else {}


def _neural(s: Sizes, pace: Pace, recipe: Recipe, threads: int) -> list[Part]:
    """The stages of an encoder, at the pace that was measured with all threads; those of several runs together."""
    from .timing import memory

    config, levels, busy = recipe.finetune, len(s.tuned), threads * recipe.ensemble.runs
    embedding = Part(
        "embedding", int(s.held + 4 * pace.parameters + 6 * s.rows * pace.width), busy * pace.embed * s.rows
    )
    if not levels:
        return [embedding]
    parts = []
    for t, nodes in enumerate(s.tuned):
        steps: float = at(config.epochs, t, levels, "finetune.epochs") * s.rows / config.batch
        if config.steps is not None:
            steps = at(config.steps, t, levels, "finetune.steps")
        held = int(embedding.memory + SLACK * sum(memory(pace, nodes, recipe).values()))
        parts.append(Part(f"fine-tuning level {t + 1}", held, busy * pace.step * steps))
        parts.append(dataclasses.replace(embedding, name=f"embedding after level {t + 1}"))
    return parts


def _work(s: Sizes) -> list[float]:
    """The share of each level in the solver's work: instances of a parent times its children."""
    above = (s.rows, *s.listed[:-1])
    parents = (1, *s.levels[:-1])
    work = [m * k / p for m, k, p in zip(above, s.levels, parents, strict=True)]
    return [part / sum(work) for part in work]


def needs(s: Sizes, trees: int, threads: int) -> dict[str, int]:
    """Bytes the process will hold at the peak of each stage."""
    x_bytes = 8 * s.x + 8 * s.rows + 4 * s.rows * s.dense
    values = 4 * s.x + 4 * s.rows * s.dense  # what scaling X makes anew
    base = s.held + (x_bytes if s.text and not s.spills else 0) + (values if s.copied and not s.maps else 0)
    y_bytes = 8 * s.y + 8 * s.rows
    adds: dict[str, float] = {}
    if s.text or s.copied:
        adds["reading words" if s.text else "features"] = 2 * x_bytes + 100 * s.cols if s.text else values
    adds["label features"] = y_bytes + 8 * s.labels + 8 * s.y + _z_bytes(s) + threads * 5 * s.cols
    adds["label tree"] = 10 * s.z + 64 * s.labels + threads * 16 * s.cols
    for t in range(len(s.levels)):
        adds[f"level {t + 1}"] = _level(s, t, threads) + (0 if s.spills else trees * s.model)
    adds["saving"] = 0 if s.spills else trees * s.model
    return {name: int(base + SLACK * size + SPARE) for name, size in adds.items()}


def _z_bytes(s: Sizes) -> float:
    """Z as it grows, and the rows of up to 1024 labels before they are appended."""
    return 10 * s.z + 16 * s.z * min(1, 1024 / s.labels)


def _level(s: Sizes, t: int, threads: int) -> float:
    """Costs and shortlist by column and, on their way there, by row; the clusters at work; their weights."""
    parents = s.levels[t - 1] if t else 1
    listed = s.listed[t - 1] if t else s.rows
    matrices = 2 * 8 * (s.listed[t] + listed + s.rows)
    busy = min(parents, threads)
    share = min(1.0, 2 * busy / parents)
    instances = busy * min(s.rows, 1.25 * listed / parents)  # the largest come first
    cluster = instances * (8 * s.x / s.rows + 24) + 4 * s.cols * busy
    width = min(s.cols, instances * s.x / s.rows / busy) + s.dense
    solver = threads * (64 * (width + instances / busy) + 5 * s.cols + 4 * s.rows)
    model = s.model * s.shares[t]
    weights = min(4 * model * share, 256 * 2**20 if s.spills else math.inf)
    return matrices + cluster + solver + weights
