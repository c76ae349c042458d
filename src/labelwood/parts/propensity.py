"""Rare labels: weights that make a miss of one cost more in training, and a second ranking of the candidates.

Both rest on the inverse propensity q_l = 1 / p_l (Jain et al. 2016; metrics/ranking.py), large for labels with few
documents.

Weights of the losses of label l (`linear.weighting`; Qaraei et al. 2021):

    pw      positives 2 q_l - 1, negatives 1
    pw-cb   positives 1, negatives p_l / (2 - p_l): the same ratio, and frequent labels keep their loss

An inner node is weighted like a label with as many documents as its own, so weights fade towards the root.

Second ranking (PfastreXML): the search finds `candidates` labels with scores P, which are ordered anew by

    P^alpha · t_l^(1 - alpha) · q_l^beta,    t_l = 1 / (1 + exp(gamma / 2 (|x - mu_l|² - 1)))

where mu_l is the mean of the label's documents, scaled to length 1, of which the `centroid` largest entries are kept in
the model. Margins (search.combiner = "noop" at the last level) count as logarithms. What the search found beyond the
candidates follows in its own order.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core, limits
from ..arrays.sparse import Csr, Features, as_dense, checked
from ..base.config import Acts, setting
from ..base.progress import Tick
from ..errors import ModelFileError
from ..metrics.ranking import inverse_propensity, propensity_constants
from .label_features import LabelFeatureConfig, pifa

_USED = "with tail.propensity_power above 0, or with linear.weighting = pw or pw-cb"
_NEAR = "with tail.classifier_share below 1"
Floats = NDArray[np.float32]
Ids = NDArray[np.int32]


@dataclasses.dataclass(frozen=True)
class TailConfig:
    """Use of the labels' frequencies: propensities, and how candidates are ranked again by them."""

    propensity: str | None = setting(
        None,
        "data set whose usual propensity constants hold, such as Amazon-670K; none: A = 0.55, B = 1.5, as for most",
        acts=Acts(lambda _, recipe: recipe.uses_propensity, _USED), rank=6,
    )  # fmt: skip
    a: float | None = setting(
        None, "propensity constant A; a higher value tells rare labels from frequent ones more sharply", low=0, high=10,
        acts=Acts(lambda _, recipe: recipe.uses_propensity, _USED), rank=6,
    )  # fmt: skip
    b: float | None = setting(
        None, "propensity constant B; a higher value makes labels of very few documents count less", above=0, high=1000,
        acts=Acts(lambda _, recipe: recipe.uses_propensity, _USED), rank=6,
    )  # fmt: skip
    propensity_power: float = setting(
        0.0,
        "β: scores are multiplied by (inverse propensity)^β; a higher value puts rarer labels first; try 0.5 where "
        "rare labels matter; 0: off",
        low=0, high=10, rank=1,
    )  # fmt: skip
    classifier_share: float = setting(
        1.0,
        "α: share of the classifiers in the score, the rest being nearness to the label's documents; try 0.6 where "
        "labels have few documents; 1: off",
        above=0, high=1, rank=1,
    )  # fmt: skip
    sharpness: float = setting(
        30.0, "γ: how sharply nearness tells near from far; a higher value lets only very near labels count",
        above=0, high=1000, acts=Acts(lambda own, _: own.classifier_share < 1, _NEAR),
    )  # fmt: skip
    centroid: int = setting(
        64, "entries kept of the mean of a label's documents; more tell labels apart better and need more space",
        low=1, high=limits.MAX_INDEX, acts=Acts(lambda own, _: own.classifier_share < 1, _NEAR),
    )  # fmt: skip
    candidates: int = setting(
        100, "labels of a document that are ranked again; more let rarer labels in and take longer a text",
        low=1, high=limits.MAX_K,
        acts=Acts(lambda own, _: own.reranks, "with tail.propensity_power above 0 or tail.classifier_share below 1"),
    )  # fmt: skip

    @property
    def reranks(self) -> bool:
        return self.propensity_power > 0 or self.classifier_share < 1

    def inverse(self, counts: NDArray[np.int64], rows: int) -> NDArray[np.float64]:
        """q (L,) from the documents of each label."""
        a, b = propensity_constants(self.propensity or "")
        return inverse_propensity(counts, rows, a if self.a is None else self.a, b if self.b is None else self.b)


def weights(weighting: str, q: NDArray[np.float64]) -> tuple[Floats, Floats]:
    """(positives (K,), negatives (K,)): factors of their losses, from inverse propensities (K,)."""
    one = np.ones(len(q), np.float32)
    if weighting == "pw":
        return (2 * q - 1).astype(np.float32), one
    if weighting == "pw-cb":
        return one, (1 / (2 * q - 1)).astype(np.float32)
    return one, one


def centroids(y: Csr, x: Features, config: TailConfig, threads: int, progress: Tick | None = None) -> Features:
    """mu (L, d): the means of the labels' documents, scaled to length 1, with their largest entries."""
    return pifa(y, x, LabelFeatureConfig(top=config.centroid), threads, progress)


def centroid_tensors(mu: Features) -> dict[str, NDArray[Any]]:
    """Arrays that the model folder stores."""
    indptr, indices, data, _, dense = mu.parts
    return {"indptr": indptr, "indices": indices, "data": data, "dense": dense}


def centroids_from(tensors: Mapping[str, NDArray[Any]], shape: tuple[int, int, int]) -> Features:
    """The inverse of `centroid_tensors` for (labels, sparse, dense columns); native code reads nothing unchecked."""
    labels, sparse_cols, dense_cols = shape
    kinds = {"indptr": np.int64, "indices": np.int32, "data": np.float32, "dense": np.float32}
    for name, kind in kinds.items():
        if name not in tensors or tensors[name].dtype != kind or tensors[name].ndim != 1 + (name == "dense"):
            raise ModelFileError(f"the centroids' array {name!r} is missing or of the wrong type.")
    sparse = Csr(tensors["indptr"], tensors["indices"], tensors["data"], sparse_cols)
    dense = tensors["dense"]
    if set(tensors) != set(kinds) or sparse.rows != labels or dense.shape != (labels, dense_cols):
        raise ModelFileError("the centroids do not fit the model.")
    return Features(checked(sparse, "the centroids"), as_dense(dense, "the centroids"))


def nearness(x: Features, centroids: Features, ids: Ids, gamma: float, threads: int) -> Floats:
    """ln t (n, k) of the labels named by `ids` (-1 = none: 0)."""
    z = centroids.parts
    distance = _core.pair_distances(*x.parts, *z[:3], z[4], ids, threads)
    near: Floats = -np.logaddexp(np.float32(0), np.float32(gamma / 2) * (distance - 1))
    return near


def rerank(
    found: tuple[Ids, Floats], q: NDArray[np.float64], config: TailConfig, near: Floats | None, *, margins: bool
) -> tuple[Ids, Floats]:
    """The candidates (n, k), best first by their new scores (ties: smaller id), the rest behind them."""
    ids, scores = found[0].copy(), found[1].copy()
    part = slice(0, config.candidates)
    empty, head = ids[:, part] < 0, ids[:, part]
    with np.errstate(divide="ignore"):
        log = scores[:, part].astype(np.float64) if margins else np.log(scores[:, part].astype(np.float64))
    log = config.classifier_share * log + config.propensity_power * np.log(q)[np.maximum(head, 0)]
    if near is not None:
        log += (1 - config.classifier_share) * near[:, part]
    fresh = (log if margins else np.exp(log)).astype(np.float32)
    order = np.lexsort((head, -fresh, empty), axis=1)
    ids[:, part] = np.take_along_axis(head, order, axis=1)
    fresh = np.take_along_axis(np.where(empty, scores[:, part], fresh), order, axis=1)
    scores[:, part] = fresh
    if ids.shape[1] > config.candidates:  # their scores are of another kind: never above the last candidate's
        rest = scores[:, config.candidates :]
        scores[:, config.candidates :] = np.where(
            ids[:, config.candidates :] < 0, rest, np.minimum(rest, fresh[:, -1:])
        )
    return ids, scores
