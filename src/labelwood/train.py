"""The one training loop: features, label tree, then level by level — shortlist, classifiers — each a stage.

A stage is a pure function of its inputs, its slice of the recipe and the seed; with a workspace its result is a file
named by that key, so resuming means "the file is there". Levels follow one another because a level's hard negatives
come from the predictions of those above it.
"""

from __future__ import annotations

import dataclasses
import warnings
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .config import at, check_levels, to_dict
from .data import Dataset
from .errors import ConfigError, DataError
from .features import Tfidf
from .labels import binary, pifa
from .linear import LinearLevel, Place, Search, relevance, search, train_level
from .model import Model
from .progress import Progress, Silent
from .recipes import Recipe
from .shortlist import all_rows, from_ids, union
from .sparse import Csr, Features, as_features, checked
from .tail import centroid_tensors, centroids, centroids_from, weights
from .threads import workers
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
        workers(self.threads)  # refuses nonsense before any work

    @property
    def workers(self) -> int:
        return workers(self.threads)


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
    with Workspace(run.work) as space:
        return _train(data, recipe, run, space)


def train_into(folder: Path, data: Dataset, recipe: Recipe, run: Run, *, keep_work: bool = False) -> Model:
    """Train and save; the workspace goes only once the model is there, so a crash at any moment can be resumed."""
    with Workspace(run.work) as space:
        model = _train(data, recipe, run, space)
        with run.progress.stage("saving"):
            model.save(folder)
        if not keep_work:
            space.remove()
    return model


def identity(recipe: Recipe, data_key: str) -> dict[str, Any]:
    """What a run is, for resuming: the same recipe on the same data gives the same bits."""
    return {"recipe": to_dict(recipe), "data": data_key}


def _train(data: Dataset, recipe: Recipe, run: Run, space: Workspace) -> Model:
    problem = prepare(data)
    _check_relevance(problem.y, recipe)
    space.begin(identity(recipe, problem.data_key), resume=run.resume, overwrite=run.overwrite)
    try:
        return _Trainer(data, problem, recipe, run, space).train()
    except (ConfigError, DataError):
        space.remove()  # what was asked for cannot be trained: there is nothing to resume
        raise


def _check_relevance(y: Csr, recipe: Recipe) -> None:
    """Say so when relevances are not used, or are asked for and missing."""
    plain, given = bool((y.data == 1).all()), recipe.linear.relevance == "given"
    if not plain and not given:
        warnings.warn(
            f"the labels carry relevances, which linear.relevance = {recipe.linear.relevance!r} ignores; "
            "use them with linear.relevance = 'given'.",
            stacklevel=4,
        )
    if plain and given:
        warnings.warn("linear.relevance is 'given', but every relevance is 1; did you mean 'induce'?", stacklevel=4)


def prepare(data: Dataset) -> Problem:
    """Check what training needs of a data set, and digest it."""
    if data.labels is None:
        raise DataError("the data has no labels; training needs a label list for each document.")
    if len(data) == 0:
        raise DataError("the data is empty; training needs at least one document with a label.")
    if data.labels.rows != len(data):
        raise DataError(
            f"there are {len(data)} documents but {data.labels.rows} rows of labels; give one row for each."
        )
    if data.features is not None:
        if data.features.rows != len(data):
            raise DataError(f"there are {len(data)} documents but {data.features.rows} rows of features.")
        as_features(data.features)  # a Dataset may have been made by hand: native code sees nothing unchecked
    if data.labels.cols != len(data.names):
        raise DataError(f"the labels have {data.labels.cols} columns but {len(data.names)} names; each needs one.")
    if len(data.label_texts) not in {0, len(data.names)}:
        raise DataError(
            f"there are {len(data.names)} labels but {len(data.label_texts)} label texts; give all or none."
        )
    y = _positive(checked(data.labels, "labels"))
    if y.nnz == 0:
        raise DataError("no document has a label; training needs at least one.")
    counts = np.bincount(y.indices, minlength=y.cols).astype(np.int64)
    return Problem(y, data.names, counts, _data_key(data, y))


def _data_key(data: Dataset, y: Csr) -> str:
    """A digest of everything training reads."""
    arrays: list[NDArray[Any]] = [y.indptr, y.indices, y.data]
    if data.texts is not None:
        arrays += [data.texts.arena, data.texts.offsets]
    if data.features is not None:
        arrays += [a for a in data.features.parts if isinstance(a, np.ndarray)]
    return digest_plain({"names": digest_plain(list(data.names)), "arrays": digest_arrays(*arrays)})


def _positive(y: Csr) -> Csr:
    """Drop explicit zeros; refuse negative relevances."""
    if (y.data < 0).any():
        row = int(y.row_of()[np.argmax(y.data < 0)])
        raise DataError("a label's relevance is negative; relevances must be positive.", row=row, field="relevance")
    return y if (y.data > 0).all() else y.keep(y.data > 0)


@dataclasses.dataclass(frozen=True, eq=False)
class _Trainer:
    """The stages of one run, in order."""

    data: Dataset
    problem: Problem
    recipe: Recipe
    run: Run
    space: Workspace

    def train(self) -> Model:
        tfidf, x, x_key = self.features()
        tree, tree_key = self.tree(x, x_key)
        check_levels(self.recipe, tree.depth)
        return Model(
            recipe=self.recipe,
            labels=self.problem.names,
            counts=self.problem.counts,
            rows=self.problem.y.rows,
            tfidf=tfidf,
            sparse_cols=x.sparse_cols,
            dense_cols=x.dense_cols,
            tree=tree,
            levels=self.levels(x, tree, tree_key),
            data_key=self.problem.data_key,
            label_texts=self.data.label_texts,
            centroids=self.centroids(x, x_key),
        )

    def features(self) -> tuple[Tfidf | None, Features, str]:
        """X: the user's own, or tf-idf fitted in one pass over the text."""
        if self.data.features is not None:
            return None, self.data.features, self.problem.data_key
        texts, config = self.data.texts, self.recipe.tfidf
        if texts is None:
            raise DataError("the data has neither texts nor features.")

        def make() -> dict[str, NDArray[Any]]:
            with self.run.progress.stage("reading words", len(texts), "docs") as tick:
                tfidf, x = Tfidf.fit(texts, config, threads=self.run.workers, progress=tick)
            return {**tfidf.tensors(), "x.indptr": x.indptr, "x.indices": x.indices, "x.data": x.data}

        stage = self.space.stage("features", {"data": self.problem.data_key, "tfidf": to_dict(config)}, make)
        state = {name: array for name, array in stage.tensors.items() if not name.startswith("x.")}
        indptr, indices, data = (stage.tensors[f"x.{part}"] for part in ("indptr", "indices", "data"))
        tfidf = Tfidf.from_tensors(config, state)
        return tfidf, Features(checked(Csr(indptr, indices, data, tfidf.size), "the features")), stage.key

    def tree(self, x: Features, x_key: str) -> tuple[Tree, str]:
        """Label features, then clusters of the labels that have positives."""
        recipe, run, y = self.recipe, self.run, self.problem.y

        def make() -> dict[str, NDArray[Any]]:
            rank = np.cumsum(self.problem.counts > 0) - 1  # labels with positives, numbered without gaps
            seen = Csr(y.indptr, rank[y.indices].astype(np.int32), y.data, len(self.problem.seen))
            with run.progress.stage("label features", seen.cols, "labels") as tick:
                z = pifa(seen, x, recipe.labels, run.workers, tick)
            with run.progress.stage("label tree", seen.cols, "labels") as tick:
                return build(
                    z, self.problem.seen, recipe.tree, recipe.seed, threads=run.workers, progress=tick
                ).tensors()

        inputs = {
            "data": self.problem.data_key,
            "features": x_key,
            "labels": to_dict(recipe.labels),
            "tree": to_dict(recipe.tree),
            "seed": recipe.seed,
        }
        stage = self.space.stage("tree", inputs, make)
        return Tree.from_tensors(dict(stage.tensors), y.cols), stage.key

    def levels(self, x: Features, tree: Tree, tree_key: str) -> list[LinearLevel]:
        """The classifiers, level by level: the negatives of one come from the predictions of those above."""
        recipe, key = self.recipe, tree_key
        levels: list[LinearLevel] = []
        for t in range(tree.depth):
            inputs = {
                "above": key,
                "level": t,
                "linear": to_dict(recipe.linear),
                "tail": to_dict(recipe.tail),
                "shortlist": to_dict(recipe.shortlist),
                "search": to_dict(recipe.search),
                "seed": recipe.seed,
            }
            stage = self.space.stage(f"level-{t + 1}", inputs, partial(self.level, x, tree, levels))
            key = stage.key
            levels.append(LinearLevel.from_tensors(tree.child_ptrs[t], stage.tensors, x.sparse_cols, x.dense_cols))
        return levels

    def level(self, x: Features, tree: Tree, above: list[LinearLevel]) -> dict[str, NDArray[Any]]:
        """The next level: shortlist, costs (eq. 5-6), classifiers (eq. 9)."""
        t, linear, y = len(above), self.recipe.linear, self.problem.y
        m = self.shortlist(x, tree, above)
        costs = relevance(up(y if linear.relevance == "given" else binary(y), tree, t), linear)
        costs, negative = self.weighted(costs, t, tree.depth)
        with self.run.progress.stage(f"level {t + 1} of {tree.depth}", tree.size(t), "blocks") as tick:
            place = Place(t, tree.depth, self.recipe.seed)
            level = train_level(
                x, costs, m, tree.child_ptrs[t], linear, place=place, threads=self.run.workers, negative=negative,
                progress=tick,
            )  # fmt: skip
        return level.tensors()

    def weighted(self, costs: Csr, level: int, depth: int) -> tuple[Csr, NDArray[np.float32]]:
        """Costs of a level's positives times their weights by propensity, and the weights (K,) of negatives."""
        counts = np.bincount(costs.indices, minlength=costs.cols)
        weighting = at(self.recipe.linear.weighting, level, depth, "linear.weighting")
        positive, negative = weights(weighting, self.recipe.tail.inverse(counts, costs.rows))
        return Csr(costs.indptr, costs.indices, costs.data * positive[costs.indices], costs.cols), negative

    def centroids(self, x: Features, x_key: str) -> Features | None:
        """The labels' centroids, where the recipe ranks by them."""
        tail, y = self.recipe.tail, self.problem.y
        if tail.alpha == 1:
            return None

        def make() -> dict[str, NDArray[Any]]:
            with self.run.progress.stage("centroids", y.cols, "labels") as tick:
                return centroid_tensors(centroids(y, x, tail, self.run.workers, tick))

        inputs = {"data": self.problem.data_key, "features": x_key, "centroid": tail.centroid}
        stage = self.space.stage("centroids", inputs, make)
        return centroids_from(stage.tensors, y.cols, x.sparse_cols, x.dense_cols)

    def shortlist(self, x: Features, tree: Tree, above: list[LinearLevel]) -> Csr:
        """M (n, K_{t-1}) of the next level."""
        t, config = len(above), self.recipe.shortlist
        if t == 0:
            return all_rows(x.rows)
        source = at(config.source, t, tree.depth, "shortlist.source")
        teacher = up(binary(self.problem.y), tree, t - 1)
        if source == "teacher":
            return teacher
        width = min(at(config.width, t, tree.depth, "shortlist.width"), tree.size(t - 1))
        with self.run.progress.stage(f"negatives for level {t + 1}", x.rows, "docs") as tick:
            found = Search(self.recipe.search, tree.depth, width)
            ids, _ = search(x, above, found, threads=self.run.workers, progress=tick)
        predicted = from_ids(ids, tree.size(t - 1))
        return union(teacher, predicted) if source == "union" else predicted
