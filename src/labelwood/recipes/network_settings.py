"""Settings of the neural parts. Nothing here imports torch: recipes are made, read and printed without it."""

from __future__ import annotations

import dataclasses
from typing import Any

from .. import limits
from ..base.config import PerLevel, setting
from ..errors import ConfigError, ModelFileError
from ..parts import losses

POOLINGS = ("mean", "cls", "pooler", "attention")
RUNTIMES = ("torch", "onnx", "onnx-int8")
WIDTHS = ("hidden_size", "dim", "d_model")  # what encoders' configs call their width


@dataclasses.dataclass(frozen=True)
class Reading:
    """What a level, or the ranker, reads of a document: layers (0 = embeddings), side by side, and how."""

    layers: tuple[int, ...]
    pooling: str
    map: int = 0  # width of a linear map of what is read, which is trained with the network; 0: none

    def width(self, hidden: int) -> int:
        """Columns, of an encoder of this width."""
        return self.map or hidden * len(self.layers)

    def plain(self) -> list[Any]:
        """As a manifest keeps it."""
        return [list(self.layers), self.pooling, self.map]

    @staticmethod
    def of(plain: object) -> Reading:
        """The checked inverse of `plain`."""
        if not isinstance(plain, list) or len(plain) != 3:
            raise ModelFileError(f"a reading must be [layers, pooling, map], but is {str(plain)[:80]}.")
        layers, pooling, width = plain
        sound = isinstance(layers, list) and layers and all(type(t) is int and 0 <= t <= 1000 for t in layers)
        if not sound or pooling not in POOLINGS or type(width) is not int or not 0 <= width <= 2**20:
            raise ModelFileError(f"a reading must be [layers, pooling, map], but is {str(plain)[:80]}.")
        return Reading(tuple(layers), pooling, width)


@dataclasses.dataclass(frozen=True)
class EncoderConfig:
    """Text to an embedding."""

    model: str = setting(
        "none",
        "the pretrained encoder: a folder, a hub id, `minilm` (LABELWOOD_ENCODER, else the installed package, else the "
        "hub), or none",
    )
    max_tokens: int = setting(128, "tokens of a text that are read, with the special ones", low=3, high=8192)
    pooling: str = setting(
        "mean",
        "what stands for a text: the mean of its tokens, its first token (cls), the pretrained pooler on top of it "
        "(pooler; where an encoder has none, cls), or for each label what it attends to among them (attention)",
        choices=POOLINGS,
    )
    layer: int = setting(-1, "the layer that is read: -1 is the last, 0 the embeddings", low=-1, high=1000)
    features: str = setting(
        "both",
        "what the classifiers read: words and embedding (both), the embedding alone, or, below the clusters of a "
        "network, the words alone",
        choices=("both", "embedding", "words"),
    )  # fmt: skip
    scale: float = setting(1.0, "length of the embedding beside tf-idf's 1", above=0, high=1e3)
    engine: str = setting(
        "auto",
        "auto: our own BERT where the encoder is one, or a RoBERTa or DistilBERT, else transformers; bilstm: an LSTM "
        "in both directions over the encoder's word vectors, which starts from nothing",
        choices=("auto", "lean", "transformers", "bilstm"),
    )
    vectors: str | None = setting(
        None,
        "bilstm: word vectors in place of the encoder's, a text file as GloVe's, a word and its numbers a line; with "
        "encoder.model = none and no file they are random",
    )
    hidden: int = setting(256, "bilstm: width of each direction", low=1, high=8192)
    runtime: str = setting(
        "torch",
        "what computes embeddings once training is over, for the classifiers and at prediction; the model folder then "
        "holds that form alone",
        choices=RUNTIMES,
    )

    @property
    def on(self) -> bool:
        return self.model != "none" or self.engine == "bilstm"

    @property
    def attends(self) -> bool:
        """Does every label look for its own tokens, so that a text has no one vector?"""
        return self.on and self.pooling == "attention"

    def network(self) -> dict[str, object]:
        """What a fine-tuning depends on: the rest says how its result is used."""
        names = ("model", "max_tokens", "pooling", "layer", "engine", "vectors", "hidden")
        return {name: getattr(self, name) for name in names}


@dataclasses.dataclass(frozen=True)
class FinetuneConfig:
    """Fine-tuning the encoder on the levels of a label tree. A list of values has one for each fine-tuned level."""

    on: bool = setting(False, "fine-tune the encoder; false leaves it as it was pretrained")
    order: str = setting(
        "levelwise",
        "which levels are trained together: one after the other (levelwise), or all at once (joint)",
        choices=("levelwise", "joint"),
    )
    levels: int | None = setting(None, "fine-tune only so many levels, the coarsest first; none: all", low=1)
    epochs: PerLevel[float] = setting(
        2.0, "passes over the documents at each level; more learn longer, and may overfit", above=0, high=10_000
    )
    steps: PerLevel[int] | None = setting(None, "steps at each level, instead of epochs", low=0)
    batch: int = setting(32, "documents of a step", low=1, high=65536)
    shard_tokens: int = setting(
        16384, "tokens that go through the encoder at once; fewer need less memory; a step adds up its shards", low=1
    )
    loss: PerLevel[str] = setting("squared-hinge", "loss of a candidate", choices=losses.NAMES)
    relevance: str = setting(
        "induce",
        "weights of positive clusters: how many labels of the document they hold (induce, the paper's eq. 6), or 1 "
        "(off)",
        choices=("off", "induce"),
    )
    relevance_norm: str = setting(
        "l1",
        "how a document's weights are scaled: to the sum 1 (l1), or not at all (none, as the reference code)",
        choices=("l1", "none"),
    )
    alpha: PerLevel[float] = setting(
        1.0, "the paper's α: weight of negatives, that of a plain positive being 1", above=0, high=1e6
    )
    lam: float = setting(0.0, "the paper's λ: weight of |W|² of the heads in the loss", low=0)
    parents: PerLevel[int] | None = setting(
        10,
        "predicted parents of a document whose children are candidates; more find more labels and cost time; none: an "
        "eighth of the first level's clusters, at least 16, and twice as many from level to level",
        low=1,
    )
    first_bias: str = setting(
        "prior",
        "first biases of a head that is not solved for: those that fit the nodes' frequencies (prior), or 0 (zero)",
        choices=("prior", "zero"),
    )
    dropout: float = setting(0.1, "share of the encoder's hidden values dropped in training", low=0, high=0.95)
    attention_dropout: float = setting(
        0.0, "share of attention weights dropped (slow: no fused kernel)", low=0, high=0.95
    )
    head_dropout: PerLevel[float] = setting(
        0.1, "share of the embedding's values dropped before the head", low=0, high=0.95
    )
    frozen_layers: int = setting(
        -1, "layers from the bottom that stay as they are, with the word vectors; -1: none, not even those", low=-1
    )
    valid: float = setting(
        0.05, "documents held back to choose checkpoints: a share if below 1, else a number; 0: none", low=0
    )
    valid_most: int = setting(2000, "documents held back at most", low=1)
    checks: PerLevel[int] = setting(
        2, "times a level is measured on the documents held back; the best state goes on", low=1, high=1000
    )
    check_k: int = setting(5, "a check is the mean of P@1 … P@k, with this k", low=1, high=limits.MAX_K)

    def __post_init__(self) -> None:
        if self.valid >= 1 and not float(self.valid).is_integer():
            raise ConfigError(f"finetune.valid must be a share below 1 or a whole number, but is {self.valid}.")


@dataclasses.dataclass(frozen=True)
class OptimiserConfig:
    """How fast a fine-tuning learns (Adam)."""

    lr: PerLevel[float] = setting(1e-4, "highest learning rate of the encoder", above=0, high=10)
    head_lr: PerLevel[float] = setting(2e-3, "highest learning rate of the heads", above=0, high=10)
    first_head_lr: float | None = setting(
        1e-2, "highest learning rate of the first level's head, which starts from random weights; none: head_lr",
        above=0, high=10,
    )  # fmt: skip
    warmup: PerLevel[float] = setting(0.1, "share of the steps in which rates rise", low=0, high=1)
    schedule: str = setting(
        "linear",
        "rates rise and fall in lines, or as cosines with a level stretch between",
        choices=("linear", "cosine"),
    )
    fall: float = setting(0.2, "schedule cosine: share of the steps in which rates fall", low=0, high=1)
    clip: float | None = setting(1.0, "longest gradient, of encoder and head each; none: any", above=0)
    weight_decay: float = setting(0.0, "AdamW's decay of the encoder's matrices", low=0, high=10)
    head_weight_decay: float = setting(0.0, "AdamW's decay of the heads", low=0, high=10)
    head_moments: str = setting(
        "full",
        "Adam's state of the heads: both moments of every weight (full), or one number for each row (row), which needs "
        "a third of the memory",
        choices=("full", "row"),
    )
    average_from: float | None = setting(
        None, "share of the steps after which the measured weights are means of those at each check; none: never",
        low=0, high=1,
    )  # fmt: skip
    mixed: bool = setting(True, "bfloat16 where the device is CUDA; a CPU is slower with it")


@dataclasses.dataclass(frozen=True)
class LevelwiseConfig:
    """What only a fine-tuning that trains one level after the other has."""

    source: PerLevel[str] = setting(
        "union",
        "candidates below the parents of true labels (teacher), predicted parents (predicted), or both (union)",
        choices=("teacher", "predicted", "union"),
    )
    matcher: str = setting(
        "concat",
        "what predicts parents: a linear model on words and embedding (concat), the fine-tuned head (transformer), or "
        "the mean of both (average)",
        choices=("concat", "transformer", "average"),
    )
    bootstrap: PerLevel[str] = setting(
        "weighted-linear",
        "first weights of a head below the first level: a linear solve on the embeddings so far, with or without "
        "relevances (eq. 11), the parent's row (inherit), or N(0, 0.02²) (none)",
        choices=("weighted-linear", "linear", "inherit", "none"),
    )
    bootstrap_c: float = setting(100.0, "1/λ of the bootstrap's linear solve", low=1e-6, high=1e6)
    max_clusters: int = setting(32768, "levels with more clusters are not fine-tuned", low=1)
    refine: bool = setting(True, "cluster the labels anew by the fine-tuned features; false keeps the first tree")


@dataclasses.dataclass(frozen=True)
class JointConfig:
    """What only a fine-tuning that trains all levels at once has."""

    layers: tuple[str, ...] | None = setting(
        None,
        'layers that each level reads, like "8", "5+6" or "last5", or one for all; none: the last level reads the last '
        "layer, each one above it a sixth of the depth lower, and the first two of them",
    )
    maps: PerLevel[int] = setting(
        -1,
        "width of a linear map of what a level reads; 0: none; -1: that of one layer where several are read",
        low=-1, high=65536,
    )  # fmt: skip
    level_weights: tuple[float, ...] | None = setting(
        None, "weights of the levels' losses, or 1 for all; none: by the number of candidates, 1 for the fewest", low=0
    )
    truth: str = setting(
        "union",
        "true nodes are added to the candidates (union), or true clusters replace the worst of those chosen (replace, "
        "as the reference code)",
        choices=("union", "replace"),
    )
    score: str = setting(
        "auto",
        "a label's score: its own probability (label), that times its cluster's (parent), or the product down the path "
        "(path); auto: the best of them on held-back documents",
        choices=("auto", "label", "parent", "path"),
    )
