"""The encoder inside a model: texts to embeddings (n, d), by torch or by ONNX Runtime. Neither is imported before use.

Embeddings are rounded to float16 wherever they are made, so that what a classifier was trained on is what it meets at
prediction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, Features
from ..arrays.tokens import Tokens
from ..base.config import to_dict
from ..base.digests import digest_plain, digest_tensors
from ..base.progress import Tick
from ..errors import ModelFileError, needs
from ..recipes.encoder_settings import EncoderConfig, Reading
from .encoders.description import Description
from .encoders.tokens import TextSequence, Tokeniser

Tensors = Mapping[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True, eq=False)
class Embedder:
    """An encoder as a model keeps it. It never changes, and threads may share it."""

    config: EncoderConfig
    description: Description
    state: Tensors  # its weights, or its ONNX graph
    tokeniser: Tokeniser

    @property
    def attends(self) -> bool:
        """Has each level a network of its own, whose labels attend to tokens? Such levels read the tokens themselves;
        classifiers read, as a last reading, the mean state of the last network."""
        return self.description.raw and self.readings[0].pooling == "attention"

    @property
    def levels(self) -> int:
        """Levels whose labels attend, each with a network of its own."""
        return sum(reading.pooling == "attention" for reading in self.readings) if self.attends else 0

    @property
    def embeds(self) -> bool:
        """Does anything read an embedding?"""
        return self.levels < len(self.readings)

    @property
    def readings(self) -> tuple[Reading, ...]:
        """Readings of the network, side by side."""
        return self.description.readings

    def of_levels(self, readings: Sequence[Reading], state: Tensors) -> Embedder:
        """The network after a training in which each level had a reading of its own."""
        return Embedder(self.config, self.description.reading(readings, raw=True), state, self.tokeniser)

    def with_weights(self, state: Tensors) -> Embedder:
        """The same network with other weights, or with the graph that stands for it."""
        return Embedder(self.config, self.description, state, self.tokeniser)

    def features(self, words: Csr | None, tokens: Tokens, embedding: NDArray[Any]) -> Features:
        """X as a model's levels read it: words; all readings, if levels of the model's own read them, and the last one
        at length `scale`; tokens, if labels attend to them."""
        if self.attends:
            return Features(words, self.last(embedding) if self.embeds else None, tokens)
        last = self.last(embedding)
        raw = self.description.raw
        return Features(words, np.concatenate([embedding.astype(np.float32), last], axis=1) if raw else last)

    def last(self, embedding: NDArray[Any]) -> NDArray[np.float32]:
        """The last reading at length `scale`."""
        if self.attends:
            return unit(embedding, self.config.scale)
        bare = embedding.shape[1] - sum(reading.map for reading in self.readings)
        layers = sum(len(reading.layers) for reading in self.readings if not reading.map)
        width = self.readings[-1].width(bare // layers if layers else 0)
        return unit(embedding[:, embedding.shape[1] - width :], self.config.scale)

    def tokens(self, texts: TextSequence, progress: Tick | None = None) -> Tokens:
        """The texts as the encoder reads them."""
        found, known = self.tokeniser(texts, progress), self.description.vocabulary
        if known is not None and int(found.ids.max(initial=0)) >= known:
            raise ModelFileError(f"the model's tokeniser gives {int(found.ids.max())}, but its encoder knows {known}.")
        return found

    def embed(self, tokens: Tokens, threads: int, progress: Tick | None = None) -> NDArray[Any]:
        """(n, d) of tokenised texts, float16."""
        if not self.embeds:
            return np.zeros((len(tokens), 0), np.float16)
        if self.config.runtime != "torch":
            return half(self._session.embed(tokens, threads, progress))
        with needs("this model's encoder", "neural"):
            from .encoders import encoder
        net = self.networks[-1]
        with encoder.threads(threads, net, float(tokens.offsets[-1])):
            return half(net.embed(tokens, progress=progress))

    def exported(self) -> Embedder:
        """The same encoder as the graph that the recipe asks for, in place of its weights."""
        from .encoders import onnx

        shape = onnx.Shape.of(self.description)
        graph = onnx.export(shape, self.state, int8=self.config.runtime == "onnx-int8")
        return self.with_weights({"graph": np.frombuffer(graph, np.uint8)})

    @cached_property
    def networks(self) -> list[Any]:
        """Networks in torch: the one network, or one for each level where labels attend."""
        from .encoders import encoder

        try:
            if not self.attends:
                return [encoder.rebuild(self.description, self.state)]
            states = [
                {name.partition(".")[2]: a for name, a in self.state.items() if name.startswith(f"{t}.")}
                for t in range(self.levels)
            ]
            alone = [self.description.reading([reading], raw=False) for reading in self.readings[: self.levels]]
            return [encoder.rebuild(what, state) for what, state in zip(alone, states, strict=True)]
        except (KeyError, TypeError, ValueError, RuntimeError) as error:
            raise ModelFileError(f"the model's encoder cannot be built from its config: {error}") from error

    @cached_property
    def _session(self) -> Any:
        from .encoders import onnx

        return onnx.Session(self.state["graph"].tobytes())

    @cached_property
    def digest(self) -> str:
        """Names what it computes: embedders with the same one give the same embeddings."""
        spec = np.frombuffer(self.tokeniser.spec, np.uint8)
        tensors = digest_tensors({**self.state, "tokeniser.spec": spec})
        return digest_plain([to_dict(self.config), self.description.plain(), tensors])

    def parts(self) -> dict[str, Tensors]:
        """Parts that the model folder stores."""
        return {"encoder": self.state, "tokeniser": {"spec": np.frombuffer(self.tokeniser.spec, np.uint8)}}

    @staticmethod
    def from_parts(config: EncoderConfig, table: object, parts: Mapping[str, Tensors]) -> Embedder:
        """The checked inverse of `parts`; weights are checked against the network when it is built."""
        what = Description.from_plain(table)
        if what.engine == "bilstm" and not all(
            a.dtype == np.float32 and np.isfinite(a).all() for a in parts["encoder"].values()
        ):
            raise ModelFileError("the model's encoder must hold finite numbers, all float32.")
        graph = parts["encoder"].get("graph")
        if config.runtime != "torch" and (graph is None or graph.dtype != np.uint8 or len(parts["encoder"]) != 1):
            raise ModelFileError("the model's encoder must be an ONNX graph and nothing else.")
        spec = parts["tokeniser"].get("spec")
        if spec is None or spec.dtype != np.uint8 or spec.ndim != 1 or len(parts["tokeniser"]) != 1:
            raise ModelFileError("the tokeniser's part must hold its bytes and nothing else.")
        return Embedder(config, what, parts["encoder"], Tokeniser(spec.tobytes(), config.max_tokens))


def half(embedding: NDArray[np.float32]) -> NDArray[np.float16]:
    """float16, without infinities."""
    most = np.finfo(np.float16).max
    return np.clip(embedding, -most, most).astype(np.float16)


def unit(embedding: NDArray[Any], scale: float = 1.0) -> NDArray[np.float32]:
    """Rows of length `scale`; a row of zeros stays."""
    rows = embedding.astype(np.float32)
    norms = np.linalg.norm(rows, axis=1, keepdims=True)
    np.divide(rows * np.float32(scale), norms, out=rows, where=norms > 0)
    return rows
