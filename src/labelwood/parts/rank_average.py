"""One ranking from the rankings of several models: how an ensemble averages.

With s the score and r = 0, 1, … the rank of a label in a member's list of up to m labels, its value there is

mean         s
softmax      exp(s) / sum of exp(s) over the list
sigmoid      1 / (1 + exp(-s)) where the member gives margins; probabilities stay as they are
rank         (m - r) / m
round-robin  members take turns, the one of the largest weight first, each naming its best label that is still unnamed

and its score is the weighted mean of its values. A label outside a member's list counts 0 there, or the list's last
score where `mean` meets margins below 0. Equal scores are ordered by label id.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from .. import _core, limits
from ..base.config import Acts, setting
from ..base.progress import Tick
from ..errors import ConfigError

_SEVERAL = "where several models predict together (ensemble.trees or ensemble.runs above 1)"
AVERAGES = ("mean", "softmax", "sigmoid", "rank", "round-robin")


@dataclasses.dataclass(frozen=True)
class EnsembleConfig:
    """Number of trees, and the way in which their rankings become one."""

    trees: int = setting(
        1,
        "label trees that predict together, each with its own classifiers; three are usual: better, and three times "
        "the cost",
        low=1, high=limits.MAX_TREES, rank=1,
        acts=Acts(
            lambda _, recipe: not recipe.has_network,
            "in methods without a network of their own, which has one label tree; use ensemble.runs instead",
        ),
    )  # fmt: skip
    average: str = setting(
        "mean",
        "what is averaged over members: scores (mean), their softmax, probabilities (sigmoid: for margins), or ranks "
        "(rank: for scores of different kinds); round-robin: members take turns",
        choices=AVERAGES, acts=Acts(lambda _, recipe: recipe.members > 1, _SEVERAL),
    )  # fmt: skip
    candidates: int = setting(
        20, "labels asked of each member, if k is not more; more let a single member's favourites in and take longer",
        low=1, high=limits.MAX_K, acts=Acts(lambda _, recipe: recipe.members > 1, _SEVERAL),
    )  # fmt: skip
    weights: tuple[float, ...] | None = setting(
        None, "weight of each member, as many as there are; none: all the same", low=0, high=1e6,
        acts=Acts(lambda own, _: own.members > 1, "with ensemble.trees or ensemble.runs above 1"),
    )  # fmt: skip
    runs: int = setting(
        1,
        "times the whole recipe is trained, each time with another seed, encoder or labels.kind; more are steadier, at "
        "as many times the cost",
        low=1, high=limits.MAX_TREES, rank=2,
    )  # fmt: skip
    encoders: tuple[str, ...] | None = setting(
        None, "the encoder of each run, as many as ensemble.runs; none: encoder.model for all",
        acts=Acts(lambda _, recipe: recipe.encoder.on, "where texts are read by an encoder too (encoder.model)"),
    )  # fmt: skip
    labels: tuple[str, ...] | None = setting(
        None, "labels.kind of each run, as many as ensemble.runs; none: the same for all",
        acts=Acts(lambda _, recipe: recipe.clusters_labels, "where labels are clustered by k-means"), rank=6,
    )  # fmt: skip

    @property
    def members(self) -> int:
        """Models that predict together: every tree of every run."""
        return self.trees * self.runs

    def seed(self, first: int, number: int) -> int:
        """The seed of a run: it counts the runs before it that differ in nothing else."""
        encoders, labels = self.encoders or ("",) * self.runs, self.labels or ("",) * self.runs
        kinds = list(zip(encoders, labels, strict=True))
        return (first + kinds[:number].count(kinds[number])) % (limits.MAX_SEED + 1)

    def of(self, count: int, weights: tuple[float, ...] | None) -> EnsembleConfig:
        """The same average over so many given models."""
        return dataclasses.replace(self, trees=count, runs=1, encoders=None, labels=None, weights=weights)

    def shares(self) -> tuple[float, ...]:
        """The weights, summing to 1; ConfigError if they do not fit the members, or the encoders not the runs."""
        weights = (1.0,) * self.members if self.weights is None else self.weights
        if len(weights) != self.members or not sum(weights) > 0:
            raise ConfigError(
                f"ensemble.weights gives {len(weights)} values {weights[:8]} for {self.members} trees; "
                "give each a weight ≥ 0, one of them above 0."
            )
        if self.encoders is not None and "none" in self.encoders:
            raise ConfigError("ensemble.encoders names 'none'; every run of an ensemble must have an encoder.")
        if self.encoders is not None and len(self.encoders) != self.runs:
            raise ConfigError(
                f"ensemble.encoders names {len(self.encoders)} encoders for ensemble.runs = {self.runs}; one for each."
            )
        if self.labels is not None and len(self.labels) != self.runs:
            raise ConfigError(
                f"ensemble.labels names {len(self.labels)} kinds for ensemble.runs = {self.runs}; one for each."
            )
        return tuple(weight / sum(weights) for weight in weights)


@dataclasses.dataclass(frozen=True, eq=False)
class Ranking:
    """Labels that one member found: ids (n, m), -1 where there is none, and scores (n, m)."""

    ids: NDArray[np.int32]
    scores: NDArray[np.float32]
    margins: bool  # scores are margins, not probabilities


def merge(
    found: list[Ranking], config: EnsembleConfig, k: int, *, threads: int, progress: Tick | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The k best labels of each row by the members together: (ids (n, k), scores (n, k)), -1 = none."""
    pairs = list(zip(found, config.shares(), strict=True))
    if config.average == "round-robin":
        pairs.sort(key=lambda pair: -pair[1])
    return _core.merge(
        ids=[ranking.ids for ranking, _ in pairs],
        scores=[ranking.scores for ranking, _ in pairs],
        weights=[share for _, share in pairs],
        margins=[ranking.margins for ranking, _ in pairs],
        average=AVERAGES.index(config.average),
        length=max(k, config.candidates),
        keep=k,
        threads=threads,
        progress=progress,
    )
