"""Label attention (AttentionXML, eq. 5-7): each label weighs the tokens of a document by itself.

    α_tl = softmax_t(h_t · a_l)      m_l = Σ_t α_tl h_t      logit_l = MLP(m_l) + b_l

Rows (a_l, b_l) are those of a level's head, the MLP is shared by all labels. A document is scored against its own
candidates alone: the work is documents × candidates, not × the candidates of the whole batch.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn

from .bert import Packed

NARROW = 256  # layers of the MLP halve the width down to this
AT_ONCE = 2**24  # numbers of m that are held at once where no gradient needs all of them


class LabelAttention(nn.Module):
    """The shared part: what makes a logit of what a label has seen."""

    def __init__(self, width: int, generator: torch.Generator) -> None:
        super().__init__()
        widths = [width, max(1, width // 2)]
        while widths[-1] // 2 >= NARROW:
            widths.append(widths[-1] // 2)
        layers = [nn.Linear(a, b) for a, b in zip(widths, [*widths[1:], 1], strict=True)]
        for layer in layers:
            nn.init.xavier_uniform_(layer.weight, generator=generator)
            nn.init.zeros_(layer.bias)
        self.layers = nn.ModuleList(layers)

    def forward(self, states: Tensor, batch: Packed, table: Tensor, mask: Tensor) -> Tensor:
        """(n, U) logits of the nodes whose rows (U, d + 1) are given, 0 where the mask (n, U) leaves them out."""
        n, longest = len(batch.lengths), max(1, int(batch.lengths.max()))
        cells = batch.row * longest + batch.places
        wide = states.new_zeros(n * longest, states.shape[1]).index_copy(0, cells, states).view(n, longest, -1)
        real = torch.arange(longest, device=states.device) < batch.lengths[:, None].clamp(min=1)  # nothing is one 0
        counts = mask.sum(1)
        most = int(counts.max())
        if not most:  # nobody has a candidate
            return states.new_zeros(mask.shape)
        every = bool((counts == mask.shape[1]).all())  # all documents have all candidates: nothing is gathered
        at = torch.argsort(~mask, dim=1, stable=True)[:, :most]  # (n, C) each document's own, in their order
        step = most if torch.is_grad_enabled() else max(1, AT_ONCE // (n * states.shape[1]))
        found = []
        for begin in range(0, most, step):
            part = slice(begin, begin + step)
            rows = table[part, :-1] if every else table[at[:, part], :-1]  # (C, d) or (n, C, d)
            found.append(self._logits(wide, real, rows))
        own = torch.arange(most, device=mask.device) < counts[:, None]
        logits = states.new_zeros(mask.shape).masked_scatter(mask, torch.cat(found, 1)[own])
        return logits + table[:, -1] * mask

    def _logits(self, wide: Tensor, real: Tensor, rows: Tensor) -> Tensor:
        """(n, C) of documents (n, longest, d) and rows (C, d) or (n, C, d)."""
        weight = torch.matmul(rows, wide.transpose(1, 2)).masked_fill(~real[:, None], -torch.inf)
        x = torch.matmul(torch.softmax(weight, 2), wide)  # (n, C, d)
        for layer in self.layers[:-1]:
            x = torch.relu(layer(x))
        out: Tensor = self.layers[-1](x).squeeze(2)
        return out
