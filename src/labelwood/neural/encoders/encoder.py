"""Encoders: packed tokens in, one vector for each document and each reading out.

A reading says which layers and how: the mean over a document's tokens, its first token, or the pretrained pooler on
top of that; where labels attend, it is all tokens (label_attention.py). Two engines give the same numbers: our own BERT
without padding (bert.py) and the models of transformers. The third is a BiLSTM (bilstm.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from functools import cached_property
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from ...arrays.tokens import Tokens
from ...base.progress import Tick
from ...errors import ConfigError, ModelFileError, needs
from ...recipes.encoder_settings import WIDTHS, EncoderConfig, Reading
from ..training.candidates import Candidates
from ..training.head import Head, HeadScores
from . import bert, bilstm
from .bert import Packed
from .bilstm import BiLstm
from .description import Description
from .label_attention import LabelAttention
from .pretrained import Checkpoint
from .tokens import by_length
from .torch_threads import torch_threads
from .word_vectors import Words

ATTENTION_DROPOUTS = ("attention.self", "attention.dropout")  # names of modules that drop attention weights
LAST_TOKEN = {"xlnet"}  # their summary token ends the text
MAPS = "maps."  # prefix of their weights
MAP_DROPOUT = 0.2  # of what a map reads
WORTH = 5e7  # floating-point operations: half a millisecond of one core
INFERENCE_TOKENS = 2048  # that go through at once: more do not fit the cache, fewer do not fill the matrices


class Encoder(nn.Module):
    """A pretrained network behind one door, and what is read of it."""

    def __init__(self, net: nn.Module, config: Mapping[str, Any], engine: str, pooler: bool) -> None:
        super().__init__()
        self.net = net
        self.config = dict(config)
        self.engine = engine
        self.has_pooler = pooler
        self.readings: tuple[Reading, ...] = ()
        self.maps = nn.ModuleDict()  # of projected readings, by number, and the MLPs of those that labels attend to

    def read(self, readings: Sequence[Reading], seed: int = 0) -> Encoder:
        """Say what is read; ConfigError if there is no such layer. Maps start at Glorot's weights."""
        for reading in readings:
            if max(reading.layers) > self.depth:
                raise ConfigError(
                    f"layer {max(reading.layers)} is to be read, but the encoder has {self.depth} layers."
                )
            if self.engine == "bilstm" and 0 in reading.layers:
                raise ConfigError("encoder.layer is 0, but of a BiLSTM only its states are read; leave it at -1.")
        self.readings = tuple(readings)
        generator = torch.Generator().manual_seed(seed)
        for i, reading in enumerate(readings):
            if reading.pooling == "attention":
                self.maps[str(i)] = LabelAttention(reading.width(self.width), generator)
            elif reading.map:
                made = nn.Linear(self.width * len(reading.layers), reading.map)
                nn.init.xavier_uniform_(made.weight, generator=generator)
                nn.init.zeros_(made.bias)
                self.maps[str(i)] = made
        return self

    @property
    def widths(self) -> tuple[int, ...]:
        """Columns of each reading."""
        return tuple(reading.width(self.width) for reading in self.readings)

    @property
    def depth(self) -> int:
        return int(_size(self.config, "num_hidden_layers", "n_layers", "n_layer"))

    @property
    def width(self) -> int:
        return int(_size(self.config, *WIDTHS))

    @property
    def tables(self) -> list[nn.Embedding]:
        """Word vectors of which a batch needs a few."""
        return [self.net.words] if isinstance(self.net, bert.LeanBert | BiLstm) else []

    @cached_property
    def weight_count(self) -> int:
        """Weights that every token is multiplied by: all matrices but the tables of vectors."""
        tables = {id(m.weight) for m in self.net.modules() if isinstance(m, nn.Embedding)}
        return sum(p.numel() for p in self.net.parameters() if p.ndim == 2 and id(p) not in tables)

    def forward(self, batch: Packed) -> list[Tensor]:
        """(n, width) for each reading; (T, width), its tokens, where labels attend."""
        hidden = self._hidden(batch, {layer for reading in self.readings for layer in reading.layers})
        found = []
        for i, reading in enumerate(self.readings):
            vector = torch.cat([self._pool(hidden[t], batch, reading.pooling) for t in reading.layers], 1)
            if reading.map and reading.pooling != "attention":
                vector = self.maps[str(i)](bert.drop(vector, MAP_DROPOUT, self.training))
            found.append(vector)
        return found

    def scores(self, number: int, vector: Tensor, batch: Packed, head: Head, candidates: Candidates) -> HeadScores:
        """Logits of a head's candidates by what one reading gave."""
        if self.readings[number].pooling != "attention":
            return head.scores(vector, candidates)
        rows = head.rows(candidates)
        return HeadScores(candidates, self.maps[str(number)](vector, batch, rows, candidates), None, rows)

    def _hidden(self, batch: Packed, wanted: set[int]) -> dict[int, Tensor]:
        if isinstance(self.net, bert.LeanBert | BiLstm):
            return self.net(batch, wanted)  # type: ignore[no-any-return]
        n, longest = len(batch.lengths), int(batch.lengths.max())
        cells = batch.row * longest + batch.places
        ids = batch.ids.new_full((n * longest,), int(self.config.get("pad_token_id") or 0))
        mask = batch.ids.new_zeros(n * longest)
        ids[cells], mask[cells] = batch.ids, 1
        out = self.net(input_ids=ids.view(n, -1), attention_mask=mask.view(n, -1), output_hidden_states=True)
        return {t: out.hidden_states[t].reshape(n * longest, -1)[cells] for t in wanted}

    def _pool(self, hidden: Tensor, batch: Packed, pooling: str) -> Tensor:
        if pooling == "attention":
            return hidden
        if pooling == "mean":
            return batch.mean(hidden)
        at = batch.lengths.cumsum(0) - 1 if self.config["model_type"] in LAST_TOKEN else batch.firsts
        first = hidden[at]
        if pooling == "cls" or not self.has_pooler:
            return first
        if isinstance(self.net, bert.LeanBert):
            return self.net.pooled(first)
        return self.net.pooler(first[:, None])  # type: ignore[operator,no-any-return]

    def drop(self, hidden: float, attention: float) -> None:
        """Set the shares that training drops."""
        if isinstance(self.net, BiLstm):
            self.net.dropout = hidden
            return
        if isinstance(self.net, bert.LeanBert):
            self.net.dropout, self.net.attention_dropout = hidden, attention
            return
        for name, module in self.net.named_modules():
            if isinstance(module, nn.Dropout):
                inside = any(part in name for part in ATTENTION_DROPOUTS) and self.config["model_type"] != "mpnet"
                module.p = attention if inside or name.endswith("attn.dropout") else hidden

    def freeze(self, layers: int) -> None:
        """Leave the word vectors and so many layers as they are; -1 frees all."""
        for name, weight in self.net.named_parameters():
            number = next((int(part) for part in name.split(".") if part.isdigit()), None)
            inside = number is not None and any(key in name for key in ("layers.", "layer.", "blocks."))
            upper = (inside and number is not None and number >= layers) or name.startswith("pooler")
            weight.requires_grad_(layers < 0 or upper)

    def state(self) -> dict[str, NDArray[Any]]:
        """All weights."""
        found = {**self.net.state_dict(), **{f"{MAPS}{name}": value for name, value in self.maps.state_dict().items()}}
        return {name: value.detach().cpu().numpy() for name, value in found.items()}

    def load(self, state: Mapping[str, NDArray[Any]]) -> None:
        """Weights as `state` gave them; ModelFileError if they do not fit."""
        tensors = {name: torch.from_numpy(np.array(value)) for name, value in state.items()}
        maps = {name: tensors.pop(name) for name in list(tensors) if name.startswith(MAPS)}
        try:
            self.net.load_state_dict(tensors)
            self.maps.load_state_dict({name.removeprefix(MAPS): value for name, value in maps.items()})
        except RuntimeError as error:
            raise ModelFileError(f"the encoder's weights do not fit its config: {error}") from error

    def embed(
        self, tokens: Tokens, budget: int = INFERENCE_TOKENS, progress: Tick | None = None
    ) -> NDArray[np.float32]:
        """(documents, all readings side by side), in the order of the documents; batches hold texts of one length.

        Where labels attend, it is the mean of the tokens.
        """
        out = np.zeros((len(tokens), sum(self.widths)), np.float32)
        device, done = next(self.parameters()).device, 0
        self.eval()
        with torch.inference_mode():
            for rows in by_length(tokens, budget):
                batch = packed(tokens, rows, device)
                read = zip(self(batch), self.readings, strict=True)
                found = [batch.mean(v) if reading.pooling == "attention" else v for v, reading in read]
                out[rows] = torch.cat(found, 1).cpu().numpy()
                done += len(rows)
                if progress is not None:
                    progress(done, len(tokens))
        return out

    def attended(self, tokens: Tokens, table: NDArray[np.float32], candidates: Candidates) -> NDArray[np.float32]:
        """Logits (P,) of the documents' candidates, of whose union the rows (U, d + 1) attend to the tokens."""
        out, device = np.zeros(candidates.pairs, np.float32), next(self.parameters()).device
        rows, attention = torch.from_numpy(table).to(device), self.maps["0"]
        self.eval()
        with torch.inference_mode():
            for part in by_length(tokens, INFERENCE_TOKENS):
                batch = packed(tokens, part, device)
                some, places = candidates.take(part)
                known = rows[torch.from_numpy(np.searchsorted(candidates.union, some.union)).to(device)]
                out[places] = attention(self(batch)[0], batch, known, some).cpu().numpy()
        return out


def packed(tokens: Tokens, rows: NDArray[np.integer[Any]], device: torch.device | str = "cpu") -> Packed:
    """Some documents as a batch."""
    part = tokens.take(rows)
    ids = torch.from_numpy(part.ids.astype(np.int64)).to(device)
    return Packed.of(ids, torch.from_numpy(part.lengths).to(device))


def check_device(name: str) -> None:
    """ConfigError where the device is not there."""
    kind = name.partition(":")[0]
    there = {"cpu": True, "cuda": torch.cuda.is_available(), "mps": torch.backends.mps.is_available()}[kind]
    try:
        device = torch.device(name)
    except RuntimeError as error:
        raise ConfigError(f"device {name!r} is not one that torch knows: {error}") from error
    if not there or (kind == "cuda" and (device.index or 0) >= torch.cuda.device_count()):
        raise ConfigError(f"device {name!r} is not there; take cpu, or install torch for it.")


def load(source: Checkpoint | Words, config: EncoderConfig, seed: int = 0) -> Encoder:
    """A pretrained encoder, ready to be read or trained; of a BiLSTM all but the word vectors comes from the seed."""
    if isinstance(source, Words):
        return _reading(Encoder(*bilstm.made(source.table, config.hidden, seed), "bilstm", False), config, seed)
    engine = _engine(source.config, config.engine)
    longest = _longest(source.config)
    if longest is not None and longest < config.max_tokens:
        raise ConfigError(f"encoder.max_tokens is {config.max_tokens}, but this encoder reads at most {longest}.")
    if engine == "lean":
        with needs("an encoder", "neural"):
            from safetensors.torch import load_file
        weights: dict[str, Tensor] = {}
        try:
            for path in source.weight_files:
                weights |= load_file(path)
            net, pooler = bert.from_checkpoint(source.config, weights)
        except Exception as error:  # of safetensors, torch, or a name that is missing
            raise ConfigError(f"the encoder {source.folder} is not the BERT its config says: {error}") from error
        return _reading(Encoder(net, bert.as_bert(source.config), engine, pooler), config, seed)
    model, pooler = _foreign(source)
    return _reading(Encoder(model, model.config.to_dict(), engine, pooler), config, seed)


def _foreign(source: Checkpoint) -> tuple[Any, bool]:
    """A model of transformers, and whether it has a pooler; ConfigError if it does not read text as encoders do."""
    kind = source.config["model_type"]
    with needs(f"an encoder of type {kind}", "neural"):
        from transformers import AutoModel
        from transformers.models.auto import modeling_auto as known
    if kind in known.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES and kind not in {
        *known.MODEL_FOR_MASKED_LM_MAPPING_NAMES, *LAST_TOKEN,
    }:  # fmt: skip
        raise ConfigError(
            f"{source.folder} holds a {kind}, which writes text and is no encoder; take BERT or its like."
        )
    try:
        model, found = AutoModel.from_pretrained(
            source.folder, use_safetensors=True, trust_remote_code=False, local_files_only=True, dtype=torch.float32,
            output_loading_info=True,
        )  # fmt: skip
    except Exception as error:  # a folder that is not what it says fails in many ways
        raise ConfigError(f"the encoder {source.folder} cannot be opened: {error}") from error
    missing = sorted(found["missing_keys"])
    lost = [name for name in missing if not name.startswith("pooler.")]
    if lost:
        raise ConfigError(f"the encoder {source.folder} is not the {kind} its config says: it lacks {lost[0]!r}.")
    try:
        ids = torch.zeros(1, 3, dtype=torch.int64)
        model.eval()(input_ids=ids, attention_mask=ids + 1, output_hidden_states=True).hidden_states[-1]
    except Exception as error:  # whatever a network says that reads something else
        raise ConfigError(
            f"{source.folder} holds a {kind}, which does not read text as encoders do: {error}"
        ) from error
    return model, not missing and _pooler(model)


def _reading(encoder: Encoder, config: EncoderConfig, seed: int = 0) -> Encoder:
    """One layer, one way, as the recipe says."""
    layer = encoder.depth if config.layer < 0 else config.layer
    if layer > encoder.depth:
        raise ConfigError(f"encoder.layer is {config.layer}, but this encoder has {encoder.depth} layers.")
    return encoder.read([Reading((layer,), config.pooling)], seed)


def rebuild(what: Description, state: Mapping[str, NDArray[Any]]) -> Encoder:
    """The inverse of `describe` and `state`: an encoder from a model folder."""
    config = what.architecture
    if what.engine == "lean":
        if not bert.supports(config):
            raise ModelFileError("the model's encoder is not a BERT that this release knows.")
        with torch.device("meta"):
            net: nn.Module = bert.LeanBert(config)
        net.to_empty(device="cpu")
    elif what.engine == "bilstm":
        net = BiLstm(config)
    else:
        with needs("this model's encoder", "neural"):
            from transformers import AutoConfig, AutoModel
        kind = {key: value for key, value in config.items() if key not in {"model_type", "auto_map"}}
        net = cast(Any, AutoModel).from_config(
            AutoConfig.for_model(config["model_type"], **kind), trust_remote_code=False
        )
    encoder = Encoder(net, config, what.engine, what.pooler)
    encoder.read(list(what.readings))
    encoder.load(state)
    return encoder


def describe(encoder: Encoder) -> Description:
    """Description by which a model folder can build the encoder again."""
    return Description.of_checkpoint(
        encoder.config, encoder.engine, pooler=encoder.has_pooler, readings=encoder.readings
    )


def _engine(config: Mapping[str, Any], asked: str) -> str:
    fits = bert.supports(config)
    if asked == "lean" and not fits:
        raise ConfigError(f"encoder.engine = 'lean' is for BERT, but this is {config.get('model_type')!r}; use auto.")
    return "lean" if fits and asked != "transformers" else "transformers"


def _longest(config: Mapping[str, Any]) -> int | None:
    """Tokens that the encoder can tell the places of; None: any number."""
    most = config.get("max_position_embeddings")
    if not isinstance(most, int) or most <= 0 or config.get("model_type") == "xlnet":
        return None
    offset = config.get("model_type") in {"roberta", "xlm-roberta", "camembert", "mpnet"}
    return most - 1 - int(config.get("pad_token_id") or 0) if offset else most


def _pooler(model: Any) -> bool:
    """Has it a pooler that takes hidden states, as BERT's does?"""
    pooler = getattr(model, "pooler", None)
    if pooler is None:
        return False
    try:
        with torch.inference_mode():
            found = pooler(torch.zeros(1, 2, int(_size(model.config.to_dict(), *WIDTHS))))
    except (RuntimeError, TypeError, ValueError, AttributeError, ConfigError):
        return False
    return isinstance(found, Tensor) and found.ndim == 2


def _size(config: Mapping[str, Any], *names: str) -> int:
    for name in names:
        if isinstance(config.get(name), int):
            return int(config[name])
    raise ConfigError(f"the encoder's config says none of {', '.join(names)}.")


def threads(count: int, encoder: Encoder, tokens: float) -> AbstractContextManager[None]:
    """Torch at so many threads as long as this lasts; at one, if a batch of so many tokens is not worth waking more."""
    return torch_threads(count if 2 * encoder.weight_count * tokens >= WORTH else 1)
