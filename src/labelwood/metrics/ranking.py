"""Quality of ranked label lists: P, R, nDCG, PSP, PSnDCG, coverage and macro-F1 at k, in percent.

For document i with true labels y_i and predictions ranked r = 1, 2, … (score descending, ties by ascending label id):

    P@k       mean of hits / k; the denominator stays k when fewer labels are true or predicted
    R@k       mean of hits / max(|y_i|, 1)
    nDCG@k    mean of Σ_{hits} 1/log2(r+1) / Σ_{r ≤ min(k,|y_i|)} 1/log2(r+1)
    PSP@k     Σ_i Σ_{hits} q / Σ_i (the k largest q among y_i): a ratio of sums over the test set (Jain et al. 2016)
    PSnDCG@k  the same ratio with discounts 1/log2(r+1); "xclib" divides both of each row's sums by the row's binary
              ideal DCG first, "attentionxml" does not
    coverage@k  share of the labels in the truth that were predicted rightly at least once
    macro-F1@k  mean over the labels in the truth of 2·tp / (true + predicted), predictions being the top-k sets

q is the inverse propensity: q_l = 1 + C (n_l + B)^-A with C = (ln N - 1)(B + 1)^A, n_l of N training rows. Means are
over all rows: a row without a true label counts 0 in P, R and nDCG, unless unseen="drop" leaves it out.

Coverage and macro-F1 have no interval: a resample holds fewer distinct labels than the test set, which shifts both.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from fnmatch import fnmatch
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import limits
from ..arrays.sparse import Csr, as_csr
from ..base.config import checked_config, setting, to_dict
from ..errors import ConfigError, DataError, counted, nearest
from .intervals import Difference, Floats, RowScores, compare, intervals

__all__ = [
    "Difference",
    "Evaluation",
    "MetricsConfig",
    "RowScores",
    "by_row",
    "compare",
    "evaluate",
    "inverse_propensity",
    "propensity_constants",
]

Ints = NDArray[np.integer[Any]]
_METRICS = ("P", "R", "nDCG", "PSP", "PSnDCG", "coverage", "macro-F1")

# (A, B) as published with the data sets; names without - and _, the first match counts.
_CONSTANTS = (
    ("*amazoncat*", (0.55, 1.5)),
    ("*amazon*", (0.6, 2.6)),
    ("*wikilshtc*", (0.5, 0.4)),
    ("*wikipedia*", (0.5, 0.4)),
    ("*wiki*500k", (0.5, 0.4)),
    ("*", (0.55, 1.5)),
)


@dataclasses.dataclass(frozen=True)
class MetricsConfig:
    """Choice of what is measured and by which convention."""

    ks: tuple[int, ...] = setting((1, 3, 5, 10), "ranks at which to measure", low=1, high=limits.MAX_K)
    unseen: str = setting(
        "count",
        "labels never seen in training: count as misses, or drop them and the rows left without a label",
        choices=("count", "drop"),
    )
    propensity: str | None = setting(
        None, "data set whose usual propensity constants to take, e.g. Amazon-670K; A = 0.55, B = 1.5 for most"
    )
    a: float | None = setting(None, "propensity constant A, instead of the usual one", low=0, high=10)
    b: float | None = setting(None, "propensity constant B, instead of the usual one", above=0, high=1000)
    psndcg: str = setting("xclib", "whose definition of PSnDCG", choices=("xclib", "attentionxml"))
    bootstrap: int = setting(1000, "resamples for the intervals; 0 for none", low=0, high=1_000_000)
    seed: int = setting(0, "of the resamples", low=0, high=limits.MAX_SEED)
    level: float = setting(95.0, "percent of the resamples inside an interval", above=0, high=99.9)

    @property
    def constants(self) -> tuple[float, float]:
        """The propensity constants (A, B): as given, else those usual for the data set."""
        a, b = propensity_constants(self.propensity or "")
        return a if self.a is None else self.a, b if self.b is None else self.b


@dataclasses.dataclass(frozen=True)
class Evaluation:
    """Values in percent by name ("P@1"), intervals, what was counted, and the config that says how."""

    values: dict[str, float]
    intervals: dict[str, tuple[float, float]]
    counts: dict[str, int]
    config: MetricsConfig

    def __getitem__(self, name: str) -> float:
        """The value of a metric: evaluation["P@1"]."""
        if name not in self.values:
            raise ConfigError(f"{str(name)[:80]!r} was not measured; {nearest(str(name)[:80], self.values)}")
        return self.values[name]

    @property
    def unseen(self) -> str:
        """Treatment of labels never seen in training: "count" or "drop"."""
        return self.config.unseen

    def to_json(self) -> dict[str, Any]:
        """Plain data: the values as flat keys, then intervals, counts and conventions."""
        spans = {name: list(span) for name, span in self.intervals.items()}
        a, b = self.config.constants
        config = {**to_dict(self.config), "a": a, "b": b}
        said = {key: config[key] for key in ("unseen", "a", "b", "psndcg", "bootstrap", "seed", "level")}
        return {**self.values, "intervals": spans, "counts": dict(self.counts), **said}

    def table(self) -> list[tuple[str, ...]]:
        """A header and a row per metric, as text: value, and the interval where there is one."""
        ks = sorted(set(self.config.ks))
        header = ("metric", *(f"@{k}" for k in ks))
        return [header, *((name, *(self._cell(f"{name}@{k}") for k in ks)) for name in _METRICS)]

    def note(self) -> str:
        """One sentence on unseen labels: what was done, and how many rows and labels that concerns."""
        c = self.counts
        if not c["unseen_labels"] and not c["rows_dropped"]:
            return f'Every label was seen in training: unseen="{self.unseen}" concerns no row.'
        labels, times = counted(c["unseen_labels"], "label"), counted(c["unseen_occurrences"], "occurrence")
        met, rows = f"Never seen in training: {labels} ({times})", counted(c["rows"], "row")
        if self.unseen == "drop":
            return f"{met}, dropped together with {c['rows_dropped']:,} of {rows} left without a label."
        return f"{met}, counted as misses; no other label in {c['rows_only_unseen']:,} of {rows}."

    def _cell(self, name: str) -> str:
        span = self.intervals.get(name)
        return f"{self.values[name]:.2f}" + (f" [{span[0]:.2f}, {span[1]:.2f}]" if span else "")


def propensity_constants(name: str) -> tuple[float, float]:
    """(A, B) usual for a data set of the Extreme Classification Repository; .55, 1.5 for any other."""
    plain = name.lower().replace("-", "").replace("_", "").replace(" ", "")
    return next(pair for pattern, pair in _CONSTANTS if fnmatch(plain, pattern))


def inverse_propensity(counts: NDArray[Any], n_train: int, a: float = 0.55, b: float = 1.5) -> Floats:
    """q (L,) from the training positives per label (L,) and the number of training rows.

    The formula falls below 1 for fewer than 3 rows; a propensity is a probability, so q is 1 there.
    """
    counts = _checked_counts(counts)
    if not (1 <= n_train <= limits.MAX_INDEX and 0 <= a <= 10 and 0 < b <= 1000):
        raise ConfigError(
            f"n_train, a and b are {n_train}, {a} and {b}; allowed are 1 ≤ n_train < 2^31, 0 ≤ a ≤ 10 and 0 < b ≤ 1000."
        )
    c = max(0.0, float(np.log(n_train)) - 1.0) * (b + 1.0) ** a
    q: Floats = 1.0 + c * (counts + b) ** -a
    return q


def evaluate(
    predicted: Ints, truth: Csr, label_counts: NDArray[Any], n_train: int, config: MetricsConfig = MetricsConfig()
) -> Evaluation:
    """Measure predictions (n, k): label ids best first, -1 for none; missing columns count as misses.

    `truth` is (n, L + unseen): ids ≥ L, and labels without a training positive, were never seen in training. A stored
    value ≤ 0 is no label. `label_counts` (L,) are the training positives among `n_train` rows.
    """
    config = checked_config(MetricsConfig, config, "metrics")
    case = _Case.of(predicted, truth, label_counts, n_train, config)
    scores = dict(_row_scores(case, config))
    values = {name: score.value for name, score in scores.items()} | dict(_label_values(case, config))
    spans = intervals(list(scores.values()), config.bootstrap, config.seed, config.level) if config.bootstrap else []
    ordered = {f"{m}@{k}": values[f"{m}@{k}"] for m in _METRICS for k in sorted(set(config.ks))}
    return Evaluation(ordered, dict(zip(scores, spans, strict=False)), case.counts, config)


def by_row(
    predicted: Ints, truth: Csr, label_counts: NDArray[Any], n_train: int, config: MetricsConfig = MetricsConfig()
) -> dict[str, RowScores]:
    """The metrics that are averaged over rows, row by row, for `compare`; arguments as in `evaluate`."""
    config = checked_config(MetricsConfig, config, "metrics")
    return dict(_row_scores(_Case.of(predicted, truth, label_counts, n_train, config), config))


@dataclasses.dataclass(frozen=True, eq=False)
class _Case:
    """Predictions held against the truth, K = max(ks) columns. Rows left out are not `kept` and hold nothing."""

    predicted: NDArray[np.int64]  # (n, K), -1 for none
    hits: NDArray[np.bool_]  # (n, K)
    gains: Floats  # (n, K) q of a hit, else 0
    best: Floats  # (n, K) the largest q among the row's true labels, descending, then 0
    sizes: NDArray[np.int64]  # (n,) true labels
    kept: NDArray[np.bool_]  # (n,)
    support: NDArray[np.int64]  # (labels,) rows in which a label is true
    counts: dict[str, int]

    @staticmethod
    def of(predicted: Ints, truth: Csr, label_counts: NDArray[Any], n_train: int, config: MetricsConfig) -> _Case:
        counts, truth = _checked_counts(label_counts), as_csr(truth, "truth")
        ids = _checked_predictions(predicted, truth, len(counts), max(config.ks))
        counts = np.concatenate([counts, np.zeros(truth.cols - len(counts))])
        q = inverse_propensity(counts, n_train, *config.constants)
        seen = counts > 0
        truth, kept, numbers = _apply_unseen(truth, seen, config.unseen)
        ids[~kept] = -1
        hit = hits(ids, truth)
        gains = np.where(hit, np.append(q, 0.0)[ids], 0.0)  # id -1 reads the 0 at the end
        best = _best(truth, q, ids.shape[1])
        support = np.bincount(truth.indices, minlength=truth.cols)
        numbers |= {"labels_in_truth": int((support > 0).sum()), "labels_in_training": int(seen.sum())}
        return _Case(ids, hit, gains, best, truth.counts(), kept, support, numbers)


def _row_scores(case: _Case, config: MetricsConfig) -> Iterator[tuple[str, RowScores]]:
    discount = 1.0 / np.log2(np.arange(case.hits.shape[1]) + 2.0)
    ideal = np.concatenate([[1.0], np.cumsum(discount)])  # ideal[m]: DCG of m hits; rows without labels divide by 1
    hits, dcg = np.cumsum(case.hits, axis=1), np.cumsum(case.hits * discount, axis=1)
    gain, best_gain = np.cumsum(case.gains, axis=1), np.cumsum(case.best, axis=1)
    ps_dcg, best_dcg = np.cumsum(case.gains * discount, axis=1), np.cumsum(case.best * discount, axis=1)
    kept = case.kept.astype(np.float64)
    for k in sorted(set(config.ks)):
        at, row_ideal = k - 1, ideal[np.minimum(case.sizes, k)]
        scale = row_ideal if config.psndcg == "xclib" else 1.0
        yield f"P@{k}", RowScores(hits[:, at].astype(np.float64), k * kept)
        yield f"R@{k}", RowScores(hits[:, at] / np.maximum(case.sizes, 1), kept)
        yield f"nDCG@{k}", RowScores(dcg[:, at] / row_ideal, kept)
        yield f"PSP@{k}", RowScores(gain[:, at], best_gain[:, at])
        yield f"PSnDCG@{k}", RowScores(ps_dcg[:, at] / scale, best_dcg[:, at] / scale)


def _label_values(case: _Case, config: MetricsConfig) -> Iterator[tuple[str, float]]:
    """Coverage and macro-F1: averages over the labels in the truth."""
    labels = np.flatnonzero(case.support)
    size = len(case.support)
    for k in sorted(set(config.ks)):
        ids, hits = case.predicted[:, :k], case.hits[:, :k]
        right = np.bincount(ids[hits], minlength=size)[labels]
        chosen = np.bincount(ids[ids >= 0], minlength=size)[labels]
        f1 = 2.0 * right / (case.support[labels] + chosen)
        yield f"coverage@{k}", 100.0 * float((right > 0).sum()) / max(1, len(labels))
        yield f"macro-F1@{k}", 100.0 * float(f1.sum()) / max(1, len(labels))


def _apply_unseen(truth: Csr, seen: NDArray[np.bool_], unseen: str) -> tuple[Csr, NDArray[np.bool_], dict[str, int]]:
    """The truth that counts, the rows that count, and how much of what was met."""
    truth = _entries(truth, truth.data > 0)
    known = seen[truth.indices]
    seen_only = _entries(truth, known)
    bare = seen_only.counts() == 0
    kept = ~bare if unseen == "drop" else np.ones(truth.rows, np.bool_)
    if not kept.any():
        raise DataError(
            f"there is nothing to measure: of {truth.rows} rows none has a label seen in training; "
            'check that train and test name labels alike, or use unseen="count".'
        )
    numbers = {
        "rows": truth.rows,
        "rows_evaluated": int(kept.sum()),
        "rows_dropped": int((~kept).sum()),
        "rows_without_labels": int((truth.counts() == 0).sum()),
        "rows_only_unseen": int((bare & (truth.counts() > 0)).sum()),
        "label_occurrences": truth.nnz,
        "unseen_occurrences": int((~known).sum()),
        "unseen_labels": len(np.unique(truth.indices[~known])),
    }
    return (seen_only if unseen == "drop" else truth), kept, numbers


def _entries(matrix: Csr, wanted: NDArray[np.bool_]) -> Csr:
    """The matrix with only the wanted entries."""
    if wanted.all():
        return matrix
    before = np.concatenate([[0], np.cumsum(wanted)])
    return Csr(before[matrix.indptr], matrix.indices[wanted], matrix.data[wanted], matrix.cols)


def hits(ids: NDArray[np.int64], truth: Csr) -> NDArray[np.bool_]:
    """Truth of each prediction: each is looked up in the sorted keys row · cols + label of the truth."""
    keys = _row_of_entry(truth) * truth.cols + truth.indices
    wanted = np.arange(truth.rows)[:, None] * truth.cols + ids
    place = np.searchsorted(keys, wanted)
    found: NDArray[np.bool_] = (np.append(keys, -1)[place] == wanted) & (ids >= 0)
    return found


def _best(truth: Csr, q: Floats, k: int) -> Floats:
    """(n, k): each row's k largest q, descending."""
    rows, values = _row_of_entry(truth), q[truth.indices]
    order = np.lexsort((-values, rows))
    rank = np.arange(truth.nnz) - truth.indptr[rows]
    near = rank < k
    best = np.zeros((truth.rows, k))
    best[rows[near], rank[near]] = values[order][near]
    return best


def _row_of_entry(matrix: Csr) -> NDArray[np.int64]:
    return np.repeat(np.arange(matrix.rows), matrix.counts())


def _checked_counts(counts: NDArray[Any]) -> Floats:
    array = _array(counts, "label counts")
    if array.ndim != 1 or array.dtype.kind not in "fiu":
        raise DataError(f"label counts must be one number per label, but are {array.dtype} of shape {array.shape}.")
    bad = np.flatnonzero(~(np.isfinite(array) & (array >= 0)))
    if len(bad):
        raise DataError(f"label {bad[0]} has {array[bad[0]]} training positives; allowed are finite numbers ≥ 0.")
    return array.astype(np.float64)


def _checked_predictions(predicted: Ints, truth: Csr, labels: int, k: int) -> NDArray[np.int64]:
    """A copy (n, k), padded with -1 or cut; every id in -1..labels-1 and at most once in a row."""
    array = _array(predicted, "predictions")
    if array.ndim != 2 or array.dtype.kind not in "iu":
        raise DataError(f"predictions must be label ids (rows, k), but are {array.dtype} of shape {array.shape}.")
    if len(array) != truth.rows or truth.rows == 0 or truth.cols < labels:
        raise DataError(
            f"predictions have {len(array)} rows of {labels} labels but the truth is {truth.shape}; "
            "both need the same rows (at least one), and the truth a column per label."
        )
    _refuse_first((array < -1) | (array >= labels), array, f"allowed are -1 (none) and 0..{labels - 1}")
    ordered = np.sort(array, axis=1)
    _refuse_first((ordered[:, 1:] == ordered[:, :-1]) & (ordered[:, 1:] >= 0), ordered[:, 1:], "it stands twice")
    ids = np.full((len(array), k), -1, np.int64)
    ids[:, : array.shape[1]] = array[:, :k]
    return ids


def _array(values: object, name: str) -> NDArray[Any]:
    try:
        return np.asarray(values)
    except (ValueError, TypeError) as error:
        raise DataError(f"{name} are not an array: {error}") from error


def _refuse_first(bad: NDArray[np.bool_], array: Ints, why: str) -> None:
    if bad.any():
        row, column = (int(v[0]) for v in np.nonzero(bad))
        raise DataError(f"label id {array[row, column]} is predicted; {why}.", row=row)
