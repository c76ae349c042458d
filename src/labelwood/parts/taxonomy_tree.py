"""The user's own taxonomy as a label tree: a DAG of uneven depth to levels of contiguous children.

One parent each: a node with several parents goes below the one whose labels are most similar to its own, by the cosine
of summed label features; counted are labels reached without passing another such node. Nodes without a label below are
dropped, and a node with one child is replaced by it. An inner node that is itself a label has a leaf of its own. Labels
outside the taxonomy stand together under one extra node. A node of very many children is cut into equal parts: each of
them would learn from the documents of all.

Uneven depth is padded: a node stands as deep as the labels below it allow (its height), and where its parent is more
than one level above, pass-through nodes lie between.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from .. import limits
from ..arrays.sparse import Csr, Features, pointers
from ..arrays.taxonomy import Taxonomy
from ..errors import ConfigError
from .kmeans import Cutter, Nesting
from .label_features import sums

_BLOCK = 4096  # pairs compared at once
_WIDE, _PART = 10_000, 1000  # with more children than the first a node is cut into parts of up to the second


class _Inner:
    """A node with at least two children (the root may have one): labels, as rows of Z, and other inner nodes."""

    __slots__ = ("height", "kids")

    def __init__(self, kids: list[_Item]) -> None:
        self.kids = kids
        self.height = 1 + max(map(_height, kids))


_Item = int | _Inner


def nest(
    taxonomy: Taxonomy, labels: NDArray[np.int32], cutter: Cutter, *, nearest: bool, widest: int | None
) -> Nesting:
    """Levels of the taxonomy over `labels`: row i of Z stands for labels[i]."""
    up = _nearest_parents(taxonomy, labels, cutter) if nearest else _first_parents(taxonomy)
    row_of = np.full(taxonomy.nodes, -1, np.int64)
    row_of[labels] = np.arange(len(labels))
    row_of[: len(taxonomy.inside)][~taxonomy.inside] = -1
    outside: list[_Item] = [*np.flatnonzero(~taxonomy.inside[labels]).tolist()]
    kids = _top(up, row_of, cutter, widest)
    if outside:
        kids.append(outside[0] if len(outside) == 1 else _node(outside, cutter, widest))
    if len(kids) == 1 and isinstance(kids[0], _Inner):
        kids = kids[0].kids
    return _levels(_node(kids, cutter, widest))


def depth_of(taxonomy: Taxonomy, labels: NDArray[np.int32]) -> int | None:
    """Levels of the tree that `nest` makes where every node has one parent and none is cut; None: it depends."""
    if (np.bincount(taxonomy.child, minlength=taxonomy.nodes) > 1).any():
        return None
    nothing = Features(dense=np.zeros((len(labels), 1), np.float32))  # no node is cut, no label compared
    return len(nest(taxonomy, labels, Cutter(nothing, 0, 0, 0, 0, 0, 1), nearest=False, widest=None)[0])


def _first_parents(taxonomy: Taxonomy) -> NDArray[np.int32]:
    """(nodes,) the parent named first, -1 for a root."""
    up = np.full(taxonomy.nodes, -1, np.int32)
    up[taxonomy.child[::-1]] = taxonomy.parent[::-1]
    return up


def _nearest_parents(taxonomy: Taxonomy, labels: NDArray[np.int32], cutter: Cutter) -> NDArray[np.int32]:
    """(nodes,) the parent whose labels are most similar (ties: named first), -1 for a root."""
    up = _first_parents(taxonomy)
    several = np.bincount(taxonomy.child, minlength=taxonomy.nodes) > 1
    open_edges = several[taxonomy.child]
    child, parent = taxonomy.child[open_edges], taxonomy.parent[open_edges]
    if not len(child):
        return up
    compared = np.unique(np.concatenate([child, parent]))
    z = sums(_below(np.where(several, -1, up), compared, labels, taxonomy.inside), cutter.z, cutter.threads)
    similarity = _cosines(z, np.searchsorted(compared, child), np.searchsorted(compared, parent))
    order = np.lexsort((np.arange(len(child)), -similarity, child))
    first = np.unique(child[order], return_index=True)[1]
    up[child[order][first]] = parent[order][first]
    return up


def _below(
    up: NDArray[np.int32], nodes: NDArray[np.int32], labels: NDArray[np.int32], inside: NDArray[np.bool_]
) -> Csr:
    """(nodes, labels) 1 where a label lies at or below the node, going up by `up`."""
    place = np.full(len(up), -1, np.int64)
    place[nodes] = np.arange(len(nodes))
    rows = np.flatnonzero(inside[labels]).astype(np.int32)
    at, found = labels[rows], [(place[:0], rows[:0])]
    while len(rows):
        hit = place[at] >= 0
        found.append((place[at[hit]], rows[hit]))
        rows, at = rows[up[at] >= 0], up[at][up[at] >= 0]
    groups, members = (np.concatenate(parts) for parts in zip(*found, strict=True))
    order = np.lexsort((members, groups))
    indptr = pointers(np.bincount(groups, minlength=len(nodes)))
    return Csr(indptr, members[order], np.ones(len(order), np.float32), len(labels))


def _cosines(z: Features, a: NDArray[np.int64], b: NDArray[np.int64]) -> NDArray[np.float64]:
    """z[a] · z[b] pair by pair; rows have unit length."""
    out = np.zeros(len(a))
    for start in range(0, len(a), _BLOCK):
        pairs = slice(start, start + _BLOCK)
        if z.sparse is not None:
            x = z.sparse.to_scipy()
            out[pairs] += np.asarray(x[a[pairs]].multiply(x[b[pairs]]).sum(axis=1), np.float64).ravel()
        if z.dense is not None:
            out[pairs] += np.einsum("ij,ij->i", z.dense[a[pairs]], z.dense[b[pairs]], dtype=np.float64)
    return out


def _top(up: NDArray[np.int32], row_of: NDArray[np.int64], cutter: Cutter, widest: int | None) -> list[_Item]:
    """Items that stand for the roots, built from the leaves upwards."""
    kids: dict[int, list[tuple[int, _Item]]] = {-1: []}
    rows, parents = row_of.tolist(), up.tolist()
    for node in _children_first(up):
        below = [item for _, item in sorted(kids.pop(node, []), key=lambda pair: pair[0])]
        if rows[node] >= 0:
            below.insert(0, rows[node])
        if below:
            item = below[0] if len(below) == 1 else _node(below, cutter, widest)
            kids.setdefault(parents[node], []).append((node, item))
    return [item for _, item in sorted(kids[-1], key=lambda pair: pair[0])]


def _children_first(up: NDArray[np.int32]) -> Iterable[int]:
    """All nodes, each after its children."""
    parents = up.tolist()
    waiting = np.bincount(up[up >= 0], minlength=len(up)).tolist()
    ready = [node for node, count in enumerate(waiting) if count == 0]
    for node in ready:
        parent = parents[node]
        if parent >= 0:
            waiting[parent] -= 1
            if waiting[parent] == 0:
                ready.append(parent)
    return ready


def _node(kids: list[_Item], cutter: Cutter, widest: int | None) -> _Inner:
    """An inner node; where it would be too wide, its children are grouped first."""
    if widest is None and len(kids) > _WIDE:
        widest = _PART
    while widest is not None and len(kids) > widest:
        kids = _grouped(kids, cutter, -(-len(kids) // widest))
    return _Inner(kids)


def _grouped(kids: list[_Item], cutter: Cutter, parts: int) -> list[_Item]:
    below = [np.sort(np.array(_rows(kid), np.int32)) for kid in kids]
    member = np.concatenate(below)
    groups = Csr(pointers(np.array([len(b) for b in below])), member, np.ones(len(member), np.float32), cutter.z.rows)
    z = sums(groups, cutter.z, cutter.threads)
    start = np.arange(len(kids), dtype=np.int32)
    order, ptr = dataclasses.replace(cutter, z=z, progress=None).cut(
        start, np.array([0, len(kids)]), np.array([parts], np.int32), "bisect", 0
    )
    parted = [[kids[i] for i in order[a:b]] for a, b in pairwise(ptr)]
    return [part[0] if len(part) == 1 else _Inner(part) for part in parted]


def _rows(item: _Item) -> list[int]:
    """The labels at or below."""
    found, todo = [], [item]
    while todo:
        here = todo.pop()
        if isinstance(here, _Inner):
            todo += here.kids
        else:
            found.append(here)
    return found


def _height(item: _Item) -> int:
    return item.height if isinstance(item, _Inner) else 0


def _levels(root: _Inner) -> Nesting:
    """Level by level from the root; a node that is not as high as its level passes through."""
    if root.height > limits.MAX_LEVELS:
        raise ConfigError(
            f"the taxonomy has {root.height} levels; at most {limits.MAX_LEVELS} are allowed. Leave out some of its "
            "inner nodes."
        )
    level: list[_Item] = [root]
    child_ptrs = []
    for height in range(root.height, 0, -1):
        kids = [item.kids if isinstance(item, _Inner) and item.height == height else [item] for item in level]
        child_ptrs.append(pointers(np.array([len(k) for k in kids])))
        level = [item for k in kids for item in k]
    return child_ptrs, np.array(level, np.int32)
