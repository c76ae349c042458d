"""Matching: which clusters of a level are predicted for each document, to be opened at the next level (eq. 7).

By a linear model on words and embedding (concat, Algorithm 1's), by the fine-tuned head, or by the mean of both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray

from ...arrays.sparse import Csr, Features
from ...base.progress import Tick
from ...parts.linear import LinearConfig, Place, train_level
from ...parts.linear_level import LinearLevel
from ...parts.rank_average import EnsembleConfig, Ranking, merge
from ...parts.search import Ranked, Search, SearchConfig, search
from ...parts.shortlist import from_ids
from ...parts.tree import Tree
from ..training.candidates import Candidates

Weights = tuple[NDArray[np.float32], NDArray[np.float32]]  # W (K, d), b (K,)
SEARCH = SearchConfig(combiner="l3-hinge")
BLOCK = 256  # documents whose candidates are scored together


@dataclasses.dataclass(frozen=True, eq=False)
class Matched:
    """Predicted clusters (n, width), -1 for none, with their log scores."""

    key: str
    nodes: NDArray[np.int32]
    scores: NDArray[np.float32]

    def take(self, rows: NDArray[np.int64]) -> Matched:
        return Matched(self.key, self.nodes[rows], self.scores[rows])


@dataclasses.dataclass(frozen=True, eq=False)
class MatchedLevel:
    """A level whose nodes are ranked, below the clusters that were matched before it."""

    tree: Tree
    number: int
    above: Matched | None
    keep: int
    threads: int

    def candidates(self, rows: slice) -> Candidates:
        """Children of what was matched above for some documents; all nodes under the root."""
        if self.above is None:
            return Candidates.every(rows.stop - rows.start, self.tree.size(self.number))
        m = from_ids(self.above.nodes[rows], self.tree.size(self.number - 1))
        return Candidates.below(m, self.tree.child_ptrs[self.number])


def with_costs_of(linear: LinearConfig, t: int) -> LinearConfig:
    """Settings of the linear matcher of level t: its α and λ (cp and cn) and relevances are those of the classifiers.

    Their tree may have another depth, and its last level is that of the labels. So of a list of costs the matcher
    takes the value at its own level, but never the last one, if there is another.
    """
    lists = [value for value in (linear.cp, linear.cn, linear.alpha, linear.lam) if isinstance(value, tuple)]
    levels = max((len(values) for values in lists), default=t + 2)
    cp, cn = linear.costs(min(t, max(0, levels - 2)), levels)
    return LinearConfig(
        cp=cp, cn=cn, relevance=linear.relevance, relevance_norm=linear.relevance_norm, threshold=0.001,
        weights="float32",
    )  # fmt: skip


def by_linear(
    level: MatchedLevel,
    x: Features,
    m: Csr,
    costs: Csr,
    linear: LinearConfig,
    *,
    seed: int,
    progress: Tick | None = None,
) -> Ranked:
    """A linear level on Φ, searched from the clusters that were predicted before."""
    t, tree, above = level.number, level.tree, level.above
    made = train_level(x, costs, m, tree.child_ptrs[t], linear, place=Place(t, tree.depth, seed), threads=level.threads)
    start = None if above is None else (above.nodes, above.scores)
    what = Search(SEARCH, tree.depth, level.keep, above=0 if above is None else t, start=start, logs=True)
    return search(x, [made], what, threads=level.threads, progress=progress)


def by_head(level: MatchedLevel, weights: Weights, embedding: NDArray[np.floating]) -> Ranked:
    """The head's own ranking; a score is the logarithm of the probabilities down the path."""
    return ranked(level, CandidateScorer.linear(weights, embedding), path=True)


def averaged(a: Ranked, b: Ranked, level: MatchedLevel) -> Ranked:
    """The mean of two rankings' probabilities; a node that one of them lacks has 0 there."""
    rankings = [
        Ranking(ids, np.where(ids < 0, 0, np.exp(logs)).astype(np.float32), margins=False) for ids, logs in (a, b)
    ]
    nodes, scores = merge(rankings, EnsembleConfig(trees=2), level.keep, threads=level.threads)
    return nodes, np.log(np.maximum(scores, 1e-30))


@dataclasses.dataclass(frozen=True, eq=False)
class CandidateScorer:
    """Scores of the candidates of n documents: (rows of a block, their candidates) → logits (P,)."""

    n: int
    logits: Callable[[slice, Candidates], NDArray[np.float32]]
    block: int = BLOCK

    @staticmethod
    def linear(weights: Weights, embedding: NDArray[np.floating]) -> CandidateScorer:
        """A head on embeddings (n, d)."""
        weight, bias = weights

        def logits(rows: slice, candidates: Candidates) -> NDArray[np.float32]:
            nodes = candidates.union
            scores = np.asarray(embedding[rows], np.float32) @ weight[nodes].T + bias[nodes]
            return scores[candidates.rows, candidates.places]

        return CandidateScorer(len(embedding), logits)


def ranked(level: MatchedLevel, scorer: CandidateScorer, *, path: bool = False, progress: Tick | None = None) -> Ranked:
    """The best nodes (n, keep) by a head, among the children of what was predicted before; -1 for none.

    Their scores are logits or, with `path`, log sigmoids added to the scores of their parents.
    """
    n, keep, block = scorer.n, level.keep, scorer.block
    ids, best = np.full((n, keep), -1, np.int32), np.zeros((n, keep), np.float32)
    for start in range(0, n, block):
        rows = slice(start, min(n, start + block))
        candidates = level.candidates(rows)
        pairs, real = candidates.padded()  # (block, C)
        score = scorer.logits(rows, candidates)
        if path:
            score = -np.logaddexp(0, -score) + _parents(level, rows, candidates)
        padded = np.where(real, score[pairs], -np.inf) if len(score) else np.zeros(pairs.shape, np.float32)
        order = largest(padded, keep)
        value = np.take_along_axis(padded, order, 1)
        width = order.shape[1]
        if width:
            nodes = candidates.nodes[np.take_along_axis(pairs, order, 1)]
            ids[rows, :width] = np.where(np.isfinite(value), nodes, -1)
        best[rows, :width] = np.where(np.isfinite(value), value, 0)
        if progress is not None:
            progress(rows.stop, n)
    return ids, best


def _parents(level: MatchedLevel, rows: slice, candidates: Candidates) -> NDArray[np.float32] | np.float32:
    """Log scores (P,) of the parents of candidates; 0 under the root."""
    if level.above is None:
        return np.float32(0)
    above, scores = level.above.nodes[rows], level.above.scores[rows]
    table = np.zeros((len(above), level.tree.size(level.number - 1)), np.float32)
    row, place = np.nonzero(above >= 0)
    table[row, above[row, place]] = scores[row, place]
    return table[candidates.rows, level.tree.parents(level.number)[candidates.nodes]]


def largest(logits: NDArray[np.float32], keep: int) -> NDArray[np.int64]:
    """Columns (n, keep) of the largest values, falling; of equal ones the first."""
    if keep < logits.shape[1]:
        near = np.sort(np.argpartition(-logits, keep - 1, axis=1)[:, :keep], axis=1)
        order = np.argsort(-np.take_along_axis(logits, near, 1), axis=1, kind="stable")
        return np.take_along_axis(near, order, 1)
    return np.argsort(-logits, axis=1, kind="stable")


def dense_weights(level: LinearLevel) -> Weights:
    """W (K, d) and b (K,) of a linear level on dense features."""
    children, d = int(level.child_ptr[-1]), level.dense_cols
    weight, bias = np.zeros((children, d), np.float32), np.zeros(children, np.float32)
    for parent, (first, last) in enumerate(zip(level.child_ptr[:-1], level.child_ptr[1:], strict=True)):
        *_, biases, block = level.native.decode(parent)
        weight[first:last] = block.reshape(d, last - first).T
        bias[first:last] = biases
    return weight, bias
