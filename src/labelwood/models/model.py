"""A trained model: features, tree, levels and label names. Raw text in, label names and scores out."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import limits
from ..arrays.names import NO_NAMES, Names
from ..arrays.sparse import Features
from ..arrays.texts import TextField, Texts
from ..base.config import check_levels, from_dict, to_dict
from ..base.digests import digest_plain, digest_tensors
from ..base.log import LOG
from ..base.progress import Progress, Tick
from ..data.parsing.fields import Reading
from ..errors import ModelFileError, counted
from ..neural.attention_level import AttentionLevel
from ..neural.embedder import Embedder
from ..parts.linear_level import LinearLevel, check_features
from ..parts.propensity import centroid_tensors, centroids_from, nearness, rerank
from ..parts.search import Ranked, SearchConfig
from ..parts.tfidf import TOKENISER_VERSION, Tfidf, TfidfConfig
from ..parts.tree import Tree
from ..recipes.encoder_settings import EncoderConfig
from ..recipes.extras import check_serving
from ..recipes.recipe import Recipe
from ..recipes.renames import current_table
from ..recipes.resolve import from_plain
from ..storage import model_folder
from ..storage.migrations import SECTIONS
from .descent import Beam, Descent, Level
from .predictor import Predictor, Tensors, read_only

Memo = dict[tuple[int, str], Any]
META = {"recipe", "data", "rows", "labels", "sparse_cols", "dense_cols", "tokeniser", "encoder", "search", "reads"}

APPLIED = {"reading"}  # optional sections that this release applies


@dataclasses.dataclass(frozen=True, eq=False)
class Model(Predictor):
    """One label tree with its classifiers. Made by `labelwood.train` or `labelwood.load`."""

    recipe: Recipe
    labels: Names  # the position is the id that `predict_arrays` returns
    counts: NDArray[np.int64]  # (L,) training documents of each label
    rows: int  # training documents
    tfidf: Tfidf | None  # None: no words are read
    sparse_cols: int
    dense_cols: int
    tree: Tree
    levels: Sequence[Level]  # those that are searched in torch come first
    data_key: str  # digest of the training data
    label_texts: Names = NO_NAMES  # words for each label, "" where there are none; empty if none were given
    centroids: Features | None = None  # (L, d), where the recipe ranks by them
    embedder: Embedder | None = None  # the encoder, where the recipe has one
    text_fields: tuple[TextField, ...] | None = None  # of a record; none: the usual ones; None: as schema 1 read it
    search: SearchConfig | None = None  # where it is not the recipe's: a network's levels are searched in their own way

    def __post_init__(self) -> None:
        object.__setattr__(self, "counts", read_only(self.counts))

    def __repr__(self) -> str:
        sizes = " → ".join(f"{size:,}" for size in self.tree.sizes)
        counts = f"{counted(len(self.labels), 'label')}, {counted(self.rows, 'document')}"
        return f"<labelwood.Model {self.recipe.method}: {counts}, tree {sizes}>"

    @property
    def members(self) -> tuple[Model, ...]:
        return (self,)

    @property
    def searching(self) -> SearchConfig:
        """Settings by which its tree is searched."""
        return self.recipe.search if self.search is None else self.search

    @property
    def gives_margins(self) -> bool:
        """Are the scores margins (the last level's combiner is noop), not probabilities?"""
        return self.searching.at_level(self.tree.depth - 1, self.tree.depth) == "noop"

    @property
    def reads_words(self) -> bool:
        """Is it given texts, not the user's own features?"""
        return self.tfidf is not None or self.embedder is not None

    @property
    def record_fields(self) -> Reading:
        """Fields of a record that it reads as text."""
        return Reading(alone=True) if self.text_fields is None else Reading(self.text_fields)

    def texts_read(self, texts: Texts) -> Texts:
        """The texts by the fields and weights that the model has learned from."""
        if self.text_fields is not None:
            return texts.read_as(self.text_fields)
        alone = TextField("text")
        return texts.read_as([alone] if any(field.name == alone.name for field in texts.fields) else [])

    @cached_property
    def reading(self) -> str:
        """Digest of how features are made: models with the same one see the same features."""
        return digest_plain([self._reading, self.text_fields and [list(field) for field in self.text_fields]])

    @property
    def _reading(self) -> str:
        if self.embedder is not None:
            words = None if self.tfidf is None else digest_tensors(self.tfidf.tensors())
            return digest_plain(["encoder", self.embedder.digest, to_dict(self.recipe.tfidf), words])
        if self.tfidf is None:
            return digest_plain(["own", self.sparse_cols, self.dense_cols, to_dict(self.recipe.features)])
        return digest_plain(["tfidf", to_dict(self.tfidf.config), digest_tensors(self.tfidf.tensors())])

    @cached_property
    def _inverse_propensity(self) -> NDArray[np.float64]:
        return self.recipe.tail.inverse(self.counts, self.rows)

    def features(self, texts: Texts | None, x: Features | None, threads: int, progress: Progress) -> Features:
        """X (n, d) as the classifiers see it, from texts or from the user's own features."""
        if not self.reads_words:
            assert x is not None
            return self.recipe.features.scaled(check_features(x, self.sparse_cols, self.dense_cols))
        assert texts is not None
        texts, words = self.texts_read(texts), None
        if self.embedder is not None:
            check_serving(self.embedder.config)
        if self.tfidf is not None:
            with progress.stage("reading words", len(texts), "docs") as tick:
                words = self.tfidf.transform(texts, threads=threads, progress=tick)
        if self.embedder is None:
            return Features(words)
        with progress.stage("embedding", len(texts), "docs") as tick:
            tokens = self.embedder.tokens(texts)
            found = self.embedder.embed(tokens, threads, tick)
        return self.embedder.features(words, tokens, found)

    def _find(self, x: Sequence[Features], k: int, threads: int, progress: Tick) -> Ranked:
        return self.find_below(x[0], k, None, threads, progress)

    @cached_property
    def descent(self) -> Descent:
        """The way down its tree."""
        return Descent(self.tree, self.levels, self.searching, (self.sparse_cols, self.dense_cols), self.embedder)

    def reach(self, x: Features, levels: int, threads: int) -> Beam:
        """Search the upper `levels` only: where the beam stands then."""
        return self.descent.reach(x, levels, threads)

    def find_below(self, x: Features, k: int, start: Beam | None, threads: int, progress: Tick) -> Ranked:
        """The k best labels, from the root or from where a beam stands."""
        tail = self.recipe.tail
        keep = max(k, min(tail.candidates, len(self.labels))) if tail.reranks else k
        found = self.descent.labels(x, keep, start, threads, progress)
        if not tail.reranks:
            return found
        near = None if self.centroids is None else nearness(x, self.centroids, found[0], tail.sharpness, threads)
        ids, scores = rerank(found, self._inverse_propensity, tail, near, margins=self.gives_margins)
        return ids[:, :k], scores[:, :k]

    def save(self, folder: str | Path, *, overwrite: bool = True) -> None:
        """Write the model folder; an existing model there is replaced in one step or left as it was."""
        model_folder.save(Path(folder), *self._contents(), overwrite=overwrite)
        LOG.info("saved %r to %s", self, folder)

    def _contents(self) -> tuple[dict[str, Any], dict[str, Tensors]]:
        """Meta and parts of its folder."""
        return self.meta(), self.parts()

    def meta(self) -> dict[str, Any]:
        """Meta of the model, as the manifest has it."""
        fields = self.text_fields
        sections = {} if fields is None else {"reading": {"fields": [list(field) for field in fields]}}
        return sections | {
            "recipe": to_dict(self.recipe),
            "data": self.data_key,
            "rows": self.rows,
            "labels": len(self.labels),
            "sparse_cols": self.sparse_cols,
            "dense_cols": self.dense_cols,
            "tokeniser": None if self.tfidf is None else TOKENISER_VERSION,
            "encoder": None if self.embedder is None else self.embedder.description.plain(),
            "search": None if self.search is None else to_dict(self.search),
            "reads": [list(level.reads) for level in self.levels],
        }

    def parts(self) -> dict[str, Tensors]:
        """The model as arrays, by part."""
        parts: dict[str, Tensors] = {"labels": self._label_tensors(), "tree": self.tree.tensors()}
        if self.tfidf is not None:
            parts["tfidf"] = self.tfidf.tensors()
        if self.embedder is not None:
            parts |= self.embedder.parts()
        if self.centroids is not None:
            parts["centroids"] = centroid_tensors(self.centroids)
        return parts | {f"level-{t + 1}": level.tensors() for t, level in enumerate(self.levels)}

    def _label_tensors(self) -> dict[str, NDArray[Any]]:
        names, texts = self.labels, self.label_texts
        tensors: dict[str, NDArray[Any]] = {"names": names.arena, "offsets": names.offsets, "counts": self.counts}
        return tensors | ({"texts": texts.arena, "text_offsets": texts.offsets} if texts else {})


def from_stored(meta: dict[str, Any], parts: Mapping[str, Tensors], memo: Memo) -> Model:
    """A model from its manifest's meta and its parts, all checked; ModelFileError or KeyError say what is wrong."""
    later = sorted(set(meta) & (set(SECTIONS) - APPLIED))
    if later:
        raise ModelFileError(
            f"the model has a section {later[0]!r}, which this release cannot apply; install a newer one."
        )
    if set(meta) - APPLIED != META:
        raise ModelFileError(f"the manifest's meta must have exactly {', '.join(sorted(META))}.")
    recipe = from_plain(meta["recipe"])
    labels, counts, texts = _once(memo, parts["labels"], meta["labels"], _read_labels)
    sparse_cols, dense_cols = (_size(meta, key) for key in ("sparse_cols", "dense_cols"))
    rows = _size(meta, "rows")
    if rows < max(1, int(counts.max(initial=0))):
        raise ModelFileError(f"the manifest's 'rows' is {rows}, fewer than the documents of a label.")
    tree = Tree.from_tensors(dict(parts["tree"]), len(labels))
    if meta["tokeniser"] != (TOKENISER_VERSION if "tfidf" in parts else None):
        raise ModelFileError(
            f"its text was cut by tokeniser version {meta['tokeniser']!r}; this release has {TOKENISER_VERSION}."
        )
    tfidf = _once(memo, parts["tfidf"], recipe.tfidf, _read_tfidf) if "tfidf" in parts else None
    if (meta["encoder"] is not None) != recipe.encoder.on:
        raise ModelFileError("the model's encoder is missing, or not what its recipe asks for.")
    embedder = None
    if meta["encoder"] is not None:
        what = (meta["encoder"], recipe.encoder, id(parts["tokeniser"]))
        embedder = _once(memo, parts["encoder"], what, partial(_read_embedder, parts))
    if tfidf is not None and (tfidf.size, 0 if embedder is None else dense_cols) != (sparse_cols, dense_cols):
        raise ModelFileError(f"the vocabulary has {tfidf.size} terms but the model {sparse_cols} features.")
    if embedder is not None and embedder.columns != dense_cols:
        raise ModelFileError(f"the encoder gives {embedder.columns} columns but the model has {dense_cols}.")
    leaves = np.zeros(len(counts), np.bool_)
    leaves[tree.leaves] = True
    if not np.array_equal(leaves, counts > 0):
        raise ModelFileError("the tree's leaves are not the labels that have training documents.")
    reads = _reads(meta["reads"], tree.depth, sparse_cols, dense_cols)
    levels = [
        _once(memo, parts[f"level-{t + 1}"], (id(parts["tree"]), t, reads[t]), partial(_read_level, tree))
        for t in range(tree.depth)
    ]
    _check_attention(levels, embedder)
    own = None if meta["search"] is None else _own_search(meta["search"])
    check_levels(recipe.search if own is None else own, tree.depth, "search")
    if ("centroids" in parts) != (recipe.tail.classifier_share < 1):
        raise ModelFileError("the model's centroids are missing, or not what its recipe asks for.")
    mu = None
    if "centroids" in parts:
        mu = _once(memo, parts["centroids"], (len(labels), sparse_cols, dense_cols), centroids_from)
    data_key = meta["data"]
    if not isinstance(data_key, str):
        raise ModelFileError(f"the manifest's 'data' must be a digest, but is {type(data_key).__name__}.")
    return Model(
        recipe, labels, counts, rows, tfidf, sparse_cols, dense_cols, tree, levels, data_key, texts, mu,
        embedder, _text_fields(meta), own,
    )  # fmt: skip


def _text_fields(meta: dict[str, Any]) -> tuple[TextField, ...] | None:
    """The fields that the model reads, and their weights; None where it does not say."""
    if "reading" not in meta:
        return None
    table = meta["reading"]
    rows = table.get("fields") if isinstance(table, dict) and len(table) == 1 else None
    if not isinstance(rows, list) or len(rows) > limits.MAX_TEXT_FIELDS:
        raise ModelFileError("the manifest's 'reading' must hold a list of fields and nothing else.")
    for row in rows:
        sound = isinstance(row, list) and len(row) == 2 and isinstance(row[0], str) and type(row[1]) is int
        if not sound or not 1 <= row[1] <= limits.MAX_FIELD_WEIGHT:
            raise ModelFileError(f"a field of the manifest's 'reading' is a name and a weight, but one is {row!r:.80}.")
    fields = tuple(TextField(name, weight) for name, weight in rows)
    if len({field.name for field in fields}) < len(fields):
        raise ModelFileError("the manifest's 'reading' names a field twice.")
    return fields


def _own_search(table: object) -> SearchConfig:
    """A member's own search, in today's names."""
    return from_dict(SearchConfig, current_table({"search": table})["search"], "search")


def _reads(found: object, depth: int, sparse_cols: int, dense_cols: int) -> list[tuple[int, int, int]]:
    """Columns that each level reads of X: (sparse columns: all or none, first dense column, dense columns)."""
    if not isinstance(found, list) or len(found) != depth:
        raise ModelFileError(f"the manifest's 'reads' must say for each of {depth} levels what it reads.")
    for read in found:
        if not isinstance(read, list) or len(read) != 3 or any(type(n) is not int or n < 0 for n in read):
            raise ModelFileError("the manifest's 'reads' must hold three numbers for each level.")
        if read[0] not in {0, sparse_cols} or read[1] + read[2] > dense_cols:
            raise ModelFileError(f"a level reads {read}, but the model has {sparse_cols} and {dense_cols} columns.")
    return [(words, begin, width) for words, begin, width in found]


def _check_attention(levels: Sequence[Level], embedder: Embedder | None) -> None:
    """Levels whose labels attend come first, and each has a network."""
    engines = [level.engine for level in levels]
    networks, deep = 0 if embedder is None else embedder.levels, engines.count("torch")
    if "torch" in engines[deep:] or deep > networks:
        raise ModelFileError("the levels of label attention do not fit the model's encoder.")
    for t, level in enumerate(levels[:deep]):
        assert embedder is not None and isinstance(level, AttentionLevel)  # noqa: PT018
        width = embedder.readings[t].width(embedder.description.width)
        if level.rows.shape[1] != width:
            raise ModelFileError(f"level {t + 1} has rows of {level.rows.shape[1]} for states of {width}.")


def _read_level(tree: Tree, tensors: Tensors, what: tuple[int, int, tuple[int, int, int]]) -> Level:
    """A level by the arrays that it has."""
    _, t, (words, begin, width) = what
    if "rows" not in tensors:
        return LinearLevel.from_tensors(tree.child_ptrs[t], tensors, words, width, begin)
    if words or begin or width:
        raise ModelFileError("a level of label attention reads tokens, but the manifest gives it columns.")
    return AttentionLevel.from_tensors(tree.child_ptrs[t], tensors)


def _once(memo: Memo, tensors: Tensors, other: Any, read: Callable[[Tensors, Any], Any]) -> Any:
    """`read(tensors, other)`; members of an ensemble that share a part share what was read from it."""
    key = (id(tensors), repr(other))
    if key not in memo:
        memo[key] = read(tensors, other)
    return memo[key]


def _read_tfidf(tensors: Tensors, config: TfidfConfig) -> Tfidf:
    return Tfidf.from_tensors(config, tensors)


def _read_embedder(parts: Mapping[str, Tensors], _: Tensors, what: tuple[object, EncoderConfig, int]) -> Embedder:
    return Embedder.from_parts(what[1], what[0], parts)


def _size(meta: dict[str, Any], key: str) -> int:
    value = meta[key]
    if isinstance(value, bool) or not isinstance(value, int) or not 0 <= value <= limits.MAX_INDEX:
        raise ModelFileError(f"the manifest's {key!r} must be a whole number below 2^31, but is {value!r}.")
    return value


def _read_labels(tensors: Tensors, expected: object) -> tuple[Names, NDArray[np.int64], Names]:
    """Names, counts and texts of the labels."""
    counts = tensors["counts"]
    names = Names.read(tensors["names"], tensors["offsets"], expected, "label names")
    if counts.dtype != np.int64 or counts.shape != (len(names),) or (counts < 0).any():
        raise ModelFileError("the label counts do not fit the model.")
    if names.repeated() >= 0:
        raise ModelFileError("two labels have the same name.")
    if tensors.keys().isdisjoint({"texts", "text_offsets"}):
        return names, counts, Names.of(())
    return names, counts, Names.read(tensors["texts"], tensors["text_offsets"], expected, "label texts")
