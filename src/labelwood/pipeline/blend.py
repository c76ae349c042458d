"""[network ⊕ tf-idf]: what predicts after a network was trained with all its levels, alone or beside classifiers.

The classifiers read words and the last embedding. They stand below the network's own clusters, with its shortlist as
their negatives (`ranker = network`), or on a tree of their own (`ranker = tree`). Both rankings are added as
probabilities; the network's share is chosen on documents that neither has learned from. Of a network that ends one
level above the labels, the classifiers alone rank them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, Features
from ..base.config import PerLevel, at
from ..neural.attention_level import Descent, Levels, attending
from ..neural.finetune.joint import Network, precision
from ..parts.rank_average import Ranking, merge
from ..parts.search import Search, search
from ..parts.shortlist import ShortlistConfig, chosen, from_ids
from ..parts.tree import Tree, up
from .networks import Encoded

if TYPE_CHECKING:
    from ..models.model import Model
    from ..recipes.recipe import Recipe
    from .run_options import Run

SHARES = tuple(i / 10 for i in range(11))
Classifiers = tuple[Tree, Levels]


@dataclasses.dataclass(frozen=True, eq=False)
class Blend:
    """The members of one run, and their weights."""

    recipe: Recipe
    run: Run
    y: Csr  # (n, L)
    encoded: Encoded
    network: Network
    ranker: Callable[[NDArray[np.int64] | None], Classifiers]  # trained on some documents; None: on all
    model: Callable[[Features, Tree, Levels], Model]

    def members(self) -> tuple[list[Model], tuple[float, ...]]:
        if self.recipe.finetune.levels is not None:  # its clusters alone: labels are the classifiers'
            return [self._member(*self.ranker(None))], (1.0,)
        network = self._member(self.network.tree, self.network.levels, own=True)
        if self.recipe.ranker == "none":
            return [network], (1.0,)
        share = self.share(network)
        ranker = self._member(*self.ranker(None))
        return [network, ranker], (share, 1 - share)

    def share(self, network: Model) -> float:
        """The network's weight: the recipe's, or the best on held-back documents by a ranker that did without them."""
        given, held = self.recipe.network_share, self.encoded.held
        if given is not None:
            return given
        if held is not None:  # the user's own
            (x, truth), ranker = held, self._member(*self.ranker(None))
        else:
            rows = self.network.held
            if not len(rows):
                return 0.5
            x, truth = self.features(rows), self.y.take(rows)
            ranker = self._member(*self.ranker(np.setdiff1d(np.arange(self.y.rows), rows)))
        k = min(self.recipe.finetune.check_k, len(network.labels))
        width, threads = min(self.recipe.ensemble.candidates, len(network.labels)), self.run.workers
        found = []
        for member in (network, ranker):
            ids, scores = member.find_below(x, width, None, threads, lambda done, total: None)
            found.append(Ranking(ids, scores, member.gives_margins))

        def quality(share: float) -> float:
            config = self.recipe.ensemble.of(2, (share, 1 - share))
            return precision(merge(found, config, k, threads=threads)[0], truth)

        return max(SHARES, key=lambda share: (quality(share), -share))  # of equal ones the least: words are safer

    def features(self, rows: NDArray[np.int64] | None = None) -> Features:
        """X as the members read it: words, all readings, and the last one at its length."""
        raw, x = self.encoded.raw, self.encoded.x
        assert raw is not None
        rows = np.arange(len(raw)) if rows is None else rows
        words = None if x.sparse is None else x.sparse.take(rows)
        return Features(words, self.encoded.embedder.dense(raw[rows]))

    def _member(self, tree: Tree, levels: Levels, *, own: bool = False) -> Model:
        """A model of the network's levels, or of classifiers."""
        x = self.features(np.zeros(1, np.int64))
        made = self.model(x, tree, levels)
        network = self.network.search
        if own:
            return dataclasses.replace(made, search=network)
        if tree is self.network.tree and self.network.whole:
            # clusters are found as the network finds them, labels scored by their margins
            depth, shortlist = tree.depth, self.recipe.shortlist
            combiner = (*(at(network.combiner, t, depth, "combiner") for t in range(depth - 1)), "noop")
            beam = tuple(at(network.beam, t, depth, "finetune.parents") for t in range(depth))
            beam = (*beam[:-2], known(self.network, shortlist), *beam[-1:]) if depth > 1 else beam
            return dataclasses.replace(made, search=dataclasses.replace(network, combiner=combiner, beam=beam))
        if tree is self.network.tree:
            config, depth = self.recipe.search, tree.depth
            beam = (*(at(config.beam, t, depth, "search.beam") for t in range(depth - 2)), opened(tree, config.beam), 1)
            return dataclasses.replace(made, search=dataclasses.replace(config, beam=beam))
        return made


def opened(tree: Tree, wanted: PerLevel[int]) -> int:
    """Clusters above the labels that are opened: as wanted, but no more than a quarter of them, or four."""
    found: int = at(wanted, tree.depth - 2, tree.depth, "search.beam")
    return min(found, max(4, tree.size(tree.depth - 2) // 4))


def known(network: Network, config: ShortlistConfig) -> int:
    """Clusters above the labels that classifiers beside a network learn from and open, of those it finds best: as many
    as it opens itself, or `shortlist.parents`. It finds the clusters of documents that it has learned more easily than
    those of others, so with its own few, classifiers would hardly meet what they must tell apart."""
    tree, depth = network.tree, network.tree.depth
    own: int = at(network.search.beam, depth - 2, depth, "finetune.parents")
    wanted: int = at(config.parents, depth - 1, depth, "shortlist.parents")
    return min(max(own, wanted), tree.size(depth - 2))


def first_weights(encoded: Encoded, recipe: Recipe) -> NDArray[np.float32] | None:
    """(L, d + 1) the head of the network's labels, for classifiers that start from it: they read its embedding at
    another length. None where they do not start from it."""
    network, raw, width = encoded.network, encoded.raw, encoded.x.dense_cols
    assert network is not None and raw is not None  # noqa: PT018
    last, depth = network.tree.depth - 1, network.tree.depth
    if at(recipe.linear.start, last, depth, "linear.start") != "network" or not width:
        return None
    weight, bias = network.tuned.head(last)
    length = float(np.linalg.norm(raw[:, raw.shape[1] - width :].astype(np.float32), axis=1).mean())
    found = np.concatenate([weight * (length / recipe.encoder.scale), bias[:, None]], 1)
    return np.ascontiguousarray(found, np.float32)


def shortlist(
    encoded: Encoded, y: Csr, config: ShortlistConfig, threads: int, *, rows: NDArray[np.int64] | None = None
) -> Csr | None:
    """M of the classifiers below the network's clusters, for some documents (None: all) with their labels Y: the
    clusters of the truth, those that the network opens, or both.

    As many as classifiers open at prediction.
    """
    network, raw = encoded.network, encoded.raw
    assert network is not None and raw is not None  # noqa: PT018
    tree, beam, depth = network.tree, network.search.beam, network.tree.depth
    raw = raw if rows is None else raw[rows]
    if depth == 1:
        return None
    source, teacher = at(config.source, depth - 1, depth, "shortlist.source"), up(y, tree, depth - 2)
    if source == "teacher":
        return teacher
    if network.whole:
        width = known(network, config)
    else:
        width = opened(tree, at(config.parents, depth - 1, depth, "shortlist.parents"))
    width, above = min(width, tree.size(depth - 2)), network.levels[: depth - 1]
    deep, linear = attending(above)
    if deep:
        keeps = [at(beam, t, len(network.levels), "finetune.parents") for t in range(depth - 2)]
        ids = Descent(encoded.embedder, deep, tree, threads).reach(raw, [*keeps, width]).nodes
    else:
        what = Search(network.search, len(network.levels), width, cols=(0, raw.shape[1]))
        ids, _ = search(Features(dense=raw.astype(np.float32)), linear, what, threads=threads)
    return chosen(source, teacher, from_ids(ids, tree.size(depth - 2)))
