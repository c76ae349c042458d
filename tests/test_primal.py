"""Newton's method, proximal gradient, the mean-separating start and weights of negatives, against their twins."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import labelwood as lw
import reference
from cases import cases
from chunks import weights_of
from labelwood.arrays.sparse import Csr, as_csr
from labelwood.parts.linear import LinearConfig, Place, train_level
from labelwood.parts.shortlist import all_rows
from toy import random_features, random_labels

pytestmark = pytest.mark.native


WAYS = [
    ("dual", "mean-separating"), ("newton", "zero"), ("newton", "mean-separating"), ("newton", "network"),
    ("proximal", "zero"),
]  # fmt: skip


def config(**changes) -> LinearConfig:
    return LinearConfig(**{"threshold": 0.0, "weights": "float32", **changes})


@cases(400)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(2, 12),
    sparse=st.integers(0, 5),
    dense=st.integers(0, 3),
    labels=st.integers(1, 5),
    how=st.sampled_from(WAYS),
    passes=st.integers(1, 4),
    bias=st.sampled_from([0.0, 1.0, 0.5]),
)  # fmt: skip
def test_all_lanes_at_once_equal_label_by_label(seed, rows, sparse, dense, labels, how, passes, bias):
    sparse = sparse or int(dense == 0)
    rng = np.random.default_rng(seed)
    x, whole = random_features(rng, rows, sparse, dense)
    y, y_dense = random_labels(rng, rows, labels)
    costs = Csr(y.indptr, y.indices, rng.uniform(0.2, 2, y.nnz).astype(np.float32), labels)
    m = rng.random((rows, 1)) < 0.8
    negative = rng.uniform(0.1, 1, labels).astype(np.float32)
    solver, start = how
    first = rng.normal(0, 0.5, (labels, dense + 1)).astype(np.float32)
    if solver == "newton":
        passes = 1  # stopped early, conjugate gradients magnify rounding from pass to pass; see the next test
    level = train_level(
        x, costs, as_csr(m.astype(float)), np.array([0, labels]),
        config(solver=solver, start=start, l1=0.2, cp=1.5, cn=0.5, eps=0.05, max_iter=passes, bias=bias),
        place=Place(1, 2, seed), threads=2, negative=negative, first=first,
    )  # fmt: skip
    gaps = reference.Gaps()
    twin = reference.train_level(
        whole, y_dense, costs.to_scipy().toarray(), m, [0, labels], loss="squared-hinge", cp=1.5, cn=0.5, eps=0.05,
        max_iter=passes, bias=bias, threshold=0.0, seed=seed, tree=0, level=1, gaps=gaps, solver=solver,
        mean=start == "mean-separating", l1=0.2, negative=negative, first=first if start == "network" else None,
    )  # fmt: skip
    if bias == 0:
        twin[-1] = 0
    event(f"{solver}: decided clearly" if gaps.least > 1e-5 else "a near tie")
    if gaps.least > 1e-5:
        assert weights_of(level, sparse, dense, bias) == pytest.approx(twin, abs=1e-3, rel=1e-3)


@cases(200)
@given(seed=st.integers(0, 2**32), rows=st.integers(2, 30), start=st.sampled_from(["zero", "mean-separating"]))
def test_newton_stops_where_its_rule_says(seed, rows, start):
    """|gradient| ≤ eps min(positives, negatives) / n · |gradient at 0|, computed here from the weights alone."""
    rng = np.random.default_rng(seed)
    x, whole = random_features(rng, rows, 4, 2)
    y, y_dense = random_labels(rng, rows, 3)
    negative = rng.uniform(0.1, 1, 3).astype(np.float32)
    how = config(solver="newton", start=start, eps=0.01, max_iter=100, cp=1.5)
    level = train_level(x, y, all_rows(rows), np.array([0, 3]), how, place=Place(0, 1, 0), threads=1, negative=negative)
    xb, sign = np.hstack([whole, np.ones((rows, 1))]), np.where(y_dense > 0, 1.0, -1.0)
    cost = np.where(y_dense > 0, 1.5, negative)
    w = weights_of(level, 4, 2)
    gradient = w - 2 * xb.T @ (cost * sign * np.maximum(0, 1 - sign * (xb @ w)))
    first = np.linalg.norm(2 * xb.T @ (cost * sign), axis=0)
    few = np.maximum(np.minimum((sign > 0).sum(axis=0), (sign < 0).sum(axis=0)), 1)
    assert (np.linalg.norm(gradient, axis=0) <= first * (0.0101 * few / rows + 1e-5)).all()


def problem(labels: int = 21, rows: int = 120):
    rng = np.random.default_rng(3)
    x, whole = random_features(rng, rows, 30, 3)
    y, y_dense = random_labels(rng, rows, labels)
    return x, np.hstack([whole, np.ones((rows, 1))]), y, np.where(y_dense > 0, 1.0, -1.0), np.array([0, labels])


@pytest.mark.parametrize(
    ("solver", "start"),
    [(solver, start) for solver in ("dual", "newton") for start in ("zero", "mean-separating")]
    + [("newton", "network")],
)
def test_every_way_ends_at_the_one_minimum(solver, start):
    """The gradient of 1/2 |w|² + Σ slack², some hundreds at w = 0, vanishes there, for each label."""
    x, xb, y, sign, ptr = problem()
    how = config(solver=solver, start=start, eps=1e-4, max_iter=5000)
    first = np.random.default_rng(5).normal(0, 1, (21, 4)).astype(np.float32)
    place = Place(0, 1, 0)
    w = weights_of(train_level(x, y, all_rows(x.rows), ptr, how, place=place, threads=1, first=first), 30, 3)
    gradient = w - 2 * xb.T @ (sign * np.maximum(0, 1 - sign * (xb @ w)))
    assert np.abs(gradient).max() < 1e-2


def test_proximal_weights_are_optimal_and_sparse():
    """|gradient of the loss| ≤ l1 where a weight is 0, and = l1 against its sign where not."""
    x, xb, y, sign, ptr = problem()
    how = config(solver="proximal", l1=5.0, eps=1e-3, max_iter=5000)
    w = weights_of(train_level(x, y, all_rows(x.rows), ptr, how, place=Place(0, 1, 0), threads=1), 30, 3)
    slope = -2 * xb.T @ (sign * np.maximum(0, 1 - sign * (xb @ w)))
    assert (np.abs(slope[w == 0]) <= 5.0 + 0.05).all()
    assert np.abs(slope + 5.0 * np.sign(w))[w != 0].max() < 0.05
    assert 0.2 < (w == 0).mean() < 0.9


@pytest.mark.parametrize("changes", [{"solver": "newton"}, {"solver": "proximal"}, {"start": "mean-separating"}])
def test_threads_and_neighbours_do_not_change_a_bit(changes):
    x, _, y, _, ptr = problem(labels=50)
    many = [
        train_level(x, y, all_rows(x.rows), ptr, config(**changes), place=Place(0, 1, 0), threads=t) for t in (1, 3, 7)
    ]
    w = weights_of(many[0], 30, 3)
    assert all(weights_of(other, 30, 3).tobytes() == w.tobytes() for other in many[1:])
    alone = as_csr(y.to_scipy()[:, 20:23])
    few = train_level(x, alone, all_rows(x.rows), np.array([0, 3]), config(**changes), place=Place(0, 1, 0), threads=1)
    assert weights_of(few, 30, 3).tobytes() == w[:, 20:23].tobytes()


def test_the_mean_separating_start_separates_the_means():
    rng = np.random.default_rng(5)
    x, y = rng.random((40, 6)), np.where(np.arange(40) < 7, 1, -1)
    u, v = reference.mean_start(x, y, reference.Gaps())
    w = u * x[y > 0].mean(axis=0) + v * x.mean(axis=0)
    assert w @ x[y > 0].mean(axis=0) == pytest.approx(1)
    assert w @ x[y < 0].mean(axis=0) == pytest.approx(-2)


@pytest.mark.parametrize("solver", ["dual", "newton", "proximal"])
def test_a_negative_weight_scales_cn_of_its_label_alone(solver):
    x, _, y, _, ptr = problem(labels=4)
    weight = np.array([1, 0.25, 1, 3], np.float32)
    run = {"place": Place(0, 1, 0), "threads": 1}
    mixed = weights_of(train_level(x, y, all_rows(x.rows), ptr, config(solver=solver), negative=weight, **run), 30, 3)
    for label, cn in enumerate(weight.tolist()):
        same = weights_of(train_level(x, y, all_rows(x.rows), ptr, config(solver=solver, cn=cn), **run), 30, 3)
        assert mixed[:, label].tobytes() == same[:, label].tobytes()


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"solver": "newton", "loss": "hinge"}, "'newton' is for linear.loss = 'squared-hinge', but the loss"),
        ({"start": "mean-separating", "loss": "logistic"}, "linear.start = 'mean-separating' is for"),
        ({"solver": "proximal", "start": "mean-separating"}, "starts from zero"),
    ],
)  # fmt: skip
def test_what_does_not_go_together_is_refused(changes, message):
    with pytest.raises(lw.ConfigError, match=message):
        LinearConfig(**changes).check_solver(0, 1)
