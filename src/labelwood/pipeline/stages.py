"""The linear stages of a run: features, label trees, then level by level — shortlist, classifiers.

A stage is a pure function of its inputs, its slice of the recipe and the seed; with a workspace its result is a file
named by that key, so resuming means "the file is there". Levels follow one another because a level's hard negatives
come from the predictions of those above it.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Callable
from functools import cache, cached_property, partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays.names import Names
from ..arrays.sparse import Csr, Features, checked
from ..base.config import at, to_dict
from ..base.digests import digest_plain
from ..data import Dataset, Texts
from ..errors import DataError
from ..models.model import Model
from ..neural.attention_level import Levels, attending
from ..neural.embedder import Embedder
from ..parts.label_features import binary, label_features
from ..parts.linear import LinearLevel, Place, relevance, train_level
from ..parts.propensity import centroid_tensors, centroids, centroids_from, weights
from ..parts.search import Search, search
from ..parts.shortlist import all_rows, chosen, from_ids
from ..parts.tfidf import Tfidf
from ..parts.tree import Tree, TreeConfig, build, up
from ..recipes.recipe import Recipe
from ..storage.stage_cache import Workspace
from .run_options import Run
from .training_set import Problem


@dataclasses.dataclass(frozen=True, eq=False)
class Grown:
    """A label tree of the run: its number from 0, its name for people, and the key of its stage."""

    number: int
    name: str
    tree: Tree
    key: str


@dataclasses.dataclass(frozen=True, eq=False)
class Level:
    """A trained level and the key of its stage."""

    level: LinearLevel
    key: str


def shared_levels(tree: Tree, first: Tree, levels: list[Level]) -> list[Level]:
    """The upper levels of the first tree that have the same clusters here: they are trained once for both."""
    labels = 1 + int(max(tree.leaves.max(), first.leaves.max()))
    for t in range(min(tree.depth, len(levels))):
        if not np.array_equal(tree.labels_to_nodes(t, labels), first.labels_to_nodes(t, labels)):
            return levels[:t]
    return levels[: tree.depth]


def _of(what: str, number: int, count: int) -> str:
    return what if count == 1 else f"{what} {number + 1} of {count}"


@dataclasses.dataclass(frozen=True, eq=False)
class Stages:
    """The stages of one run, each made when it is asked for."""

    data: Dataset
    problem: Problem
    recipe: Recipe
    run: Run
    space: Workspace
    whole: Recipe | None = None  # the recipe that the models say they are of; None: `recipe`

    @cached_property
    def names(self) -> tuple[Names, Names]:
        """Label names and label texts, one of each for all members."""
        return Names.of(self.problem.names), Names.of(self.data.label_texts)

    def model(
        self, reads: tuple[Tfidf | None, Embedder | None], x: Features, tree: Tree, levels: Levels,
        mu: Features | None,
    ) -> Model:  # fmt: skip
        return Model(
            recipe=self.whole or self.recipe,
            labels=self.names[0],
            counts=self.problem.counts,
            rows=self.problem.y.rows,
            tfidf=reads[0],
            sparse_cols=x.sparse_cols,
            dense_cols=x.dense_cols,
            tree=tree,
            levels=levels,
            data_key=self.problem.data_key,
            label_texts=self.names[1],
            centroids=mu,
            embedder=reads[1],
        )

    def features(self) -> tuple[Tfidf | None, Features, str]:
        """X: the user's own, or tf-idf fitted in one pass over the text."""
        if self.data.features is not None:
            key = digest_plain({"data": self.problem.data_key, "features": to_dict(self.recipe.features)})
            return None, self.own_features(self.data.features, key), key
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

    def own_features(self, given: Features, key: str) -> Features:
        """The user's features as training sees them; under a budget, a copy of them is mapped instead of held."""
        scale = self.recipe.features.scaled
        if self.run.memory is None or self.space.folder is None or self.recipe.features.norm == "none":
            return scale(given)
        names = ("indptr", "indices", "data", "dense")

        def make() -> dict[str, NDArray[Any]]:
            ptr, idx, val, _, dense = scale(given).parts
            return dict(zip(names, (ptr, idx, val, dense), strict=True))

        stage = self.space.stage("features", {"features": key}, make)
        ptr, idx, val, dense = (stage.tensors[name] for name in names)
        sparse = None if given.sparse is None else checked(Csr(ptr, idx, val, given.sparse_cols), "the features")
        return Features(sparse, None if given.dense is None else dense)

    def trees(
        self, x: Features, x_key: str, tfidf: Tfidf | None, config: TreeConfig, name: str = "tree"
    ) -> list[Grown]:
        """Clusters of the labels that have positives, once for each tree; they share the label features."""
        count = self.recipe.ensemble.trees if name == "tree" else 1
        features = cache(lambda: None if config.kind == "flat" else self.label_features(x, tfidf))
        return [self.tree(features, x_key, config, number, _of(name, number, count)) for number in range(count)]

    def tree(
        self, features: Callable[[], Features | None], x_key: str, config: TreeConfig, number: int, name: str
    ) -> Grown:
        recipe, seen, data = self.recipe, self.problem.seen, self.data

        def make() -> dict[str, NDArray[Any]]:
            z = features()
            with self.run.progress.stage(f"label {name}", len(seen), "labels") as tick:
                return build(
                    z, seen, config, recipe.seed, number,
                    taxonomy=data.taxonomy, threads=self.run.workers, progress=tick,
                ).tensors()  # fmt: skip

        inputs = {
            "data": self.problem.data_key,
            "features": x_key,
            "labels": to_dict(recipe.labels),
            "tree": to_dict(config),
            "number": number,
            "seed": recipe.seed,
        }
        if recipe.labels.reads_text:
            inputs["label_texts"] = digest_plain(list(data.label_texts))
        stage = self.space.stage("tree", inputs, make)
        return Grown(number, name, Tree.from_tensors(dict(stage.tensors), self.problem.y.cols), stage.key)

    def label_features(self, x: Features, tfidf: Tfidf | None) -> Features:
        """Z: a row for each label that has positives."""
        y, seen = self.problem.y, self.problem.seen
        rank = (np.cumsum(self.problem.counts > 0) - 1).astype(np.int32)  # those labels, numbered without gaps
        texts = None
        if self.recipe.labels.reads_text and tfidf is not None and self.data.label_texts:
            words = Texts.from_strings([self.data.label_texts[label] for label in seen])
            texts = tfidf.transform(words, threads=self.run.workers)
            if texts.nnz == 0:
                warnings.warn(
                    "no text of a label holds a word that the documents taught the model; "
                    f"labels.kind = {self.recipe.labels.kind!r} then is 'pifa'.",
                    stacklevel=2,
                )
        with self.run.progress.stage("label features", len(seen), "labels") as tick:
            return label_features(
                Csr(y.indptr, rank[y.indices], y.data, len(seen)), x, self.recipe.labels,
                texts=texts, threads=self.run.workers, seed=self.recipe.seed, progress=tick,
            )  # fmt: skip

    def levels(self, x: Features, x_key: str, grown: Grown, shared: list[Level]) -> list[Level]:
        """The classifiers, level by level: the negatives of one come from the predictions of those above."""
        recipe, tree = self.recipe, grown.tree
        levels = list(shared)
        for t in range(len(shared), tree.depth):
            inputs = {
                "above": levels[-1].key if levels else None,
                "features": x_key,
                "tree": grown.key,
                "level": t,
                **self.classifiers(),
                "search": to_dict(recipe.search),
                "seed": recipe.seed,
            }
            above = [level.level for level in levels]
            stage = self.space.stage(f"level-{t + 1}", inputs, partial(self.level, x, grown, above))
            made = LinearLevel.from_tensors(tree.child_ptrs[t], stage.tensors, x.sparse_cols, x.dense_cols)
            levels.append(Level(made, stage.key))
            _core.give_back_memory()
        return levels

    def classifiers(self) -> dict[str, Any]:
        """What a level of classifiers depends on, beside its documents."""
        tail = self.recipe.tail
        return {
            "linear": to_dict(self.recipe.linear),
            "propensity": [tail.propensity, tail.a, tail.b],
            "shortlist": to_dict(self.recipe.shortlist),
        }

    def level(
        self, x: Features, grown: Grown, above: Levels, m: Csr | None = None, first: NDArray[np.float32] | None = None
    ) -> dict[str, NDArray[Any]]:
        """The next level: shortlist, costs (eq. 5-6), classifiers (eq. 9), which may start from given weights."""
        t, linear, y, tree = len(above), self.recipe.linear, self.problem.y, grown.tree
        m = self.shortlist(x, grown, attending(above)[1]) if m is None else m
        costs = relevance(up(y if linear.relevance == "given" else binary(y), tree, t), linear)
        costs, negative = self.weighted(costs, t, tree.depth)
        held = [m, costs]  # popped into the call, which lets go of them early
        del m, costs
        name = self.named(grown, f"level {t + 1} of {tree.depth}")
        with self.run.progress.stage(name, tree.size(t), "blocks") as tick:
            place = Place(t, tree.depth, self.recipe.seed, grown.number)
            level = train_level(
                x, held.pop(), held.pop(), tree.child_ptrs[t], linear, place=place, threads=self.run.workers,
                negative=negative, first=first, spool=self.space.spool(), progress=tick,
            )  # fmt: skip
        return level.tensors()

    def weighted(self, costs: Csr, level: int, depth: int) -> tuple[Csr, NDArray[np.float32]]:
        """Costs of a level's positives times their weights by propensity, and the weights (K,) of negatives."""
        weighting = at(self.recipe.linear.weighting, level, depth, "linear.weighting")
        if weighting == "none":
            return costs, np.ones(costs.cols, np.float32)
        counts = np.bincount(costs.indices, minlength=costs.cols)
        positive, negative = weights(weighting, self.recipe.tail.inverse(counts, costs.rows))
        return Csr(costs.indptr, costs.indices, costs.data * positive[costs.indices], costs.cols), negative

    def centroids(self, x: Features, x_key: str) -> Features | None:
        """The labels' centroids, where the recipe ranks by them."""
        tail, y = self.recipe.tail, self.problem.y
        if tail.classifier_share == 1:
            return None

        def make() -> dict[str, NDArray[Any]]:
            with self.run.progress.stage("centroids", y.cols, "labels") as tick:
                return centroid_tensors(centroids(y, x, tail, self.run.workers, tick))

        inputs = {"data": self.problem.data_key, "features": x_key, "centroid": tail.centroid}
        stage = self.space.stage("centroids", inputs, make)
        return centroids_from(stage.tensors, (y.cols, x.sparse_cols, x.dense_cols))

    def named(self, grown: Grown, stage: str) -> str:
        """A stage of one tree, as people are shown it."""
        return stage if self.recipe.ensemble.trees == 1 else f"{grown.name}, {stage}"

    def shortlist(self, x: Features, grown: Grown, above: list[LinearLevel]) -> Csr:
        """M (n, K_{t-1}) of the next level."""
        t, config, tree = len(above), self.recipe.shortlist, grown.tree
        if t == 0:
            return all_rows(x.rows)
        source = at(config.source, t, tree.depth, "shortlist.source")
        teacher = up(binary(self.problem.y), tree, t - 1)
        if source == "teacher":
            return teacher
        width = min(at(config.parents, t, tree.depth, "shortlist.parents"), tree.size(t - 1))
        with self.run.progress.stage(self.named(grown, f"negatives for level {t + 1}"), x.rows, "docs") as tick:
            found = Search(self.recipe.search, tree.depth, width)
            ids, _ = search(x, above, found, threads=self.run.workers, progress=tick)
        return chosen(source, teacher, from_ids(ids, tree.size(t - 1)))
