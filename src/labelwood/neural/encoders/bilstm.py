"""AttentionXML's encoder: word vectors and one LSTM in both directions, on packed tokens.

    ids (T,) of documents end to end  →  states (T, 2h): what the LSTM made of each word and those around it

torch's own packed sequences hold the first words of all documents, then the second ones, and so on: no work goes into
padding here either.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.nn.utils.rnn import PackedSequence

from .bert import Packed, drop


class Lstm(nn.Module):
    """One layer in both directions, with a learned first state."""

    def __init__(self, width: int, hidden: int) -> None:
        super().__init__()
        self.lstm = nn.LSTM(width, hidden, bidirectional=True)
        self.first = nn.Parameter(torch.zeros(2, 2, 1, hidden))  # (state and cell, directions, 1, h)

    def forward(self, x: Tensor, batch: Packed) -> Tensor:
        """(T, e) → (T, 2h)."""
        n = len(batch.lengths)
        if not len(x):
            return x.new_zeros(0, 2 * self.lstm.hidden_size)
        rank = torch.empty_like(batch.lengths)
        rank[torch.argsort(batch.lengths, descending=True, stable=True)] = torch.arange(n, device=rank.device)
        order = torch.argsort(batch.places * n + rank[batch.row])  # by place, the longest document first
        sizes = torch.bincount(batch.places).cpu()
        first, cell = (state.expand(-1, int(sizes[0]), -1).contiguous() for state in self.first)
        out: Tensor = self.lstm(PackedSequence(x[order], sizes), (first, cell))[0].data
        return out[torch.argsort(order)]


class BiLstm(nn.Module):
    """Word vectors, and the LSTM on top of them as its one layer."""

    def __init__(self, config: Mapping[str, Any]) -> None:
        super().__init__()
        self.words = nn.Embedding(config["vocab_size"], config["word_size"])
        self.layers = nn.ModuleList([Lstm(config["word_size"], config["hidden_size"] // 2)])
        self.dropout = 0.0

    def forward(self, batch: Packed, wanted: Collection[int]) -> dict[int, Tensor]:
        """States (T, 2h) of the wanted layers: there is only the first, above the words."""
        return dict.fromkeys(wanted, self.layers[0](drop(self.words(batch.ids), self.dropout, self.training), batch))


def made(words: NDArray[Any], hidden: int, seed: int) -> tuple[BiLstm, dict[str, Any]]:
    """A network over these word vectors (V, e), and its config; all else starts from the seed."""
    config = {"model_type": "bilstm", "vocab_size": len(words), "word_size": words.shape[1], "hidden_size": 2 * hidden}
    net = BiLstm({**config, "vocab_size": 1})
    generator = torch.Generator().manual_seed(seed)
    with torch.no_grad():
        for weight in net.layers[0].lstm.parameters():  # type: ignore[union-attr]
            weight.uniform_(-(hidden**-0.5), hidden**-0.5, generator=generator)
    net.words.weight = nn.Parameter(torch.from_numpy(words.copy()))
    net.words.num_embeddings = len(words)
    return net, {**config, "num_hidden_layers": 1}
