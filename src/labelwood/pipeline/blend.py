"""[network ⊕ tf-idf]: what predicts after a network was trained with all its levels, alone or beside classifiers.

The classifiers read words and the last embedding. They stand below the network's own clusters, with its shortlist as
their negatives (`ranker = network`), or on a tree of their own (`ranker = tree`). Both rankings are added as
probabilities; the network's share is chosen on documents that neither has learned from. Of a network that ends one
level above the labels, the classifiers alone rank them.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr
from ..base.config import PerLevel, at, to_dict
from ..models.descent import Descent, Level
from ..neural.finetune.joint import Network, precision
from ..parts.label_features import binary
from ..parts.linear_level import LinearLevel
from ..parts.rank_average import Ranking, merge
from ..parts.search import SearchConfig
from ..parts.shortlist import all_rows, chosen, from_ids
from ..parts.tree import Tree, up
from ..recipes.runs import by_documents
from ..storage.keyed import Keyed
from .job import Documents, Job, made_model, taken
from .levels import LevelPlace, settings, solve, train_levels
from .networks import Encoded
from .trees import grow

if TYPE_CHECKING:
    from ..models.model import Model
    from ..recipes.recipe import Recipe

SHARES = tuple(i / 10 for i in range(11))


@dataclasses.dataclass(frozen=True, eq=False)
class Classifiers:
    """A tree and its levels; the last ones, or all, are linear."""

    tree: Tree
    levels: Sequence[Level]


def network_models(job: Job, encoded: Keyed[Encoded]) -> tuple[list[Model], tuple[float, ...]]:
    """The network of one run, the classifiers beside it, or both, and their weights."""
    recipe = job.recipe
    if recipe.finetune.levels is not None:  # its clusters alone: labels are the classifiers'
        return [_classifier_model(job, encoded, train_beside(job, encoded))], (1.0,)
    alone = _network_model(job, encoded)
    if recipe.ranker == "none":
        return [alone], (1.0,)
    beside = _classifier_model(job, encoded, train_beside(job, encoded))
    share = recipe.network_share
    if share is None:
        share = _best_share(job, encoded, alone, beside)
    return [alone, beside], (share, 1 - share)


def network_of(encoded: Keyed[Encoded]) -> Network:
    """The network that predicts by itself."""
    assert encoded.value.network is not None
    return encoded.value.network


def train_beside(job: Job, encoded: Keyed[Encoded], rows: NDArray[np.int64] | None = None) -> Classifiers:
    """The classifiers beside a network, trained on some documents; None: on all."""
    network, recipe, begin = network_of(encoded), job.recipe, encoded.value.classifiers_begin
    documents = Keyed(encoded.value.documents, encoded.key)
    part = documents if rows is None else taken(documents, rows)
    if recipe.ranker == "tree":
        tree = grow(job, documents, by_documents(recipe.labels), recipe.tree)[0]
        job.check_tree("tree", tree.value)
        levels = [level.value.reading(begin) for level in train_levels(job, part, tree)]
        return Classifiers(tree.value, levels)
    depth, x = network.tree.depth, part.value.x

    def make() -> dict[str, NDArray[Any]]:
        m, first = shortlist(job, encoded, binary(part.value.y), rows), first_weights(encoded.value, recipe)
        return solve(job, part.value, LevelPlace(network.tree, 0, depth - 1), m, first)

    inputs = {"documents": part, "network": network.tuned.key, "search": to_dict(network.search), **settings(job)}
    stage = job.space.stage("ranker", inputs, make)
    ptr = network.tree.child_ptrs[-1]
    last = LinearLevel.from_tensors(ptr, stage.tensors, x.sparse_cols, x.dense_cols, begin)
    return Classifiers(network.tree, [*network.levels[: depth - 1], last])


def _best_share(job: Job, encoded: Keyed[Encoded], alone: Model, beside: Model) -> float:
    """The network's weight: the best on held-out documents, with classifiers that have not learned from them."""
    network, y = network_of(encoded), job.problem.y
    if encoded.value.held_out is not None:  # the user's own
        x, truth = encoded.value.held_out
    else:
        rows = network.held
        if not len(rows):
            return 0.5
        x, truth = encoded.value.features(rows), y.take(rows)
        others = np.setdiff1d(np.arange(y.rows), rows)
        beside = _classifier_model(job, encoded, train_beside(job, encoded, others))
    config, threads, labels = job.recipe.ensemble, job.run.workers, len(alone.labels)
    k, width = min(job.recipe.finetune.check_k, labels), min(config.candidates, labels)
    found = []
    for member in (alone, beside):
        ids, scores = member.find_below(x, width, None, threads, lambda done, total: None)
        found.append(Ranking(ids, scores, member.gives_margins))

    def quality(share: float) -> float:
        return precision(merge(found, config.of(2, (share, 1 - share)), k, threads=threads)[0], truth)

    return max(SHARES, key=lambda share: (quality(share), -share))  # of equal ones the least: words are safer


def _network_model(job: Job, encoded: Keyed[Encoded]) -> Model:
    """The model of the network's own levels."""
    network = network_of(encoded)
    return made_model(job, _one_row(encoded.value), network.tree, network.levels, search=network.search)


def _classifier_model(job: Job, encoded: Keyed[Encoded], made: Classifiers) -> Model:
    """The model of classifiers beside a network."""
    how = _search_beside(job.recipe, network_of(encoded), made.tree)
    return made_model(job, _one_row(encoded.value), made.tree, made.levels, search=how)


def _one_row(encoded: Encoded) -> Documents:
    """The first document as models beside a network read it."""
    return Documents(encoded.features(np.zeros(1, np.int64)), encoded.documents.y, encoded.documents.reader)


def _search_beside(recipe: Recipe, network: Network, tree: Tree) -> SearchConfig | None:
    """Search of classifiers beside a network; None: as the recipe says, on a tree of their own."""
    if tree is not network.tree:
        return None
    depth, own = tree.depth, network.search
    if network.whole:
        # clusters are found as the network finds them, labels scored by their margins
        combiner = (*(at(own.combiner, t, depth, "combiner") for t in range(depth - 1)), "noop")
        beam = tuple(at(own.beam, t, depth, "finetune.parents") for t in range(depth))
        beam = (*beam[:-2], known(recipe, network), *beam[-1:]) if depth > 1 else beam
        return dataclasses.replace(own, combiner=combiner, beam=beam)
    config = recipe.search
    upper = (at(config.beam, t, depth, "search.beam") for t in range(depth - 2))
    return dataclasses.replace(config, beam=(*upper, opened(tree, config.beam), 1))


def opened(tree: Tree, wanted: PerLevel[int]) -> int:
    """Clusters above the labels that are opened: as wanted, but no more than a quarter of them, or four."""
    found: int = at(wanted, tree.depth - 2, tree.depth, "search.beam")
    return min(found, max(4, tree.size(tree.depth - 2) // 4))


def known(recipe: Recipe, network: Network) -> int:
    """Clusters above the labels that classifiers beside a network learn from and open, of those it finds best: as many
    as it opens itself, or `shortlist.parents`. It finds the clusters of documents that it has learned more easily than
    those of others, so with its own few, classifiers would hardly meet what they must tell apart."""
    tree, depth = network.tree, network.tree.depth
    own: int = at(network.search.beam, depth - 2, depth, "finetune.parents")
    wanted: int = at(recipe.shortlist.parents, depth - 1, depth, "shortlist.parents")
    return min(max(own, wanted), tree.size(depth - 2))


def first_weights(encoded: Encoded, recipe: Recipe) -> NDArray[np.float32] | None:
    """(L, d + 1) the head of the network's labels, for classifiers that start from it: they read its embedding at
    another length. None where they do not start from it."""
    network, raw, width = encoded.network, encoded.raw, encoded.documents.x.dense_cols
    assert network is not None
    last, depth = network.tree.depth - 1, network.tree.depth
    if at(recipe.linear.start, last, depth, "linear.start") != "network" or not width:
        return None
    weight, bias = network.tuned.head(last)
    length = float(np.linalg.norm(raw[:, raw.shape[1] - width :].astype(np.float32), axis=1).mean())
    found = np.concatenate([weight * (length / recipe.encoder.scale), bias[:, None]], 1)
    return np.ascontiguousarray(found, np.float32)


def shortlist(job: Job, encoded: Keyed[Encoded], y: Csr, rows: NDArray[np.int64] | None) -> Csr:
    """M of the classifiers below the network's clusters, for some documents (None: all) with their labels Y: the
    clusters of the truth, those that the network opens, or both.

    As many as classifiers open at prediction.
    """
    network, config, threads = network_of(encoded), job.recipe.shortlist, job.run.workers
    tree, depth = network.tree, network.tree.depth
    if depth == 1:
        return all_rows(y.rows)
    source, teacher = at(config.source, depth - 1, depth, "shortlist.source"), up(y, tree, depth - 2)
    if source == "teacher":
        return teacher
    if network.whole:
        width = known(job.recipe, network)
    else:
        width = opened(tree, at(config.parents, depth - 1, depth, "shortlist.parents"))
    width = min(width, tree.size(depth - 2))
    embedder = encoded.value.documents.reader.embedder
    x = encoded.value.network_features(rows)
    ids = Descent(tree, network.levels, network.search, (0, x.dense_cols), embedder).reach(x, depth - 1, threads, width)
    return chosen(source, teacher, from_ids(ids.nodes, tree.size(depth - 2)))
