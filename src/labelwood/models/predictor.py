"""The verbs that a model and an ensemble share: predict, evaluate, and what they need of the user's input.

Who predicts has `members`, one or several models; the features of a text are computed once for all members that read
it the same way.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any, Self

import numpy as np
from numpy.typing import NDArray

from .. import limits
from ..arrays.names import Names
from ..arrays.sparse import Features, stacked
from ..arrays.texts import TextField
from ..base.config import checked_config
from ..base.progress import QUIET, Progress, Tick
from ..base.threads import workers
from ..data import (
    ColumnNames,
    Dataset,
    Labels,
    ReadOptions,
    Relevance,
    Texts,
    align_labels,
    from_documents,
    from_matrix,
    given_features,
    read,
)
from ..data.parsing.fields import Reading
from ..errors import ConfigError, DataError
from ..metrics.ranking import Evaluation, MetricsConfig, evaluate
from ..parts.search import Ranked
from ..recipes.recipe import Recipe
from ..storage import model_folder

if TYPE_CHECKING:
    from .model import Model

Documents = Sequence[str] | Sequence[Mapping[str, Any]]  # texts, or records with fields
Tensors = Mapping[str, NDArray[Any]]
Predictions = list[list[tuple[str, float]]]


class Predictor:
    """A `Model` or an `Ensemble`: never changed once made, safe to share between threads."""

    recipe: Recipe  # of the first member
    labels: Names  # the position is the id that `predict_arrays` returns
    counts: NDArray[np.int64]  # (L,) training documents of each label
    rows: int  # training documents
    data_key: str  # digest of the training data
    label_texts: Names  # words for each label, "" where there are none; empty if none were given

    @property
    def members(self) -> tuple[Model, ...]:
        """The models that predict together."""
        raise NotImplementedError

    def save(self, folder: str | Path, *, overwrite: bool = True) -> None:
        """Write the model folder; an existing model there is replaced in one step or left as it was."""
        raise NotImplementedError

    def _contents(self) -> tuple[dict[str, Any], dict[str, Tensors]]:
        """Meta and parts of its folder."""
        raise NotImplementedError

    def __reduce__(self) -> tuple[Any, ...]:
        """A pickle holds the files of the model's folder, and opening it makes all the checks of `load`."""
        from .ensemble import unpacked  # it is made of models, and stands above this file

        return unpacked, (model_folder.pack(*self._contents()),)

    def __copy__(self) -> Self:
        return self  # it never changes

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        return self

    def verify(self) -> None:
        """Check now what a large model on disk leaves to first use; ModelFileError says what is damaged."""
        for member in self.members:
            for level in member.levels:
                level.verify()
        for embedder in {id(member.embedder): member.embedder for member in self.members}.values():
            if embedder is not None:
                embedder.verify()

    def _find(self, x: Sequence[Features], k: int, threads: int, progress: Tick) -> Ranked:
        """The k best labels of each row by the features of each member."""
        raise NotImplementedError

    @cached_property
    def record_fields(self) -> Reading:
        """Fields of a record that are read as text: those of all members."""
        asked = [member.record_fields for member in self.members if member.reads_words]
        if all(one == asked[0] for one in asked):
            return asked[0] if asked else Reading()
        alone = (TextField("text"),)
        names = [field.name for one in asked for field in (alone if one.alone else one.fields)]
        return Reading(tuple(TextField(name) for name in dict.fromkeys(names)))

    @property
    def method(self) -> str:
        """The name of the recipe, or of the different ones."""
        return " + ".join(dict.fromkeys(member.recipe.method for member in self.members))

    @cached_property
    def reads_text(self) -> bool:
        """Does a member need texts?"""
        return any(member.reads_words for member in self.members)

    @cached_property
    def reads_features(self) -> bool:
        """Does a member need the user's own features?"""
        return any(not member.reads_words for member in self.members)

    def predict(self, texts: Documents | None = None, *, X: object = None, k: int = 5, threads: int = 0) -> Predictions:
        """The k best labels of each text (or row of X) with their scores, best first.

        A document is a text or a record such as {"title": …, "text": …}; a table of records will do. A plain text given
        to a model of several fields is that of the last one.

        A list is shorter than k when beam search ends with fewer candidates. Labels that had no training document come
        after all others.
        """
        return self.named(*self.predict_arrays(texts, X=X, k=k, threads=threads))

    def predict_arrays(
        self, texts: Documents | Texts | None = None, *, X: object = None, k: int = 5, threads: int = 0,
        progress: Progress | None = None,
    ) -> Ranked:  # fmt: skip
        """(ids (n, k), scores (n, k)); -1 stands where there is no further label."""
        count = workers(threads)
        progress = progress or QUIET
        if isinstance(k, bool) or not isinstance(k, int | np.integer) or not 1 <= k <= limits.MAX_K:
            raise ConfigError(f"k must be a whole number from 1 to {limits.MAX_K}, but is {k!r}.")
        x = self._features(texts, X, count, progress)
        with progress.stage("predicting", x[0].rows, "docs") as tick:
            ids, scores = self._find(x, min(int(k), len(self.labels)), count, tick)
        return self._append_unseen(ids, scores)

    def predict_data(self, data: Dataset, *, k: int = 5, threads: int = 0, progress: Progress | None = None) -> Ranked:
        """`predict_arrays` of the texts or the features of a data set, whichever the model was trained on."""
        if self.reads_text and self.reads_features and (data.texts is None or data.features is None):
            raise DataError(
                "some members of this ensemble were trained on text, others on features, and the data holds only one "
                "of the two; in Python, predict(texts, X=features) takes both."
            )
        if self.reads_text and data.texts is None:
            raise DataError("the data holds features, but the model was trained on text; give it texts.")
        if self.reads_features and data.features is None:
            raise DataError("the data holds text, but the model was trained on features; give it the same features.")
        texts, x = data.texts if self.reads_text else None, data.features if self.reads_features else None
        return self.predict_arrays(texts, X=x, k=k, threads=threads, progress=progress)

    def text_of(self, label: str | int) -> str:
        """Words for a label, by its name or its id: "" where there are none."""
        if isinstance(label, str):
            place = self._ids_by_name.get(label)
            if place is None:
                raise ConfigError(f"the model has no label {label[:80]!r}.")
        else:
            place = int(label)
            if not 0 <= place < len(self.labels):
                raise ConfigError(f"a label's id is 0 to {len(self.labels) - 1}, but is {place}.")
        return self.label_texts[place] if len(self.label_texts) else ""

    @cached_property
    def _ids_by_name(self) -> dict[str, int]:
        return {name: i for i, name in enumerate(self.labels)}

    def named(self, ids: NDArray[np.int32], scores: NDArray[np.float32]) -> Predictions:
        """The output of `predict_arrays` as (name, score) lists."""
        return self.labels.pairs(ids, scores)

    def evaluate(
        self,
        data: str | Path | Dataset | Documents | None = None,
        labels: Labels | None = None,
        *,
        X: object = None,
        names: ColumnNames | None = None,
        options: ReadOptions = ReadOptions(),
        metrics: MetricsConfig = MetricsConfig(),
        threads: int = 0,
        progress: Progress | None = None,
    ) -> Evaluation:
        """Metrics on held-out data: a file, a Dataset, or texts or X with their labels.

        `names` are those of the columns, where `labels` is a matrix.
        """
        held_out = [as_dataset(data, labels, X=X, names=names, options=options, fields=self.record_fields)]
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
        metrics = checked_config(MetricsConfig, metrics, "metrics")
        ids = {name: i for i, name in enumerate(self.labels)}  # grows by labels never seen in training
        found, truth = [], []
        for block in blocks:
            truth.append(align_labels(block, ids))
            found.append(self.predict_data(block, k=max(metrics.ks), threads=threads, progress=progress)[0])
        return evaluate(np.concatenate(found), stacked(truth, len(ids)), self.counts, self.rows, metrics)

    def _features(self, texts: Documents | Texts | None, x: object, threads: int, progress: Progress) -> list[Features]:
        """The features of each member, computed once for those that read alike."""
        packed, own = self._checked_input(texts, x)
        if len(self.members) == 1:
            return [self.members[0].features(packed, own, threads, progress)]
        made: dict[str, Features] = {}
        for member in self.members:
            if member.reading not in made:
                made[member.reading] = member.features(packed, own, threads, progress)
        return [made[member.reading] for member in self.members]

    def _checked_input(self, texts: Documents | Texts | None, x: object) -> tuple[Texts | None, Features | None]:
        both = self.reads_text and self.reads_features
        if both and (texts is None or x is None):
            raise ConfigError("some members were trained on text, others on features; give both, texts and X=features.")
        if not both and (texts is None) == (x is None):
            raise ConfigError("give either texts or X=features, not both and not neither.")
        if x is not None and not self.reads_features:
            raise ConfigError("this model was trained on text; give it texts, not features.")
        if texts is not None and not self.reads_text:
            raise ConfigError("this model was trained on features; give it X=features, not texts.")
        packed = None if texts is None else self._packed(texts)
        own = None if x is None else given_features(x)
        if packed is not None and own is not None and len(packed) != own.rows:
            raise DataError(f"there are {len(packed)} texts but {own.rows} rows of features; give one row for each.")
        return packed, own

    def _packed(self, texts: object) -> Texts:
        """Texts, or records whose fields the members read."""
        if isinstance(texts, Texts):
            return texts
        if type(texts) is list and texts and isinstance(texts[0], str):  # the usual case, at once
            return Texts.from_strings(texts)
        packed = from_documents(texts, options=ReadOptions(labels=None), fields=self.record_fields).texts
        assert packed is not None
        return packed

    @cached_property
    def _unseen(self) -> NDArray[np.int32]:
        """Labels without a training document, in order of id."""
        return np.flatnonzero(self.counts == 0).astype(np.int32)

    def _append_unseen(self, ids: NDArray[np.int32], scores: NDArray[np.float32]) -> Ranked:
        """Fill places beyond the candidates with labels that have no training document, in order of id."""
        unseen = self._unseen
        if not len(unseen) or not (empty := ids < 0).any():
            return ids, scores
        ids, scores = ids.copy(), scores.copy()
        place = np.cumsum(empty, axis=1) - 1
        fill = empty & (place < len(unseen))
        ids[fill] = unseen[place[fill]]
        if scores.min() < 0:  # margins: stay below the last of the row
            scores[fill] = np.broadcast_to(scores.min(axis=1, keepdims=True), scores.shape)[fill]
        return ids, scores


def read_only(counts: NDArray[np.int64]) -> NDArray[np.int64]:
    """The same numbers, which nobody can change through this array."""
    view = counts.view()
    view.flags.writeable = False
    return view


def as_dataset(
    data: str | Path | Dataset | Documents | None,
    labels: Labels | None = None,
    *,
    X: object = None,
    relevance: Relevance | None = None,
    names: ColumnNames | None = None,
    options: ReadOptions = ReadOptions(),
    fields: Reading | None = None,
) -> Dataset:
    """Whatever a caller hands over — a path, a Dataset, texts and labels, a matrix and labels — as a Dataset.

    `fields` are those of a record that a model reads as text.
    """
    if X is not None:
        if data is not None:
            raise ConfigError("give either texts or X=features, not both.")
        return from_matrix(X, labels, relevance=relevance, names=names)
    if isinstance(data, Dataset | str | Path):
        what = "a Dataset" if isinstance(data, Dataset) else "a path"
        beside = {"labels": labels, "relevance": relevance, "names": names}
        given = ", ".join(name for name, value in beside.items() if value is not None)
        if given:
            raise ConfigError(f"{what} already carries its labels; give {given} only with a list of texts, or with X=.")
        return data if isinstance(data, Dataset) else read(data, options, fields=fields)
    if data is None:
        raise ConfigError("give texts, a path, or X=features.")
    return from_documents(data, labels, options=options, fields=fields, relevance=relevance, names=names)
