"""Label attention (AttentionXML, eq. 5-7): each label weighs the tokens of a document by itself.

    α_tl = softmax_t(h_t · a_l)      m_l = Σ_t α_tl h_t      logit_l = MLP(m_l) + b_l

Rows (a_l, b_l) are those of a level's head, the MLP is shared by all labels. A document is scored against its own
candidates alone: the work is documents × candidates, not × the candidates of the whole batch.
"""

from __future__ import annotations

from itertools import pairwise

import torch
from torch import Tensor, nn

from ..training.candidates import Candidates
from . import layout
from .bert import Packed

AT_ONCE = 2**24  # numbers of m that are held at once where no gradient needs all of them


class LabelAttention(nn.Module):
    """The shared part: what makes a logit of what a label has seen."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        widths = layout.mlp(width)
        layers = [nn.Linear(a, b) for a, b in pairwise(widths)]
        for layer in layers:
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)
        self.layers = nn.ModuleList(layers)

    def forward(self, states: Tensor, batch: Packed, table: Tensor, candidates: Candidates) -> Tensor:
        """Logits (P,) of the candidates, of whose union the rows (U, d + 1) are given."""
        n, longest = len(batch.lengths), max(1, int(batch.lengths.max()))
        cells = batch.row * longest + batch.places
        wide = states.new_zeros(n * longest, states.shape[1]).index_copy(0, cells, states).view(n, longest, -1)
        real = torch.arange(longest, device=states.device) < batch.lengths[:, None].clamp(min=1)  # nothing is one 0
        if not candidates.pairs:
            return states.new_zeros(0)
        every = candidates.pairs == n * len(table)  # all documents have all candidates: nothing is gathered
        pairs, real_pairs = candidates.padded()
        at = torch.from_numpy(candidates.places[pairs]).to(states.device)  # (n, C) rows of each document's own
        most = at.shape[1]
        step = most if torch.is_grad_enabled() else max(1, AT_ONCE // (n * states.shape[1]))
        found = []
        for begin in range(0, most, step):
            part = slice(begin, begin + step)
            rows = table[part, :-1] if every else table[at[:, part], :-1]  # (C, d) or (n, C, d)
            found.append(self._logits(wide, real, rows))
        chosen = torch.from_numpy(real_pairs).to(states.device)
        return torch.cat(found, 1)[chosen] + table[:, -1][at[chosen]]

    def _logits(self, wide: Tensor, real: Tensor, rows: Tensor) -> Tensor:
        """(n, C) of documents (n, longest, d) and rows (C, d) or (n, C, d)."""
        weight = torch.matmul(rows, wide.transpose(1, 2)).masked_fill(~real[:, None], -torch.inf)
        x = torch.matmul(torch.softmax(weight, 2), wide)  # (n, C, d)
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        out: Tensor = self.layers[-1](x).squeeze(2)
        return out
