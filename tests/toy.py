"""Small random matrices for the twin tests, and the toy data set with exactly known answers."""

from __future__ import annotations

import numpy as np

from labelwood.arrays.sparse import Csr, Features, as_csr


def random_features(rng: np.random.Generator, rows: int, sparse: int, dense: int) -> tuple[Features, np.ndarray]:
    """Features with `sparse` and `dense` columns, and the same as one dense matrix."""
    a = rng.normal(size=(rows, sparse)) * (rng.random((rows, sparse)) < 0.5)
    b = rng.normal(size=(rows, dense))
    a, b = a.astype(np.float32), b.astype(np.float32)
    x = Features(as_csr(a) if sparse else None, b if dense else None)
    return x, np.hstack([a, b]).astype(float)


def random_labels(rng: np.random.Generator, rows: int, labels: int) -> tuple[Csr, np.ndarray]:
    """A label matrix in which every label has a positive."""
    y = rng.random((rows, labels)) < 0.3
    y[rng.integers(rows, size=labels), np.arange(labels)] = True
    return as_csr(y.astype(np.float32)), y.astype(float)


def keyword_set(labels: int = 12, docs: int = 6) -> tuple[list[str], list[list[str]]]:
    """Document j of label i says only 'word<i>' and filler: the right answer of any sound model is known exactly."""
    texts, lists = [], []
    for i in range(labels):
        for j in range(docs):
            texts.append(f"word{i} word{i} filler{j % 3} common")
            lists.append([f"label{i}"])
    return texts, lists


def contract_set(labels: int = 12, docs: int = 6) -> tuple[list[str], list[list[str]]]:
    """`keyword_set` and documents of two labels, which say both words: the best two labels of any text are known."""
    texts, lists = keyword_set(labels, docs)
    for i in range(labels):
        for step in (1, 2, 5):
            j = (i + step) % labels
            texts.append(f"word{i} word{i} word{j} word{j} filler{step % 3} common")
            lists.append([f"label{i}", f"label{j}"])
    return texts, lists


def noisy_set(seed: int, docs: int = 60, words: int = 30, labels: int = 20) -> tuple[list[str], list[list[str]]]:
    """Random words and random labels, every label at least once: nothing to learn, so every random choice shows."""
    rng = np.random.default_rng(seed)
    texts = [" ".join(f"word{w}" for w in rng.integers(words, size=12)) for _ in range(docs)]
    lists = [[f"label{v}" for v in {i % labels, *rng.integers(labels, size=2).tolist()}] for i in range(docs)]
    return texts, lists
