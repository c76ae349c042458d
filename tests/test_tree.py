"""Tree shapes by hand, splits against the twin, relevance up the tree."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import labelwood as lw
import reference
from cases import cases
from labelwood import _core
from labelwood.sparse import Features, as_csr
from labelwood.tree import Tree, TreeConfig, _shares, build, level_sizes, up
from toy import random_features

pytestmark = pytest.mark.native


@pytest.mark.parametrize(
    ("labels", "config", "sizes"),
    [
        (4108, TreeConfig(), (4, 64, 4108)),  # the shapes PECOS makes of these sets
        (17619, TreeConfig(), (16, 256, 17619)),
        (3956, TreeConfig(branch=16, leaf=16), (16, 256, 3956)),
        (3956, TreeConfig(branch=8, leaf=16), (4, 32, 256, 3956)),
        (30938, TreeConfig(branch=16, leaf=16, min_codes=128), (128, 2048, 30938)),
        (501070, TreeConfig(branch=8, leaf=16, min_codes=64), (64, 512, 4096, 32768, 501070)),
        (670091, TreeConfig(branch=32), (8, 256, 8192, 670091)),
        (100, TreeConfig(), (100,)),
        (101, TreeConfig(), (2, 101)),
        (1, TreeConfig(), (1,)),
        (3956, TreeConfig(levels=(16, 256)), (16, 256, 3956)),
        (3956, TreeConfig(levels=(16, 256, 3956)), (16, 256, 3956)),
        (6, TreeConfig(leaf=1), (6,)),
    ],
)
def test_level_sizes(labels, config, sizes):
    assert level_sizes(labels, config) == sizes


@pytest.mark.parametrize("levels", [(16, 8), (5, 11), (11,), (4, 4)])
def test_levels_that_do_not_grow_are_refused(levels):
    with pytest.raises(lw.ConfigError, match=r"tree\.levels"):
        level_sizes(10, TreeConfig(levels=levels))


def split(z: Features, parts: int, kway: bool, seed: int, max_iter: int, threads: int) -> list[list[int]]:
    n = z.rows
    order, ptr = _core.split(
        *z.parts, np.arange(n, dtype=np.int32), np.array([0, n]), np.array([parts], np.int32),
        int(kway), max_iter, seed, 0, threads, None,
    )  # fmt: skip
    return [order[a:b].tolist() for a, b in pairwise(ptr)]


@cases(2000)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 14),
    sparse=st.integers(1, 6),
    dense=st.integers(0, 3),
    parts=st.integers(1, 7),
    kway=st.booleans(),
    max_iter=st.integers(1, 5),
    threads=st.integers(1, 3),
)
def test_split_equals_the_twin(seed, n, sparse, dense, parts, kway, max_iter, threads):
    parts = min(parts, n)
    z, whole = random_features(np.random.default_rng(seed), n, sparse, dense)
    found = split(z, parts, kway, seed, max_iter, threads)
    assert sorted(len(p) for p in found) == sorted(n // parts + (i < n % parts) for i in range(parts)) or not kway
    twin, gaps = (reference.split_kway if kway and parts > 1 else reference.split_bisect), reference.Gaps()
    expected = twin(whole, list(range(n)), 0, parts, seed, max_iter, gaps)
    assert sorted(m for part in found for m in part) == list(range(n))
    event("decided clearly" if gaps.least > 1e-5 else "a near tie")
    if gaps.least > 1e-5:
        assert found == expected


@pytest.mark.parametrize("split_by", ["bisect", "kway"])
def test_nested_balanced_and_the_same_for_any_thread_count(split_by):
    z, _ = random_features(np.random.default_rng(1), 333, 40, 0)
    config = TreeConfig(levels=(4, 12, 48), split=split_by)
    trees = [build(z, np.arange(333, dtype=np.int32), config, 5, threads=threads) for threads in (1, 2, 7)]
    tree = trees[0]
    assert tree.sizes == (4, 12, 48, 333)
    assert sorted(tree.leaves.tolist()) == list(range(333))
    assert set(np.diff(tree.child_ptrs[-1])) == {6, 7}
    for other in trees[1:]:
        assert other.leaves.tobytes() == tree.leaves.tobytes()
    other_seed = build(z, np.arange(333, dtype=np.int32), config, 6, threads=2)
    assert other_seed.leaves.tobytes() != tree.leaves.tobytes()


def test_two_clear_clusters_are_found():
    x = np.zeros((8, 4), np.float32)
    x[[0, 3, 4, 6], 0], x[[1, 2, 5, 7], 3] = 1, 1
    found = split(Features(as_csr(x)), 2, False, 3, 20, 1)
    assert sorted(found) == [[0, 3, 4, 6], [1, 2, 5, 7]]


def test_identical_and_zero_label_features():
    same = Features(as_csr(np.ones((10, 3))))
    assert sorted(len(p) for p in split(same, 4, False, 0, 20, 2)) == [2, 2, 3, 3]
    zero = Features(as_csr(np.zeros((10, 3))))
    assert split(zero, 2, False, 0, 20, 1) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert sorted(len(p) for p in split(zero, 3, True, 0, 20, 1)) == [3, 3, 4]


def test_shares():
    assert _shares(np.array([5, 5, 5]), 7).tolist() == [3, 2, 2]
    assert _shares(np.array([1, 9]), 6).tolist() == [1, 5]
    with pytest.raises(lw.ConfigError):
        _shares(np.array([1, 1]), 3)


def tiny_tree() -> Tree:
    """Root → 2 clusters → labels {3, 0} and {1}; label 2 is outside."""
    return Tree((np.array([0, 2]), np.array([0, 2, 3])), np.array([3, 0, 1], np.int32))


def test_counts_up_the_tree():
    y = as_csr(np.array([[1, 1, 1, 1], [0, 0, 1, 0], [1, 0, 0, 0]]))
    assert up(y, tiny_tree(), 0).to_scipy().toarray().tolist() == [[2, 1], [0, 0], [1, 0]]
    assert up(y, tiny_tree(), 1).to_scipy().toarray().tolist() == [[1, 1, 1], [0, 0, 0], [0, 1, 0]]


def test_tensors_round_trip_and_refuse_nonsense():
    tree = tiny_tree()
    again = Tree.from_tensors(tree.tensors(), 4)
    assert again.sizes == (2, 3)
    for name, value in {
        "leaves": np.array([3, 3, 1], np.int32),
        "child_ptr.0": np.array([0, 3]),
        "child_ptr.1": np.array([0, 0, 3]),
    }.items():
        with pytest.raises(lw.ModelFileError):
            Tree.from_tensors({**tree.tensors(), name: value}, 4)
    with pytest.raises(lw.ModelFileError):
        Tree.from_tensors(tree.tensors(), 3)


@pytest.mark.parametrize("seed", range(10))
def test_sums_that_cancel_to_a_denormal(seed):
    """1 / |sum| leaves float32's range here: it must not turn scores into NaN and halves into wrong sizes."""
    x = np.zeros((40, 3), np.float32)
    x[:20, 2], x[:10, 0], x[10:20, 0], x[20:, 1] = 1e-45, 1, -1, 1
    found = split(Features(as_csr(x)), 2, False, seed, 20, 1)
    assert [len(part) for part in found] == [20, 20]
    assert sorted(m for part in found for m in part) == list(range(40))
