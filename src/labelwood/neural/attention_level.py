"""Levels whose labels attend to a document's tokens, as a model keeps them, and the search down them.

The search is the beam of all recipes, in torch: each level's own network reads the tokens, the children of the nodes
that are kept are scored, and the logarithms of their probabilities are added along the path.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.tokens import Tokens
from ..base.progress import Tick
from ..errors import ModelFileError
from ..parts.search import Ranked
from ..parts.tree import Tree
from .embedder import Embedder, half
from .finetune import matcher
from .training.candidates import Candidates

BLOCK = 64  # documents whose candidates are scored together
ARRAYS = {"rows": (np.float16, 2), "bias": (np.float32, 1)}


@dataclasses.dataclass(frozen=True, eq=False)
class AttentionLevel:
    """Level whose nodes attend to tokens: what each attends to (K, d), and its bias (K,)."""

    child_ptr: NDArray[np.int64]  # (parents + 1,)
    rows: NDArray[np.float16]
    bias: NDArray[np.float32]

    engine = "torch"

    @staticmethod
    def of(weights: matcher.Weights, child_ptr: NDArray[np.int64]) -> AttentionLevel:
        """A trained head, rounded as it is stored."""
        return AttentionLevel(child_ptr, half(weights[0]), np.ascontiguousarray(weights[1]))

    @property
    def reads(self) -> tuple[int, int, int]:
        """No columns of X, but its tokens."""
        return 0, 0, 0

    @property
    def nonzeros(self) -> int:
        return int(np.count_nonzero(self.rows))

    def verify(self) -> None:
        """All was checked when it was read."""

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Arrays that the model folder stores; child_ptr belongs to the tree."""
        return {"rows": self.rows, "bias": self.bias}

    @staticmethod
    def from_tensors(child_ptr: NDArray[np.int64], tensors: Mapping[str, Any]) -> AttentionLevel:
        """The checked inverse of `tensors`."""
        if set(tensors) != set(ARRAYS):
            raise ModelFileError(f"a level of label attention must have exactly {' and '.join(ARRAYS)}.")
        for name, (kind, dimensions) in ARRAYS.items():
            found = tensors[name]
            if found.dtype != kind or found.ndim != dimensions or len(found) != child_ptr[-1]:
                raise ModelFileError(f"a level's array {name!r} is of the wrong type or does not fit its tree.")
            if not np.isfinite(found).all():
                raise ModelFileError(f"a level's array {name!r} holds numbers that are not finite.")
        return AttentionLevel(child_ptr, tensors["rows"], tensors["bias"])


def scorer(network: Any, weights: tuple[NDArray[Any], NDArray[Any]], tokens: Tokens) -> matcher.CandidateScorer:
    """Label attention of a level's network and its rows, over some documents."""
    rows, bias = weights

    def logits(part: slice, candidates: Candidates) -> NDArray[np.float32]:
        nodes = candidates.union
        table = np.concatenate([rows[nodes].astype(np.float32), bias[nodes, None]], 1)
        found: NDArray[np.float32] = network.attended(tokens.take(np.arange(part.start, part.stop)), table, candidates)
        return found

    return matcher.CandidateScorer(len(tokens), logits, BLOCK)


@dataclasses.dataclass(frozen=True, eq=False)
class Attended:
    """Levels of a tree from the first on, with the networks that read for them."""

    embedder: Embedder
    levels: Sequence[AttentionLevel]
    tree: Tree
    threads: int


def attend(
    what: Attended, tokens: Tokens, keeps: Sequence[int], start: Ranked | None = None,
    progress: Tick | None = None,
) -> Ranked:  # fmt: skip
    """Search the last len(keeps) of the levels, each keeping so many nodes: ids (n, keep) and log scores.

    `start` are the nodes and log scores above them.
    """
    from .encoders import encoder

    found = None if start is None else matcher.Matched("", *start)
    for t, keep in enumerate(keeps, len(what.levels) - len(keeps)):
        network, level = what.embedder.networks[t], what.levels[t]
        if network.widths != (level.rows.shape[1],):
            raise ModelFileError(f"level {t + 1} has rows of {level.rows.shape[1]} for states of {network.width}.")
        with encoder.threads(what.threads, network, float(tokens.offsets[-1])):
            below = matcher.MatchedLevel(what.tree, t, found, keep, what.threads)
            last = progress if t + 1 == len(what.levels) else None
            by = scorer(network, (level.rows, level.bias), tokens)
            found = matcher.Matched("", *matcher.ranked(below, by, path=True, progress=last))
    assert found is not None
    return found.nodes, found.scores
