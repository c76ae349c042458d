"""Tree shapes by hand, splits against the twin, relevance up the tree."""

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
from labelwood import _core, limits
from labelwood.arrays.sparse import Csr, Features, as_csr, checked
from labelwood.parts.kmeans import Cutter
from labelwood.parts.tree import Tree, TreeConfig, _shares, build, level_sizes, up
from toy import random_features

pytestmark = pytest.mark.native


@pytest.mark.parametrize("values", [0.0, 1.0])
@pytest.mark.parametrize(
    ("labels", "settings", "sizes"),
    [
        (5000, {}, (50, 5000)),  # of 10 * leaf labels each
        (5000, {"widest": 1000}, (5, 5000)),
        (5001, {"widest": 1000}, (6, 5001)),
        (5000, {"widest": 100, "branch": 10}, (10, 50, 5000)),
        (5000, {"widest": 100, "branch": 7, "depth": 2}, (56, 5000)),  # parts stand side by side where depth is short
        (5000, {"depth": 1}, (5000,)),
        (100, {}, (100,)),
        (9, {"widest": 5}, (2, 9)),
    ],
)
def test_labels_that_do_not_differ_are_cut_evenly_by_id(labels, settings, sizes, values):
    z = Features(dense=np.full((labels, 3), values, np.float32))
    config = TreeConfig(kind="unbalanced", **{"branch": 60, "leaf": 10, **settings})
    for threads in (1, 3):
        tree = build(z, np.arange(labels, dtype=np.int32), config, 0, threads=threads)
        assert tree.sizes == sizes
        assert tree.leaves.tolist() == list(range(labels))
        widths = np.diff(tree.child_ptrs[-1])
        assert widths.max() <= (config.widest or 100) or tree.depth == 1
        assert widths.max() - widths.min() <= 1


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
        (670091, TreeConfig(), (32, 512, 8192, 670091)),  # no top level of two
        (670091, TreeConfig(branch=2, leaf=20_000), (2, 4, 8, 16, 32, 64, 670091)),
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


TWINS = {
    "bisect": reference.split_bisect,
    "kway": reference.split_kway,
    "uneven": reference.split_uneven,
}


def split(
    z: Features, parts: int, way: str, seed: int, max_iter: int, threads: int, sample: int = 100
) -> list[list[int]]:
    n = z.rows
    cutter = Cutter(z, seed, 0, 0, max_iter, sample, threads)
    order, ptr = cutter.cut(np.arange(n, dtype=np.int32), np.array([0, n]), np.array([parts], np.int32), way, 0)
    return [order[a:b].tolist() for a, b in pairwise(ptr)]


@cases(2000)
@given(
    seed=st.integers(0, 2**32),
    n=st.integers(1, 14),
    sparse=st.integers(1, 6),
    dense=st.integers(0, 3),
    parts=st.integers(1, 7),
    way=st.sampled_from(sorted(TWINS)),
    max_iter=st.integers(1, 5),
    threads=st.integers(1, 3),
)
def test_split_equals_the_twin(seed, n, sparse, dense, parts, way, max_iter, threads):
    parts = min(parts, n)
    z, whole = random_features(np.random.default_rng(seed), n, sparse, dense)
    found = split(z, parts, way, seed, max_iter, threads)
    if way == "kway":
        assert sorted(len(p) for p in found) == sorted(n // parts + (i < n % parts) for i in range(parts))
    twin, gaps = TWINS[way] if parts > 1 else reference.split_bisect, reference.Gaps()
    expected = twin(whole, list(range(n)), 0, parts, seed, max_iter, gaps)
    assert sorted(m for part in found for m in part) == list(range(n))
    event("decided clearly" if gaps.least > 1e-5 else "a near tie")
    if gaps.least > 1e-5:
        assert found == expected


@cases(500)
@given(seed=st.integers(0, 2**32), n=st.integers(4, 20), parts=st.integers(2, 4), sample=st.integers(1, 4))
def test_centres_fitted_on_a_sample_equal_the_twin(seed, n, parts, sample):
    z, whole = random_features(np.random.default_rng(seed), n, 5, 1)
    gaps = reference.Gaps()
    expected = reference.split_uneven(whole, list(range(n)), 0, parts, seed, 3, gaps, sample)
    if gaps.least > 1e-5:
        assert split(z, parts, "uneven", seed, 3, 2, sample) == expected


@pytest.mark.parametrize("way", sorted(TWINS))
def test_sums_of_several_blocks_have_the_same_bits_for_any_thread_count(way):
    """3.2 million numbers are four blocks of rows, one of them short, in the whole and in the largest cluster."""
    rng = np.random.default_rng(5)
    z = Features(dense=(rng.normal(size=(8000, 400)) + 3 * (np.arange(8000)[:, None] < 7000)).astype(np.float32))
    found = [split(z, 3, way, 1, 4, threads) for threads in (1, 2, 3, 7)]
    assert all(other == found[0] for other in found)


@pytest.mark.parametrize("way", sorted(TWINS))
def test_part_of_a_level_is_cut_as_in_the_whole(way):
    """What another process may be given: its random draws are those of its place in the whole level."""
    z, _ = random_features(np.random.default_rng(6), 300, 40, 0)
    cutter = Cutter(z, 4, 0, 0, 5, 100, 2)
    order, ptr = np.random.default_rng(0).permutation(300).astype(np.int32), np.array([0, 90, 170, 300])
    parts = np.array([3, 4, 5], np.int32)
    whole, cuts = cutter.cut(order, ptr, parts, way, 0)
    own, own_cuts = cutter.cut(order[90:], ptr[1:] - 90, parts[1:], way, 0, first=90)
    assert own.tolist() == whole[90:].tolist()
    assert (own_cuts + 90).tolist() == [cut for cut in cuts if cut >= 90]
    assert cutter.cut(order[90:], ptr[1:] - 90, parts[1:], way, 0)[0].tolist() != own.tolist()


@pytest.mark.parametrize("way", sorted(TWINS))
def test_rows_read_in_place_or_gathered_give_the_same_bits(way):
    """A segment is gathered unless it has four entries per feature: columns nobody uses must change nothing."""
    _, whole = random_features(np.random.default_rng(2), 300, 30, 0)
    wide = np.zeros((300, 3000))
    wide[:, 7::100] = whole
    here, gathered = (split(Features(as_csr(x)), 9, way, 4, 20, 2) for x in (whole, wide))
    assert here == gathered


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


def blocks(*sizes: int) -> Features:
    """Labels in groups: group g has only feature g."""
    x = np.zeros((sum(sizes), len(sizes)))
    x[np.arange(sum(sizes)), np.repeat(np.arange(len(sizes)), sizes)] = 1
    return Features(as_csr(x))


@pytest.mark.parametrize("seed", range(5))
def test_uneven_parts_are_as_large_as_they_are(seed):
    """However the centres start: labels that are alike stay together, and none is alone."""
    found = split(blocks(50, 7, 2), 40, "uneven", seed, 20, 2)
    assert sorted(m for part in found for m in part) == list(range(59))
    for group in (range(50), range(50, 57), range(57, 59)):
        assert sum(not set(group).isdisjoint(part) for part in found) == 1
    assert 2 <= len(found) <= 3


def test_an_unbalanced_tree_by_hand():
    """Three groups; the small ones are not cut again, and are their own only child down to the labels."""
    z = blocks(6, 3, 3)
    x = z.sparse.to_scipy().toarray()
    x = np.hstack([x, np.zeros((12, 2))])
    x[:3, 3], x[3:6, 4] = 0.5, 0.5  # the first group has two halves
    tree = build(Features(as_csr(x)), np.arange(12, dtype=np.int32), unbalanced(branch=12, leaf=3), 1, threads=1)
    assert tree.depth <= 3
    last = [sorted(tree.leaves[a:b].tolist()) for a, b in pairwise(tree.child_ptrs[-1])]
    assert sorted(last) == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 10, 11]]


def unbalanced(**settings) -> TreeConfig:
    return TreeConfig(kind="unbalanced", **settings)


@pytest.mark.parametrize("depth", [1, 2, 3, 5])
def test_an_unbalanced_tree_is_nested_and_the_same_for_any_thread_count(depth):
    z, _ = random_features(np.random.default_rng(3), 400, 60, 2)
    labels = np.arange(400, dtype=np.int32) * 2 + 1
    trees = [build(z, labels, unbalanced(branch=7, leaf=20, depth=depth), 5, threads=t) for t in (1, 2, 7)]
    tree = trees[0]
    assert 1 <= tree.depth <= depth
    assert sorted(tree.leaves.tolist()) == labels.tolist()
    again = Tree.from_tensors(tree.tensors(), 801)
    assert again.sizes == tree.sizes
    for t, ptr in enumerate(tree.child_ptrs[:-1]):
        width = np.bincount(tree.labels_to_nodes(t, 801)[labels])
        assert (width >= 2).all()  # no part of a single label
        above = np.bincount(tree.labels_to_nodes(t - 1, 801)[labels]) if t else np.array([400])
        assert (np.diff(ptr)[above <= 20] == 1).all()  # small nodes pass through
        assert np.diff(ptr).max() <= 7 or t == tree.depth - 2
    for other in trees[1:]:
        assert other.leaves.tobytes() == tree.leaves.tobytes()
        assert [p.tolist() for p in other.child_ptrs] == [p.tolist() for p in tree.child_ptrs]


def test_clusters_that_hold_too_much_are_replaced_by_equal_parts():
    """90 labels alike and 10 others: the 90 would be one node."""
    tree = build(blocks(90, 10), np.arange(100, dtype=np.int32), unbalanced(branch=50, leaf=2, depth=2), 0, threads=1)
    assert tree.depth == 2
    assert sorted(np.diff(tree.child_ptrs[1]).tolist()) == [10, 18, 18, 18, 18, 18]  # at most 10 · leaf
    whole = unbalanced(branch=50, leaf=2, depth=2, widest=90)
    tree = build(blocks(90, 10), np.arange(100, dtype=np.int32), whole, 0, threads=1)
    assert sorted(np.diff(tree.child_ptrs[1]).tolist()) == [10, 90]


def test_a_flat_tree_is_one_level_of_all_labels():
    labels = np.array([2, 3, 70_000], np.int32)
    tree = build(None, labels, TreeConfig(kind="flat"), 0, threads=1)
    assert (tree.sizes, tree.leaves.tolist()) == ((3,), [2, 3, 70_000])
    with pytest.raises(lw.ConfigError, match="children"):
        build(None, np.arange(limits.MAX_CHILDREN + 1, dtype=np.int32), TreeConfig(kind="flat"), 0, threads=1)


@pytest.mark.parametrize(
    "config",
    [TreeConfig(levels=(4, 12, 48)), TreeConfig(kind="unbalanced", branch=4, leaf=8, depth=4)],
    ids=["balanced", "unbalanced"],
)
@pytest.mark.parametrize("shared", [0, 1, 2])
def test_trees_of_an_ensemble_share_their_upper_levels(config, shared):
    z, _ = random_features(np.random.default_rng(1), 333, 40, 0)
    config = dataclasses.replace(config, shared=shared)
    trees = [build(z, np.arange(333, dtype=np.int32), config, 5, tree=i, threads=2) for i in range(3)]
    for t in range(min(tree.depth for tree in trees) - 1):
        first, *others = ([set(np.flatnonzero(tree.labels_to_nodes(t, 333) == v)) for v in range(tree.size(t))]
                          for tree in trees)  # fmt: skip
        for other in others:
            assert (other == first) == (t < shared)


def test_two_clear_clusters_are_found():
    x = np.zeros((8, 4), np.float32)
    x[[0, 3, 4, 6], 0], x[[1, 2, 5, 7], 3] = 1, 1
    found = split(Features(as_csr(x)), 2, "bisect", 3, 20, 1)
    assert sorted(found) == [[0, 3, 4, 6], [1, 2, 5, 7]]


def test_identical_and_zero_label_features():
    same = Features(as_csr(np.ones((10, 3))))
    assert sorted(len(p) for p in split(same, 4, "bisect", 0, 20, 2)) == [2, 2, 3, 3]
    zero = Features(as_csr(np.zeros((10, 3))))
    assert split(zero, 2, "bisect", 0, 20, 1) == [[0, 1, 2, 3, 4], [5, 6, 7, 8, 9]]
    assert sorted(len(p) for p in split(zero, 3, "kway", 0, 20, 1)) == [3, 3, 4]
    for alike in (same, zero):  # no centre is nearer than another: nothing to cut
        assert split(alike, 3, "uneven", 0, 20, 1) == [list(range(10))]


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


@cases(500)
@given(seed=st.integers(0, 2**32), rows=st.integers(0, 9), cols=st.integers(1, 7), threads=st.integers(1, 3))
def test_sums_of_columns_and_transpose_equal_their_twins(seed, rows, cols, threads):
    rng = np.random.default_rng(seed)
    m, whole = random_features(rng, rows, cols, 0)
    group = rng.integers(-1, 4, size=cols).astype(np.int32)
    ptr, idx, val = _core.sum_columns(*m.sparse.parts[:3], group, threads)
    found = checked(Csr(ptr, idx, val, 4), "sums")  # columns sorted, each once
    assert found.to_scipy().toarray() == pytest.approx(reference.sum_columns(whole, group, 4), abs=1e-5)
    turned = checked(m.sparse.transpose(), "transposed")
    assert (turned.to_scipy().toarray() == whole.T).all()


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
    found = split(Features(as_csr(x)), 2, "bisect", seed, 20, 1)
    assert [len(part) for part in found] == [20, 20]
    assert sorted(m for part in found for m in part) == list(range(40))
