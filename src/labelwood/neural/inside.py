"""Measurements inside a network: attention of the token that stands for a text, and its vectors at every layer."""

from __future__ import annotations

import dataclasses

import numpy as np
import torch
from numpy.typing import NDArray

from ..arrays.tokens import Tokens
from ..errors import ConfigError
from ..recipes.encoder_settings import EncoderConfig, Reading
from .embedder import Embedder
from .encoders import encoder as encoders
from .encoders import pretrained
from .encoders.bert import Layer, LeanBert, Packed
from .encoders.encoder import LAST_TOKEN, Encoder, packed
from .encoders.tokens import by_length

TOKENS = 2048  # attention maps of so many tokens at once


@dataclasses.dataclass(frozen=True)
class Attention:
    """Attention of that token: one value for each layer."""

    self_mean: list[float]
    self_max: list[float]
    entropy: list[float]


def copied(embedder: Embedder) -> Encoder:
    """The model's network, free to be read in another way."""
    return encoders.rebuild(embedder.description, embedder.state)


def as_pretrained(embedder: Embedder) -> Encoder | None:
    """The encoder as it was before training; None where it is not here any more."""
    try:
        source = pretrained.find(embedder.config.model)
        return encoders.load(source, EncoderConfig(model=embedder.config.model, max_tokens=embedder.config.max_tokens))
    except ConfigError:
        return None


def inside(
    encoder: Encoder, tokens: Tokens, threads: int, pooling: str = "cls"
) -> tuple[Attention, NDArray[np.float32]]:
    """Attention of the first token (XLNet's is its last), and the documents' vectors (layers, n, d)."""
    encoder.read([Reading((t,), pooling) for t in range(1, encoder.depth + 1)])
    last = encoder.config["model_type"] in LAST_TOKEN
    vectors = np.zeros((encoder.depth, len(tokens), encoder.width), np.float32)
    sums = np.zeros((3, encoder.depth))
    encoder.eval()
    with encoders.threads(threads, encoder, TOKENS), torch.inference_mode():
        for rows in by_length(tokens, TOKENS):
            batch = packed(tokens, rows)
            for t, vector in enumerate(encoder(batch)):
                vectors[t, rows] = vector.numpy()
            place = batch.lengths - 1 if last else torch.zeros_like(batch.lengths)
            for t, first in enumerate(_rows_at(encoder, batch, place)):  # (n, heads, longest)
                own = first[torch.arange(len(place)), :, place]
                spread = -(first * torch.log(first.clamp(min=1e-12))).sum(2).mean(1)
                values = (own.mean(1), own.max(1).values, spread)
                sums[:, t] += [float(value.sum()) for value in values]
    mean, most, entropy = (sums / max(1, len(tokens))).tolist()
    return Attention(mean, most, entropy), vectors


def _rows_at(encoder: Encoder, batch: Packed, place: torch.Tensor) -> list[torch.Tensor]:
    """Attention of one token of each document, at `place` (n,), at each layer: (n, heads, longest)."""
    n, longest = len(batch.lengths), int(batch.lengths.max())
    cells = batch.row * longest + batch.places
    mask = torch.zeros(n * longest, dtype=torch.bool)
    mask[cells] = True
    if not isinstance(encoder.net, LeanBert):
        ids = batch.ids.new_full((n * longest,), int(encoder.config.get("pad_token_id") or 0))
        ids[cells] = batch.ids
        encoder.net.set_attn_implementation("eager")  # type: ignore[operator]
        shape = ids.view(n, -1), mask.view(n, -1).long()
        out = encoder.net(input_ids=shape[0], attention_mask=shape[1], output_attentions=True)
        return [found[torch.arange(n), :, place] for found in out.attentions]
    net, found = encoder.net, []
    hidden = net(batch, set(range(encoder.depth + 1)))
    for t, layer in enumerate(net.layers):
        assert isinstance(layer, Layer)
        qkv = layer.qkv(hidden[t])
        wide = qkv.new_zeros(n * longest, qkv.shape[1]).index_copy_(0, cells, qkv)
        q, k, _ = wide.view(n, longest, 3, layer.heads, -1).permute(2, 0, 3, 1, 4)
        logits = (q[torch.arange(n), :, place][:, :, None] @ k.transpose(2, 3))[:, :, 0] / q.shape[-1] ** 0.5
        found.append(torch.softmax(logits.masked_fill(~mask.view(n, 1, -1), -torch.inf), 2))
    return found
