"""Losses of one classifier, registered here and nowhere else: solvers, heads, settings and searches ask this table.

A loss is a function of the margin m of a true node; of a false node it is that of -m. A new loss needs an entry here
and, for linear levels, a kernel of native/linear/kernels.h under the number that the entry gives.

    squared-hinge   max(0, 1 - m)²
    hinge           max(0, 1 - m)
    logistic        log(1 + exp(-m))
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.floating[Any]]


@dataclasses.dataclass(frozen=True)
class Loss:
    """A loss, all that depends on which one it is."""

    native: int  # its number in native/linear/kernels.h
    value: Callable[[Any], Any]  # of margins: an array, or a tensor where `torch_name` is none
    slope: Callable[[Array], Array]  # its derivative by the margin
    link: str  # the search.combiner by which margins become probabilities: exp(-value)
    prior: Callable[[Array, Array], Array]  # (P, N) → the b where P · value(b) + N · value(-b) is least; P, N > 0
    torch_name: str | None = None  # a function of torch.nn.functional that computes it from logits and 0 or 1
    primal: bool = False  # do solvers of the primal problem, and starts from means, know it?


def _short(margin: Any) -> Any:
    """max(0, 1 - m), by operations that arrays and tensors share; its slope at 0 is 0 for both."""
    missing = 1 - margin
    return missing * (missing > 0)


def _squared_short(margin: Any) -> Any:
    short = _short(margin)
    return short * short


LOSSES = {
    "squared-hinge": Loss(
        native=0,
        value=_squared_short,
        slope=lambda margin: -2 * _short(margin),
        link="l2-hinge",
        prior=lambda positive, negative: (positive - negative) / (positive + negative),
        primal=True,
    ),
    "hinge": Loss(
        native=1,
        value=_short,
        slope=lambda margin: np.where(margin < 1, -1.0, 0.0),
        link="l1-hinge",
        prior=lambda positive, negative: np.sign(positive - negative),  # a line from -1 to 1: one of its ends
    ),
    "logistic": Loss(
        native=2,
        value=lambda margin: np.logaddexp(0, -margin),
        slope=lambda margin: -np.exp(-np.logaddexp(0, margin)),
        link="sigmoid",
        prior=lambda positive, negative: np.log(positive / negative),
        torch_name="binary_cross_entropy_with_logits",
    ),
}
NAMES = tuple(LOSSES)
PRIMAL = tuple(name for name, loss in LOSSES.items() if loss.primal)
