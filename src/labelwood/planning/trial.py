"""Small trainings that tell what a large one takes: time and model size depend on what the solver meets.

Two samples of the documents are trained, one twice the other, and extended to the whole by the power law through both:
expect a factor of two either way.
"""

from __future__ import annotations

import dataclasses
import math
import time
import warnings

import numpy as np

from ..arrays.sparse import Csr, Features
from ..base.config import each, last_level
from ..base.progress import Silent
from ..base.run import Run
from ..data import Dataset
from ..models.predictor import Predictor
from ..parts.label_features import MOST_ENTRIES, pifa
from ..parts.tfidf import Tfidf
from ..parts.tree import level_sizes
from ..pipeline.costs import Sizes
from ..pipeline.train import train_in
from ..pipeline.training_set import Problem, prepare
from ..recipes.encoder_settings import EncoderConfig
from ..recipes.network_settings import FinetuneConfig
from ..recipes.recipe import Recipe
from ..recipes.runs import by_documents
from ..storage.stage_cache import Workspace

SAMPLE = 4000  # documents of the larger sample, at most
LABELS = 1000  # labels whose features are counted
GROWTH = (0.8, 1.4)  # exponents that are believed


@dataclasses.dataclass(frozen=True, eq=False)
class Trial:
    """A recipe trained on evenly spaced documents: what it took, and what came out."""

    rows: int
    model: Predictor
    seconds: dict[str, float]  # CPU time of all threads, by stage
    words: Features | None
    label_entries: int  # of Z

    @property
    def bytes(self) -> int:
        """Size of the model."""
        parts = (part for member in self.model.members for part in member.parts().values())
        return sum(sum(array.nbytes for array in part.values()) for part in parts)

    @property
    def level_bytes(self) -> list[int]:
        """Size of each level of the first tree."""
        return [sum(array.nbytes for array in level.tensors().values()) for level in self.model.members[0].levels]


def trials(data: Dataset, problem: Problem, recipe: Recipe, run: Run) -> tuple[Trial, Trial]:
    """Two of them, the second on twice as many documents."""
    rows, labels = len(data), len(problem.seen)
    large = min(SAMPLE, max(min(rows, 200), rows // 8))
    bare = on_words(recipe)
    few, many = (_trial(data, bare, run, count, labels) for count in (max(1, large // 2), large))
    return few, many


def on_words(recipe: Recipe) -> Recipe:
    """The recipe on words alone: its classifiers, on the tree that they will stand on."""
    if not recipe.encoder.on:
        return recipe
    ensemble = dataclasses.replace(recipe.ensemble, encoders=None, labels=None)
    starts = tuple("zero" if start == "network" else start for start in each(recipe.linear.start))
    linear = dataclasses.replace(recipe.linear, start=starts if len(starts) > 1 else starts[0])
    return dataclasses.replace(
        recipe, linear=linear, encoder=EncoderConfig(), finetune=FinetuneConfig(), ranker="tree", ensemble=ensemble,
        tree=recipe.stand, labels=by_documents(recipe.labels),
    )  # fmt: skip


def _trial(data: Dataset, recipe: Recipe, run: Run, count: int, labels: int) -> Trial:
    rows = np.unique(np.linspace(0, len(data) - 1, count).astype(np.int64))
    part, start = data.take(rows), time.process_time()  # CPU time: others may be at work here
    words: dict[str, float] = {}
    if part.features is None and part.texts is not None and not recipe.labels.reads_text:
        x = Tfidf.fit(part.texts, recipe.tfidf, threads=run.workers)[1]
        part = dataclasses.replace(part, texts=None, features=Features(x))
        words = {"features": time.process_time() - start}
    problem = prepare(part)
    recipe = _for_sample(recipe, len(problem.seen), labels)
    with warnings.catch_warnings(), Workspace(None, clock=time.process_time) as space:
        warnings.simplefilter("ignore")  # what holds for a sample need not hold for the data
        model = train_in(space, part, recipe, Run(run.threads, progress=Silent()))
        seconds = words | space.spent
    entries = 0 if part.features is None else label_entries(problem, part.features, recipe, run.workers)
    return Trial(count, model, seconds, part.features, entries)


def _for_sample(recipe: Recipe, labels: int, of: int) -> Recipe:
    """The recipe for some of the labels: their tree may have fewer levels, and must have smaller ones."""
    recipe = last_level(recipe)
    if recipe.tree.levels is None:
        return recipe
    sizes = {max(1, size * labels // of) for size in recipe.tree.levels}
    levels = tuple(sorted(size for size in sizes if size < labels)) or None
    return dataclasses.replace(recipe, tree=dataclasses.replace(recipe.tree, levels=levels))


def label_entries(problem: Problem, x: Features, recipe: Recipe, threads: int) -> int:
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


def extended(small: float, large: float, few: int, many: int, rows: int) -> float:
    """The power law through (few, small) and (many, large) at `rows`; its exponent is kept within GROWTH."""
    if large <= 0 or rows <= many:
        return large
    slope = math.log(large / small) / math.log(many / few) if small > 0 and many > few else 1.0
    return large * math.pow(rows / many, min(max(slope, GROWTH[0]), GROWTH[1]))


def stage_seconds(few: Trial, many: Trial, rows: int) -> dict[str, float]:
    """CPU seconds of each stage on so many documents."""
    return {
        stage: extended(few.seconds.get(stage, 0.0), spent, few.rows, many.rows, rows)
        for stage, spent in many.seconds.items()
    }


def sizes_of(
    data: Dataset, problem: Problem, recipe: Recipe, run: Run, pair: tuple[Trial, Trial], *, held: int
) -> Sizes:
    """Sizes that the formulas read, as far as it takes trials to find out."""
    few, many = pair
    recipe = on_words(recipe)
    x, y, labels = data.features, problem.y, len(problem.seen)

    def whole(a: float, b: float) -> int:
        return int(extended(a, b, few.rows, many.rows, y.rows))

    if x is None:
        nx = whole(*(0 if one.words is None or one.words.sparse is None else one.words.sparse.nnz for one in pair))
        cols = whole(*(one.model.members[0].sparse_cols for one in pair))
        z = min(MOST_ENTRIES, whole(few.label_entries, many.label_entries))
    else:
        nx, cols = (x.sparse.nnz if x.sparse is not None else 0), x.sparse_cols
        z = label_entries(problem, x, recipe, run.workers)
    levels = (*many.model.members[0].tree.sizes[:-1], labels)
    if recipe.tree.kind == "balanced":
        levels = level_sizes(labels, recipe.tree)
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
        model=whole(few.bytes, many.bytes),
        shares=_shares(many.level_bytes, len(levels)),
        text=x is None,
        copied=x is not None and recipe.features.norm != "none",
        spills=run.work is not None,
        maps=run.work is not None and run.memory is not None,
        trees=recipe.ensemble.members,
    )


def _shares(records: list[int], depth: int) -> tuple[float, ...]:
    """The part of each level in the model: as in the trial, counted from the labels up; levels it lacks have little."""
    found = [size / max(1, sum(records)) for size in records]
    return tuple([0.05] * (depth - len(found)) + found[-depth:])
