"""The one training loop: features, label tree, then level by level — shortlist, classifiers — each a stage.

A stage is a pure function of its inputs, its slice of the recipe and the seed; with a workspace its result is a file
named by that key, so resuming means "the file is there". Levels follow one another because a level's hard negatives
come from the predictions of those above it.
"""

from __future__ import annotations

import dataclasses
import os
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from . import limits, shortlist
from .config import at, to_dict
from .data import Dataset
from .errors import ConfigError, DataError
from .features import Tfidf
from .labels import pifa
from .linear import LinearLevel, Place, relevance, search, train_level
from .model import Model
from .progress import Progress, Silent
from .recipes import Recipe
from .sparse import Csr, Features
from .tree import Tree, build, up
from .workspace import Workspace, digest_arrays, digest_plain


@dataclasses.dataclass(frozen=True)
class Run:
    """How to run, never what comes out: nothing here changes a bit of the model."""

    threads: int = 0  # 0: all cores of this process
    progress: Progress = dataclasses.field(default_factory=Silent)
    work: Path | None = None  # workspace folder; None: keep nothing
    resume: bool = False
    overwrite: bool = False

    def __post_init__(self) -> None:
        if not 0 <= self.threads <= limits.MAX_THREADS:
            raise ConfigError(f"threads must be 1..{limits.MAX_THREADS}, or 0 for all cores, but is {self.threads}.")

    @property
    def workers(self) -> int:
        return self.threads or available_threads()


def available_threads() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """What is trained on: labels (n, L) with positive relevances, and which labels occur."""

    y: Csr
    names: tuple[str, ...]
    counts: NDArray[np.int64]  # (L,) positives of each label
    data_key: str

    @property
    def seen(self) -> NDArray[np.int32]:
        return np.flatnonzero(self.counts).astype(np.int32)


def train(data: Dataset, recipe: Recipe, run: Run) -> Model:
    """Train a model; with `run.work` every finished stage is kept there until the caller removes the folder."""
    problem = prepare(data)
    with Workspace(run.work) as space:
        space.begin({"recipe": to_dict(recipe), "data": problem.data_key}, resume=run.resume, overwrite=run.overwrite)
        tfidf, x, x_key = _features(data, recipe, run, space, problem)
        tree, tree_key = _tree(problem, x, recipe, run, space, x_key)
        levels = _levels(problem, x, tree, recipe, run, space, tree_key)
    return Model(
        recipe=recipe, names=problem.names, counts=problem.counts, rows=problem.y.rows, tfidf=tfidf,
        sparse_cols=x.sparse_cols, dense_cols=x.dense_cols, tree=tree, levels=levels,
    )  # fmt: skip


def prepare(data: Dataset) -> Problem:
    """Check what training needs of a data set: rows, labels, positive finite relevances."""
    if data.labels is None:
        raise DataError("the data has no labels; training needs a label list for each document.")
    if len(data) == 0:
        raise DataError("the data is empty; training needs at least one document with a label.")
    if data.labels.rows != len(data):
        raise DataError(
            f"there are {len(data)} documents but {data.labels.rows} rows of labels; give one row for each."
        )
    y = _positive(data.labels)
    if y.nnz == 0:
        raise DataError("no document has a label; training needs at least one.")
    counts = np.bincount(y.indices, minlength=y.cols).astype(np.int64)
    arrays: list[NDArray[Any]] = [y.indptr, y.indices, y.data]
    if data.texts is not None:
        arrays += [data.texts.arena, data.texts.offsets]
    elif data.features is not None:
        arrays += [a for a in data.features.parts if isinstance(a, np.ndarray)]
    key = digest_plain({"names": digest_plain(list(data.names)), "arrays": digest_arrays(*arrays)})
    return Problem(y, data.names, counts, key)


def _positive(y: Csr) -> Csr:
    """Drop explicit zeros; refuse negative relevances."""
    if (y.data < 0).any():
        row = int(np.searchsorted(y.indptr, np.flatnonzero(y.data < 0)[0], side="right")) - 1
        raise DataError("a label's relevance is negative; relevances must be positive.", row=row, field="relevance")
    if (keep := y.data > 0).all():
        return y
    counts = np.add.reduceat(np.append(keep, False), y.indptr[:-1]) * (y.counts() > 0)
    indptr = np.concatenate(([0], np.cumsum(counts)))
    return Csr(indptr.astype(np.int64), y.indices[keep], y.data[keep], y.cols)


def _features(
    data: Dataset, recipe: Recipe, run: Run, space: Workspace, problem: Problem
) -> tuple[Tfidf | None, Features, str]:
    if data.features is not None:
        return None, data.features, problem.data_key
    texts = data.texts
    if texts is None:
        raise DataError("the data has neither texts nor features.")

    def make() -> dict[str, NDArray[Any]]:
        with run.progress.stage("reading words", len(texts), "docs") as tick:
            tfidf, x = Tfidf.fit(texts, recipe.tfidf, threads=run.workers, progress=tick)
        return {**tfidf.tensors(), "x.indptr": x.indptr, "x.indices": x.indices, "x.data": x.data}

    stage = space.stage("features", {"data": problem.data_key, "tfidf": to_dict(recipe.tfidf)}, make)
    state = {name: array for name, array in stage.tensors.items() if not name.startswith("x.")}
    tfidf = Tfidf.from_tensors(recipe.tfidf, state)
    t = stage.tensors
    return tfidf, Features(Csr(t["x.indptr"], t["x.indices"], t["x.data"], tfidf.size)), stage.key


def _tree(problem: Problem, x: Features, recipe: Recipe, run: Run, space: Workspace, x_key: str) -> tuple[Tree, str]:
    inputs = {
        "data": problem.data_key, "features": x_key, "labels": to_dict(recipe.labels), "tree": to_dict(recipe.tree),
        "seed": recipe.seed,
    }  # fmt: skip

    def make() -> dict[str, NDArray[Any]]:
        rank = np.cumsum(problem.counts > 0) - 1  # labels with positives, numbered without gaps
        y = problem.y
        seen = Csr(y.indptr, rank[y.indices].astype(np.int32), y.data, len(problem.seen))
        with run.progress.stage("label features", seen.cols, "labels") as tick:
            z = pifa(seen, x, recipe.labels, run.workers, tick)
        with run.progress.stage("label tree", seen.cols, "labels") as tick:
            return build(z, problem.seen, recipe.tree, recipe.seed, 0, run.workers, tick).tensors()

    stage = space.stage("tree", inputs, make)
    return Tree.from_tensors(dict(stage.tensors), problem.y.cols), stage.key


def _levels(
    problem: Problem, x: Features, tree: Tree, recipe: Recipe, run: Run, space: Workspace, tree_key: str
) -> list[LinearLevel]:
    levels: list[LinearLevel] = []
    y, key = problem.y, tree_key
    counts = Csr(y.indptr, y.indices, np.ones(y.nnz, np.float32), y.cols)
    source = y if recipe.linear.relevance == "given" else counts
    for t in range(tree.depth):
        inputs = {
            "above": key, "level": t, "linear": to_dict(recipe.linear), "shortlist": to_dict(recipe.shortlist),
            "search": to_dict(recipe.search), "seed": recipe.seed,
        }  # fmt: skip

        def make(t: int = t) -> dict[str, NDArray[Any]]:
            m = _shortlist(counts, x, tree, levels, recipe, run, t)
            costs = relevance(up(source, tree, t), recipe.linear)
            place = Place(t, tree.depth, recipe.seed)
            with run.progress.stage(f"level {t + 1} of {tree.depth}", tree.size(t), "blocks") as tick:
                return train_level(x, costs, m, tree.child_ptrs[t], recipe.linear, place, run.workers, tick).tensors()

        stage = space.stage(f"level-{t + 1}", inputs, make)
        key = stage.key
        levels.append(LinearLevel.from_tensors(tree.child_ptrs[t], stage.tensors, x.sparse_cols, x.dense_cols))
    return levels


def _shortlist(y: Csr, x: Features, tree: Tree, levels: list[LinearLevel], recipe: Recipe, run: Run, t: int) -> Csr:
    """M (n, K_{t-1}) of level t."""
    if t == 0:
        return shortlist.all_rows(y.rows)
    source = at(recipe.shortlist.source, t, tree.depth, "shortlist.source")
    teacher = up(y, tree, t - 1)
    if source == "teacher":
        return teacher
    width = min(at(recipe.shortlist.width, t, tree.depth, "shortlist.width"), tree.size(t - 1))
    with run.progress.stage(f"negatives for level {t + 1}", y.rows, "docs") as tick:
        ids, _ = search(x, levels, recipe.search, tree.depth, width, None, run.workers, tick)
    predicted = shortlist.from_ids(ids, tree.size(t - 1))
    return shortlist.union(teacher, predicted) if source == "union" else predicted
