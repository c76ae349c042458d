"""The first stage, X of the words: tf-idf, fitted in one pass over the texts, or the user's own features."""

from __future__ import annotations

import dataclasses
from typing import Any

from numpy.typing import NDArray

from ..arrays.sparse import Csr, Features, checked
from ..arrays.texts import Texts
from ..base.config import to_dict
from ..data import Dataset
from ..errors import DataError
from ..parts.tfidf import Tfidf
from ..recipes.recipe import Recipe
from ..storage.keyed import Keyed
from .costs import Cost, Sizes
from .job import Documents, Job, Reader

OWN = ("indptr", "indices", "data", "dense")  # arrays of the user's features in a stage


def settled(recipe: Recipe, data: Dataset) -> Recipe:
    """The recipe with an analyser that no longer depends on the texts; a settled one stays as it is."""
    if data.texts is None or data.features is not None or not recipe.reads_words:
        return recipe
    return dataclasses.replace(recipe, tfidf=recipe.tfidf.settled(data.texts))


def read_words(job: Job) -> Keyed[Documents]:
    """The documents by their words."""
    if job.data.features is not None:
        return _own_features(job, job.data.features)
    if job.data.texts is None:
        raise DataError("the data has neither texts nor features.")
    return _tfidf(job, job.data.texts)


def _tfidf(job: Job, texts: Texts) -> Keyed[Documents]:
    """Tf-idf: the vocabulary of the training texts, and their matrix."""
    config = job.recipe.tfidf

    def make() -> dict[str, NDArray[Any]]:
        with job.run.progress.stage("reading words", len(texts), "docs") as tick:
            tfidf, x = Tfidf.fit(texts, config, threads=job.run.workers, progress=tick)
        return {**tfidf.tensors(), "x.indptr": x.indptr, "x.indices": x.indices, "x.data": x.data}

    stage = job.space.stage("features", {"data": job.problem.data_key, "tfidf": to_dict(config)}, make)
    state = {name: array for name, array in stage.tensors.items() if not name.startswith("x.")}
    indptr, indices, data = (stage.tensors[f"x.{part}"] for part in ("indptr", "indices", "data"))
    tfidf = Tfidf.from_tensors(config, state)
    x = Features(checked(Csr(indptr, indices, data, tfidf.size), "the features"))
    return Keyed(Documents(x, job.problem.y, Reader(tfidf)), stage.key)


def _own_features(job: Job, given: Features) -> Keyed[Documents]:
    """The user's features as training sees them; under a budget, a copy of them is mapped instead of held."""
    config = job.recipe.features

    def documents(x: Features) -> Documents:
        return Documents(x, job.problem.y, Reader())

    inputs = {"data": job.problem.data_key, "features": to_dict(config)}
    if job.run.budget is None or job.space.folder is None or config.norm == "none":
        return Keyed.made_of(documents(config.scaled(given)), what="own features", **inputs)

    def make() -> dict[str, NDArray[Any]]:
        ptr, idx, val, _, dense = config.scaled(given).parts
        return dict(zip(OWN, (ptr, idx, val, dense), strict=True))

    stage = job.space.stage("features", inputs, make)
    ptr, idx, val, dense = (stage.tensors[name] for name in OWN)
    sparse = None if given.sparse is None else checked(Csr(ptr, idx, val, given.sparse_cols), "the features")
    x = Features(sparse, None if given.dense is None else dense)
    return Keyed(documents(x), Keyed.made_of(x, what="own features", **inputs).key)


def costs(s: Sizes) -> list[Cost]:
    """Costs of the stage: X twice while it grows, and its vocabulary; or a scaled copy of the user's."""
    if s.text:
        return [Cost("features", "reading words", 2 * s.x_bytes + 100 * s.cols)]
    return [Cost("features", "features", s.value_bytes)] if s.copied else []
