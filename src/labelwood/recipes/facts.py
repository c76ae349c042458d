"""Case that the checks of a recipe look at: the recipe, and what is known of its data and its encoders."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr
from ..base.config import value_at
from ..data import Dataset
from ..errors import ConfigError
from ..parts.taxonomy_tree import depth_of
from ..parts.tree import TreeConfig, level_sizes
from .recipe import Recipe


@dataclasses.dataclass(frozen=True)
class Facts:
    """Facts about the data and the encoders; None where it is not known."""

    labels: int | None = None  # that have documents
    columns: int | None = None  # of the user's own features; 0: there are none
    texts: bool | None = None
    label_texts: bool | None = None
    taxonomy: bool | None = None
    taxonomy_levels: int | None = None  # where they do not depend on more than the taxonomy
    relevances: bool | None = None  # some of them other than 1
    # Of each encoder by its name: its config, or what is wrong with it.
    encoders: Mapping[str, Mapping[str, Any] | str] = dataclasses.field(default_factory=dict)
    # Shares of the languages that the texts are in, where an encoder reads them.
    languages: Mapping[str, float] = dataclasses.field(default_factory=dict)
    grown: Mapping[str, tuple[int, ...]] = dataclasses.field(
        default_factory=dict
    )  # sizes of trees, once they are there

    @staticmethod
    def of(data: Dataset, encoders: Mapping[str, Mapping[str, Any] | str] | None = None) -> Facts:
        """Facts of a data set, and of encoders by their names."""
        y, x = data.labels, data.features
        seen = np.zeros(0, np.int32) if y is None else _seen(y)
        return Facts(
            labels=None if y is None else len(seen),
            columns=0 if x is None else x.sparse_cols + x.dense_cols,
            texts=data.texts is not None,
            label_texts=bool(data.label_texts),
            taxonomy=data.taxonomy is not None,
            taxonomy_levels=_taxonomy_levels(data, seen),
            relevances=None if y is None else not bool(((y.data == 1) | (y.data == 0)).all()),
            encoders=encoders or {},
        )

    def with_tree(self, name: str, sizes: tuple[int, ...]) -> Facts:
        """The same facts, and the nodes of each level of a tree that was grown, `tree` or `coarse`."""
        return dataclasses.replace(self, grown={**self.grown, name: sizes})


def _seen(y: Csr) -> NDArray[np.int32]:
    """Labels that have documents; of what is no label matrix, which is refused elsewhere, none."""
    if not y.nnz or y.indices.min() < 0:
        return np.zeros(0, np.int32)
    positive = y.data > 0
    indices = y.indices if positive.all() else y.indices[positive]
    return np.flatnonzero(np.bincount(indices, minlength=y.cols)).astype(np.int32)


def _taxonomy_levels(data: Dataset, seen: NDArray[np.int32]) -> int | None:
    fits = data.taxonomy is not None and len(data.taxonomy.inside) == len(data.names)
    return depth_of(data.taxonomy, seen) if data.taxonomy is not None and fits and len(seen) else None


@dataclasses.dataclass(frozen=True)
class Case:
    """A recipe on its data: what the rules look at."""

    recipe: Recipe
    facts: Facts

    def sizes(self, name: str) -> tuple[int, ...] | None:
        """Nodes of each level of a tree, `tree` or `coarse`; None: not known before it is grown."""
        if name in self.facts.grown:
            return self.facts.grown[name]
        config: TreeConfig = getattr(self.recipe, name)
        if config.kind == "flat":
            return (self.facts.labels or 1,)
        if config.kind != "balanced" or self.facts.labels is None:
            return None
        try:
            return level_sizes(self.facts.labels, config, name)
        except ConfigError:
            return None  # that is a clash of its own

    def depth(self, name: str) -> int | None:
        """Levels of a tree; of an unbalanced one as many as it may have; None: not known before it is grown."""
        if name in self.facts.grown:
            return len(self.facts.grown[name])
        config: TreeConfig = getattr(self.recipe, name)
        if config.kind == "unbalanced" and self.facts.labels is not None:
            return config.depth if self.facts.labels > config.leaf else 1
        if config.kind == "taxonomy" and config.widest is None:
            return self.facts.taxonomy_levels
        sizes = self.sizes(name)
        return None if sizes is None else len(sizes)

    @cached_property
    def tuned(self) -> int | None:
        """Levels that are fine-tuned; None: not known."""
        recipe, sizes, depth = self.recipe, self.sizes("coarse"), self.depth("coarse")
        if recipe.has_network and depth is not None:
            return min(depth, recipe.finetune.levels or depth)
        if sizes is None:
            return None
        if not recipe.has_network:
            sizes = tuple(size for size in sizes if 1 < size <= recipe.levelwise.max_clusters)
        return len(sizes[: recipe.finetune.levels])

    @property
    def kinds(self) -> set[str]:
        """Kinds of label features, in any of the runs."""
        return set(self.recipe.ensemble.labels or (self.recipe.labels.kind,))

    @property
    def encoders(self) -> dict[str, Mapping[str, Any]]:
        """Configs of the pretrained encoders that are used and known."""
        if self.recipe.encoder.engine == "bilstm":
            return {}
        return {name: found for name, found in self.facts.encoders.items() if isinstance(found, Mapping)}

    @property
    def trees(self) -> list[str]:
        """Names of the trees that are grown."""
        used = (("tree", self.recipe.own_tree), ("coarse", self.recipe.grows_coarse))
        return [name for name, grown in used if grown]

    def shown(self, path: str) -> str:
        """The value of a setting, for people."""
        value = value_at(self.recipe, path)
        return str(value).lower() if value is None or isinstance(value, bool) else repr(value)
