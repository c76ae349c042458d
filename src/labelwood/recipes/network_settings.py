"""Settings of fine-tuning. Nothing here imports torch: recipes are made, read and printed without it."""

from __future__ import annotations

import dataclasses

from .. import limits
from ..base.config import Acts, PerLevel, each, setting
from ..errors import ConfigError
from ..parts import losses
from .encoder_settings import WITH_ENCODER

_DEEP = "where several levels are fine-tuned (coarse.kind other than flat, finetune.levels above 1 or none)"
_STEPS = f"{_DEEP[:-1]}, encoder.pooling other than attention)"


@dataclasses.dataclass(frozen=True)
class FinetuneConfig:
    """Fine-tuning the encoder on the levels of a label tree. A list of values has one for each fine-tuned level."""

    on: bool = setting(
        False, "fine-tune the encoder, which takes most of the time; false leaves it as it was pretrained",
        acts=Acts(lambda _, recipe: recipe.encoder.on, WITH_ENCODER, alone=True), rank=4,
    )  # fmt: skip
    order: str = setting(
        "levelwise",
        "which levels are trained together: one after the other (levelwise), or all at once (joint)",
        choices=("levelwise", "joint"), rank=6,
    )  # fmt: skip
    levels: int | None = setting(
        None, "fine-tune only so many levels, the coarsest first; fewer take less time; none: all", low=1, rank=6
    )
    epochs: PerLevel[float] = setting(
        2.0, "passes over the documents at each level; more learn longer, and may overfit", above=0, high=10_000,
        acts=Acts(lambda own, _: own.steps is None, "with finetune.steps = none"), rank=1,
    )  # fmt: skip
    steps: PerLevel[int] | None = setting(
        None, "steps at each level, in place of epochs; more learn longer", low=0, rank=3
    )
    batch: int = setting(
        32, "documents of a step; more make steadier steps, which need more memory and a higher learning rate",
        low=1, high=65536, rank=3,
    )  # fmt: skip
    shard_tokens: int = setting(
        16384, "tokens that go through the encoder at once; lower it where memory is short", low=1, rank=6
    )
    loss: PerLevel[str] = setting(
        "squared-hinge", "loss of a candidate; logistic makes scores probabilities", choices=losses.NAMES
    )
    relevance: str = setting(
        "induce",
        "weight of a true cluster: by how many of the document's labels it holds (induce, the paper's eq. 6), or 1 for "
        "all (off)",
        choices=("off", "induce"), rank=6,
    )  # fmt: skip
    relevance_norm: str = setting(
        "l1",
        "how a document's weights are scaled: to the sum 1 (l1), or not at all (none, as the reference code)",
        choices=("l1", "none"), rank=7,
        acts=Acts(lambda own, _: own.relevance != "off", "with finetune.relevance = induce"),
    )  # fmt: skip
    alpha: PerLevel[float] = setting(
        1.0, "the paper's α: weight of negatives beside positives; a higher value makes the network predict less",
        above=0, high=1e6, rank=6,
    )  # fmt: skip
    lam: float = setting(
        0.0, "the paper's λ: weight of |W|² of the heads in the loss; a higher value keeps them smaller", low=0, rank=7
    )
    parents: PerLevel[int] | None = setting(
        10,
        "predicted clusters of a document whose children are candidates; more find more labels and take longer; none: "
        "an eighth of the first level's clusters, at least 16, and twice as many from level to level",
        low=1, acts=Acts(lambda _, recipe: recipe.tunes_levels, _DEEP), rank=2,
    )  # fmt: skip
    first_bias: str = setting(
        "prior",
        "first biases of a random head: those that fit how frequent its nodes are (prior: learns sooner), or 0 (zero)",
        choices=("prior", "zero"), rank=7,
    )  # fmt: skip
    dropout: float = setting(
        0.1, "share of the encoder's hidden values dropped in training; raise it where the network overfits",
        low=0, high=0.95,
    )  # fmt: skip
    attention_dropout: float = setting(
        0.0, "share of attention weights dropped in training; above 0 trains much more slowly", low=0, high=0.95,
        acts=Acts(lambda _, recipe: recipe.encoder.engine != "bilstm", "with encoder.engine other than bilstm"),
        rank=7,
    )  # fmt: skip
    head_dropout: PerLevel[float] = setting(
        0.1, "share of the embedding's values dropped before the head; raise it where the network overfits",
        low=0, high=0.95,
    )  # fmt: skip
    frozen_layers: int = setting(
        -1,
        "layers from the bottom that stay as they are, with the word vectors; more train faster and learn less; -1: "
        "none, not even those",
        low=-1,
    )
    valid: float = setting(
        0.05,
        "documents held back to choose checkpoints: a share if below 1, else a number; more choose better, and fewer "
        "are learned from; 0: none",
        low=0,
    )
    valid_most: int = setting(
        2000, "documents held back at most; more choose better and take longer to measure", low=1, rank=7,
        acts=Acts(lambda own, _: own.valid > 0, "with finetune.valid above 0"),
    )  # fmt: skip
    checks: PerLevel[int] = setting(
        2, "times a level is measured on the documents held back, of which the best state goes on; more take longer",
        low=1, high=1000,
    )  # fmt: skip
    check_k: int = setting(
        5, "a check is the mean of P@1 … P@k, with this k; set it to the k that you use", low=1, high=limits.MAX_K,
        rank=6,
    )  # fmt: skip

    def __post_init__(self) -> None:
        if self.valid >= 1 and not float(self.valid).is_integer():
            raise ConfigError(f"finetune.valid must be a share below 1 or a whole number, but is {self.valid}.")


@dataclasses.dataclass(frozen=True)
class OptimiserConfig:
    """Rates at which a fine-tuning learns (Adam)."""

    lr: PerLevel[float] = setting(
        1e-4, "highest learning rate of the encoder; raise it to learn faster, lower it if the loss jumps",
        above=0, high=10, rank=1,
    )  # fmt: skip
    head_lr: PerLevel[float] = setting(
        2e-3, "highest learning rate of the heads; raise it to learn faster, lower it if the loss jumps",
        above=0, high=10, rank=2,
        acts=Acts(
            lambda own, recipe: own.first_head_lr is None or recipe.tunes_levels,
            "below the first level, or with optimiser.first_head_lr = none",
        ),
    )  # fmt: skip
    first_head_lr: float | None = setting(
        1e-2,
        "highest learning rate of the first level's head, which starts from random weights; raise it where the first "
        "level learns too slowly; none: as optimiser.head_lr",
        above=0, high=10, rank=3,
    )  # fmt: skip
    warmup: PerLevel[float] = setting(
        0.1, "share of the steps in which rates rise; raise it if the loss jumps at the start", low=0, high=1
    )
    schedule: str = setting(
        "linear",
        "rates rise and fall in lines (linear), or as cosines with a level stretch between (cosine)",
        choices=("linear", "cosine"), rank=6,
    )  # fmt: skip
    fall: float = setting(
        0.2, "share of the steps in which a cosine falls; a higher value ends sooner with small steps", low=0, high=1,
        acts=Acts(lambda own, _: own.schedule == "cosine", "with optimiser.schedule = cosine"), rank=6,
    )  # fmt: skip
    clip: float | None = setting(
        1.0, "longest gradient, of encoder and head each; lower it if the loss jumps; none: any", above=0, rank=6
    )
    weight_decay: float = setting(
        0.0, "AdamW's decay of the encoder's matrices; a higher value keeps weights smaller", low=0, high=10, rank=6
    )
    head_weight_decay: float = setting(
        0.0, "AdamW's decay of the heads; a higher value keeps weights smaller", low=0, high=10, rank=6
    )
    head_moments: str = setting(
        "full",
        "Adam's state of the heads: both moments of every weight (full), or one number for each row (row: a third of "
        "the memory, for very many labels)",
        choices=("full", "row"), rank=7,
    )  # fmt: skip
    average_from: float | None = setting(
        None,
        "share of the steps after which the weights are means of those at each check; set 0.5 or so for a network that "
        "starts from nothing; none: never",
        low=0, high=1, rank=6,
    )  # fmt: skip
    mixed: bool = setting(True, "compute in bfloat16 where the device is CUDA: faster, a little less exact", rank=7)


@dataclasses.dataclass(frozen=True)
class LevelwiseConfig:
    """Settings that only a fine-tuning of one level after the other has."""

    source: PerLevel[str] = setting(
        "union",
        "clusters whose children are a document's candidates: its true ones (teacher), those predicted (predicted), or "
        "both (union); union has the harder negatives",
        choices=("teacher", "predicted", "union"), acts=Acts(lambda _, recipe: recipe.tunes_levels, _DEEP), rank=4,
    )  # fmt: skip
    matcher: str = setting(
        "concat",
        "what predicts clusters for the next level: a linear model on words and embedding (concat), the fine-tuned "
        "head (transformer), or the mean of both (average)",
        choices=("concat", "transformer", "average"),
        acts=Acts(lambda _, recipe: recipe.tunes_levels and not recipe.encoder.attends, _STEPS),
    )  # fmt: skip
    bootstrap: PerLevel[str] = setting(
        "weighted-linear",
        "first weights of a head below the first level: a linear solve on the embeddings so far, with or without "
        "relevances (eq. 11), the parent's row (inherit), or random ones (none)",
        choices=("weighted-linear", "linear", "inherit", "none"), rank=6,
        acts=Acts(lambda _, recipe: recipe.tunes_levels and not recipe.encoder.attends, _STEPS),
    )  # fmt: skip
    bootstrap_c: float = setting(
        100.0, "1/λ of the linear solve for first weights; a higher value fits the embeddings more closely", low=1e-6,
        high=1e6, rank=7,
        acts=Acts(
            lambda own, recipe: (
                recipe.tunes_levels and not recipe.encoder.attends
                and bool({"weighted-linear", "linear"} & set(each(own.bootstrap)))
            ),
            "with levelwise.bootstrap = weighted-linear or linear, on several levels",
        ),
    )  # fmt: skip
    max_clusters: int = setting(
        32768, "levels of more clusters are not fine-tuned; a higher value fine-tunes finer levels and takes longer",
        low=1, acts=Acts(lambda _, recipe: not recipe.encoder.attends, "where labels do not attend to tokens"),
    )  # fmt: skip
    refine: bool = setting(
        True,
        "cluster the labels anew by what the encoder makes of them; false keeps the first tree, which saves a little "
        "time",
        acts=Acts(
            lambda _, recipe: recipe.encoder.on and not recipe.has_network,
            "beside an encoder that is no network which predicts by itself",
            alone=True,
        ),
    )


@dataclasses.dataclass(frozen=True)
class JointConfig:
    """Settings that only a fine-tuning of all levels at once has."""

    layers: tuple[str, ...] | None = setting(
        None,
        'layers that each level reads, like "8", "5+6" or "last5", or one for all; more layers side by side make '
        "longer vectors; none: the last level reads the last layer, each one above it a sixth of the depth lower, and "
        "the first two of them",
    )
    maps: PerLevel[int] = setting(
        -1,
        "width of a linear map of what a level reads; a smaller one makes shorter vectors; 0: none; -1: that of one "
        "layer where several are read",
        low=-1, high=65536, rank=6,
    )  # fmt: skip
    level_weights: tuple[float, ...] | None = setting(
        None,
        "weights of the levels' losses, or 1 for all; a higher one makes a level count more; none: by the number of "
        "candidates, 1 for the fewest",
        low=0, acts=Acts(lambda _, recipe: recipe.tunes_levels, _DEEP), rank=6,
    )  # fmt: skip
    truth: str = setting(
        "union",
        "true nodes are added to the candidates (union), or true clusters replace the worst of those chosen (replace, "
        "as the reference code)",
        choices=("union", "replace"), acts=Acts(lambda _, recipe: recipe.tunes_levels, _DEEP), rank=7,
    )  # fmt: skip
    score: str = setting(
        "auto",
        "a label's score: its own probability (label), that times its cluster's (parent), or the product down the path "
        "(path); auto: the best of them on held-back documents",
        choices=("auto", "label", "parent", "path"), acts=Acts(lambda _, recipe: recipe.tunes_levels, _DEEP),
    )  # fmt: skip
