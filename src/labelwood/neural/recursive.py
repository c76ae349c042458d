"""XR-Transformer's recursive fine-tuning (Algorithms 1 and 2): coarse to fine over a label tree.

At every level: shortlist the candidates, start the head from a linear solve on the embeddings so far (eq. 11), then
fine-tune encoder and head on the candidates alone (eq. 9), embed all documents, and let a linear model on words and
embedding predict the parents for the next level (eq. 7).

Each level is two stages of the workspace, its fine-tuning and its matching, so a run continues where it stopped; inside
a fine-tuning, the trainer keeps a state every few minutes.
"""

from __future__ import annotations

import dataclasses
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..config import at
from ..errors import ConfigError
from ..labels import binary
from ..linear import LinearConfig, Place, relevance, train_level
from ..metrics import hits
from ..search import SearchConfig
from ..shortlist import all_rows, chosen, from_ids
from ..sparse import Csr, Features
from ..tree import Tree, up
from . import match
from .config import FinetuneConfig
from .embedder import Embedder, half, unit
from .match import Matched
from .tokens import Tokens

if TYPE_CHECKING:
    from ..recipes import Recipe
    from ..run import Run
    from ..workspace import Workspace
    from .encoder import Encoder
    from .head import Head

Tensors = dict[str, NDArray[Any]]
MATCHER = SearchConfig(combiner="l3-hinge")
BLOCK = 1024  # documents whose candidates are scored together


@dataclasses.dataclass(frozen=True, eq=False)
class Tuned:
    """The encoder after a level, and the embeddings (n, d) of all documents by it."""

    key: str
    tensors: Tensors

    @property
    def embedding(self) -> NDArray[np.float16]:
        return self.tensors["embedding"]

    @property
    def weights(self) -> Tensors:
        return {name.removeprefix("encoder."): a for name, a in self.tensors.items() if name.startswith("encoder.")}


@dataclasses.dataclass(frozen=True, eq=False)
class Recursion:
    """The fine-tuning of one run."""

    recipe: Recipe
    run: Run
    space: Workspace
    embedder: Embedder  # with the pretrained weights
    tokens: Tokens
    x: Features | None  # words
    y: Csr
    tree: Tree
    keys: dict[str, str]  # digests of what all stages depend on: data, tokens, encoder, tree
    given: int = 0  # so many documents at the end are the user's own held-out ones

    @property
    def config(self) -> FinetuneConfig:
        return self.recipe.finetune

    @cached_property
    def levels(self) -> int:
        """How many levels are fine-tuned, from the coarsest on."""
        if self.tree.size(0) < 2 < self.tree.size(self.tree.depth - 1):
            raise ConfigError(
                f"the coarse tree is {'-'.join(map(str, self.tree.sizes))}, and a first level of one cluster tells "
                "nothing; leave it out of coarse.levels, or choose another coarse.kind."
            )
        fitting = [size for size in self.tree.sizes if 1 < size <= self.config.max_clusters]
        return len(fitting[: self.config.levels])

    def train(self) -> Tuned | None:
        """All levels; None if no level can be fine-tuned."""
        tuned: Tuned | None = None
        matched: Matched | None = None
        for t in range(self.levels):
            tuned = self._tune(t, tuned, matched)
            if t + 1 < self.levels:
                matched = self._match(t, tuned, matched)
        return tuned

    # --- one level --------------------------------------------------------------------------------

    def _tune(self, t: int, above: Tuned | None, matched: Matched | None) -> Tuned:
        inputs = {
            **self.keys,
            "level": t,
            "encoder": self.recipe.encoder.network(),
            "finetune": self.settings(t),
            "above": None if above is None else above.key,
            "matched": None if matched is None else matched.key,
            "seed": self.recipe.seed,
        }
        name = f"tune-{t + 1}"
        keeper = self.space.keeper(name, inputs)
        stage = self.space.stage(name, inputs, partial(self._tuned, t, above, matched, keeper))
        keeper.discard()
        return Tuned(stage.key, stage.tensors)

    def _tuned(self, t: int, above: Tuned | None, matched: Matched | None, keeper: Any) -> Tensors:
        """Fine-tune one level and embed all documents with what came out."""
        from . import encoder as encoders
        from .trainer import Hooks, Task, Trainer

        progress = self.run.progress
        network = self._network(above)
        reading = network.reading(self.recipe.encoder)
        costs = self.targets(t)
        m = self.shortlist(t, matched)
        head = self.first_head(t, network.width, above, m, costs)
        task = Task(
            head=head, reading=reading, y=costs, m=m, child_ptr=self.tree.child_ptrs[t],
            loss=self._at("loss", t), alpha=self._at("alpha", t), head_lr=self.head_lr(t),
        )  # fmt: skip
        rows, held = self.split
        name = f"fine-tuning level {t + 1} of {self.levels}"
        with encoders.threads(self.run.workers, network, self.config.batch * float(self.tokens.lengths.mean())):
            measure = None
            if len(held):
                measure = partial(self._quality, network, head, t, held, matched)
            with progress.stage(name, self.steps(t), "steps") as tick:
                hooks = Hooks(name, tick, self.run.tell, keeper, self.run.keep_every)
                Trainer(
                    network, [task], self.tokens, rows, self.schedule(t), key=(self.recipe.seed, t),
                    measure=measure, hooks=hooks,
                ).run()  # fmt: skip
            with progress.stage(f"embedding after level {t + 1}", len(self.tokens), "docs") as tick:
                embedding = half(network.embed(self.tokens, reading, progress=tick))
        found = {f"encoder.{key}": value for key, value in network.state().items()}
        weight, bias = head.weights
        return found | {"embedding": embedding, "head": weight, "bias": bias}

    def _network(self, above: Tuned | None) -> Encoder:
        from . import encoder as encoders

        config = self.config
        network = encoders.rebuild(self.embedder.about, self.embedder.state if above is None else above.weights)
        network.to(self.run.device)
        network.drop(config.dropout, config.attention_dropout)
        if config.frozen_layers > network.depth:
            raise ConfigError(
                f"finetune.frozen_layers is {config.frozen_layers}, but the encoder has {network.depth} layers."
            )
        network.freeze(config.frozen_layers)
        return network

    def targets(self, t: int) -> Csr:
        """Y_t (n, K_t) with the weights of positives (eq. 5-6)."""
        counts = up(binary(self.y), self.tree, t)
        kind = {"l1": "l1", "counts": "none", "off": "none"}[self.config.relevance]
        mode = "off" if self.config.relevance == "off" else "induce"
        return relevance(counts, LinearConfig(relevance=mode, relevance_norm=kind))

    def shortlist(self, t: int, matched: Matched | None) -> Csr | None:
        """M_t (n, K_{t-1}): the parents whose children are candidates (eq. 8); None at the first level: all."""
        if t == 0 or matched is None:
            return None
        teacher, predicted = up(binary(self.y), self.tree, t - 1), from_ids(matched.nodes, self.tree.size(t - 1))
        return chosen(self._at("source", t), teacher, predicted)

    def first_head(self, t: int, width: int, above: Tuned | None, m: Csr | None, costs: Csr) -> Head:
        """The head before its first step."""
        import torch

        from .trainer import mixed

        kind, nodes = self._at("bootstrap", t), self.tree.size(t)
        if above is None or m is None or kind == "none":
            generator = torch.Generator().manual_seed(mixed(self.recipe.seed, t, 2) % 2**63)
            weight = torch.empty(nodes, width).normal_(0, 0.02, generator=generator).numpy()
            return self._head(weight, np.zeros(nodes, np.float32))
        if kind == "inherit":
            parents = self.tree.parents(t)
            weight, bias = above.tensors["head"][parents], above.tensors["bias"][parents]
        else:
            weight, bias = self._solved(t, above, m, costs, weighted=kind == "weighted-linear")
        return self._head(weight, bias)

    def _head(self, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> Head:
        import torch

        from .head import Head

        w, b = (torch.from_numpy(np.ascontiguousarray(a)).to(self.run.device) for a in (weight, bias))
        return Head(w, b, self.config.head_moments)

    def _solved(
        self, t: int, above: Tuned, m: Csr, costs: Csr, *, weighted: bool
    ) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """Eq. 11: linear classifiers on the embeddings so far, over the same candidates."""
        c, alpha = self.config.bootstrap_c, self._at("alpha", t)
        config = LinearConfig(cp=c, cn=c * (alpha if weighted else 1.0), threshold=0.0, weights="float32")
        if not weighted:
            costs = Csr(costs.indptr, costs.indices, np.ones(costs.nnz, np.float32), costs.cols)
        x, m, costs = Features(dense=above.embedding.astype(np.float32)), self._trained(m), self._trained(costs)
        with self.run.progress.stage(f"first weights of level {t + 1}", self.tree.size(t - 1), "blocks") as tick:
            level = train_level(
                x, costs, m, self.tree.child_ptrs[t], config, place=Place(t, self.tree.depth, self.recipe.seed),
                threads=self.run.workers, progress=tick,
            )  # fmt: skip
        return match.dense_weights(level)

    # --- matching ---------------------------------------------------------------------------------

    def _match(self, t: int, tuned: Tuned, above: Matched | None) -> Matched:
        inputs = {
            "tuned": tuned.key,
            "above": None if above is None else above.key,
            "matcher": self.config.matcher,
            "width": self._at("width", t + 1),
            "scale": self.recipe.encoder.scale,
        }
        stage = self.space.stage(f"match-{t + 1}", inputs, partial(self._matched, t, tuned, above))
        return Matched(stage.key, stage.tensors["nodes"], stage.tensors["scores"])

    def _matched(self, t: int, tuned: Tuned, above: Matched | None) -> Tensors:
        """The clusters that are predicted for the next level, by whom the recipe says (eq. 7)."""
        level = match.Level(self.tree, t, above, min(self._at("width", t + 1), self.tree.size(t)), self.run.workers)
        x, found = self.features(tuned), []
        with self.run.progress.stage(f"matching level {t + 1}", x.rows, "docs") as tick:
            if self.config.matcher != "transformer":
                m = self.shortlist(t, above)
                m, costs = self._trained(all_rows(x.rows) if m is None else m), self._trained(self._linear_costs(t))
                found.append(match.by_linear(level, x, m, costs, seed=self.recipe.seed, progress=tick))
            if self.config.matcher != "concat":
                found.append(match.by_head(level, (tuned.tensors["head"], tuned.tensors["bias"]), tuned.embedding))
            nodes, scores = found[0] if len(found) == 1 else match.averaged(found[0], found[1], level)
        return {"nodes": nodes, "scores": scores}

    def _linear_costs(self, t: int) -> Csr:
        """Costs of the linear matcher's positives: l1-normalised wherever there are costs at all."""
        costs = self.targets(t)
        return relevance(costs, LinearConfig(relevance="induce")) if self.config.relevance == "counts" else costs

    def features(self, tuned: Tuned) -> Features:
        """Φ_cat (eq. 10): words and embedding, each of length one."""
        sparse = None if self.x is None else self.x.sparse
        return Features(sparse, unit(tuned.embedding, self.recipe.encoder.scale))

    # --- measuring --------------------------------------------------------------------------------

    @cached_property
    def split(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(documents that are trained on, documents held back to choose checkpoints)."""
        config, n = self.config, self.y.rows
        if self.given:
            return np.arange(n - self.given), np.arange(n - self.given, n)
        count = int(config.valid if config.valid >= 1 else config.valid * n)
        labelled = np.flatnonzero(self.y.counts() > 0)
        count = min(count, config.valid_most, len(labelled) // 2)
        order = np.random.Generator(np.random.Philox(key=[self.recipe.seed, 7])).permutation(labelled)
        held = np.sort(order[:count])
        return np.setdiff1d(np.arange(n), held), held

    def _trained(self, matrix: Csr) -> Csr:
        """The matrix without the entries of held-back documents: nothing may learn from what it is measured on."""
        held = np.zeros(matrix.rows, np.bool_)
        held[self.split[1]] = True
        return matrix.keep(~held[matrix.row_of()])

    def _quality(self, network: Encoder, head: Head, t: int, held: NDArray[np.int64], matched: Matched | None) -> float:
        """Mean of P@1 … P@k of the level on held-back documents, nothing forced into their shortlists."""
        embedding = network.embed(self.tokens.take(held), network.reading(self.recipe.encoder))
        k = min(self.config.check_k, head.nodes)
        level = match.Level(self.tree, t, None if matched is None else matched.take(held), k, self.run.workers)
        ids, _ = match.ranked(level, head.weights, embedding)
        truth = up(binary(self.y.take(held)), self.tree, t)
        found = hits(ids.astype(np.int64), truth)
        return float((np.cumsum(found, axis=1) / np.arange(1, k + 1)).mean())

    # --- settings ---------------------------------------------------------------------------------

    def _at(self, name: str, t: int) -> Any:
        return at(getattr(self.config, name), t, self.levels, f"finetune.{name}")

    def head_lr(self, t: int) -> float:
        """Of a level's head."""
        first, rate = self.config.first_head_lr, self._at("head_lr", t)
        return rate if t or first is None else first

    def settings(self, t: int) -> dict[str, Any]:
        """What the fine-tuning of one level depends on, and nothing else: other runs may share its stage."""
        others = {"on", "levels", "max_clusters", "refine", "epochs", "steps", "matcher", "width"}
        names = [field.name for field in dataclasses.fields(self.config) if field.name not in others]
        return {**{name: self._at(name, t) for name in names}, "steps": self.steps(t)}

    def steps(self, t: int) -> int:
        """Of a level."""
        if self.config.steps is not None:
            return at(self.config.steps, t, self.levels, "finetune.steps")
        rows = len(self.split[0])
        epochs: float = self._at("epochs", t)
        return max(1, round(epochs * rows / min(self.config.batch, rows)))

    def schedule(self, t: int) -> Any:
        from .trainer import Schedule

        config = self.config
        return Schedule(
            steps=self.steps(t), batch=config.batch, shard_tokens=config.shard_tokens, lr=self._at("lr", t),
            warmup=self._at("warmup", t), weight_decay=config.weight_decay, head_decay=config.head_decay,
            clip=config.clip, head_dropout=config.head_dropout, checks=self._at("checks", t), mixed=config.mixed,
        )  # fmt: skip
