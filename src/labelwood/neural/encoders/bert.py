"""A lean BERT on packed tokens: the documents of a batch lie end to end, so no work is spent on padding.

Only attention sees documents apart; there they are laid into a rectangle, which costs little since attention is a few
per cent of the work. The numbers are those of the pretrained checkpoints of BERT, and of RoBERTa and DistilBERT, which
are BERTs with other names, other positions, or no segments.

    ids (T,), places (T,) within the document, `lengths` (n,)  →  hidden states of the layers asked for, each (T, d)
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Collection, Iterator, Mapping
from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F

from . import layout
from .matmul import Linear, spare

SPREAD = 1.25  # longest over shortest document of a rectangle


@dataclasses.dataclass(frozen=True, eq=False)
class Group:
    """Neighbours of a batch that are nearly equally long: a rectangle in which they attend."""

    tokens: slice  # of the batch
    count: int  # documents
    longest: int
    cells: Tensor  # (tokens,) where each lies in the rectangle (count · longest,)
    mask: Tensor | None  # (count, 1, 1, longest): true where there is a token; None if all are equally long


@dataclasses.dataclass(frozen=True, eq=False)
class Packed:
    """A batch of documents, end to end. Sorted by length they need fewer and fuller rectangles."""

    ids: Tensor  # (T,)
    places: Tensor  # (T,) position within its document
    lengths: Tensor  # (n,)
    groups: tuple[Group, ...]

    @staticmethod
    def of(ids: Tensor, lengths: Tensor) -> Packed:
        starts = lengths.cumsum(0) - lengths
        places = torch.arange(len(ids), device=ids.device) - torch.repeat_interleave(starts, lengths)
        return Packed(ids, places, lengths, tuple(_groups(lengths, places)))

    @property
    def firsts(self) -> Tensor:
        """(n,) the first token of each document."""
        return self.lengths.cumsum(0) - self.lengths

    @property
    def row(self) -> Tensor:
        """(T,) the document of each token."""
        return torch.repeat_interleave(self.lengths)

    def mean(self, hidden: Tensor) -> Tensor:
        """(n, d) means over the tokens of each document."""
        total = hidden.new_zeros(len(self.lengths), hidden.shape[1]).index_add_(0, self.row, hidden)
        return total / self.lengths[:, None].clamp(min=1)


def _groups(lengths: Tensor, places: Tensor) -> Iterator[Group]:
    """Runs of documents whose lengths are within `SPREAD` of each other."""
    found, first, begin = lengths.tolist(), 0, 0
    low = high = found[0] if found else 0
    for i in range(1, len(found) + 1):
        if i < len(found) and max(high, found[i]) <= SPREAD * min(low, found[i]):
            low, high = min(low, found[i]), max(high, found[i])
            continue
        part, longest = lengths[first:i], high
        end = begin + sum(found[first:i])
        cells = torch.repeat_interleave(part) * longest + places[begin:end]
        mask = None
        if int(part.min()) < longest:
            mask = (torch.arange(longest, device=lengths.device) < part[:, None])[:, None, None, :]
        yield Group(slice(begin, end), i - first, longest, cells, mask)
        first, begin = i, end
        low = high = found[i] if i < len(found) else 0


class _Spread(torch.autograd.Function):
    """(T, …) → (cells, …): each row to its own cell, zeros elsewhere. The way back is a gather, not a scatter."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cells: Tensor, count: int) -> Tensor:
        ctx.save_for_backward(cells)
        return x.new_zeros(count, *x.shape[1:]).index_copy_(0, cells, x)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None, None]:
        return grad.index_select(0, ctx.saved_tensors[0]), None, None


class _Collect(torch.autograd.Function):
    """(cells, …) → (T, …): the inverse of `_Spread`."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, cells: Tensor) -> Tensor:
        ctx.save_for_backward(cells)
        ctx.count = len(x)
        return x.index_select(0, cells)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor, None]:
        cells = ctx.saved_tensors[0]
        return grad.new_zeros(ctx.count, *grad.shape[1:]).index_copy_(0, cells, grad), None


_spread: Callable[[Tensor, Tensor, int], Tensor] = cast(Any, _Spread.apply)
_collect: Callable[[Tensor, Tensor], Tensor] = cast(Any, _Collect.apply)


def drop(x: Tensor, share: float, training: bool) -> Tensor:
    """Dropout. On a CPU a byte decides over each value, four times as fast as torch's: shares are whole 256ths."""
    if not training or share <= 0:
        return x
    if x.device.type != "cpu":
        return F.dropout(x, share)
    least = max(1, round(256 * share))
    words = torch.empty((x.numel() + 7) // 8, dtype=torch.int64).random_(-(2**63), None)
    kept = words.view(torch.uint8)[: x.numel()].view(x.shape) >= least
    return x * kept.to(x.dtype).mul_(256 / (256 - least))


class Layer(nn.Module):
    """Attention and feed-forward, each with its residual and norm."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        d, ff, eps = config["hidden_size"], config["intermediate_size"], config["layer_norm_eps"]
        self.heads = config["num_attention_heads"]
        self.qkv = Linear(d, 3 * d)
        self.out = Linear(d, d)
        self.norm1 = nn.LayerNorm(d, eps=eps)
        self.up = Linear(d, ff)
        self.down = Linear(ff, d)
        self.norm2 = nn.LayerNorm(d, eps=eps)
        self.tanh = layout.ACTIVATIONS[config["hidden_act"]]

    def forward(self, h: Tensor, batch: Packed, dropout: float, attention_dropout: float) -> Tensor:
        a = self.out(self.attend(self.qkv(h), batch, attention_dropout))
        h = self.norm1(h + drop(a, dropout, self.training))
        a = self.down(F.gelu(self.up(h), approximate=self.tanh))
        done: Tensor = self.norm2(h + drop(a, dropout, self.training))
        return done

    def attend(self, qkv: Tensor, batch: Packed, dropout: float) -> Tensor:
        parts = [self._attend(qkv[group.tokens], group, dropout) for group in batch.groups]
        if len(qkv) > len(batch.ids):  # rows that only fill up
            parts.append(qkv.new_zeros(len(qkv) - len(batch.ids), qkv.shape[1] // 3))
        return parts[0] if len(parts) == 1 else torch.cat(parts)

    def _attend(self, qkv: Tensor, group: Group, dropout: float) -> Tensor:
        n, longest = group.count, group.longest
        wide = qkv if group.mask is None else _spread(qkv, group.cells, n * longest)
        q, k, v = wide.view(n, longest, 3, self.heads, -1).permute(2, 0, 3, 1, 4)
        share = dropout if self.training else 0.0
        o = F.scaled_dot_product_attention(q, k, v, attn_mask=group.mask, dropout_p=share)
        o = o.transpose(1, 2).reshape(n * longest, -1)
        return o if group.mask is None else _collect(o, group.cells)


class LeanBert(nn.Module):
    """BERT without its padding."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        d = config["hidden_size"]
        self.words = nn.Embedding(config["vocab_size"], d)
        self.places = nn.Embedding(config["max_position_embeddings"], d)
        self.types = nn.Embedding(config["type_vocab_size"], d)
        self.norm = nn.LayerNorm(d, eps=config["layer_norm_eps"])
        self.layers = nn.ModuleList(Layer(config) for _ in range(config["num_hidden_layers"]))
        self.pooler = nn.Linear(d, d)
        self.dropout = self.attention_dropout = 0.0

    def forward(self, batch: Packed, wanted: Collection[int]) -> dict[int, Tensor]:
        """Hidden states (T, d) of the wanted layers; 0 is the embeddings."""
        h = self.words(batch.ids) + self.places(batch.places) + self.types.weight[0]
        rows = len(h)
        h = F.pad(h, (0, 0, 0, spare(h)))
        h = drop(self.norm(h), self.dropout, self.training)
        found = {0: h[:rows]} if 0 in wanted else {}
        for t, layer in enumerate(self.layers[: max(wanted)], 1):
            h = layer(h, batch, self.dropout, self.attention_dropout)
            if t in wanted:
                found[t] = h[:rows]
        return found

    def pooled(self, first: Tensor) -> Tensor:
        return torch.tanh(self.pooler(first))


ROBERTAS = {"roberta", "xlm-roberta", "camembert"}  # their positions begin after that of the padding
DISTILBERT = {
    "hidden_size": "dim", "num_hidden_layers": "n_layers", "num_attention_heads": "n_heads",
    "intermediate_size": "hidden_dim", "hidden_act": "activation",
}  # fmt: skip
DISTILBERT_NAMES = (
    ("transformer.layer", "encoder.layer"), ("q_lin", "self.query"), ("k_lin", "self.key"), ("v_lin", "self.value"),
    ("attention.out_lin", "attention.output.dense"), ("sa_layer_norm", "attention.output.LayerNorm"),
    ("ffn.lin1", "intermediate.dense"), ("ffn.lin2", "output.dense"), ("output_layer_norm", "output.LayerNorm"),
)  # fmt: skip


def as_bert(config: Mapping[str, Any]) -> dict[str, Any]:
    """The config of the BERT that an encoder is under another name; of any other encoder, its own."""
    kind = config.get("model_type")
    if kind in ROBERTAS and isinstance(config.get("max_position_embeddings"), int):
        places = config["max_position_embeddings"] - _first_place(config)
        return {**config, "model_type": "bert", "max_position_embeddings": places}
    if kind == "distilbert":
        named = {ours: config.get(theirs) for ours, theirs in DISTILBERT.items()}
        return {**config, **named, "model_type": "bert", "type_vocab_size": 1, "layer_norm_eps": 1e-12}
    return dict(config)


def _first_place(config: Mapping[str, Any]) -> int:
    return int(config.get("pad_token_id") or 0) + 1


def _as_bert(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
    """The weights under the names of BERT's checkpoints."""
    kind, places = config.get("model_type"), "embeddings.position_embeddings.weight"
    found = {_renamed(name): value.float() for name, value in weights.items()}
    if kind in ROBERTAS:
        found[places] = found[places][_first_place(config) :]
    if kind == "distilbert":
        for old, new in DISTILBERT_NAMES:
            found = {name.replace(old, new): value for name, value in found.items()}
        found["embeddings.token_type_embeddings.weight"] = torch.zeros(1, found[places].shape[1])
    return found


def supports(config: Mapping[str, Any]) -> bool:
    """Is this a BERT as `LeanBert` knows it?"""
    return layout.is_bert(as_bert(config))


def from_checkpoint(config: Mapping[str, Any], weights: Mapping[str, Tensor]) -> tuple[LeanBert, bool]:
    """The model with pretrained weights, and whether they held a pooler. KeyError names a weight that is missing."""
    weights, config = _as_bert(config, weights), as_bert(config)
    with torch.device("meta"):
        model = LeanBert(config)
    state = {ours: torch.cat([weights[name] for name in theirs]) for ours, theirs in _names(config).items()}
    pooler = "pooler.dense.weight" in weights
    for part in ("weight", "bias"):
        shape = getattr(model.pooler, part).shape
        state[f"pooler.{part}"] = weights[f"pooler.dense.{part}"] if pooler else torch.zeros(shape)
    model.load_state_dict(state, assign=True)
    return model, pooler


def _renamed(name: str) -> str:
    """The name as today's checkpoints spell it."""
    for prefix in ("bert.", "roberta.", "distilbert."):
        name = name.removeprefix(prefix)
    return name.replace("LayerNorm.gamma", "LayerNorm.weight").replace("LayerNorm.beta", "LayerNorm.bias")


def _names(config: Mapping[str, Any]) -> dict[str, tuple[str, ...]]:
    """Our names of the weights, and the pretrained ones they are made of."""
    table: dict[str, tuple[str, ...]] = {
        "words.weight": ("embeddings.word_embeddings.weight",),
        "places.weight": ("embeddings.position_embeddings.weight",),
        "types.weight": ("embeddings.token_type_embeddings.weight",),
    }
    for part in ("weight", "bias"):
        table[f"norm.{part}"] = (f"embeddings.LayerNorm.{part}",)
        for t in range(config["num_hidden_layers"]):
            old, new = f"encoder.layer.{t}", f"layers.{t}"
            table[f"{new}.qkv.{part}"] = tuple(f"{old}.attention.self.{x}.{part}" for x in ("query", "key", "value"))
            table[f"{new}.out.{part}"] = (f"{old}.attention.output.dense.{part}",)
            table[f"{new}.norm1.{part}"] = (f"{old}.attention.output.LayerNorm.{part}",)
            table[f"{new}.up.{part}"] = (f"{old}.intermediate.dense.{part}",)
            table[f"{new}.down.{part}"] = (f"{old}.output.dense.{part}",)
            table[f"{new}.norm2.{part}"] = (f"{old}.output.LayerNorm.{part}",)
    return table
