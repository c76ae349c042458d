"""The part that all ways to fine-tune over a label tree share: documents, targets, settings and first states.

levelwise.py trains the levels one after the other (XR-Transformer), joint.py all at once (CascadeXML).
"""

from __future__ import annotations

import dataclasses
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.sparse import Csr, Features
from ...arrays.tokens import Tokens
from ...base.config import at, at_path, to_dict
from ...errors import ConfigError
from ...parts.label_features import binary
from ...parts.linear import LinearConfig, relevance
from ...parts.losses import LOSSES
from ...parts.tree import Tree, up
from ...recipes.network_settings import FinetuneConfig
from ..embedder import Embedder

if TYPE_CHECKING:
    from ...base.run import Run
    from ...recipes.recipe import Recipe
    from ...storage.keyed import Keyed
    from ...storage.stage_cache import Workspace
    from ..encoders.encoder import Encoder
    from ..training.head import Head
    from ..training.trainer import Schedule

Tensors = dict[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True, eq=False)
class Tuned:
    """The encoder after a fine-tuning, and embeddings (n, d) of all documents by it; none where a graph makes them."""

    key: str
    tensors: Tensors

    @property
    def embedding(self) -> NDArray[np.float16]:
        return self.tensors["embedding"]

    def head(self, t: int) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
        """W (K, d) and b (K,) of a level."""
        table = self.tensors[f"head-{t}"]
        return table[:, :-1], table[:, -1]

    @property
    def weights(self) -> Tensors:
        return {name.removeprefix("encoder."): a for name, a in self.tensors.items() if name.startswith("encoder.")}


@dataclasses.dataclass(frozen=True, eq=False)
class TuningData:
    """Data of a fine-tuning; `held_out` documents at the end are the user's own, which only measure it."""

    tokens: Keyed[Tokens]
    words: Keyed[Features]
    labels: Keyed[Csr]
    tree: Keyed[Tree]
    held_out: int = 0


@dataclasses.dataclass(frozen=True, eq=False)
class Tuning:
    """The fine-tuning of one run."""

    recipe: Recipe
    run: Run
    space: Workspace
    embedder: Embedder  # with the pretrained weights
    data: TuningData

    @property
    def tokens(self) -> Tokens:
        """The documents as the encoder reads them."""
        return self.data.tokens.value

    @property
    def y(self) -> Csr:
        """Their labels (n, L)."""
        return self.data.labels.value

    @property
    def tree(self) -> Tree:
        """The tree whose levels are learned."""
        return self.data.tree.value

    @property
    def inputs(self) -> dict[str, Any]:
        """Inputs of every stage; words are read between levels only, and are named there."""
        data = self.data
        return {
            "tokens": data.tokens,
            "labels": data.labels,
            "tree": data.tree,
            "held_out": data.held_out,
            "encoder": self.recipe.encoder.network(),
            "seed": self.recipe.seed,
        }

    @property
    def config(self) -> FinetuneConfig:
        return self.recipe.finetune

    @property
    def graph(self) -> bool:
        """Will an exported graph embed the documents in the end, so that the network itself need not?"""
        return self.recipe.encoder.runtime != "torch"

    @cached_property
    def levels(self) -> int:
        """Number of levels that are fine-tuned, from the coarsest on."""
        fitting = [size for size in self.tree.sizes if 1 < size <= self.recipe.levelwise.max_clusters]
        return len(fitting[: self.config.levels])

    @property
    def reached(self) -> int:
        """Number of levels of a network that predicts by itself: all, or the first `finetune.levels`."""
        return min(self.tree.depth, self.config.levels or self.tree.depth)

    # --- what is trained --------------------------------------------------------------------------

    def network(self, above: Tuned | None = None) -> Encoder:
        """The encoder as training begins: pretrained, or as it came out of the level above."""
        from ..encoders import encoder as encoders

        config = self.config
        network = encoders.rebuild(self.embedder.description, self.embedder.state if above is None else above.weights)
        network.drop(config.dropout, config.attention_dropout)
        if config.frozen_layers > network.depth:
            raise ConfigError(
                f"finetune.frozen_layers is {config.frozen_layers}, but the encoder has {network.depth} layers."
            )
        network.freeze(config.frozen_layers)
        return network.to(self.run.device)

    def targets(self, t: int) -> Csr:
        """Y_t (n, K_t) with the weights of positives (eq. 5-6)."""
        counts = up(binary(self.y), self.tree, t)
        config = self.config
        return relevance(counts, LinearConfig(relevance=config.relevance, relevance_norm=config.relevance_norm))

    def random_head(
        self, t: int, width: int, *, glorot: bool = False, m: Csr | None = None, opened: float = 1.0
    ) -> Head:
        """A level's head that knows nothing but how frequent its nodes are; `prior` explains `m` and `opened`."""
        import torch

        from ..training.head import Head
        from ..training.trainer import mixed_key

        generator = torch.Generator().manual_seed(mixed_key(self.recipe.seed, t, 2) % 2**63)
        moments = self.recipe.optimiser.head_moments
        head = Head.random(self.tree.size(t), width, generator, self.run.device, glorot=glorot, moments=moments)
        if self.config.first_bias == "prior":
            head.table[:, -1] = torch.from_numpy(self.prior(t, m, opened)).to(head.table.device)
        return head

    def prior(self, t: int, m: Csr | None = None, opened: float = 1.0) -> NDArray[np.float32]:
        """Biases (K_t,) that minimise the loss of a level as long as nothing is known of a document: all else is 0.

        Node j's part of the loss is P_j · loss(b) + N_j · loss(-b), where P_j adds up the weights of its positives and
        N_j is alpha times the number of its negatives, each document's divided by its number of candidates (C_i):

            P_j = Σ_{i: true} R̂_ij / C_i        N_j = α Σ_{i: a candidate, not true} 1 / C_i

        With a shortlist M (n, parents) both are exact. Without one all documents have as many candidates, and a share
        `opened` of a node's negatives is among them. A node without positives, or without negatives, has half of one.
        """
        y, alpha = self.trained(self.targets(t)), self.at("finetune.alpha", t)
        rows, share, true = y.row_of(), np.zeros(y.rows), np.ones(y.nnz, np.bool_)
        if m is None:
            share[self.split[0]] = 1
            seen = np.full(self.tree.size(t), share.sum())
        else:
            m, parents = self.trained(m), self.tree.parents(t)
            widths = np.diff(self.tree.child_ptrs[t])
            counts = np.bincount(m.row_of(), weights=widths[m.indices], minlength=m.rows)
            np.divide(1, counts, out=share, where=counts > 0)
            seen = np.bincount(m.indices, weights=share[m.row_of()], minlength=m.cols)[parents]
            true = np.isin(rows * m.cols + parents[y.indices], m.row_of() * m.cols + m.indices)
        nodes, each = y.indices[true], share[rows[true]]
        positive = np.bincount(nodes, weights=each * y.data[true], minlength=len(seen)).astype(np.float64)
        negative = alpha * opened * (seen - np.bincount(nodes, weights=each, minlength=len(seen)))
        least = 0.5 * float(np.mean(each * y.data[true])) if len(each) else 0.5
        known = share[share > 0]
        least_negative = 0.5 * alpha * (float(known.mean()) if len(known) else 1.0)
        loss = LOSSES[self.at("finetune.loss", t)]
        return loss.prior(np.maximum(positive, least), np.maximum(negative, least_negative)).astype(np.float32)

    def head(self, weight: NDArray[np.float32], bias: NDArray[np.float32]) -> Head:
        """A head with given weights."""
        import torch

        from ..training.head import Head

        w, b = (torch.from_numpy(np.ascontiguousarray(a)).to(self.run.device) for a in (weight, bias))
        return Head.of(w, b, self.recipe.optimiser.head_moments)

    # --- documents --------------------------------------------------------------------------------

    @cached_property
    def split(self) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """(documents that are trained on, documents held back to choose checkpoints)."""
        config, n = self.config, self.y.rows
        if self.data.held_out:
            first = n - self.data.held_out
            return np.arange(first), np.arange(first, n)
        count = int(config.valid if config.valid >= 1 else config.valid * n)
        labelled = np.flatnonzero(self.y.counts() > 0)
        count = min(count, config.valid_most, len(labelled) // 2)
        order = np.random.Generator(np.random.Philox(key=[self.recipe.seed, 7])).permutation(labelled)
        held = np.sort(order[:count])
        return np.setdiff1d(np.arange(n), held), held

    def trained(self, matrix: Csr) -> Csr:
        """The matrix without the entries of held-back documents: nothing may learn from what it is measured on."""
        held = np.zeros(matrix.rows, np.bool_)
        held[self.split[1]] = True
        return matrix.keep(~held[matrix.row_of()])

    # --- settings ---------------------------------------------------------------------------------

    def at(self, name: str, t: int) -> Any:
        """The setting with this dotted name at a level."""
        return at_path(self.recipe, name, t, self.levels)

    def width(self, t: int) -> int:
        """Predicted clusters of the level above whose children are candidates at level t."""
        found = self.at("finetune.parents", t)
        if found is None:
            found = max(16, self.tree.size(0) // 8) * 2 ** (t - 1)
        return min(int(found), self.tree.size(t - 1))

    def head_lr(self, t: int) -> float:
        """Learning rate of a level's head."""
        first, rate = self.recipe.optimiser.first_head_lr, self.at("optimiser.head_lr", t)
        return rate if t or first is None else first

    def settings(self, t: int) -> dict[str, Any]:
        """Settings that the fine-tuning of one level depends on, and no others: other runs may share its stage."""
        others = {"on", "order", "levels", "epochs", "steps", "parents"}
        paths = [f"finetune.{name}" for name in to_dict(self.config) if name not in others]
        paths += [f"optimiser.{name}" for name in to_dict(self.recipe.optimiser) if not name.endswith("head_lr")]
        if t:  # all clusters of the first level are its candidates, and its head is random
            paths += ["levelwise.source", "levelwise.bootstrap", "levelwise.bootstrap_c"]
        return {**{path: self.at(path, t) for path in paths}, "steps": self.steps(t), "head_lr": self.head_lr(t)}

    def steps(self, t: int) -> int:
        """Steps of a level's training."""
        if self.config.steps is not None:
            return at(self.config.steps, t, self.levels, "finetune.steps")
        rows = len(self.split[0])
        epochs: float = self.at("finetune.epochs", t)
        return max(1, round(epochs * rows / min(self.config.batch, rows)))

    def schedule(self, t: int) -> Schedule:
        from ..training.trainer import Schedule

        config, rates = self.config, self.recipe.optimiser
        return Schedule(
            steps=self.steps(t), batch=config.batch, shard_tokens=config.shard_tokens, lr=self.at("optimiser.lr", t),
            warmup=self.at("optimiser.warmup", t), weight_decay=rates.weight_decay, head_decay=config.lam,
            clip=rates.clip, checks=self.at("finetune.checks", t), mixed=rates.mixed, shape=rates.schedule,
            fall=rates.fall, head_shrink=rates.head_weight_decay, average_from=rates.average_from,
        )  # fmt: skip
