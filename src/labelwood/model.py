"""A trained model: features, tree, levels and label names. Raw text in, label names and scores out."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from . import limits, store
from .config import at, check_levels, from_dict, to_dict
from .data import Dataset, Labels, ReadOptions, Texts, align_labels, from_lists, from_matrix, read
from .errors import ConfigError, DataError, LabelwoodError, ModelFileError, counted
from .features import TOKENISER_VERSION, Tfidf
from .linear import LinearLevel, Search, check_features, search
from .metrics import Evaluation, MetricsConfig, evaluate
from .progress import Progress, Silent
from .recipes import Recipe, from_plain
from .sparse import Csr, Features, as_features
from .tail import centroid_tensors, centroids_from, nearness, rerank
from .threads import workers
from .tree import Tree

Predictions = list[list[tuple[str, float]]]


@dataclasses.dataclass(frozen=True, eq=False)
class Model:
    """Made by `labelwood.train` or `labelwood.load`; never changed afterwards, safe to share between threads."""

    recipe: Recipe
    labels: tuple[str, ...]  # names; the position is the id that `predict_arrays` returns
    counts: NDArray[np.int64]  # (L,) training documents of each label
    rows: int  # training documents
    tfidf: Tfidf | None  # None: the user brings features
    sparse_cols: int
    dense_cols: int
    tree: Tree
    levels: list[LinearLevel]
    data_key: str  # digest of the training data
    label_texts: tuple[str, ...] = ()  # words for each label, "" where there are none; empty if none were given
    centroids: Features | None = None  # (L, d), where the recipe ranks by them

    def __repr__(self) -> str:
        sizes = " → ".join(f"{size:,}" for size in self.tree.sizes)
        counts = f"{counted(len(self.labels), 'label')}, {counted(self.rows, 'document')}"
        return f"<labelwood.Model {self.recipe.method}: {counts}, tree {sizes}>"

    def predict(
        self, texts: Sequence[str] | None = None, *, X: object = None, k: int = 5, threads: int = 0
    ) -> Predictions:
        """The k best labels of each text (or row of X) with their scores, best first.

        A list is shorter than k when beam search ends with fewer candidates. Labels that had no training document come
        after all others.
        """
        return list(self.named(*self.predict_arrays(texts, X=X, k=k, threads=threads)))

    def predict_arrays(
        self, texts: Sequence[str] | Texts | None = None, *, X: object = None, k: int = 5, threads: int = 0,
        progress: Progress | None = None,
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:  # fmt: skip
        """(ids (n, k), scores (n, k)); -1 stands where there is no further label."""
        count, tail = workers(threads), self.recipe.tail
        progress = progress or Silent()
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= limits.MAX_K:
            raise ConfigError(f"k must be a whole number from 1 to {limits.MAX_K}, but is {k!r}.")
        x = self._features(texts, X, count, progress)
        with progress.stage("predicting", x.rows, "docs") as tick:
            k = min(int(k), len(self.labels))
            keep = max(k, min(tail.candidates, len(self.labels))) if tail.reranks else k
            what = Search(self.recipe.search, self.tree.depth, keep, self.tree.leaves)
            ids, scores = search(x, self.levels, what, threads=count, progress=tick)
        if tail.reranks:
            ids, scores = self._rerank(x, ids, scores, count)
        return self._append_unseen(ids[:, :k], scores[:, :k])

    def predict_data(
        self, data: Dataset, *, k: int = 5, threads: int = 0, progress: Progress | None = None
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """`predict_arrays` of the texts or the features of a data set, whichever the model was trained on."""
        if self.tfidf is not None and data.texts is None:
            raise DataError("the data holds features, but the model was trained on text; give it texts.")
        if self.tfidf is None and data.features is None:
            raise DataError("the data holds text, but the model was trained on features; give it the same features.")
        texts, x = (data.texts, None) if self.tfidf is not None else (None, data.features)
        return self.predict_arrays(texts, X=x, k=k, threads=threads, progress=progress)

    def named(self, ids: NDArray[np.int32], scores: NDArray[np.float32]) -> Iterator[list[tuple[str, float]]]:
        """The output of `predict_arrays` as (name, score) lists."""
        for row, values in zip(ids.tolist(), scores.tolist(), strict=True):
            yield [(self.labels[i], value) for i, value in zip(row, values, strict=True) if i >= 0]

    def evaluate(
        self,
        data: str | Path | Dataset | Sequence[str] | None = None,
        labels: Labels | None = None,
        *,
        X: object = None,
        options: ReadOptions = ReadOptions(),
        metrics: MetricsConfig = MetricsConfig(),
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Metrics on held-out data: a file, a Dataset, or texts or X with their labels."""
        held_out = [as_dataset(data, labels, X=X, options=options)]
        return self.evaluate_blocks(held_out, metrics=metrics, threads=threads, progress=progress)

    def evaluate_blocks(
        self,
        blocks: Iterable[Dataset],
        *,
        metrics: MetricsConfig = MetricsConfig(),
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Metrics on all the blocks together; of each, only the predictions and the labels stay in memory."""
        metrics = from_dict(MetricsConfig, to_dict(metrics), "metrics")
        ids = {name: i for i, name in enumerate(self.labels)}  # grows by labels never seen in training
        found, truth = [], []
        for block in blocks:
            truth.append(align_labels(block, ids))
            found.append(self.predict_data(block, k=max(metrics.ks), threads=threads, progress=progress)[0])
        return evaluate(np.concatenate(found), _stacked(truth, len(ids)), self.counts, self.rows, metrics)

    def save(self, folder: str | Path, *, overwrite: bool = True) -> None:
        """Write the model folder; an existing model there is replaced in one step or left as it was."""
        meta: dict[str, Any] = {
            "recipe": to_dict(self.recipe),
            "data": self.data_key,
            "rows": self.rows,
            "labels": len(self.labels),
            "sparse_cols": self.sparse_cols,
            "dense_cols": self.dense_cols,
            "tokeniser": None if self.tfidf is None else TOKENISER_VERSION,
        }
        parts: dict[str, dict[str, NDArray[Any]]] = {"labels": self._label_tensors(), "tree": self.tree.tensors()}
        if self.tfidf is not None:
            parts["tfidf"] = self.tfidf.tensors()
        if self.centroids is not None:
            parts["centroids"] = centroid_tensors(self.centroids)
        parts |= {f"level-{t + 1}": level.tensors() for t, level in enumerate(self.levels)}
        store.save(Path(folder), meta, parts, overwrite=overwrite)

    def _features(self, texts: Sequence[str] | Texts | None, x: object, threads: int, progress: Progress) -> Features:
        if (texts is None) == (x is None):
            raise ConfigError("give either texts or X=features, not both and not neither.")
        if x is not None:
            if self.tfidf is not None:
                raise ConfigError("this model was trained on text; give it texts, not features.")
            return check_features(as_features(x), self.sparse_cols, self.dense_cols)
        if self.tfidf is None:
            raise ConfigError("this model was trained on features; give it X=features, not texts.")
        if isinstance(texts, str | bytes) or not isinstance(texts, Iterable):
            raise ConfigError("texts must be a list of texts; put a single text in a list: [text].")
        packed = texts if isinstance(texts, Texts) else Texts.from_strings(texts)
        with progress.stage("reading words", len(packed), "docs") as tick:
            return Features(self.tfidf.transform(packed, threads=threads, progress=tick))

    def _rerank(
        self, x: Features, ids: NDArray[np.int32], scores: NDArray[np.float32], threads: int
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """The candidates by the recipe's second ranking."""
        tail = self.recipe.tail
        near = None if self.centroids is None else nearness(x, self.centroids, ids, tail.gamma, threads)
        margins = at(self.recipe.search.combiner, self.tree.depth - 1, self.tree.depth, "search.combiner") == "noop"
        return rerank((ids, scores), tail.inverse(self.counts, self.rows), tail, near, margins=margins)

    def _append_unseen(
        self, ids: NDArray[np.int32], scores: NDArray[np.float32]
    ) -> tuple[NDArray[np.int32], NDArray[np.float32]]:
        """Fill places beyond the candidates with labels that have no training document, in order of id."""
        unseen = np.flatnonzero(self.counts == 0).astype(np.int32)
        empty = ids < 0
        if not len(unseen) or not empty.any():
            return ids, scores
        ids, scores = ids.copy(), scores.copy()
        place = np.cumsum(empty, axis=1) - 1
        fill = empty & (place < len(unseen))
        ids[fill] = unseen[place[fill]]
        if scores.min() < 0:  # margins: stay below the last of the row
            scores[fill] = np.broadcast_to(scores.min(axis=1, keepdims=True), scores.shape)[fill]
        return ids, scores

    def _label_tensors(self) -> dict[str, NDArray[Any]]:
        names = Texts.from_strings(self.labels)
        tensors: dict[str, NDArray[Any]] = {"names": names.arena, "offsets": names.offsets, "counts": self.counts}
        if self.label_texts:
            texts = Texts.from_strings(self.label_texts)
            tensors |= {"texts": texts.arena, "text_offsets": texts.offsets}
        return tensors


def load(folder: str | Path) -> Model:
    """A saved model, memory-mapped, every byte verified before it is used."""
    stored = store.load(Path(folder))
    try:
        return _from_stored(stored.meta, stored.parts)
    except ModelFileError:
        raise
    except (LabelwoodError, KeyError, TypeError, ValueError, IndexError, OverflowError) as error:
        raise ModelFileError(f"{folder} is not a sound model: {error}") from error


def _from_stored(meta: dict[str, Any], parts: dict[str, dict[str, NDArray[Any]]]) -> Model:
    recipe = from_plain(meta["recipe"])
    labels, counts, texts = _read_labels(parts["labels"], meta["labels"])
    sparse_cols, dense_cols, rows = (_size(meta, key) for key in ("sparse_cols", "dense_cols", "rows"))
    tree = Tree.from_tensors(parts["tree"], len(labels))
    check_levels(recipe, tree.depth)
    if meta["tokeniser"] != (TOKENISER_VERSION if "tfidf" in parts else None):
        raise ModelFileError(
            f"its text was cut by tokeniser version {meta['tokeniser']!r}; this release has {TOKENISER_VERSION}."
        )
    tfidf = Tfidf.from_tensors(recipe.tfidf, parts["tfidf"]) if "tfidf" in parts else None
    if tfidf is not None and (tfidf.size, 0) != (sparse_cols, dense_cols):
        raise ModelFileError(f"the vocabulary has {tfidf.size} terms but the model {sparse_cols} features.")
    if not np.array_equal(np.sort(tree.leaves), np.flatnonzero(counts)):
        raise ModelFileError("the tree's leaves are not the labels that have training documents.")
    levels = [
        LinearLevel.from_tensors(ptr, parts[f"level-{t + 1}"], sparse_cols, dense_cols)
        for t, ptr in enumerate(tree.child_ptrs)
    ]
    if ("centroids" in parts) != (recipe.tail.alpha < 1):
        raise ModelFileError("the model's centroids are missing, or not what its recipe asks for.")
    mu = centroids_from(parts["centroids"], len(labels), sparse_cols, dense_cols) if "centroids" in parts else None
    data_key = meta["data"]
    if not isinstance(data_key, str):
        raise ModelFileError(f"the manifest's 'data' must be a digest, but is {type(data_key).__name__}.")
    return Model(recipe, labels, counts, rows, tfidf, sparse_cols, dense_cols, tree, levels, data_key, texts, mu)


def _size(meta: dict[str, Any], key: str) -> int:
    value = meta[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limits.MAX_INDEX:
        raise ModelFileError(f"the manifest's {key!r} must be a whole number below 2^31, but is {value!r}.")
    return value


def _read_labels(
    tensors: dict[str, NDArray[Any]], expected: object
) -> tuple[tuple[str, ...], NDArray[np.int64], tuple[str, ...]]:
    """Names, counts and texts of the labels."""
    counts = tensors["counts"]
    names = _read_strings(tensors["names"], tensors["offsets"], expected, "label names")
    if counts.dtype != np.int64 or counts.shape != (len(names),) or (counts < 0).any():
        raise ModelFileError("the label counts do not fit the model.")
    if len(set(names)) != len(names):
        raise ModelFileError("two labels have the same name.")
    texts: tuple[str, ...] = ()
    if not tensors.keys().isdisjoint({"texts", "text_offsets"}):
        texts = _read_strings(tensors["texts"], tensors["text_offsets"], expected, "label texts")
    return names, counts, texts


def _read_strings(arena: NDArray[Any], offsets: NDArray[Any], expected: object, what: str) -> tuple[str, ...]:
    if arena.dtype != np.uint8 or offsets.dtype != np.int64 or len(offsets) - 1 != expected:
        raise ModelFileError(f"the {what} do not fit the model.")
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(arena) or (np.diff(offsets) < 0).any():
        raise ModelFileError(f"the offsets of the {what} are out of order.")
    try:
        return tuple(Texts(arena, offsets))
    except UnicodeDecodeError as error:
        raise ModelFileError(f"one of the {what} is not valid UTF-8.") from error


def _stacked(parts: list[Csr], cols: int) -> Csr:
    """One below the other."""
    indptr = np.concatenate([[0], np.cumsum(np.concatenate([part.counts() for part in parts]))])
    indices, data = np.concatenate([part.indices for part in parts]), np.concatenate([part.data for part in parts])
    return Csr(indptr, indices, data, cols)


def as_dataset(
    data: str | Path | Dataset | Sequence[str] | None,
    labels: Labels | None = None,
    *,
    X: object = None,
    relevance: Iterable[Sequence[float]] | None = None,
    options: ReadOptions = ReadOptions(),
) -> Dataset:
    """Whatever a caller hands over — a path, a Dataset, texts and labels, a matrix and labels — as a Dataset."""
    if X is not None:
        if data is not None:
            raise ConfigError("give either texts or X=features, not both.")
        return from_matrix(as_features(X), labels, relevance=relevance)
    if isinstance(data, Dataset):
        return data
    if isinstance(data, str | Path):
        if labels is not None:
            raise ConfigError("a path already carries its labels; give labels only with a list of texts.")
        return read(data, options)
    if data is None:
        raise ConfigError("give texts, a path, or X=features.")
    return from_lists(data, cast(Any, labels), relevance=relevance)
