"""XR-Transformer's recursive fine-tuning (Algorithms 1 and 2): coarse to fine over a label tree.

At every level: shortlist the candidates, start the head from a linear solve on the embeddings so far (eq. 11), then
fine-tune encoder and head on the candidates alone (eq. 9), embed all documents, and let a linear model on words and
embedding predict the parents for the next level (eq. 7).

Each level is two stages of the workspace, its fine-tuning and its matching, so a run continues where it stopped; inside
a fine-tuning, the trainer keeps a state every few minutes.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.sparse import Csr, Features
from ...arrays.tokens import Tokens
from ...metrics.ranking import hits
from ...parts.label_features import binary
from ...parts.linear import LinearConfig, Place, relevance, train_level
from ...parts.shortlist import all_rows, chosen, from_ids
from ...parts.tree import up
from ..embedder import half, unit
from . import matcher
from .base import Tensors, Tuned, Tuning
from .matcher import Matched

if TYPE_CHECKING:
    from ..encoders.encoder import Encoder
    from ..training.head import Head


@dataclasses.dataclass(frozen=True, eq=False)
class Recursion(Tuning):
    """A fine-tuning of one level after the other."""

    def train(self) -> Tuned | None:
        """All levels; None if no level can be fine-tuned."""
        found = self.chain()
        return found[-1] if found else None

    def chain(self) -> list[Tuned]:
        """All levels, each from the one above."""
        found: list[Tuned] = []
        matched: Matched | None = None
        for t in range(self.levels):
            found.append(self._tune(t, found[-1] if found else None, matched))
            if t + 1 < self.levels:
                matched = self._match(t, found[-1], matched)
        return found

    # --- one level --------------------------------------------------------------------------------

    def _tune(self, t: int, above: Tuned | None, matched: Matched | None) -> Tuned:
        inputs = {
            **self.inputs,
            "level": t,
            "finetune": self.settings(t),
            "above": None if above is None else above.key,
            "matched": None if matched is None else matched.key,
            "embedded": self.embeds(t),
        }
        stage = self.space.training("tune", inputs, partial(self._tuned, t, above, matched), number=t + 1)
        return Tuned(stage.key, stage.tensors)

    def _tuned(self, t: int, above: Tuned | None, matched: Matched | None, keeper: Any) -> Tensors:
        """Fine-tune one level and embed all documents with what came out."""
        from ..encoders import encoder as encoders
        from ..training.trainer import Hooks, Task, Trainer

        progress = self.run.progress
        network = self.network(above)
        costs = self.targets(t)
        m = self.shortlist(t, matched)
        head = self.first_head(t, network.width, above, m, costs)
        task = Task(
            head=head, reading=0, y=costs, m=m, child_ptr=self.tree.child_ptrs[t], loss=self.at("finetune.loss", t),
            alpha=self.at("finetune.alpha", t), head_lr=self.head_lr(t), dropout=self.at("finetune.head_dropout", t),
        )  # fmt: skip
        rows, held = self.split
        name = f"fine-tuning level {t + 1} of {self.levels}"
        with encoders.threads(self.run.workers, network, self.config.batch * float(self.tokens.lengths.mean())):
            measure = None
            if len(held):
                measure = partial(self._quality, network, head, t, held, matched)
            with progress.stage(name, self.steps(t), "steps") as tick:
                later = sum(self.steps(below) for below in range(t + 1, self.levels))
                hooks = Hooks(name, tick, self.run.on_event, keeper, self.space.every, later)
                Trainer(
                    network, [task], self.tokens, rows, self.schedule(t), key=(self.recipe.seed, t),
                    measure=measure, hooks=hooks,
                ).run()  # fmt: skip
            embedding = np.zeros((0, 0), np.float16)
            if self.embeds(t):
                with progress.stage(f"embedding after level {t + 1}", len(self.tokens), "docs") as tick:
                    embedding = half(network.embed(self.tokens, progress=tick))
        found = {f"encoder.{key}": value for key, value in network.state().items()}
        return found | {"embedding": embedding, f"head-{t}": head.table.cpu().numpy()}

    def embeds(self, t: int) -> bool:
        """Are all documents embedded after a level?"""
        return t + 1 < self.levels or not self.graph

    def shortlist(self, t: int, matched: Matched | None) -> Csr | None:
        """M_t (n, K_{t-1}): the parents whose children are candidates (eq. 8); None at the first level: all."""
        if t == 0 or matched is None:
            return None
        teacher, predicted = up(binary(self.y), self.tree, t - 1), from_ids(matched.nodes, self.tree.size(t - 1))
        return chosen(self.at("levelwise.source", t), teacher, predicted)

    def first_head(self, t: int, width: int, above: Tuned | None, m: Csr | None, costs: Csr) -> Head:
        """The head before its first step."""
        kind = self.at("levelwise.bootstrap", t)
        if above is None or m is None or kind == "none":
            return self.random_head(t, width, m=m)
        if kind == "inherit":
            parents = self.tree.parents(t)
            weight, bias = (a[parents] for a in above.head(t - 1))
        else:
            weight, bias = self._solved(t, above, m, costs, weighted=kind == "weighted-linear")
        return self.head(weight, bias)

    def _solved(
        self, t: int, above: Tuned, m: Csr, costs: Csr, *, weighted: bool
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Eq. 11: linear classifiers on the embeddings so far, over the same candidates."""
        c, alpha = self.recipe.levelwise.bootstrap_c, self.at("finetune.alpha", t)
        config = LinearConfig(cp=c, cn=c * (alpha if weighted else 1.0), threshold=0.0, weights="float32")
        if not weighted:
            costs = Csr(costs.indptr, costs.indices, np.ones(costs.nnz, np.float32), costs.cols)
        x, m, costs = Features(dense=above.embedding.astype(np.float32)), self.trained(m), self.trained(costs)
        with self.run.progress.stage(f"first weights of level {t + 1}", self.tree.size(t - 1), "blocks") as tick:
            level = train_level(
                x, costs, m, self.tree.child_ptrs[t], config, place=Place(t, self.tree.depth, self.recipe.seed),
                threads=self.run.workers, progress=tick,
            )  # fmt: skip
        return matcher.dense_weights(level)

    # --- matching ---------------------------------------------------------------------------------

    def _match(self, t: int, tuned: Tuned, above: Matched | None) -> Matched:
        linear = matcher.with_costs_of(self.recipe.linear, t)
        inputs = {
            "tuned": tuned.key,
            "words": self.data.words,
            "above": None if above is None else above.key,
            "matcher": self.recipe.levelwise.matcher,
            "width": self.width(t + 1),
            "scale": self.recipe.encoder.scale,
            "costs": [linear.cp, linear.cn, linear.relevance, linear.relevance_norm],
        }
        stage = self.space.stage("match", inputs, partial(self._matched, t, tuned, above), number=t + 1)
        return Matched(stage.key, stage.tensors["nodes"], stage.tensors["scores"])

    def _matched(self, t: int, tuned: Tuned, above: Matched | None) -> Tensors:
        """Clusters that are predicted for the next level, by the matcher of the recipe (eq. 7)."""
        level = matcher.MatchedLevel(self.tree, t, above, min(self.width(t + 1), self.tree.size(t)), self.run.workers)
        x, found = self.features(tuned), []
        with self.run.progress.stage(f"matching level {t + 1}", x.rows, "docs") as tick:
            if self.recipe.levelwise.matcher != "transformer":
                m = self.shortlist(t, above)
                linear = matcher.with_costs_of(self.recipe.linear, t)
                counts = up(self.y if linear.relevance == "given" else binary(self.y), self.tree, t)
                m, costs = self.trained(all_rows(x.rows) if m is None else m), self.trained(relevance(counts, linear))
                found.append(matcher.by_linear(level, x, m, costs, linear, seed=self.recipe.seed, progress=tick))
            if self.recipe.levelwise.matcher != "concat":
                found.append(matcher.by_head(level, tuned.head(t), tuned.embedding))
            nodes, scores = found[0] if len(found) == 1 else matcher.averaged(found[0], found[1], level)
        return {"nodes": nodes, "scores": scores}

    def features(self, tuned: Tuned) -> Features:
        """Φ_cat (eq. 10): words and embedding, each of length one."""
        return Features(self.data.words.value.sparse, unit(tuned.embedding, self.recipe.encoder.scale))

    # --- measuring --------------------------------------------------------------------------------

    def _quality(self, network: Encoder, head: Head, t: int, held: NDArray[np.int64], matched: Matched | None) -> float:
        """Mean of P@1 … P@k of the level on held-back documents, nothing forced into their shortlists."""
        k = min(self.config.check_k, head.nodes)
        level = matcher.MatchedLevel(self.tree, t, None if matched is None else matched.take(held), k, self.run.workers)
        ids, _ = matcher.ranked(level, self.scorer(network, head.weights, self.tokens.take(held)))
        truth = up(binary(self.y.take(held)), self.tree, t)
        found = hits(ids.astype(np.int64), truth)
        return float((np.cumsum(found, axis=1) / np.arange(1, k + 1)).mean())

    def scorer(self, network: Encoder, weights: matcher.Weights, tokens: Tokens) -> matcher.CandidateScorer:
        """The network's own scores of some documents."""
        return matcher.CandidateScorer.linear(weights, network.embed(tokens))
