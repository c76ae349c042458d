"""Linear layers whose products run by the faster of torch's two libraries.

On CPUs with AVX-512 that are not Intel's, MKL, which torch calls, multiplies in 256-bit vectors; oneDNN, which comes
with torch too, takes the whole width: 430 to 540 GFLOP/s in float32 beside 238 on two cores of an EPYC. Elsewhere both
are equally fast, and torch's own way is taken. The choice is a fact of the machine: bits are those of one kind of CPU.
"""

from __future__ import annotations

from typing import Any, cast

import torch
from torch import Tensor, nn
from torch.nn import functional as F


def _product() -> Any:
    """oneDNN's x wᵀ + b; None where it is missing or no faster."""
    wide = torch.backends.cpu.get_cpu_capability().startswith("AVX512")
    if not wide or not torch.backends.mkldnn.is_available():  # type: ignore[no-untyped-call]
        return None
    return getattr(getattr(torch.ops, "mkldnn", None), "_linear_pointwise", None)


_FOUND = _product()
ROUND = 64


def spare(x: Tensor) -> int:
    """Rows that a large product should have in addition: oneDNN compiles anew for every number of rows it meets."""
    return -len(x) % ROUND if _fast(x) and len(x) >= 16 * ROUND else 0


def _fast(x: Tensor) -> bool:
    return _FOUND is not None and x.dtype == torch.float32 and x.device.type == "cpu" and len(x) > 0


def times(x: Tensor, w: Tensor, b: Tensor | None = None) -> Tensor:
    """x (m, k) times wᵀ (k, n), plus b. An x that is transposed in memory is copied first, w is read as it lies."""
    return cast(Tensor, _FOUND(x, w, b, "none", [], None))


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, x: Tensor, w: Tensor, b: Tensor) -> Tensor:
        ctx.save_for_backward(x, w)
        return times(x, w, b)

    @staticmethod
    def backward(ctx: Any, grad: Tensor) -> tuple[Tensor | None, Tensor | None, Tensor | None]:
        x, w = ctx.saved_tensors
        asked = ctx.needs_input_grad
        dx = times(grad, w.t()) if asked[0] else None
        dw = None
        if asked[1]:  # one side is copied: the narrower one
            dw = times(grad.t(), x.t()) if len(w) <= w.shape[1] else times(x.t(), grad.t()).t().contiguous()
        return dx, dw, grad.sum(0) if asked[2] else None


class Linear(nn.Linear):
    """nn.Linear for rows (m, k), with a bias."""

    def forward(self, x: Tensor) -> Tensor:
        if not _fast(x):
            return F.linear(x, self.weight, self.bias)
        return cast(Tensor, cast(Any, _Product.apply)(x, self.weight, self.bias))
