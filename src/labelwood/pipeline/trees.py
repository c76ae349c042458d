"""Label trees: features of the labels, then nested clusters of those that have positives.

Label features are large and nothing but trees reads them: they are made when a tree is, and never kept.
"""

from __future__ import annotations

import warnings
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, Features
from ..arrays.texts import Texts
from ..base.config import to_dict
from ..parts.label_features import LabelFeatureConfig, label_features
from ..parts.tree import Tree, TreeConfig, build
from ..storage.keyed import Keyed
from .costs import Cost, Sizes
from .job import Documents, Job

FEATURES, TREE = "label features", "label tree"  # their titles in a plan

if TYPE_CHECKING:
    from collections.abc import Callable


def grow(
    job: Job, documents: Keyed[Documents], labels: LabelFeatureConfig, config: TreeConfig, *, count: int = 1,
    name: str = "tree",
) -> list[Keyed[Tree]]:  # fmt: skip
    """Trees over the labels' documents; several share the label features."""
    features: Callable[[], Features | None] = cache(
        lambda: None if config.kind == "flat" else _label_features(job, documents.value, labels)
    )
    inputs: dict[str, Any] = {"documents": documents, "labels": to_dict(labels)}
    if labels.reads_text:
        inputs["label_texts"] = list(job.data.label_texts)
    of = Keyed.made_of(features, what="label features", **inputs)
    return [_tree(job, of, config, number, numbered(name, number, count)) for number in range(count)]


def grow_on(job: Job, z: Keyed[Features], config: TreeConfig, name: str) -> Keyed[Tree]:
    """A tree over given label features (K, d)."""
    return _tree(job, Keyed(lambda: z.value, z.key), config, 0, name)


def _tree(
    job: Job, features: Keyed[Callable[[], Features | None]], config: TreeConfig, number: int, name: str
) -> Keyed[Tree]:
    """One tree; `features` are asked for where it is not found done."""
    seen, seed = job.problem.seen, job.recipe.seed

    def make() -> dict[str, NDArray[Any]]:
        z = features.value()
        with job.run.progress.stage(f"label {name}", len(seen), "labels") as tick:
            return build(
                z, seen, config, seed, number,
                taxonomy=job.data.taxonomy, threads=job.run.workers, progress=tick,
            ).tensors()  # fmt: skip

    inputs = {
        "data": job.problem.data_key,
        "features": features,
        "tree": to_dict(config),
        "number": number,
        "seed": seed,
    }
    stage = job.space.stage("tree", inputs, make)
    return Keyed(Tree.from_tensors(dict(stage.tensors), job.problem.y.cols), stage.key)


def _label_features(job: Job, documents: Documents, config: LabelFeatureConfig) -> Features:
    """Z (K, d): a row for each label that has positives."""
    y, seen, threads = documents.y, job.problem.seen, job.run.workers
    rank = (np.cumsum(job.problem.counts > 0) - 1).astype(np.int32)  # those labels, numbered without gaps
    with job.space.measured("label-features"):
        texts = _label_texts(job, documents, config)
        with job.run.progress.stage("label features", len(seen), "labels") as tick:
            return label_features(
                Csr(y.indptr, rank[y.indices], y.data, len(seen)), documents.x, config,
                texts=texts, threads=threads, seed=job.recipe.seed, progress=tick,
            )  # fmt: skip


def _label_texts(job: Job, documents: Documents, config: LabelFeatureConfig) -> Csr | None:
    """(K, d) the words of the labels' own texts, where they are asked for and there."""
    tfidf, given = documents.reader.tfidf, job.data.label_texts
    if not config.reads_text or tfidf is None or not given:
        return None
    texts = tfidf.transform(Texts.from_strings([given[label] for label in job.problem.seen]), threads=job.run.workers)
    if texts.nnz == 0:
        warnings.warn(
            "no text of a label holds a word that the documents taught the model; "
            f"labels.kind = {config.kind!r} then is 'pifa'.",
            stacklevel=2,
        )
    return texts


def numbered(what: str, number: int, count: int) -> str:
    """The name of one of several things, for people."""
    return what if count == 1 else f"{what} {number + 1} of {count}"


def costs(s: Sizes) -> list[Cost]:
    """Costs of the stage: Y and Z as it grows, then Z in clusters."""
    z = s.y_bytes + 8 * s.labels + 8 * s.y + s.z_bytes + s.threads * 5 * s.scratch
    clusters = 10 * s.z + 64 * s.labels + s.threads * 16 * s.scratch
    return [Cost("label-features", FEATURES, z), Cost("tree", TREE, clusters)]
