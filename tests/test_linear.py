"""The blocked solver, pruning, chunks and beam search against their twins."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import labelwood as lw
import reference
from cases import cases
from chunks import chunk_of, weights_of
from labelwood import _core
from labelwood.arrays.sparse import Csr, Features, as_csr
from labelwood.parts.linear import LinearConfig, Place, relevance, train_level
from labelwood.parts.linear_level import LinearLevel, Pile
from labelwood.parts.losses import NAMES
from labelwood.parts.search import COMBINERS, Search, SearchConfig, search
from labelwood.parts.shortlist import all_rows
from labelwood.recipes.resolve import resolve
from toy import random_features, random_labels

pytestmark = pytest.mark.native


def random_level(rng, labels):
    """Child pointers that cut `labels` children into one to three parents."""
    parents = int(rng.integers(1, min(3, labels) + 1))
    cuts = np.sort(rng.choice(np.arange(1, labels), parents - 1, replace=False)) if parents > 1 else []
    return np.array([0, *cuts, labels], np.int64)


@cases(2000)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(2, 10),
    sparse=st.integers(0, 6),
    dense=st.integers(0, 3),
    labels=st.integers(1, 5),
    loss=st.sampled_from(NAMES),
    passes=st.integers(1, 6),
    bias=st.sampled_from([0.0, 1.0, 0.5]),
    threshold=st.sampled_from([0.0, 0.2]),
    threads=st.integers(1, 3),
)
def test_blocked_solver_equals_label_by_label_descent(
    seed, rows, sparse, dense, labels, loss, passes, bias, threshold, threads
):
    if sparse + dense == 0:
        sparse = 1
    rng = np.random.default_rng(seed)
    x, whole = random_features(rng, rows, sparse, dense)
    y, y_dense = random_labels(rng, rows, labels)
    costs = Csr(y.indptr, y.indices, rng.uniform(0.2, 2, y.nnz).astype(np.float32), labels)
    child_ptr = random_level(rng, labels)
    m_dense = rng.random((rows, len(child_ptr) - 1)) < 0.7
    if (np.abs(whole).sum(axis=1) == 0).any() and bias == 0:
        bias = 1.0  # an all-zero row without bias has a zero diagonal under hinge: nothing to learn, skip
    config = LinearConfig(
        loss=loss, cp=1.5, cn=0.5, eps=0.05, max_iter=passes, bias=bias, threshold=0.0, weights="float32"
    )
    level = train_level(
        x, costs, as_csr(m_dense.astype(float)), child_ptr, config, place=Place(1, 2, seed), threads=threads
    )
    found = weights_of(level, sparse, dense, bias)
    gaps = reference.Gaps()
    twin = reference.train_level(
        whole, y_dense, costs.to_scipy().toarray(), m_dense, child_ptr, loss=loss, cp=1.5, cn=0.5, eps=0.05,
        max_iter=passes, bias=bias, threshold=0.0, seed=seed, tree=0, level=1, gaps=gaps,
    )  # fmt: skip
    if bias == 0:
        twin[-1] = 0
    event("decided clearly" if gaps.least > 1e-5 else "a near tie")
    if gaps.least > 1e-5:
        assert found == pytest.approx(twin, abs=2e-4, rel=2e-4)


def problem(labels=21, rows=120, seed=3):
    rng = np.random.default_rng(seed)
    x, whole = random_features(rng, rows, 30, 3)
    y, y_dense = random_labels(rng, rows, labels)
    return x, whole, y, y_dense, np.array([0, labels], np.int64)


def objective(w, x, y, c):
    xb = np.hstack([x, np.ones((len(x), 1))])
    return 0.5 * (w**2).sum() + c * (np.maximum(0, 1 - y * (xb @ w)) ** 2).sum()


def test_reaches_the_optimum():
    """Duality: at the optimum the gradient of the primal objective vanishes."""
    x, whole, y, y_dense, child_ptr = problem()
    config = LinearConfig(eps=1e-4, max_iter=5000, threshold=0.0, weights="float32")
    level = train_level(x, y, all_rows(x.rows), child_ptr, config, place=Place(0, 1, 0), threads=2)
    w = weights_of(level, 30, 3, 1.0)
    xb = np.hstack([whole, np.ones((len(whole), 1))])
    for label in range(y.cols):
        sign = np.where(y_dense[:, label] > 0, 1, -1)
        slack = np.maximum(0, 1 - sign * (xb @ w[:, label]))
        gradient = w[:, label] - 2 * xb.T @ (sign * slack)
        assert np.abs(gradient).max() < 2e-3


def test_threads_and_lane_grouping_do_not_change_a_bit():
    x, _, y, _, child_ptr = problem(labels=50)
    levels = [
        train_level(x, y, all_rows(x.rows), child_ptr, LinearConfig(), place=Place(0, 1, 0), threads=threads)
        for threads in (1, 2, 3, 7)
    ]
    for other in levels[1:]:
        for name, array in levels[0].tensors().items():
            assert array.tobytes() == other.tensors()[name].tobytes(), name


def test_part_of_a_level_is_trained_as_in_the_whole():
    """The last three parents alone, as another process may be given them, come out in the same bytes."""
    rng = np.random.default_rng(8)
    x, _ = random_features(rng, 80, 12, 2)
    y, _ = random_labels(rng, 80, 20)
    m, _ = random_labels(rng, 80, 5)
    child_ptr = np.array([0, 4, 8, 12, 16, 20])
    config = LinearConfig(max_iter=3, eps=1e-6)  # stopped early, when the order of the visits still shows
    place = Place(1, 2, seed=9)
    whole = train_level(x, y, m, child_ptr, config, place=place, threads=2)
    own_y, own_m = (as_csr(a.to_scipy()[:, first:]) for a, first in ((y, 8), (m, 2)))
    part, other = (
        train_level(
            x, own_y, own_m, child_ptr[2:] - 8, config, place=dataclasses.replace(place, first=first), threads=2
        )
        for first in (2, 0)
    )

    def records(level: LinearLevel, parents: range) -> list[bytes]:
        return [level.records[a : a + n].tobytes() for a, n in level.places[parents].tolist()]

    assert records(part, range(3)) == records(whole, range(2, 5))
    assert records(other, range(3)) != records(whole, range(2, 5))


def test_a_cost_of_two_is_the_example_twice():
    x, _, y, _, child_ptr = problem(labels=3)
    config = LinearConfig(eps=1e-5, max_iter=5000, threshold=0.0, weights="float32")
    doubled = Csr(y.indptr, y.indices, np.full(y.nnz, 2, np.float32), y.cols)
    cost = train_level(x, doubled, all_rows(x.rows), child_ptr, config, place=Place(0, 1, 0), threads=1)
    for label in range(3):
        positive = np.flatnonzero(y.to_scipy().toarray()[:, label])
        twice = np.concatenate([np.arange(x.rows), positive])
        y_twice = as_csr((y.to_scipy().toarray()[twice][:, [label]] > 0).astype(float))
        one = train_level(
            x.take(twice), y_twice, all_rows(len(twice)), np.array([0, 1]), config, place=Place(0, 1, 0), threads=1
        )
        assert weights_of(cost, 30, 3, 1)[:, label] == pytest.approx(weights_of(one, 30, 3, 1)[:, 0], abs=1e-3)


def test_pruning_keeps_what_reaches_the_threshold():
    x, _, y, _, child_ptr = problem(labels=5)

    def config(threshold):
        return LinearConfig(threshold=threshold, weights="float32")

    full, pruned = (
        weights_of(
            train_level(x, y, all_rows(x.rows), child_ptr, config(t), place=Place(0, 1, 0), threads=1),
            30,
            3,
            1,
        )
        for t in (0.0, 0.1)
    )
    assert (pruned == np.where(np.abs(full) >= np.float32(0.1), full, 0)).all()


def test_alpha_and_lambda_are_costs():
    assert LinearConfig(alpha=0.25, lam=0.25).costs(0, 1) == (4.0, 1.0)  # the paper's Wiki10 row
    assert LinearConfig(alpha=0.125, lam=0.125).costs(0, 1) == (8.0, 1.0)
    with pytest.raises(lw.ConfigError, match="together"):
        LinearConfig(alpha=0.5).costs(0, 1)


@pytest.mark.parametrize(
    ("norm", "expected"),
    [
        ("l1", [0.25, 0.75, 1]),
        ("l2", [1 / np.sqrt(10), 3 / np.sqrt(10), 1]),
        ("max", [1 / 3, 1, 1]),
        ("none", [1, 3, 2]),
    ],
)
def test_relevance_norms(norm, expected):
    y = as_csr(np.array([[1, 3], [0, 0], [2, 0]]))
    assert relevance(y, LinearConfig(relevance="induce", relevance_norm=norm)).data == pytest.approx(expected)
    assert relevance(y, LinearConfig()).data.tolist() == [1, 1, 1]


@cases(2000)
@given(
    seed=st.integers(0, 2**32),
    rows=st.integers(1, 5),
    sparse=st.integers(0, 5),
    dense=st.integers(0, 2),
    combiners=st.tuples(*[st.sampled_from(COMBINERS)] * 2),
    beam=st.integers(1, 4),
    keep=st.integers(1, 9),
    discount=st.sampled_from([1.0, 0.9]),
    uneven=st.booleans(),
)
def test_beam_search_equals_the_twin(seed, rows, sparse, dense, combiners, beam, keep, discount, uneven):
    if sparse + dense == 0:
        dense = 1
    rng = np.random.default_rng(seed)
    x, whole = random_features(rng, rows, sparse, dense)
    ptrs = [np.array([0, 3]), np.array([0, 2, 5, 7])]
    if uneven:
        ptrs = [np.array([0, 3]), np.array([0, 1, 3, 4]), np.array([0, 2, 4, 6, 7])]
    combiners = combiners if not uneven else (combiners[0], combiners[0], combiners[1])
    weights = [np.round(rng.normal(size=(sparse + dense + 1, int(p[-1]))).astype(np.float32), 2) for p in ptrs]
    for w in weights:
        w[:sparse] *= rng.random((sparse, w.shape[1])) < 0.6
    levels = [level_from(w, p, sparse, dense) for w, p in zip(weights, ptrs, strict=True)]
    config = SearchConfig(beam=beam, combiner=combiners, discount=discount)
    ids, scores = search(x, levels, Search(config, len(ptrs), keep), threads=1)
    expected, wider = (
        reference.beam(whole, weights, ptrs, combiners, [*[beam] * (len(ptrs) - 1), k], discount)
        for k in (keep, keep + 1)
    )
    for i in range(rows):
        found = [(int(a), float(b)) for a, b in zip(ids[i], scores[i], strict=True) if a >= 0]
        assert len(found) == len(expected[i])
        assert [s for _, s in found] == pytest.approx([s for _, s in expected[i]], abs=1e-5, rel=1e-4)
        if len({round(s, 4) for _, s in wider[i]}) == len(wider[i]):  # no near tie, not even with the first left out
            assert [a for a, _ in found] == [a for a, _ in expected[i]]


@cases(500)
@given(
    seed=st.integers(0, 2**32),
    combiner=st.sampled_from([c for c in COMBINERS if c != "noop"]),
    keep=st.integers(1, 15),
    discount=st.sampled_from([1.0, 0.9, 0.3]),
    digits=st.integers(0, 2),
)
def test_exact_search_finds_what_a_beam_that_keeps_all_finds(seed, combiner, keep, discount, digits):
    """Few digits make ties; a discount lifts log scores on the way down; an only child keeps its parent's."""
    rng = np.random.default_rng(seed)
    ptrs = [np.array([0, 3]), np.array([0, 1, 3, 5]), np.array([0, 2, 5, 8, 9, 12])]
    weights = [np.round(rng.normal(size=(3, int(p[-1]))), digits).astype(np.float32) for p in ptrs]
    levels = [level_from(w, p, 2, 0) for w, p in zip(weights, ptrs, strict=True)]
    x = Features(as_csr(np.round(rng.normal(size=(3, 2)), digits)))
    exact, beam = (
        search(x, levels, Search(SearchConfig(12, kind, discount, combiner), 3, keep), threads=1)
        for kind in ("exact", "beam")
    )
    assert (exact[0] == beam[0]).all()
    assert (exact[1] == beam[1]).all()


def level_from(w: np.ndarray, child_ptr: np.ndarray, sparse: int, dense: int, weights: str = "float32") -> LinearLevel:
    """Chunks that hold the matrix W (d + 1, K)."""
    pile = Pile(len(child_ptr) - 1)
    for parent, (first, last) in enumerate(pairwise(child_ptr)):
        pile.write(parent, chunk_of(w[:, first:last], sparse, dense, weights))
    return LinearLevel.from_tensors(
        child_ptr.astype(np.int64), {"records": pile.records(), "places": pile.places}, sparse, dense
    )


def test_ties_go_to_the_smaller_label():
    level = level_from(np.array([[0, 0, 0, 0], [0, 0, 0, 0]], np.float32), np.array([0, 4]), 1, 0)
    x = Features(as_csr(np.ones((1, 1))))
    ids, _ = search(x, [level], Search(SearchConfig(), 1, 4, np.array([2, 0, 3, 1], np.int32)), threads=1)
    assert ids.tolist() == [[0, 1, 2, 3]]


def test_broken_levels_are_refused():
    level = level_from(np.ones((4, 3), np.float32), np.array([0, 1, 3]), 3, 0)
    sound = level.tensors()
    size = len(sound["records"])
    broken = {
        "records": sound["records"][:-8],
        "places": np.array([[0, size], [0, 2**62]]),
    }
    for name, value in broken.items():
        with pytest.raises(lw.ModelFileError):
            LinearLevel.from_tensors(level.child_ptr, {**sound, name: value}, 3, 0)
    for places in ([[0, -8], [0, 8]], [[-8, 8], [0, 8]], [[4, 8], [0, 8]], [[2**63 - 8, 16], [0, 8]], [[0, 8]]):
        with pytest.raises(lw.ModelFileError):
            LinearLevel.from_tensors(level.child_ptr, {**sound, "places": np.array(places)}, 3, 0)
    for wrong in ({"records": sound["records"]}, {**sound, "more": sound["places"]}):
        with pytest.raises(lw.ModelFileError):
            LinearLevel.from_tensors(level.child_ptr, wrong, 3, 0)
    assert LinearLevel.from_tensors(level.child_ptr, sound, 3, 0).nonzeros == 9


def test_alpha_and_lambda_do_not_mix_with_costs():
    """A method's own cp gives way to them; one of the user's cannot act beside them."""
    assert LinearConfig(alpha=0.5, lam=0.5, cp=3.0).costs(0, 1) == (2.0, 1.0)
    with pytest.raises(lw.ConfigError, match=r"linear\.cp = 3\.0 cannot act .* where linear\.alpha and linear\.lam"):
        resolve(settings={"linear.alpha": 0.5, "linear.lam": 0.5, "linear.cp": 3.0})


def searcher_of(own: list[LinearLevel], **change: object) -> _core.Searcher:
    depth = len(own)
    plan = {"combiner": [2] * depth, "power": [3] * depth, "discount": [1.0] * depth, "keep": [2] * depth}
    plan |= {"begin": [0] * depth, "sparse_cols": own[0].sparse_cols if own else 0}
    plan |= {"dense_cols": own[0].dense_cols if own else 0}
    plan |= {"names": np.zeros(0, np.int32), "exact": False, "logs": False}
    return _core.Searcher(**{"levels": [level.native for level in own], **plan, **change})


def test_a_searcher_refuses_what_does_not_fit():
    rng = np.random.default_rng(0)
    x, _ = random_features(rng, 20, 6, 2)
    y, _ = random_labels(rng, 20, 3)
    ptr = np.array([0, 3])
    level = train_level(x, y, all_rows(20), ptr, LinearConfig(), place=Place(0, 1, 0), threads=1)
    sound = searcher_of([level])
    assert sound(*x.parts, 1, None)[0].shape == (20, 2)
    for change in (
        {"levels": []},
        {"keep": [0]},
        {"keep": [1, 1]},
        {"names": np.zeros(2, np.int32)},
        {"levels": [level.native] * 2, "combiner": [2, 2], "power": [3, 3], "keep": [2, 2], "discount": [1.0, 1.0]},
    ):
        with pytest.raises(ValueError, match=r"level|names"):
            searcher_of([level], **change)
    for wrong in (random_features(rng, 4, 5, 2)[0], random_features(rng, 4, 6, 1)[0]):
        with pytest.raises(ValueError, match="do not fit the features"):
            sound(*wrong.parts, 1, None)
    ids, scores = np.zeros((20, 1), np.int32), np.zeros((20, 1), np.float32)
    assert sound.resume(*x.parts, ids, scores, 1, None)[0].tolist() == sound(*x.parts, 1, None)[0].tolist()
    for start in ((ids + 1, scores), (ids[1:], scores[1:]), (ids, scores[1:]), (ids[:, :0], scores[:, :0])):
        with pytest.raises(ValueError, match="start"):
            sound.resume(*x.parts, *start, 1, None)
    orphan = LinearLevel(np.array([0, 1, 3]), level.records, level.places.repeat(2, axis=0), 6, 2)
    with pytest.raises(ValueError, match="single root"):
        searcher_of([orphan])(*x.parts, 1, None)
