"""Confidence in a number: percentile bootstrap over documents, for one system or for the difference of two.

Every metric that is averaged over documents is Σ top / Σ bottom over the rows (a mean has bottom 1). A resample draws
n rows with replacement, which is a weight per row, so its value is (w · top) / (w · bottom): one matrix product gives
every metric of many resamples. The weights are a pure function of (seed, resample).
"""

from __future__ import annotations

import dataclasses
from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from ..errors import ConfigError, DataError

Floats = NDArray[np.float64]
_BLOCK = 4_000_000  # weights held at once (32 MB)


@dataclasses.dataclass(frozen=True, eq=False)
class RowScores:
    """One metric, row by row; over any set of rows it is 100 · Σ top / Σ bottom. A row left out has bottom 0."""

    top: Floats  # (n,)
    bottom: Floats  # (n,)

    @property
    def value(self) -> float:
        """The metric over all rows, in percent."""
        return float(_percent(self.top.sum(), self.bottom.sum()))


@dataclasses.dataclass(frozen=True)
class Difference:
    """a − b in percentage points, with its interval over paired resamples."""

    a: float
    b: float
    difference: float
    low: float
    high: float
    level: float

    @property
    def clear(self) -> bool:
        """Does the interval leave out zero?"""
        return self.low > 0 or self.high < 0


def intervals(scores: Sequence[RowScores], resamples: int, seed: int, level: float) -> list[tuple[float, float]]:
    """The middle `level` percent of the resampled values of each metric."""
    return [_middle(values, level) for values in _resampled(scores, resamples, seed).T]


def compare(
    a: RowScores | Floats, b: RowScores | Floats, *, resamples: int = 1000, seed: int = 0, level: float = 95.0
) -> Difference:
    """Paired comparison: row i of both is the same document, and a resample draws the same rows for both.

    A plain array (n,) is a metric that is averaged over rows; values are fractions, the result is in percent.
    """
    if resamples < 1 or seed < 0 or not 0 < level < 100:
        raise ConfigError(
            f"resamples, seed and level are {resamples}, {seed} and {level}; allowed are ≥ 1, ≥ 0 and 0 < level < 100."
        )
    first, second = _scores(a, "a"), _scores(b, "b")
    if len(first.top) != len(second.top):
        raise DataError(f"a has {len(first.top)} rows but b {len(second.top)}; compare the same documents.")
    drawn = _resampled([first, second], resamples, seed)
    low, high = _middle(drawn[:, 0] - drawn[:, 1], level)
    return Difference(first.value, second.value, first.value - second.value, low, high, level)


def _scores(values: RowScores | Floats, name: str) -> RowScores:
    if isinstance(values, RowScores):
        scores = RowScores(_column(values.top, name), _column(values.bottom, name))
    else:
        top = _column(values, name)
        scores = RowScores(top, np.ones_like(top))
    if len(scores.top) != len(scores.bottom):
        raise DataError(f"{name} has {len(scores.top)} tops but {len(scores.bottom)} bottoms; each row needs both.")
    return scores


def _column(values: Floats, name: str) -> Floats:
    try:
        array = np.asarray(values)
    except (ValueError, TypeError) as error:
        raise DataError(f"{name} is not an array: {error}") from error
    if array.ndim != 1 or array.size == 0 or array.dtype.kind not in "fiub" or not np.isfinite(array).all():
        raise DataError(f"{name} must be one finite number per row, but is {array.dtype} of shape {array.shape}.")
    return array.astype(np.float64)


def _resampled(scores: Sequence[RowScores], resamples: int, seed: int) -> Floats:
    """(resamples, metrics) in percent."""
    n, m = len(scores[0].top), len(scores)
    table = np.stack([s.top for s in scores] + [s.bottom for s in scores])  # (2m, n)
    values = np.empty((resamples, m))
    step = max(1, _BLOCK // max(1, n))
    for start in range(0, resamples, step):
        block = range(start, min(start + step, resamples))
        weights = np.stack([_weights(n, seed, number) for number in block])
        # einsum, not @: BLAS would split the sum over its threads, and the bits with it
        sums = np.einsum("bn,mn->bm", weights, table)
        values[block.start : block.stop] = _percent(sums[:, :m], sums[:, m:])
    return values


def _weights(n: int, seed: int, resample: int) -> Floats:
    rows = np.random.default_rng((seed, resample)).integers(n, size=n, dtype=np.int32)
    return np.bincount(rows, minlength=n).astype(np.float64)


def _percent(top: Floats, bottom: Floats) -> Floats:
    """0 where nothing could be attained (no row, or no true label)."""
    return np.divide(100.0 * top, bottom, out=np.zeros(np.shape(top)), where=bottom > 0)


def _middle(values: Floats, level: float) -> tuple[float, float]:
    low, high = np.percentile(values, [50 - level / 2, 50 + level / 2])
    return float(low), float(high)
