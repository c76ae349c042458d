"""AttentionXML (its Algorithm 1): a network for each level of the label tree, one after the other, coarse to fine.

Labels attend to the tokens by themselves (encoders/label_attention.py), so a level's network is its own: it starts
from the one above — word vectors, encoder and shared MLP — with new rows for its nodes, and learns on the children of
the true parents and of those that the network above finds itself. A label's score is the product of the probabilities
down its path.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING

from ...arrays.sparse import Csr
from ...arrays.tokens import Tokens
from ...parts.search import SearchConfig
from ..attention_level import AttentionLevel, scorer
from . import matcher
from .base import Tensors, Tuned
from .joint import Network
from .levelwise import Recursion
from .matcher import Matched

if TYPE_CHECKING:
    from ..encoders.encoder import Encoder
    from ..training.head import Head


@dataclasses.dataclass(frozen=True, eq=False)
class Stepwise(Recursion):
    """A fine-tuning of one network after the other."""

    @cached_property
    def levels(self) -> int:
        """Number of levels that are trained, one after the other."""
        return self.reached

    def train(self) -> Network:  # type: ignore[override]
        """The networks of all levels as one."""
        chain = self.chain()
        weights = {f"encoder.{t}.{name}": a for t, one in enumerate(chain) for name, a in one.weights.items()}
        levels = [
            AttentionLevel.of(one.head(t), ptr)
            for t, (one, ptr) in enumerate(zip(chain, self.tree.child_ptrs, strict=False))
        ]
        readings = [*self.embedder.readings * self.levels]
        if self.recipe.ranker != "none":  # what the classifiers read beside the words
            readings.append(dataclasses.replace(readings[0], pooling="mean"))
        beam = (*(self.width(t) for t in range(1, self.levels)), 1)
        return Network(
            Tuned(chain[-1].key, weights), readings, self.tree, levels,
            SearchConfig(beam=beam, combiner="sigmoid"), self.split[1],
        )  # fmt: skip

    def embeds(self, t: int) -> bool:
        """Say no: nothing reads embeddings between the levels."""
        return False

    def first_head(self, t: int, width: int, above: Tuned | None, m: Csr | None, costs: Csr) -> Head:
        """New rows, whatever is above."""
        return self.random_head(t, width, glorot=True, m=m)

    def _matched(self, t: int, tuned: Tuned, above: Matched | None) -> Tensors:
        """The clusters that the network itself finds for the next level."""
        from ..encoders import encoder as encoders

        network, weights = self.network(tuned), tuned.head(t)
        level = matcher.MatchedLevel(self.tree, t, above, self.width(t + 1), self.run.workers)
        with (
            encoders.threads(self.run.workers, network, float(self.tokens.offsets[-1])),
            self.run.progress.stage(f"matching level {t + 1}", len(self.tokens), "docs") as tick,
        ):
            nodes, scores = matcher.ranked(level, self.scorer(network, weights, self.tokens), path=True, progress=tick)
        return {"nodes": nodes, "scores": scores}

    def scorer(self, network: Encoder, weights: matcher.Weights, tokens: Tokens) -> matcher.CandidateScorer:
        """Label attention."""
        return scorer(network, weights, tokens)
