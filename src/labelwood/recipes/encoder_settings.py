"""Settings of encoders, and what is read of one. Nothing here imports torch: recipes are printed without it."""

from __future__ import annotations

import dataclasses
from typing import Any

from ..base.config import Acts, setting
from ..errors import ModelFileError

POOLINGS = ("mean", "cls", "pooler", "attention")

RUNTIMES = ("torch", "onnx", "onnx-int8")

WITH_ENCODER = "where texts are read by an encoder too (encoder.model)"

_LSTM = "with encoder.engine = bilstm"

WIDTHS = ("hidden_size", "dim", "d_model")  # what encoders' configs call their width


@dataclasses.dataclass(frozen=True)
class Reading:
    """Reading of a document by a level, or by the ranker: layers (0 = embeddings), side by side, and how."""

    layers: tuple[int, ...]
    pooling: str
    map: int = 0  # width of a linear map of what is read, which is trained with the network; 0: none

    def width(self, hidden: int) -> int:
        """Columns, of an encoder of this width."""
        return self.map or hidden * len(self.layers)

    def plain(self) -> list[Any]:
        """List that a manifest keeps."""
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
        "hub), or none; larger encoders are more accurate and slower",
        acts=Acts(lambda *_: True, "always", alone=True),
        rank=1,
    )
    max_tokens: int = setting(
        128, "tokens of a text that are read; more read longer texts to their end and take longer", low=3, high=8192,
        rank=1,
    )  # fmt: skip
    pooling: str = setting(
        "mean",
        "what stands for a text: the mean of its tokens, its first token (cls), the pretrained pooler on top of that "
        "(pooler; where an encoder has none, cls), or for each label what it attends to among them (attention)",
        choices=POOLINGS, rank=4,
    )  # fmt: skip
    layer: int = setting(
        -1, "the layer that is read: -1 is the last, 0 the word vectors; a lower one is less far from the pretrained",
        low=-1, high=1000, rank=7,
    )  # fmt: skip
    features: str = setting(
        "both",
        "what the classifiers read: words and embedding (both), the embedding alone (smaller and less accurate), or, "
        "below the clusters of a network, the words alone",
        choices=("both", "embedding", "words"),
        acts=Acts(lambda _, recipe: recipe.classifies, "where classifiers predict (ranker = tree or network)"),
    )  # fmt: skip
    scale: float = setting(
        1.0, "length of the embedding beside the words' 1; a higher value gives it more weight", above=0, high=1e3,
        acts=Acts(
            lambda own, recipe: (recipe.classifies and own.features != "words") or recipe.matches_by_words,
            "where a linear model reads the embedding (encoder.features, levelwise.matcher)",
        ),
    )  # fmt: skip
    engine: str = setting(
        "auto",
        "auto: our own fast BERT where the encoder is one, or a RoBERTa or DistilBERT, else transformers; bilstm: an "
        "LSTM in both directions over word vectors, which starts from nothing",
        choices=("auto", "lean", "transformers", "bilstm"), rank=6,
    )  # fmt: skip
    vectors: str | None = setting(
        None,
        "word vectors of the LSTM, a text file as GloVe's: a word and its numbers a line; none: those of "
        "encoder.model, random ones if that is none",
        acts=Acts(lambda own, _: own.engine == "bilstm", _LSTM),
    )
    hidden: int = setting(
        256, "width of the LSTM in each direction; a wider one learns more and takes longer", low=1, high=8192,
        acts=Acts(lambda own, _: own.engine == "bilstm", _LSTM), rank=3,
    )  # fmt: skip
    runtime: str = setting(
        "torch",
        "what computes embeddings for the classifiers and at prediction; onnx-int8 is the fastest and smallest, a "
        "little less exact",
        choices=RUNTIMES, rank=2,
    )  # fmt: skip

    @property
    def on(self) -> bool:
        return self.model != "none" or self.engine == "bilstm"

    @property
    def attends(self) -> bool:
        """Does every label look for its own tokens, so that a text has no one vector?"""
        return self.on and self.pooling == "attention"

    def as_pretrained(self) -> EncoderConfig:
        """The encoder as it is before any training, read by the mean of its last states."""
        return dataclasses.replace(self, pooling="mean", layer=-1, runtime="torch")

    def network(self) -> dict[str, object]:
        """Settings that a fine-tuning depends on: the rest says how its result is used."""
        names = ("model", "max_tokens", "pooling", "layer", "engine", "vectors", "hidden")
        return {name: getattr(self, name) for name in names}
