"""The label tree: levels of nested clusters C_1 … C_D, the last level being the labels themselves.

A tree is child pointers per level plus one permutation of labels, so the children of a node are always contiguous:
nodes of level t are numbered so that node p of level t-1 owns [ptr[p], ptr[p+1]). Level 0 is a single root.

Four kinds of tree, all over the labels that have positives:
balanced    spherical k-means into parts of equal size. The sizes of the levels come first: either given
            ("16-256-3956"), or from `branch` and `leaf` as the perfect binary tree of depth ceil(log2(L / leaf))
            of which every log2(branch)-th level is kept, counted from the leaves, down to at most `min_codes` nodes
unbalanced  spherical k-means with `branch` centres (Bonsai): clusters are as large as they are
flat        one level, the labels: one-vs-all
taxonomy    the user's own nodes (taxonomy_tree.py)
"""

from __future__ import annotations

import dataclasses
import math
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .. import _core, limits
from ..arrays.sparse import Csr, Features, pointers
from ..arrays.taxonomy import Taxonomy
from ..base.config import Acts, setting
from ..base.progress import Tick
from ..base.threads import available
from ..errors import ConfigError, ModelFileError
from .kmeans import Cutter, Nesting
from .taxonomy_tree import nest

_CUT = "in a balanced tree without given levels, or in an unbalanced one (its kind and levels)"
_SIZED = "in a balanced tree without given levels (its kind and levels)"
_UNEVEN = "in an unbalanced tree (its kind)"


def _sized(own: TreeConfig) -> bool:
    """Do the sizes of the levels follow from branch and leaf?"""
    return own.kind == "balanced" and own.levels is None


@dataclasses.dataclass(frozen=True)
class TreeConfig:
    """The shape of the tree and how its nodes are cut."""

    kind: str = setting(
        "balanced",
        "clusters of equal size (balanced) or of any size (unbalanced), no clusters (flat: every label learns from "
        "every document; slow for many labels), or your own tree (taxonomy)",
        choices=("balanced", "unbalanced", "flat", "taxonomy"), rank=2,
    )  # fmt: skip
    branch: int = setting(
        16,
        "children of an inner node; more make a tree of fewer levels, which takes longer and loses fewer labels on the "
        "way down",
        low=2, high=limits.MAX_CHILDREN, acts=Acts(lambda own, _: _sized(own) or own.kind == "unbalanced", _CUT),
        rank=3,
    )  # fmt: skip
    leaf: int = setting(
        100,
        "at most this many labels in a last cluster; more make fewer and larger clusters, which take longer and lose "
        "fewer labels; an unbalanced tree does not cut clusters of up to this size",
        low=1, high=limits.MAX_CHILDREN, acts=Acts(lambda own, _: _sized(own) or own.kind == "unbalanced", _CUT),
        rank=1,
    )  # fmt: skip
    min_codes: int | None = setting(
        None,
        "the first level has about this many clusters; a higher value leaves out upper levels; none: as many as branch",
        low=1, acts=Acts(lambda own, _: _sized(own), _SIZED), rank=6,
    )  # fmt: skip
    least: int | None = setting(
        None,
        "at least this many last clusters, each of four labels or more; raise it where few labels make too few "
        "clusters",
        low=2, acts=Acts(lambda own, _: _sized(own), _SIZED), rank=6,
    )  # fmt: skip
    flat: int = setting(
        0, "up to so many labels stay without clusters; raise it to train small label sets one-vs-all",
        low=0, acts=Acts(lambda own, _: _sized(own), _SIZED), rank=6,
    )  # fmt: skip
    levels: tuple[int, ...] | None = setting(
        None,
        "sizes of all levels, such as 16-256, with or without the labels; set it for full control in place of branch "
        "and leaf",
        low=1, rank=6,
        acts=Acts(lambda own, _: own.kind == "balanced", "in a balanced tree (its kind)"),
    )  # fmt: skip
    split: str = setting(
        "bisect",
        "cut a cluster in two again and again (bisect), or into all its parts at once (kway); seldom worth a change",
        choices=("bisect", "kway"), rank=7,
        acts=Acts(lambda own, _: own.kind == "balanced", "in a balanced tree (its kind)"),
    )  # fmt: skip
    max_iter: int = setting(
        20, "rounds of k-means in a cut; more find slightly better clusters and take longer", low=1, high=10_000,
        acts=Acts(
            lambda own, _: own.kind != "flat" and (own.kind != "taxonomy" or own.widest is not None),
            "where k-means cuts: in a tree of kind balanced or unbalanced, or in a taxonomy with widest",
        ),
        rank=7,
    )  # fmt: skip
    depth: int = setting(
        3,
        "levels of an unbalanced tree, the labels among them; more are faster with very many labels, and lose more on "
        "the way down",
        low=1, high=limits.MAX_LEVELS, acts=Acts(lambda own, _: own.kind == "unbalanced", _UNEVEN),
    )  # fmt: skip
    sample: int = setting(
        100,
        "labels per centre on which the centres of an unbalanced tree are fitted; more are steadier and take longer",
        low=1, acts=Acts(lambda own, _: own.kind == "unbalanced", _UNEVEN), rank=7,
    )  # fmt: skip
    shared: int = setting(
        0,
        "upper levels that all trees of an ensemble have in common; more train faster and make the trees more alike",
        low=0, rank=6,
        acts=Acts(
            lambda own, recipe: own is recipe.tree and own.kind != "flat" and recipe.ensemble.trees > 1,
            "where several trees are cut by k-means (ensemble.trees above 1)",
        ),
    )  # fmt: skip
    parent: str = setting(
        "nearest",
        "where a taxonomy gives several parents: keep the one with the most similar labels (nearest), or the one named "
        "first (first)",
        choices=("nearest", "first"),
        acts=Acts(lambda own, _: own.kind == "taxonomy", "in a tree of kind taxonomy"),
    )  # fmt: skip
    widest: int | None = setting(
        None,
        "cut into equal parts what has more children than this; lower it where clusters are very wide; none: an "
        "unbalanced tree cuts at 10 times leaf, a taxonomy what has more than 10,000, into parts of up to 1,000",
        low=2, rank=6,
        acts=Acts(lambda own, _: own.kind in {"taxonomy", "unbalanced"}, "in a tree of kind taxonomy or unbalanced"),
    )  # fmt: skip


@dataclasses.dataclass(frozen=True, eq=False)
class Tree:
    """Nested clusters of the labels that have positives."""

    child_ptrs: tuple[NDArray[np.int64], ...]  # level t: (K_{t-1} + 1,)
    leaves: NDArray[np.int32]  # (K_D,) label id of each node of the last level

    @property
    def depth(self) -> int:
        return len(self.child_ptrs)

    def size(self, level: int) -> int:
        """K_t: nodes of a level (0-based, without the root)."""
        return int(self.child_ptrs[level][-1])

    @property
    def sizes(self) -> tuple[int, ...]:
        return tuple(self.size(t) for t in range(self.depth))

    def parents(self, level: int) -> NDArray[np.int32]:
        """Parents of the nodes of `level`, in the level above (the root is 0)."""
        ptr = self.child_ptrs[level]
        return np.repeat(np.arange(len(ptr) - 1, dtype=np.int32), np.diff(ptr))

    def labels_to_nodes(self, level: int, labels: int) -> NDArray[np.int32]:
        """(labels,) node of `level` above each label, -1 for labels outside the tree."""
        node = np.arange(self.size(self.depth - 1), dtype=np.int32)
        for t in range(self.depth - 1, level, -1):
            node = self.parents(t)[node]
        found = np.full(labels, -1, np.int32)
        found[self.leaves] = node
        return found

    def tensors(self) -> dict[str, NDArray[np.generic]]:
        """Arrays that the model folder stores."""
        return {**{f"child_ptr.{t}": ptr for t, ptr in enumerate(self.child_ptrs)}, "leaves": self.leaves}

    @staticmethod
    def from_tensors(tensors: dict[str, NDArray[np.generic]], labels: int) -> Tree:
        """The checked inverse of `tensors`."""
        depth = len(tensors) - 1
        try:
            ptrs = tuple(tensors[f"child_ptr.{t}"] for t in range(depth))
            leaves = tensors["leaves"]
        except KeyError as error:
            raise ModelFileError(f"the tree lacks the array {error}.") from error
        nodes = 1
        for ptr in ptrs:
            if ptr.dtype != np.int64 or ptr.shape != (nodes + 1,) or ptr[0] != 0:
                raise ModelFileError("the tree's child pointers do not fit its levels.")
            width = np.diff(ptr)
            if (width < 1).any() or (width > limits.MAX_CHILDREN).any():
                raise ModelFileError("the tree has a node without children, or with too many.")
            nodes = int(ptr[-1])
            if nodes > limits.MAX_INDEX:
                raise ModelFileError("the tree has too many nodes.")
        if not ptrs or leaves.dtype != np.int32 or leaves.shape != (nodes,):
            raise ModelFileError("the tree's leaves do not fit its last level.")
        seen = np.zeros(labels, np.bool_)
        if leaves.min() >= 0 and leaves.max() < labels:
            seen[leaves] = True
        if np.count_nonzero(seen) != nodes:
            raise ModelFileError("the tree's leaves are not distinct labels of the model.")
        return Tree(ptrs, leaves)  # type: ignore[arg-type]


def level_sizes(labels: int, config: TreeConfig, name: str = "tree") -> tuple[int, ...]:
    """K_1 < … < K_D = labels of a balanced tree; `name` is its section, for people."""
    if config.levels is not None:
        sizes = config.levels if config.levels[-1] == labels else (*config.levels, labels)
        if any(a >= b for a, b in pairwise(sizes)):
            raise ConfigError(
                f"{name}.levels is {'-'.join(map(str, config.levels))} for {labels} labels with positives; "
                "sizes must grow from level to level and stay below the number of labels."
            )
        return sizes
    if labels <= config.flat:
        return (labels,)
    wanted = max(labels / config.leaf, min(config.least or 0, labels / 4))
    if wanted <= 1:
        return (labels,)
    codes = 2 ** max(1, math.ceil(math.log2(wanted)))
    if codes >= labels:
        return (labels,)  # leaf = 1: every label its own cluster
    sizes = (labels,)
    stop = config.min_codes or config.branch
    while True:
        sizes = (codes, *sizes)
        if codes <= stop or codes // config.branch < min(4, config.branch):  # two or three top nodes tell little
            return sizes
        codes //= config.branch


def build(
    z: Features | None,
    labels: NDArray[np.int32],
    config: TreeConfig,
    seed: int,
    tree: int = 0,
    *,
    taxonomy: Taxonomy | None = None,
    threads: int,
    progress: Tick | None = None,
) -> Tree:
    """The tree over `labels`: row i of Z stands for labels[i] (a flat tree needs none).

    `tree` numbers the trees of an ensemble; the first `config.shared` levels are those of tree 0.
    """
    if config.kind == "flat" or z is None:
        return _checked(Tree((np.array([0, len(labels)]),), labels))
    cutter = Cutter(z, seed, tree, config.shared, config.max_iter, config.sample, threads, progress)
    if config.kind == "taxonomy":
        if taxonomy is None:
            raise ConfigError(
                "tree.kind is 'taxonomy', but there is none; give a file of children and their parents with "
                "--taxonomy FILE or taxonomy=, or choose another kind."
            )
        child_ptrs, order = nest(taxonomy, labels, cutter, nearest=config.parent == "nearest", widest=config.widest)
    elif config.kind == "unbalanced":
        child_ptrs, order = _unbalanced(cutter, len(labels), config)
    else:
        child_ptrs, order = _balanced(cutter, len(labels), config)
    return _checked(Tree(tuple(child_ptrs), labels[order]))


def _checked(tree: Tree) -> Tree:
    if tree.depth > limits.MAX_LEVELS:
        raise ConfigError(f"the tree would have {tree.depth} levels; at most {limits.MAX_LEVELS} are allowed.")
    widest = max(int(np.diff(ptr).max()) for ptr in tree.child_ptrs)
    if widest > limits.MAX_CHILDREN:
        raise ConfigError(
            f"a tree node would have {widest} children; at most {limits.MAX_CHILDREN} are allowed: "
            "lower tree.leaf or tree.branch, or set tree.widest for a taxonomy."
        )
    return tree


def _balanced(cutter: Cutter, labels: int, config: TreeConfig) -> Nesting:
    sizes = level_sizes(labels, config)
    if len(sizes) > limits.MAX_LEVELS:
        raise ConfigError(f"the tree would have {len(sizes)} levels; at most {limits.MAX_LEVELS} are allowed.")
    order, ptr = np.arange(labels, dtype=np.int32), np.array([0, labels])  # nodes of the level as ranges of labels
    child_ptrs: list[NDArray[np.int64]] = []
    for t, size in enumerate(sizes[:-1]):
        parts = _shares(np.diff(ptr), size)
        order, ptr = cutter.cut(order, ptr, parts, config.split, t)
        child_ptrs.append(pointers(parts))
    return [*child_ptrs, ptr], order


def _unbalanced(cutter: Cutter, labels: int, config: TreeConfig) -> Nesting:
    """Bonsai: nodes of few labels are not cut; down to the last level they are their own and only child."""
    order, ptr = np.arange(labels, dtype=np.int32), np.array([0, labels])
    child_ptrs: list[NDArray[np.int64]] = []
    widest, alike = config.widest or 10 * config.leaf, True
    for t in range(config.depth - 1):
        widths = np.diff(ptr)
        parts = np.where(widths > config.leaf, np.minimum(widths, config.branch), 1).astype(np.int32)
        order, cuts = cutter.cut(order, ptr, parts, "uneven", t)
        alike = alike and len(cuts) == len(ptr)  # from the root on: the features tell no two labels apart
        if alike:
            parts = np.minimum(-(-widths // widest), config.branch).astype(np.int32)
            order, cuts = cutter.cut(order, ptr, parts, "bisect", t)
        if len(cuts) == len(ptr):  # nothing was cut, nor would be further down
            break
        child_ptrs.append(np.searchsorted(cuts, ptr))
        ptr = cuts
    if child_ptrs:  # where labels are much alike one cluster may hold most of them: equal parts side by side
        parts = -(-np.diff(ptr) // widest)
        order, cuts = cutter.cut(order, ptr, parts.astype(np.int32), "bisect", len(child_ptrs) - 1)
        child_ptrs[-1] = np.searchsorted(cuts, ptr)[child_ptrs[-1]]
        ptr = cuts
    return [*child_ptrs, ptr], order


def _shares(widths: NDArray[np.int64], total: int) -> NDArray[np.int32]:
    """Number of children of each node: as even as possible, the larger nodes first, never more than its labels."""
    if total < len(widths) or total > int(widths.sum()):
        raise ConfigError(f"a level of {total} clusters does not fit between {len(widths)} and {int(widths.sum())}.")
    share = np.full(len(widths), total // len(widths), np.int64)
    share[np.argsort(-widths, kind="stable")[: total % len(widths)]] += 1
    while (over := share - widths).max() > 0:  # nodes smaller than their share pass the rest on
        spare = int(over[over > 0].sum())
        share = np.minimum(share, widths)
        room = np.flatnonzero(share < widths)
        share[room[: spare % len(room)]] += 1
        share[room] += spare // len(room)
    return share.astype(np.int32)


def up(y: Csr, tree: Tree, level: int) -> Csr:
    """Y·C: the labels (n, L) summed over the clusters of `level` (n, K_t), eq. 5-6; columns sorted."""
    group = tree.labels_to_nodes(level, y.cols)
    return Csr(*_core.sum_columns(y.indptr, y.indices, y.data, group, available()), tree.size(level))
