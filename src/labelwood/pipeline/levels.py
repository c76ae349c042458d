"""Linear levels, one after another: shortlist, costs, native solver.

They follow one another because the hard negatives of a level come from the predictions of those above it.
"""

from __future__ import annotations

import dataclasses
import math
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays.sparse import Csr, Features
from ..base.config import at, to_dict
from ..parts.label_features import binary
from ..parts.linear import Place, relevance, train_level
from ..parts.linear_level import LinearLevel
from ..parts.propensity import centroid_tensors, centroids, centroids_from, weights
from ..parts.search import Search, search
from ..parts.shortlist import all_rows, chosen, from_ids
from ..parts.tree import Tree, up
from ..storage.keyed import Keyed
from .costs import Cost, Sizes
from .job import Documents, Job
from .trees import numbered

TrainedLevel = Keyed[LinearLevel]


@dataclasses.dataclass(frozen=True, eq=False)
class LevelPlace:
    """Place of a level in training: the tree, which one of several it is, and the level's number from 0."""

    tree: Tree
    number: int
    level: int

    def place(self, seed: int) -> Place:
        """Key of its randomness."""
        return Place(self.level, self.tree.depth, seed, self.number)


def train_levels(
    job: Job, documents: Keyed[Documents], tree: Keyed[Tree], number: int = 0, shared: list[TrainedLevel] | None = None
) -> list[TrainedLevel]:
    """All levels of a tree, coarse to fine; `shared` are the upper ones that were trained for another tree."""
    recipe, x = job.recipe, documents.value.x
    levels = list(shared or [])
    for t in range(len(levels), tree.value.depth):
        inputs = {
            "above": levels[-1].key if levels else None,
            "documents": documents,
            "tree": tree,
            "level": t,
            **settings(job),
            "search": to_dict(recipe.search),
            "seed": recipe.seed,
        }
        make = partial(
            _shortlisted, job, documents.value, LevelPlace(tree.value, number, t), [level.value for level in levels]
        )
        stage = job.space.stage("level", inputs, make, number=t + 1)
        made = LinearLevel.from_tensors(tree.value.child_ptrs[t], stage.tensors, x.sparse_cols, x.dense_cols)
        levels.append(Keyed(made, stage.key))
        _core.give_back_memory()
    return levels


def _shortlisted(
    job: Job, documents: Documents, where: LevelPlace, above: list[LinearLevel]
) -> dict[str, NDArray[Any]]:
    """A level on the shortlist that the levels above it give."""
    return solve(job, documents, where, _shortlist(job, documents, where, above))


def settings(job: Job) -> dict[str, Any]:
    """Settings that a level of classifiers depends on, beside its documents."""
    tail = job.recipe.tail
    return {
        "linear": to_dict(job.recipe.linear),
        "propensity": [tail.propensity, tail.a, tail.b],
        "shortlist": to_dict(job.recipe.shortlist),
    }


def solve(
    job: Job, documents: Documents, where: LevelPlace, m: Csr, first: NDArray[np.float32] | None = None
) -> dict[str, NDArray[Any]]:
    """One level: costs (eq. 5-6), then classifiers (eq. 9) on the shortlist M; they may start from given weights."""
    t, tree, linear, y = where.level, where.tree, job.recipe.linear, documents.y
    costs = relevance(up(y if linear.relevance == "given" else binary(y), tree, t), linear)
    costs, negative = _weighted(job, costs, t, tree.depth)
    handed = [m, costs]  # popped into the call, which lets go of them early
    del m, costs
    title = _title(job, where, f"level {t + 1} of {tree.depth}")
    with job.run.progress.stage(title, tree.size(t), "blocks") as tick:
        level = train_level(
            documents.x, handed.pop(), handed.pop(), tree.child_ptrs[t], linear, place=where.place(job.recipe.seed),
            threads=job.run.workers, negative=negative, first=first, spool=job.space.spool(), progress=tick,
        )  # fmt: skip
    return level.tensors()


def shared_levels(tree: Tree, first: Tree, levels: list[TrainedLevel]) -> list[TrainedLevel]:
    """The upper levels of the first tree that have the same clusters here: they are trained once for both."""
    labels = 1 + int(max(tree.leaves.max(), first.leaves.max()))
    for t in range(min(tree.depth, len(levels))):
        if not np.array_equal(tree.labels_to_nodes(t, labels), first.labels_to_nodes(t, labels)):
            return levels[:t]
    return levels[: tree.depth]


def label_centroids(job: Job, documents: Keyed[Documents]) -> Features | None:
    """The labels' centroids (L, d), where the recipe ranks by them."""
    tail, x, y = job.recipe.tail, documents.value.x, documents.value.y
    if tail.classifier_share == 1:
        return None

    def make() -> dict[str, NDArray[Any]]:
        with job.run.progress.stage("centroids", y.cols, "labels") as tick:
            return centroid_tensors(centroids(y, x, tail, job.run.workers, tick))

    inputs = {"data": job.problem.data_key, "documents": documents, "centroid": tail.centroid}
    stage = job.space.stage("centroids", inputs, make)
    return centroids_from(stage.tensors, (y.cols, x.sparse_cols, x.dense_cols))


def _weighted(job: Job, costs: Csr, level: int, depth: int) -> tuple[Csr, NDArray[np.float32]]:
    """Costs of a level's positives times their weights by propensity, and the weights (K,) of negatives."""
    weighting = at(job.recipe.linear.weighting, level, depth, "linear.weighting")
    if weighting == "none":
        return costs, np.ones(costs.cols, np.float32)
    counts = np.bincount(costs.indices, minlength=costs.cols)
    positive, negative = weights(weighting, job.recipe.tail.inverse(counts, costs.rows))
    return Csr(costs.indptr, costs.indices, costs.data * positive[costs.indices], costs.cols), negative


def _shortlist(job: Job, documents: Documents, where: LevelPlace, above: list[LinearLevel]) -> Csr:
    """M (n, K_{t-1}) of a level: the parents whose children a document is trained on."""
    t, config, tree, x = where.level, job.recipe.shortlist, where.tree, documents.x
    if t == 0:
        return all_rows(x.rows)
    source = at(config.source, t, tree.depth, "shortlist.source")
    teacher = up(binary(documents.y), tree, t - 1)
    if source == "teacher":
        return teacher
    width = min(at(config.parents, t, tree.depth, "shortlist.parents"), tree.size(t - 1))
    with job.run.progress.stage(_title(job, where, f"negatives for level {t + 1}"), x.rows, "docs") as tick:
        found = Search(job.recipe.search, tree.depth, width)
        ids, _ = search(x, above, found, threads=job.run.workers, progress=tick)
    return chosen(source, teacher, from_ids(ids, tree.size(t - 1)))


def _title(job: Job, where: LevelPlace, what: str) -> str:
    """A stage of one tree, as people are shown it."""
    trees = job.recipe.ensemble.trees
    return what if trees == 1 else f"{numbered('tree', where.number, trees)}, {what}"


def costs(s: Sizes) -> list[Cost]:
    """Costs of each level: its memory, and its share of the solver's work, instances of a parent times its children."""
    instances, parents = (s.rows, *s.listed[:-1]), (1, *s.levels[:-1])
    work = [m * k / p for m, k, p in zip(instances, s.levels, parents, strict=True)]
    return [Cost("level", f"level {t + 1}", _memory(s, t) + s.models, part / sum(work)) for t, part in enumerate(work)]


def _memory(s: Sizes, t: int) -> float:
    """Costs and shortlist by column and, on their way there, by row; the clusters at work; their weights."""
    parents = s.levels[t - 1] if t else 1
    listed = s.listed[t - 1] if t else s.rows
    matrices = 2 * 8 * (s.listed[t] + listed + s.rows)
    busy = min(parents, s.threads)
    share = min(1.0, 2 * busy / parents)
    instances = busy * min(s.rows, 1.25 * listed / parents)  # the largest come first
    cluster = instances * (8 * s.x / s.rows + 24) + 4 * s.scratch * busy
    width = min(s.cols, instances * s.x / s.rows / busy) + s.dense
    solver = s.threads * (64 * (width + instances / busy) + 5 * s.scratch + 4 * s.rows)
    weights = min(4 * s.model * s.shares[t] * share, 256 * 2**20 if s.spills else math.inf)
    return matrices + cluster + solver + weights
