"""Synthetic sets in the shapes of Amazon-670K and Amazon-3M, at any scale.

    python bench/synthetic.py 670k DIR --scale 1/16

Written as a PECOS folder (X.trn.npz, Y.trn.npz, X.tst.npz, Y.tst.npz), which `labelwood train DIR` reads as it is.

How a set is made, all of it a pure function of (shape, scale, seed):

- Label counts n_l follow P(n) ∝ (n + 2)^-α on 1 … n_max, α such that documents × labels per document comes out; the
  counts are the quantiles of that law, so the tail is exact.
- Topics nest: 16 leaves make a branch, 16 branches a trunk, then the root. Documents lie on a line, a topic is an
  interval of it. A label lives at the deepest topic around its leaf that has 2 n_l documents, and spreads evenly over
  it; one occurrence in five falls into the topic above (documents thus mix a few topics), one in fifty anywhere.
- A word of a document comes from one of its labels' own words, from that label's topic or the ones above, or from the
  background. Every word list is a hash of its owner; ranks are log-uniform over the vocabulary (Zipf's law).
- X is tf-idf: (1 + ln tf) · idf, rows of length one. Documents, labels and words are then shuffled, and a part of the
  documents held out, so that as in real sets some labels are never seen in training.
"""

from __future__ import annotations

import argparse
import dataclasses
import time
from fractions import Fraction
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from scipy import sparse

Ints = NDArray[np.int64]
Hashes = NDArray[np.uint64]
Given = tuple[Ints, Ints]  # Y by row pointers and labels

FAN = 16  # topics of one level under a topic of the level above
LEVELS = 3  # leaf topics, branches, trunks; then the root
BLOCK = 1 << 16  # documents at a time
# Where a word comes from: (share, words in the list). Own words of the label, its topic, the two above, everything.
SOURCES = ((0.13, 8), (0.14, 40), (0.10, 120), (0.06, 300), (0.57, 0))


@dataclasses.dataclass(frozen=True)
class Shape:
    """The size of a training set; `largest` is the number of documents of the most frequent label."""

    documents: int
    labels: int
    labels_per_document: float
    features: int
    features_per_document: float
    largest: int

    def scaled(self, scale: Fraction) -> Shape:
        """Documents and labels by `scale`; features and the largest label by its root (Heaps' law)."""
        root = float(scale) ** 0.5
        return dataclasses.replace(
            self,
            documents=max(200, round(self.documents * scale)),
            labels=max(50, round(self.labels * scale)),
            features=max(500, round(self.features * root)),
            largest=max(20, round(self.largest * root)),
        )


SHAPES = {
    "670k": Shape(490_449, 670_091, 5.45, 135_909, 75.0, 1_826),
    "3m": Shape(1_717_899, 2_812_281, 36.04, 337_067, 50.0, 12_014),
}


def mix(seed: int, *keys: Ints | int) -> Hashes:
    """A hash of the keys, elementwise (splitmix64 rounds)."""
    state: Hashes = np.full(1, (seed * 0x9E3779B97F4A7C15 + 0x632BE59BD9B4E019) % 2**64, np.uint64)
    for key in keys:
        state = state + np.asarray(key).astype(np.uint64) * np.uint64(0xD1B54A32D192ED03) + np.uint64(1)
        state = (state ^ (state >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        state = (state ^ (state >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        state ^= state >> np.uint64(31)
    return state


def uniform(hashes: Hashes) -> NDArray[np.float64]:
    """[0, 1) from the high bits."""
    return (hashes >> np.uint64(11)).astype(np.float64) * 2.0**-53


def label_counts(shape: Shape) -> Ints:
    """(labels,) documents of each label, most frequent first: quantiles of P(n) ∝ (n + 2)^-α of the right mean."""
    n = np.arange(1, shape.largest + 1, dtype=np.float64)
    mean = shape.documents * shape.labels_per_document / shape.labels
    low, high = 0.0, 8.0
    for _ in range(60):  # the mean falls with α
        alpha = (low + high) / 2
        p = (n + 2) ** -alpha
        low, high = (alpha, high) if (n * p).sum() / p.sum() > mean else (low, alpha)
    p = (n + 2) ** -high
    cumulated = np.cumsum(p) / p.sum()
    levels = (np.arange(shape.labels) + 0.5) / shape.labels
    return (1 + np.searchsorted(cumulated[:-1], levels))[::-1].copy()


@dataclasses.dataclass(frozen=True, eq=False)
class World:
    """The topics: where each begins on the line of documents, and where each label lives."""

    documents: int
    starts: tuple[Ints, ...]  # per level, leaves first: (topics + 1,) first document of each
    leaf: Ints  # (labels,) leaf topic
    home: Ints  # (labels,) level of the topic it lives in; LEVELS is the root

    @staticmethod
    def of(shape: Shape, counts: Ints, documents: int, seed: int) -> World:
        labels = np.arange(len(counts))
        topics = max(FAN, min(shape.labels, shape.documents) // 50)
        leaf = np.minimum((topics * uniform(mix(seed, 1, labels)) ** 1.25).astype(np.int64), topics - 1)
        mass = np.bincount(leaf, weights=np.minimum(counts, 50), minlength=topics) + 1e-9
        ends = np.round(np.cumsum(mass) / mass.sum() * documents).astype(np.int64)
        fine = np.concatenate(([0], ends))
        starts = tuple(np.append(fine[:-1][:: FAN**t], documents) for t in range(LEVELS))
        home = np.full(len(counts), LEVELS)
        for level in reversed(range(LEVELS)):
            topic = leaf // FAN**level
            home[np.diff(starts[level])[topic] >= 2 * counts] = level
        return World(documents, starts, leaf, home)

    def span(self, labels: Ints, level: Ints) -> tuple[Ints, Ints]:
        """First document and number of documents of the topic `level` steps above the labels' leaves."""
        first, size = np.zeros(len(labels), np.int64), np.full(len(labels), self.documents)
        for t, starts in enumerate(self.starts):
            at = level == t
            topic = self.leaf[labels[at]] // FAN**t
            first[at], size[at] = starts[topic], starts[topic + 1] - starts[topic]
        return first, size


def assign(world: World, counts: Ints, seed: int) -> Given:
    """Y on the line, (pointers (documents + 1,), labels (nnz,)), rows sorted and without repeats; no row is empty."""
    ends = np.cumsum(counts)
    cuts = np.unique(np.searchsorted(ends, np.arange(0, ends[-1], 1 << 22)))  # about four million occurrences at a time
    edges = [*cuts.tolist(), len(counts)]
    keys = np.concatenate([place(world, counts, np.arange(a, b), seed) for a, b in pairwise(edges)])
    keys.sort()
    keys = keys[np.append(True, keys[1:] != keys[:-1])]
    rows = np.arange(world.documents + 1) * len(counts)
    bare = np.flatnonzero(
        np.diff(np.searchsorted(keys, rows)) == 0
    )  # they get a label of the next document on the line
    after = keys[np.minimum(np.searchsorted(keys, bare * len(counts)), len(keys) - 1)]
    keys = np.sort(np.concatenate([keys, bare * len(counts) + after % len(counts)]))
    return np.searchsorted(keys, rows), keys % len(counts)


def place(world: World, counts: Ints, some: Ints, seed: int) -> Ints:
    """Keys document · labels + label: one for every occurrence of the labels `some`."""
    labels = np.repeat(some, counts[some])
    number = np.arange(len(labels)) - np.repeat(np.cumsum(counts[some]) - counts[some], counts[some])
    chance, where = uniform(mix(seed, 2, labels, number)), uniform(mix(seed, 3, labels, number))
    stray = np.where(chance < 0.02, LEVELS, (chance < 0.2).astype(np.int64))
    first, size = world.span(labels, np.minimum(world.home[labels] + stray, LEVELS))
    spread = np.where(stray == 0, (number + where) / counts[labels], where)
    document = np.minimum(first + (spread * size).astype(np.int64), world.documents - 1)
    return document * len(counts) + labels


def words(world: World, given: Given, rows: Ints, tokens: float, vocabulary: int, seed: int) -> Ints:  # noqa: PLR0917
    """Keys row · vocabulary + word of all tokens of the documents `rows`, row being the place in `rows`."""
    pointers, labels = given
    length = np.maximum(1, (tokens * (0.4 + 1.2 * uniform(mix(seed, 4, rows)))).astype(np.int64))
    row = np.repeat(np.arange(len(rows)), length)
    number = np.arange(len(row)) - np.repeat(np.cumsum(length) - length, length)
    key = mix(seed, 5, rows[row], number)
    have = pointers[rows + 1] - pointers[rows]
    label = labels[pointers[rows][row] + (uniform(mix(seed, 6) ^ key) * have[row]).astype(np.int64)]
    source = np.searchsorted(np.cumsum([share for share, _ in SOURCES])[:-1], uniform(mix(seed, 7, key.view(np.int64))))
    width = np.array([size for _, size in SOURCES])[source]
    level = np.minimum(world.home[label] + np.maximum(source - 1, 0), LEVELS)
    topic = np.where(level == LEVELS, 0, world.leaf[label] // FAN**level)
    owner = np.where(source == 0, label, topic)
    draw = uniform(mix(seed, 8, key.view(np.int64)))
    slot = (width * draw**2).astype(np.int64)  # the first words of a list are the frequent ones
    rank = np.where(width > 0, uniform(mix(seed, 9, np.where(source == 0, -1, level), owner, slot)), draw)
    word = vocabulary**rank - 1  # log-uniform rank: Zipf's law
    return row * vocabulary + word.astype(np.int64)


def features(world: World, given: Given, shape: Shape, seed: int) -> sparse.csr_matrix:
    """Term frequencies of all documents on the line, 1 + ln tf."""
    tokens = _tokens(world, given, shape, seed)
    counts, columns, values = [], [], []
    for start in range(0, world.documents, BLOCK):
        rows = np.arange(start, min(start + BLOCK, world.documents))
        keys, times = np.unique(words(world, given, rows, tokens, shape.features, seed), return_counts=True)
        counts.append(np.bincount(keys // shape.features, minlength=len(rows)))
        columns.append((keys % shape.features).astype(np.int32))
        values.append((1 + np.log(times)).astype(np.float32))
    indptr = np.concatenate(([0], np.cumsum(np.concatenate(counts))))
    parts = np.concatenate(values), np.concatenate(columns), indptr
    return sparse.csr_matrix(parts, shape=(world.documents, shape.features))


def _tokens(world: World, given: Given, shape: Shape, seed: int) -> float:
    """How many tokens a document needs so that its distinct words come out at `features_per_document`."""
    rows = np.linspace(0, world.documents - 1, min(world.documents, 2000)).astype(np.int64)
    tokens = 1.3 * shape.features_per_document
    for _ in range(6):
        found = len(np.unique(words(world, given, rows, tokens, shape.features, seed))) / len(rows)
        tokens *= shape.features_per_document / found
    return tokens


def weigh(x: sparse.csr_matrix) -> None:
    """tf → tf-idf with rows of length one, in place."""
    df = np.bincount(x.indices, minlength=x.shape[1])
    idf = (np.log((1 + x.shape[0]) / (1 + df)) + 1).astype(np.float32)
    for start in range(0, x.shape[0], BLOCK):
        ends = x.indptr[start : start + BLOCK + 1]
        part = x.data[ends[0] : ends[-1]]
        part *= idf[x.indices[ends[0] : ends[-1]]]
        norm = np.sqrt(np.add.reduceat(part * part, ends[:-1] - ends[0]))
        part /= np.repeat(norm, np.diff(ends))


def generate(shape: Shape, seed: int = 0, held_out: float = 0.05) -> dict[str, sparse.csr_matrix]:
    """X.trn, Y.trn, X.tst, Y.tst: `shape.documents` to train on and a twentieth more held out."""
    held = max(100, round(shape.documents * held_out))
    total = shape.documents + held
    wider = dataclasses.replace(shape, documents=total)
    counts = label_counts(wider)
    world = World.of(shape, counts, total, seed)
    pointers, labels = assign(world, counts, seed)
    x = features(world, (pointers, labels), shape, seed)
    weigh(x)
    rng = np.random.default_rng(seed)
    x.indices = rng.permutation(shape.features).astype(np.int32)[x.indices]
    names = rng.permutation(shape.labels).astype(np.int32)
    ones = np.ones(len(labels), np.float32)
    y = sparse.csr_matrix((ones, names[labels], pointers), shape=(total, shape.labels))
    order = rng.permutation(total)
    parts = {"trn": order[held:], "tst": order[:held]}
    found = {f"{kind}.{part}": m[rows] for part, rows in parts.items() for kind, m in (("X", x), ("Y", y))}
    for matrix in found.values():
        matrix.sort_indices()
    return found


def write(folder: Path, name: str, scale: Fraction, seed: int) -> None:
    """The set as a PECOS folder; nothing is done where it is already."""
    done = folder / "Y.tst.npz"
    if done.exists():
        return
    folder.mkdir(parents=True, exist_ok=True)
    for key, matrix in generate(SHAPES[name].scaled(scale), seed).items():  # Y.tst comes last
        sparse.save_npz(folder / f"{key}.npz", matrix, compressed=False)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("shape", choices=sorted(SHAPES))
    parser.add_argument("folder", type=Path)
    parser.add_argument("--scale", type=Fraction, default=Fraction(1, 16), help="1/64 … 1")
    parser.add_argument("--seed", type=int, default=0)
    options = parser.parse_args()
    start = time.perf_counter()
    write(options.folder, options.shape, options.scale, options.seed)
    print(f"{options.folder}: {options.shape} × {options.scale} in {time.perf_counter() - start:.0f} s")


if __name__ == "__main__":
    main()
