"""CascadeXML (its Algorithm 1): one network, end to end, every resolution of the labels on layers of its own.

Each level of the label tree reads its layers of the encoder. At every step the best clusters of a level open their
children for the next one (eq. 2), the truth is added (eq. 3), and the losses of all levels are minimised together
(eq. 4-5). For prediction the heads become linear levels of an ordinary model, each reading its own columns, so the
search is that of all recipes: a plain margin chooses the clusters, and nothing is forced.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.sparse import Csr, Features
from ...base.config import at, to_dict
from ...metrics.ranking import hits
from ...parts.label_features import binary
from ...parts.linear_level import LinearLevel, from_weights
from ...parts.search import Search, SearchConfig, search
from ...parts.tree import Tree, up
from ...recipes.encoder_settings import Reading
from ..attention_level import AttentionLevel
from ..embedder import half
from .base import Tensors, Tuned, Tuning

if TYPE_CHECKING:
    from ..encoders.encoder import Encoder
    from ..training.head import Head

READOUTS = ("label", "parent", "path")
STORED = "float16"  # weights of the heads in a model


@dataclasses.dataclass(frozen=True, eq=False)
class Network:
    """A trained network of all levels as models use it."""

    tuned: Tuned
    readings: Sequence[Reading]
    tree: Tree
    levels: Sequence[LinearLevel | AttentionLevel]
    search: SearchConfig
    held: NDArray[np.int64]  # documents that it was measured on and never learned from

    @property
    def whole(self) -> bool:
        """Does it reach the labels?"""
        return len(self.levels) == self.tree.depth


@dataclasses.dataclass(frozen=True, eq=False)
class Cascade(Tuning):
    """A fine-tuning of all levels at once."""

    @cached_property
    def levels(self) -> int:
        """Number of levels that are trained together."""
        return self.reached

    @cached_property
    def readings(self) -> list[Reading]:
        """Layers and pooling that each level reads."""
        given, pooling = self.recipe.joint.layers, self.recipe.encoder.pooling
        last = self.embedder.readings[0].layers[0]  # encoder.layer, or the encoder's last
        layers = placed(self.levels, last) if given is None else [_layers(text, last) for text in given]
        layers = layers * self.levels if len(layers) == 1 else layers
        widths = [self.at("joint.maps", t) for t in range(self.levels)]
        return [
            Reading(found, pooling, (self.hidden if len(found) > 1 else 0) if width < 0 else width)
            for found, width in zip(layers, widths, strict=True)
        ]

    @property
    def hidden(self) -> int:
        """The encoder's width."""
        return self.embedder.description.width

    def train(self) -> Network:
        """The network, trained or found in the workspace."""
        settings = {
            **to_dict(self.config), **to_dict(self.recipe.optimiser), **to_dict(self.recipe.joint),
            "steps": self.steps(0),
        }  # fmt: skip
        for name in ("on", "epochs"):
            settings.pop(name)
        inputs = {**self.inputs, "finetune": settings, "embedded": not self.graph}
        stage = self.space.training("cascade", inputs, self._train)
        tuned = Tuned(stage.key, stage.tensors)
        heads = [tuned.head(t) for t in range(self.levels)]
        readout = READOUTS[int(tuned.tensors["readout"][0])]
        return Network(
            tuned, self.readings, self.tree, self._linear(heads), self.searching(readout), self.split[1]
        )  # fmt: skip

    def _train(self, keeper: Any) -> Tensors:
        from ..encoders import encoder as encoders
        from ..training.trainer import Hooks, Trainer

        network = self.network().read(self.readings, self.recipe.seed).to(self.run.device)
        heads = [
            self.random_head(t, network.widths[t], glorot=True, opened=self.sizes[t] / self.tree.size(t))
            for t in range(self.levels)
        ]
        rows, held = self.split
        progress, name = self.run.progress, f"training {self.levels} levels"
        measure = partial(self._quality, network, heads, held) if len(held) else None
        with encoders.threads(self.run.workers, network, self.config.batch * float(self.tokens.lengths.mean())):
            with progress.stage(name, self.steps(0), "steps") as tick:
                Trainer(
                    network, self.tasks(heads), self.tokens, rows, self.schedule(0), key=(self.recipe.seed, 0),
                    measure=measure, hooks=Hooks(name, tick, self.run.on_event, keeper, self.space.every),
                ).run()  # fmt: skip
            embedding = np.zeros((0, 0), np.float16)
            if not self.graph:
                with progress.stage("embedding", len(self.tokens), "docs") as tick:
                    embedding = half(network.embed(self.tokens, progress=tick))
            some = half(network.embed(self.tokens.take(held))) if self.graph else embedding[held]
        found: Tensors = {f"encoder.{key}": value for key, value in network.state().items()}
        found |= {f"head-{t}": head.table.cpu().numpy() for t, head in enumerate(heads)}
        best = self._readout([head.weights for head in heads], some.astype(np.float32), held)
        return found | {"embedding": embedding, "readout": np.array([READOUTS.index(best)], np.uint8)}

    def tasks(self, heads: list[Head]) -> list[Any]:
        """The levels as the trainer sees them."""
        from ..training.trainer import DynamicShortlist, Task

        return [
            Task(
                head=heads[t], reading=t, y=self.targets(t), m=None, child_ptr=self.tree.child_ptrs[t],
                loss=self.at("finetune.loss", t), alpha=self.at("finetune.alpha", t), head_lr=self.head_lr(t),
                dropout=self.at("finetune.head_dropout", t), weight=self.weights[t],
                shortlist=DynamicShortlist(self.width(t), self.recipe.joint.truth) if t else None,
            )
            for t in range(self.levels)
        ]  # fmt: skip

    @cached_property
    def weights(self) -> tuple[float, ...]:
        """α: the levels' shares of the loss, by their nominal numbers of candidates, fixed for the run."""
        given = self.recipe.joint.level_weights
        if given is not None:
            return given * self.levels if len(given) == 1 else given
        return tuple(size / min(self.sizes) for size in self.sizes)

    @cached_property
    def sizes(self) -> tuple[float, ...]:
        """Nominal numbers of candidates: all clusters of the first level, then those below the clusters that open."""
        tree = self.tree
        below = (self.width(t) * tree.size(t) / tree.size(t - 1) for t in range(1, self.levels))
        return (float(tree.size(0)), *below)

    # --- prediction -------------------------------------------------------------------------------

    def _linear(self, heads: list[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> list[LinearLevel]:
        """The heads as levels that the search reads."""
        levels: list[LinearLevel] = []
        begin = 0
        for (weight, bias), ptr in zip(heads, self.tree.child_ptrs, strict=False):
            levels.append(from_weights(weight, bias, ptr, STORED, begin, spool=self.space.spool(weight.nbytes // 2)))
            begin += weight.shape[1]
        return levels

    def searching(self, readout: str) -> SearchConfig:
        """Search for labels: clusters by their own margins, except where the whole path counts."""
        tail = {"label": 1, "parent": 2, "path": self.levels}[readout]
        combiner = ("noop",) * max(0, self.levels - tail) + ("sigmoid",) * min(tail, self.levels)
        return SearchConfig(beam=(*(self.width(t) for t in range(1, self.levels)), 1), combiner=combiner)

    def _readout(self, heads: list[Any], embedding: NDArray[np.float32], held: NDArray[np.int64]) -> str:
        """The readout that the recipe names, or the best one on held-back documents."""
        asked = self.recipe.joint.score
        if asked != "auto" or not len(held):
            return "parent" if asked == "auto" else asked
        levels = self._linear(heads)
        return max(READOUTS, key=lambda readout: self._precision(levels, embedding, held, readout))

    def _quality(self, network: Encoder, heads: list[Head], held: NDArray[np.int64]) -> float:
        """Mean of P@1 … P@k on held-back documents, by the best of the allowed readouts."""
        embedding = half(network.embed(self.tokens.take(held))).astype(np.float32)
        levels = self._linear([head.weights for head in heads])
        asked = READOUTS if self.recipe.joint.score == "auto" else (self.recipe.joint.score,)
        return max(self._precision(levels, embedding, held, readout) for readout in asked)

    def _precision(
        self, levels: list[LinearLevel], embedding: NDArray[np.float32], held: NDArray[np.int64], readout: str
    ) -> float:
        last, whole = self.levels - 1, self.levels == self.tree.depth
        k = min(self.config.check_k, self.tree.size(last))
        names = self.tree.leaves if whole else None
        what = Search(self.searching(readout), self.levels, k, names, cols=(0, embedding.shape[1]))
        ids, _ = search(Features(dense=embedding), levels, what, threads=self.run.workers)
        truth = self.y.take(held)
        return precision(ids, truth if whole else up(binary(truth), self.tree, last))

    def steps(self, t: int) -> int:
        """Steps of the one training; a list of one value is that value."""
        if self.config.steps is not None:
            return at(self.config.steps, 0, 1, "finetune.steps")
        rows = len(self.split[0])
        epochs: float = at(self.config.epochs, 0, 1, "finetune.epochs")
        return max(1, round(epochs * rows / min(self.config.batch, rows)))


def precision(ids: NDArray[np.int32], truth: Csr) -> float:
    """Mean of P@1 … P@k."""
    found = hits(ids.astype(np.int64), truth)
    return float((np.cumsum(found, axis=1) / np.arange(1, ids.shape[1] + 1)).mean())


def placed(levels: int, depth: int) -> list[tuple[int, ...]]:
    """Layers of the levels: the last reads the last layer, each above it a sixth of the depth lower, at least one.

    The first level reads its layer and the one before it: 12 layers and 4 levels are {5, 6}, 8, 10, 12.
    """
    step = max(1, round(depth / 6))
    found: list[tuple[int, ...]] = [(max(1, depth - step * (levels - 1 - t)),) for t in range(levels)]
    if levels > 1 and found[0][0] > 1:
        found[0] = (found[0][0] - 1, found[0][0])
    return found


def _layers(text: str, depth: int) -> tuple[int, ...]:
    """Layers that "8", "5+6" or "last5" names; "last5" gives as many of the last ones as there are, up to five."""
    found = tuple(int(part) for part in text.removeprefix("last").split("+"))
    return tuple(range(max(1, depth - found[0] + 1), depth + 1)) if text.startswith("last") else found
