"""Job of a run, which all its stages are given: the data, the recipe, how to run, and the place of finished stages."""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, Features
from ..base.digests import digest_arrays
from ..models.model import Model
from ..recipes.checks import refuse
from ..storage.keyed import Keyed

if TYPE_CHECKING:
    from ..arrays.names import Names
    from ..base.run import Run
    from ..data import Dataset
    from ..models.descent import Level
    from ..neural.embedder import Embedder
    from ..parts.search import SearchConfig
    from ..parts.tfidf import Tfidf
    from ..parts.tree import Tree
    from ..recipes.facts import Facts
    from ..recipes.recipe import Recipe
    from ..storage.stage_cache import Workspace
    from .training_set import Problem


@dataclasses.dataclass(frozen=True, eq=False)
class Job:
    """One run of a recipe. An ensemble is several jobs, which share data and workspace."""

    data: Dataset
    problem: Problem
    whole: Recipe  # of the ensemble: the models say that they are of it
    recipe: Recipe  # of this run, with its own seed, encoder and label features
    run: Run
    space: Workspace
    names: tuple[Names, Names]  # label names and label texts, shared by all models
    facts: Facts

    def of(self, recipe: Recipe) -> Job:
        """Another run on the same data."""
        return Job(self.data, self.problem, self.whole, recipe, self.run, self.space, self.names, self.facts)

    def check_tree(self, name: str, tree: Tree) -> None:
        """Refuse settings that do not fit a tree which was grown, `tree` or `coarse`."""
        refuse(self.whole, self.facts.with_tree(name, tree.sizes))


@dataclasses.dataclass(frozen=True, eq=False)
class Reader:
    """Reader that makes features of a text: tf-idf, an encoder, or both; neither where the user gives features."""

    tfidf: Tfidf | None = None
    embedder: Embedder | None = None


@dataclasses.dataclass(frozen=True, eq=False)
class Documents:
    """Documents as classifiers learn from them: features X (n, d), labels Y (n, L), and what reads further ones."""

    x: Features
    y: Csr
    reader: Reader


def taken(documents: Keyed[Documents], rows: NDArray[np.int64]) -> Keyed[Documents]:
    """Some of the documents."""
    whole = documents.value
    part = Documents(whole.x.take(rows), whole.y.take(rows), whole.reader)
    return Keyed.made_of(part, what="some rows", documents=documents, rows=digest_arrays(rows))


def made_model(
    job: Job, documents: Documents, tree: Tree, levels: Sequence[Level], *, centroids: Features | None = None,
    search: SearchConfig | None = None,
) -> Model:  # fmt: skip
    """A model of a trained tree; `documents` tell what it reads, one row is enough."""
    return Model(
        recipe=job.whole,
        labels=job.names[0],
        counts=job.problem.counts,
        rows=job.problem.y.rows,
        tfidf=documents.reader.tfidf,
        sparse_cols=documents.x.sparse_cols,
        dense_cols=documents.x.dense_cols,
        tree=tree,
        levels=levels,
        data_key=job.problem.data_key,
        label_texts=job.names[1],
        centroids=centroids,
        embedder=documents.reader.embedder,
        text_fields=None if job.data.texts is None else job.data.texts.fields,
        search=search,
    )
