"""Search down the label tree: a beam, level by level, or best node first until the answer is certain.

The search itself is native/linear/beam.cpp.

A node's score is a product along its path, kept as a sum of logarithms; each level says how its margin enters.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from .. import _core, limits
from ..arrays.sparse import Features
from ..base.config import Acts, PerLevel, at, setting
from ..base.progress import Tick
from ..errors import ConfigError
from .linear_level import LinearLevel

COMBINERS = ("noop", "sigmoid", "l1-hinge", "l2-hinge", "l3-hinge", "l4-hinge")
_CLUSTERS = "on a tree of clusters, not a flat one"


@dataclasses.dataclass(frozen=True)
class SearchConfig:
    """Way in which the tree is searched."""

    beam: PerLevel[int] = setting(
        10, "clusters kept at each level above the labels; more find more of the right labels and take longer a text",
        low=1, high=limits.MAX_BEAM, rank=1,
        acts=Acts(
            lambda own, recipe: own.kind == "beam" and recipe.clusters, "with search.kind = beam on a tree of clusters"
        ),
    )  # fmt: skip
    kind: str = setting(
        "beam",
        "keep the best clusters of each level (beam), or open clusters best first until the best labels are certain "
        "(exact: slower, nothing is lost on the way down)",
        choices=("beam", "exact"), acts=Acts(lambda _, recipe: recipe.clusters, _CLUSTERS),
    )  # fmt: skip
    discount: float = setting(
        1.0, "factor on a cluster's log score when a child's is added; lower it where clusters count too much",
        above=0, high=1, acts=Acts(lambda _, recipe: recipe.clusters, _CLUSTERS), rank=6,
    )  # fmt: skip
    combiner: PerLevel[str] = setting(
        "l3-hinge",
        "how a margin m becomes a score: exp(-max(0, 1-m)^p) for lp-hinge, sigmoid (for loss logistic), or m alone "
        "(noop: for flat trees)",
        choices=COMBINERS,
        acts=Acts(
            lambda own, recipe: recipe.clusters or own.score == "path", "with search.score = path, or on clusters"
        ),
    )  # fmt: skip
    score: str = setting(
        "path",
        "a label's score: the product down its path (path), or the margin of its own classifier alone (label); try "
        "label where clusters mislead",
        choices=("path", "label"),
    )

    def at_level(self, level: int, depth: int) -> str:
        """Combiner by which the margin of a level enters the score."""
        found = at(self.combiner, level, depth, "search.combiner")
        return "noop" if self.score == "label" and level == depth - 1 else found

    def check_kind(self) -> None:
        """ConfigError where an exact search is asked for and scores may rise on the way down."""
        combiners = self.combiner if isinstance(self.combiner, tuple) else (self.combiner,)
        if self.kind == "exact" and ("noop" in combiners or self.score == "label"):
            why = "search.score is 'label'" if self.score == "label" else "search.combiner is 'noop'"
            raise ConfigError(
                f"search.kind = 'exact' needs scores that never rise from level to level, but {why} "
                "(margins); set search.combiner to sigmoid or lp-hinge and search.score to 'path', or search.kind to "
                "'beam'."
            )


Ranked = tuple[NDArray[np.int32], NDArray[np.float32]]  # ids (n, k), best first, -1 for none, and their scores


@dataclasses.dataclass(frozen=True)
class Search:
    """One search: `keep` nodes of the last level reached, in a tree of `depth`; `names` gives its nodes public ids."""

    config: SearchConfig
    depth: int
    keep: int
    names: NDArray[np.int32] | None = None
    above: int = 0  # levels that were searched before: `start` holds the nodes and log scores they ended with
    start: tuple[NDArray[np.int32], NDArray[np.float32]] | None = None
    logs: bool = False  # hand back log scores
    cols: tuple[int, int] | None = None  # sparse and dense columns of X, where levels read only some of them


def search(
    x: Features, levels: list[LinearLevel], what: Search, *, threads: int, progress: Tick | None = None
) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
    """The best nodes of the last of `levels` for each row: (ids (n, keep), scores (n, keep)), -1 = none."""
    found = searcher(levels, what)
    if what.start is None:
        return found(*x.parts, threads, progress)
    return found.resume(*x.parts, *what.start, threads, progress)


def searcher(levels: list[LinearLevel], what: Search) -> _core.Searcher:
    """A search made ready once, for any number of calls and threads."""
    config, depth = what.config, what.depth
    combiners = [config.at_level(t, depth) for t in range(what.above, what.above + len(levels))]
    beams = [at(config.beam, t, depth, "search.beam") for t in range(what.above, what.above + len(levels) - 1)]
    config.check_kind()
    sparse_cols, dense_cols = what.cols or (levels[0].sparse_cols, levels[0].dense_cols)
    return _core.Searcher(
        levels=[level.native for level in levels],
        combiner=[0 if c == "noop" else 1 if c == "sigmoid" else 2 for c in combiners],
        power=[int(c[1]) if c.endswith("hinge") else 0 for c in combiners],
        discount=[config.discount] * len(levels),
        keep=[*beams, what.keep],
        begin=[level.dense_begin for level in levels],
        sparse_cols=sparse_cols,
        dense_cols=dense_cols,
        names=_NO_NAMES if what.names is None else what.names,
        exact=config.kind == "exact",
        logs=what.logs,
    )


_NO_NAMES = np.zeros(0, np.int32)
