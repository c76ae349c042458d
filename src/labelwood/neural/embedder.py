"""The encoder inside a model: texts to embeddings (n, d), by torch or by ONNX Runtime. Neither is imported before use.

Embeddings are rounded to float16 wherever they are made, so that what a classifier was trained on is what it meets at
prediction.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, Features
from ..arrays.tokens import Tokens
from ..base.config import to_dict
from ..base.digests import digest_plain, digest_tensors
from ..base.progress import Tick
from ..errors import ConfigError, LabelwoodError, ModelFileError, needs
from ..recipes.encoder_settings import EncoderConfig, Reading
from .encoders import graph, layout, stored_graph
from .encoders.description import Description
from .encoders.tokens import TextSequence, Tokeniser

Tensors = Mapping[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True, eq=False)
class Embedder:
    """An encoder as a model keeps it. It never changes, and threads may share it."""

    config: EncoderConfig
    description: Description
    state: Tensors  # its weights; of a model of schema 1 that is served by ONNX, a graph
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
        """The same network with other weights."""
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
            return self._finite(self._session.embed(tokens, threads, progress))
        with needs("this model's encoder", "neural"):
            from .encoders import encoder
        net = self.networks[-1]
        with encoder.threads(threads, net, float(tokens.offsets[-1])), _sound("cannot read these texts"):
            found = net.embed(tokens, progress=progress)
        return self._finite(found)

    def _finite(self, embedding: NDArray[np.float32]) -> NDArray[np.float16]:
        """float16; ModelFileError where weights have overflowed."""
        if np.isnan(embedding).any():
            raise ModelFileError("the model's encoder gives numbers that are not finite; its weights are not sound.")
        return half(embedding)

    @property
    def has_weights(self) -> bool:
        """Does the model hold its encoder's weights? Models of schema 1 that are served by ONNX hold a graph."""
        return "graph" not in self.state

    def check_has_weights(self, what: str) -> None:
        """ConfigError where something needs the weights and the model has none."""
        if not self.has_weights:
            raise ConfigError(
                f"{what} needs the encoder's weights, but this model was written by an earlier release and holds a "
                f"graph in their place ({self.config.runtime}): it predicts, and cannot be explained or exported. "
                "Train it again."
            )

    def as_stored(self) -> Embedder:
        """The same encoder as a model folder holds it: where it is served in int8, its matrices are float16."""
        if self.config.runtime != "onnx-int8":
            return self
        return self.with_weights({name: half(a) if a.ndim == 2 else a for name, a in self.state.items()})

    @cached_property
    def networks(self) -> list[Any]:
        """Networks in torch: the one network, or one for each level where labels attend."""
        from .encoders import encoder

        with _sound("cannot be built from its config"):
            return [encoder.rebuild(what, state) for what, state in self._each()]

    def _each(self) -> list[tuple[Description, Tensors]]:
        """Description and weights of the one network, or of one for each level where labels attend."""
        if not self.attends:
            return [(self.description, self.state)]
        states = [
            {name.partition(".")[2]: a for name, a in self.state.items() if name.startswith(f"{t}.")}
            for t in range(self.levels)
        ]
        alone = [self.description.reading([reading], raw=False) for reading in self.readings[: self.levels]]
        return list(zip(alone, states, strict=True))

    @cached_property
    def _session(self) -> Any:
        from .encoders import onnx

        return onnx.Session(self._graph, self.description.columns)

    def _graph(self) -> bytes:
        """The encoder as a graph for ONNX Runtime, made of its weights, or of the tensors of a stored graph."""
        made = graph.Graph.of(self.description, self.config.runtime)
        return made.spell(made.fill(self.state) if self.has_weights else self._stored_tensors(made))

    def _stored_tensors(self, made: graph.Graph) -> Tensors:
        """Tensors of the graph that a model of schema 1 holds; ModelFileError if it is another one."""
        held = self.state["graph"]
        if held.dtype != np.uint8 or held.ndim != 1 or len(self.state) != 1:
            raise ModelFileError("the model's encoder must be an ONNX graph and nothing else.")
        return stored_graph.tensors_of(held.data, made)

    @cached_property
    def digest(self) -> str:
        """Names what it computes: embedders with the same one give the same embeddings."""
        spec = np.frombuffer(self.tokeniser.spec, np.uint8)
        tensors = digest_tensors({**self.state, "tokeniser.spec": spec})
        return digest_plain([to_dict(self.config), self.description.plain(), tensors])

    def parts(self) -> dict[str, Tensors]:
        """Parts that the model folder stores."""
        return {"encoder": self.state, "tokeniser": {"spec": np.frombuffer(self.tokeniser.spec, np.uint8)}}

    @property
    def columns(self) -> int:
        """Dense columns of the features of a text."""
        if self.attends:
            return self.description.width if self.embeds else 0
        last = self.readings[-1].width(self.description.width)
        return last + (self.description.columns if self.description.raw else 0)

    @staticmethod
    def from_parts(config: EncoderConfig, table: object, parts: Mapping[str, Tensors]) -> Embedder:
        """The checked inverse of `parts`."""
        what = Description.from_plain(table)
        spec = parts["tokeniser"].get("spec")
        if spec is None or spec.dtype != np.uint8 or spec.ndim != 1 or len(parts["tokeniser"]) != 1:
            raise ModelFileError("the tokeniser's part must hold its bytes and nothing else.")
        extra = "neural" if config.runtime == "torch" else "onnx"
        found = Embedder(
            config, what, parts["encoder"], Tokeniser(spec.tobytes(), config.max_tokens, what.vocabulary, extra)
        )
        found._check_readings()
        found._check_weights()
        found.tokeniser.check()
        return found

    def _check_readings(self) -> None:
        """ModelFileError where what is read does not go together."""
        what, by_label = self.description, [reading.pooling == "attention" for reading in self.readings]
        if any(by_label) and (
            not self.attends or by_label != sorted(by_label, reverse=True) or by_label[1:].count(False) > 1
        ):
            raise ModelFileError(
                "the model's encoder: readings of labels that attend come first, and at most one other."
            )
        if self.config.runtime != "torch" and (what.engine != "lean" or any(by_label)):
            raise ModelFileError(f"encoder.runtime is {self.config.runtime!r}, but this encoder runs in torch only.")
        if what.places is not None and self.config.max_tokens > what.places:
            raise ModelFileError(
                f"encoder.max_tokens is {self.config.max_tokens}, but the model's encoder reads at most {what.places}."
            )

    def _check_weights(self) -> None:
        """ModelFileError unless the weights, or the graph in their place, are those of the description."""
        if not self.has_weights and self.config.runtime != "torch":
            self._stored_tensors(graph.Graph.of(self.description, self.config.runtime))
            return
        if self.attends and any(not name.partition(".")[0].isdecimal() for name in self.state):
            raise ModelFileError("the model's encoder holds a weight of no level.")
        for what, state in self._each():
            layout.check_engine_weights(what.engine, what.architecture, what.readings, state)
        if sum(len(state) for _, state in self._each()) != len(self.state):
            raise ModelFileError("the model's encoder holds weights of levels that it does not have.")
        if self.config.runtime != "torch":
            graph.Shape.of(self.description)

    def verify(self) -> None:
        """Build what embeds and let it read a text; ModelFileError says what is wrong."""
        self.embed(self.tokens(["a"]), 1)
        if self.config.runtime == "torch":
            _ = self.networks


@contextmanager
def _sound(what: str) -> Iterator[None]:
    """ModelFileError for all that a network from elsewhere may run into."""
    try:
        yield
    except LabelwoodError:
        raise
    except Exception as error:  # of torch and transformers there are dozens
        raise ModelFileError(f"the model's encoder {what}: {error}") from error


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
