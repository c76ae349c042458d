"""The way down a label tree: from the root, or from where a beam stands, to the nodes of a level or to the labels.

A level is searched by an engine, native or torch; levels of torch come first, and the beam goes on below them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, cast

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays.sparse import Features
from ..base.config import at
from ..neural.attention_level import Attended, AttentionLevel, attend
from ..parts.linear_level import LinearLevel
from ..parts.search import Ranked, Search, SearchConfig, search, searcher
from ..parts.tree import Tree

if TYPE_CHECKING:
    from ..base.progress import Tick
    from ..neural.embedder import Embedder

SEARCHERS = 64  # that are kept ready, one for each k


class Level(Protocol):
    """The nodes of one level of a tree, and what scores them for documents below given parents."""

    engine: str  # native or torch: who searches it

    @property
    def child_ptr(self) -> NDArray[np.int64]:
        """(parents + 1,) the children of each parent."""

    @property
    def reads(self) -> tuple[int, int, int]:
        """Columns that it reads of X: sparse ones (all or none), the first dense one, the number of dense ones."""

    @property
    def nonzeros(self) -> int:
        """Weights that are not zero."""

    def verify(self) -> None:
        """Check all that is not checked yet; ModelFileError says what is wrong."""

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Arrays that the model folder stores."""


@dataclasses.dataclass(frozen=True, eq=False)
class Beam:
    """State of a search after some levels: nodes (n, width), -1 where there is none, and their log scores."""

    levels: int
    nodes: NDArray[np.int32]
    scores: NDArray[np.float32]


@dataclasses.dataclass(frozen=True, eq=False)
class Descent:
    """Levels of a tree from the first on, and how they are searched. Threads may share it."""

    tree: Tree
    levels: Sequence[Level]
    config: SearchConfig
    cols: tuple[int, int]  # sparse and dense columns of X
    embedder: Embedder | None = None

    @property
    def depth(self) -> int:
        """The levels that settings by level are given for."""
        return len(self.levels)

    @cached_property
    def in_torch(self) -> int:
        """Number of levels that are searched in torch: the first ones."""
        return sum(level.engine == "torch" for level in self.levels)

    def width(self, level: int) -> int:
        """Nodes of a level that are kept."""
        return min(at(self.config.beam, level, self.depth, "search.beam"), self.tree.size(level))

    def reach(self, x: Features, levels: int, threads: int, width: int | None = None) -> Beam:
        """Search the upper `levels` only, keeping `width` nodes of the last, or as many as the beam."""
        width = self.width(levels - 1) if width is None else width
        deep = min(levels, self.in_torch)
        beam = self._torch(x, self._keeps(0, deep, width if deep == levels else None), None, threads) if deep else None
        if beam is not None and deep == levels:
            return beam
        start = None if beam is None else (beam.nodes, beam.scores)
        what = Search(self.config, self.depth, width, logs=True, cols=self.cols, above=deep, start=start)
        nodes, scores = search(x, self._native(deep, levels), what, threads=threads)
        if self.config.at_level(levels - 1, self.depth) == "noop":  # a plain margin chooses, and is not carried on
            scores = np.zeros_like(scores)
        return Beam(levels, nodes, scores)

    def labels(self, x: Features, k: int, start: Beam | None, threads: int, progress: Tick) -> Ranked:
        """The k best labels, from the root or from where a beam stands."""
        whole = self.in_torch == self.depth
        if self.in_torch > (0 if start is None else start.levels):
            begin = 0 if start is None else start.levels
            start = self._torch(x, self._keeps(begin, self.in_torch, k if whole else None), start, threads, progress)
        if start is not None and whole:
            there = start.nodes >= 0
            return np.where(there, self.tree.leaves[start.nodes], -1), np.where(there, np.exp(start.scores), 0)
        if start is None:
            return self._searcher(k, 0)(*x.parts, threads, progress)
        return self._searcher(k, start.levels).resume(*x.parts, start.nodes, start.scores, threads, progress)

    def _keeps(self, begin: int, end: int, last: int | None) -> list[int]:
        """Nodes that are kept of the levels begin … end - 1; of the last one, `last`."""
        found = [self.width(t) for t in range(begin, end)]
        return found if last is None else [*found[:-1], last]

    def _torch(
        self, x: Features, keeps: list[int], start: Beam | None, threads: int, progress: Tick | None = None
    ) -> Beam:
        """Search levels whose labels attend to tokens, as many as `keeps` has widths."""
        levels = len(keeps) + (0 if start is None else start.levels)
        assert self.embedder is not None and x.tokens is not None  # noqa: PT018
        own = cast(list[AttentionLevel], list(self.levels[:levels]))
        what = Attended(self.embedder, own, self.tree, threads)
        nodes, scores = attend(what, x.tokens, keeps, None if start is None else (start.nodes, start.scores), progress)
        return Beam(levels, nodes, scores)

    def _native(self, begin: int, end: int) -> list[LinearLevel]:
        return cast(list[LinearLevel], list(self.levels[begin:end]))

    def _searcher(self, k: int, above: int) -> _core.Searcher:
        """The native search below `above` levels, made ready once."""
        found = self._searchers.get((k, above))
        if found is None:
            if len(self._searchers) >= SEARCHERS:  # somebody asks for every k there is
                self._searchers.clear()
            what = Search(self.config, self.depth, k, self.tree.leaves, above=above, cols=self.cols)
            found = self._searchers[k, above] = searcher(self._native(above, self.depth), what)
        return found

    @cached_property
    def _searchers(self) -> dict[tuple[int, int], _core.Searcher]:
        return {}
