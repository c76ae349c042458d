"""Linear levels: one linear classifier per tree node, trained on its parent's shortlist (eq. 9), kept as chunks.

The solver is dual coordinate descent, all labels of a cluster at once (native/linear/kernels_impl.h). linear_level.py
has what it makes.

Costs: sum over the shortlist of C_il · loss + 1/2 |w|², with C_il = cp · R_il for positives (R the relevance of the
cluster for the document, normalised per row) and cn for negatives. In the paper's terms α = cn / cp and λ = 1 / cp for
1/2 |w|² (1 / (2 cp) for its |w|² as printed); `alpha` and `lam` may be given instead of cp and cn.
"""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays.sparse import Csr, Features
from ..base.config import Acts, PerLevel, at, each, setting
from ..base.progress import Tick
from ..errors import ConfigError
from ..storage.atomic_files import Spool
from . import losses
from .linear_level import WEIGHTS, LinearLevel, Pile

SOLVERS = ("dual", "newton", "proximal")
_COSTS = "where linear.alpha and linear.lam, which stand for cp and cn, are none"


@dataclasses.dataclass(frozen=True)
class LinearConfig:
    """The classifiers of a level."""

    loss: PerLevel[str] = setting(
        "squared-hinge",
        "loss of a classifier; choose logistic, with search.combiner = sigmoid, where scores should be probabilities",
        choices=losses.NAMES, rank=3,
    )  # fmt: skip
    cp: PerLevel[float] = setting(
        1.0,
        "weight of a classifier's positives; a higher value fits them more closely; raise it where right labels rank "
        "low",
        low=1e-6, high=1e6, acts=Acts(lambda own, _: own.alpha is None or own.lam is None, _COSTS), rank=1,
    )  # fmt: skip
    cn: PerLevel[float] = setting(
        1.0, "weight of a classifier's negatives; a higher value makes it predict its label less often",
        low=1e-6, high=1e6, acts=Acts(lambda own, _: own.alpha is None or own.lam is None, _COSTS), rank=2,
    )  # fmt: skip
    alpha: PerLevel[float] | None = setting(
        None,
        "the paper's α = cn / cp: a higher value gives negatives more weight; set it with lam, in place of cp and cn",
        above=0, rank=6,
    )  # fmt: skip
    lam: PerLevel[float] | None = setting(
        None,
        "the paper's λ = 1 / cp (for 1/2 |w|²): a higher value keeps weights smaller; set it with alpha, in place of "
        "cp and cn",
        above=0, rank=6,
    )  # fmt: skip
    eps: PerLevel[float] = setting(
        0.1, "a classifier is done at this tolerance; a higher value trains faster and less exactly", above=0, rank=2
    )
    max_iter: PerLevel[int] = setting(
        100, "passes over the documents at most; lower it to bound the time", low=1, high=1_000_000, rank=4
    )
    solver: PerLevel[str] = setting(
        "dual",
        "dual: coordinate descent, right for trees; newton: conjugate gradients, for one-vs-all; proximal: ProXML's L1 "
        "penalty in place of 1/2 |w|². The last two need the squared hinge",
        choices=SOLVERS, rank=4,
    )  # fmt: skip
    l1: PerLevel[float] = setting(
        0.1, "strength of the proximal solver's L1 penalty; a higher value keeps fewer weights", low=1e-6, high=1e6,
        acts=Acts(lambda own, _: "proximal" in each(own.solver), "with linear.solver = proximal"),
    )  # fmt: skip
    start: PerLevel[str] = setting(
        "zero",
        "first weights of a classifier: 0, what tells the means of its two classes apart (mean-separating: fewer "
        "passes, with the squared hinge), or those of the network beside it (network: with linear.solver = newton)",
        choices=("zero", "mean-separating", "network"), rank=6,
    )  # fmt: skip
    bias: float = setting(
        1.0, "value of the bias feature; a higher value lets the bias grow more freely; 0: none", low=0, high=1e3,
        rank=6,
    )  # fmt: skip
    threshold: PerLevel[float] = setting(
        0.1, "drop smaller weights; a higher value gives a smaller and faster model, too high a value loses accuracy",
        low=0, rank=1,
    )  # fmt: skip
    weights: PerLevel[str] = setting(
        "float16", "how weights are stored; int8 needs half the space of float16, float32 twice as much",
        choices=WEIGHTS, rank=4,
    )  # fmt: skip
    relevance: str = setting(
        "off",
        "weight of a positive: 1 for all (off), by how many of the document's labels a cluster holds (induce), or your "
        "own relevances (given)",
        choices=("off", "induce", "given"), rank=4,
    )  # fmt: skip
    weighting: PerLevel[str] = setting(
        "none",
        "weights by propensity: a rare label's positives count more (pw) or its negatives less (pw-cb); set it where "
        "rare labels matter",
        choices=("none", "pw", "pw-cb"), rank=3,
    )  # fmt: skip
    relevance_norm: str = setting(
        "l1",
        "how a document's relevances are scaled: to the sum 1 (l1), the length 1 (l2), the largest 1 (max), or not "
        "(none)",
        choices=("l1", "l2", "max", "none"), rank=6,
        acts=Acts(lambda own, _: own.relevance != "off", "with linear.relevance = induce or given"),
    )  # fmt: skip

    def costs(self, level: int, levels: int) -> tuple[float, float]:
        """(cp, cn) of a level, from α and λ where they are given."""
        if (self.alpha is None) != (self.lam is None):
            raise ConfigError("linear.alpha and linear.lam go together; give both, or cp and cn instead.")
        if self.alpha is None or self.lam is None:
            return at(self.cp, level, levels, "linear.cp"), at(self.cn, level, levels, "linear.cn")
        alpha, lam = at(self.alpha, level, levels, "linear.alpha"), at(self.lam, level, levels, "linear.lam")
        if not (1e-6 <= 1 / lam <= 1e6 and 1e-6 <= alpha / lam <= 1e6):
            raise ConfigError(
                f"linear.alpha {alpha:g} and linear.lam {lam:g} mean cp = {1 / lam:g} and cn = {alpha / lam:g}; "
                "both must be ≥ 1e-06 and ≤ 1e+06."
            )
        return 1 / lam, alpha / lam

    def check_solver(self, level: int, levels: int) -> None:
        """ConfigError where a solver or a start is asked for with a loss it does not know."""
        loss, solver = at(self.loss, level, levels, "linear.loss"), at(self.solver, level, levels, "linear.solver")
        start = at(self.start, level, levels, "linear.start")
        if not losses.LOSSES[loss].primal and (solver != "dual" or start != "zero"):
            asked = f"linear.solver = {solver!r}" if solver != "dual" else f"linear.start = {start!r}"
            known = " or ".join(map(repr, losses.PRIMAL))
            raise ConfigError(f"{asked} is for linear.loss = {known}, but the loss is {loss!r}; change one.")
        if solver == "proximal" and start != "zero":
            raise ConfigError("linear.solver = 'proximal' starts from zero; leave linear.start = 'zero'.")
        if start == "network" and solver != "newton":
            raise ConfigError(
                f"linear.start = 'network' is for linear.solver = 'newton', but the solver is {solver!r}, for which "
                "weights are no start; set linear.solver = 'newton', or leave linear.start = 'zero'."
            )


def relevance(y: Csr, config: LinearConfig) -> Csr:
    """R^ (n, K): costs of the positives of one level from summed relevances `y`, normalised per document.

    Kept within 1e-6..1e6, the range of cp itself: beyond it the solver's float32 has nothing left to tell apart.
    """
    if config.relevance == "off":
        return Csr(y.indptr, y.indices, np.ones(y.nnz, np.float32), y.cols)
    counts = y.counts()
    value = y.data.astype(np.float64)
    starts = y.indptr[:-1][counts > 0]
    if config.relevance_norm != "none" and len(starts):
        reduce = {"l1": np.add, "l2": np.add, "max": np.maximum}[config.relevance_norm]
        total = reduce.reduceat(value**2 if config.relevance_norm == "l2" else value, starts)
        total = np.sqrt(total) if config.relevance_norm == "l2" else total
        value /= np.repeat(total, counts[counts > 0])
    return Csr(y.indptr, y.indices, np.clip(value, 1e-6, 1e6).astype(np.float32), y.cols)


@dataclasses.dataclass(frozen=True)
class Place:
    """Place of a level in a run, or of its part that begins with parent `first`: it keys the randomness."""

    level: int
    levels: int
    seed: int
    tree: int = 0
    first: int = 0


def train_level(
    x: Features,
    costs: Csr,
    m: Csr,
    child_ptr: NDArray[np.int64],
    config: LinearConfig,
    *,
    place: Place,
    threads: int,
    negative: NDArray[np.float32] | None = None,
    first: NDArray[np.float32] | None = None,
    spool: Spool | None = None,
    progress: Tick | None = None,
) -> LinearLevel:
    """Classifiers of one level: costs (n, K_t) of positives, weights (K_t) of negatives, shortlist M (n, K_{t-1}).

    `first` (K_t, dense columns + 1) are weights to start from, biases last, where linear.start asks for them.

    With a spool the chunks go there as they are finished, and memory holds only those in the making.
    """
    t, depth = place.level, place.levels
    config.check_solver(t, depth)
    cp, cn = config.costs(t, depth)
    pile = Pile(len(child_ptr) - 1, spool)
    costs_t, m_t = costs.transpose(), m.transpose()
    del costs, m  # a caller who keeps no name for them holds each only once
    _core.train_level(
        *x.parts,
        *costs_t.parts[:3],
        *m_t.parts[:3],
        child_ptr,
        negative=np.ones(costs_t.rows, np.float32) if negative is None else negative,
        first=first if at(config.start, t, depth, "linear.start") == "network" else None,
        loss=losses.LOSSES[at(config.loss, t, depth, "linear.loss")].native,
        solver=SOLVERS.index(at(config.solver, t, depth, "linear.solver")),
        mean_start=at(config.start, t, depth, "linear.start") == "mean-separating",
        l1=at(config.l1, t, depth, "linear.l1"),
        cp=cp,
        cn=cn,
        eps=at(config.eps, t, depth, "linear.eps"),
        max_iter=at(config.max_iter, t, depth, "linear.max_iter"),
        bias=config.bias,
        threshold=at(config.threshold, t, depth, "linear.threshold"),
        weight=WEIGHTS.index(at(config.weights, t, depth, "linear.weights")),
        seed=place.seed,
        tree=place.tree,
        level=t,
        first_parent=place.first,
        write=pile.write,
        threads=threads,
        progress=progress,
    )
    return LinearLevel(child_ptr, pile.records(), pile.places, x.sparse_cols, x.dense_cols)
