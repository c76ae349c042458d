"""Data sets, which every reader returns: texts as one UTF-8 arena with offsets, labels as a sparse matrix with names.

Python strings exist only at the edges. Label ids are the positions of the names in sorted order (`ordered`), so they
do not depend on the order of lines in a file.
"""

from __future__ import annotations

import dataclasses
from array import array
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from .. import limits
from ..arrays.sparse import Csr, Features, checked
from ..arrays.taxonomy import Taxonomy
from ..arrays.texts import Texts
from ..errors import DataError, counted

EXAMPLES = 5  # messages of bad lines that a report keeps


class FieldRead(NamedTuple):
    """A field that was read as text: its weight, and how many records have it."""

    name: str
    weight: int
    records: int


@dataclasses.dataclass(frozen=True)
class ReadReport:
    """Report of what a reader met on the way: counts, and the first few bad places as text.

    Every line of a file is accounted for: lines = rows + skipped + header + blank + inner.
    """

    rows: int = 0
    skipped: int = 0  # bad lines left out (on_bad="skip")
    replaced: int = 0  # lines or cells whose bad bytes were replaced (on_bad="replace")
    duplicate_labels: int = 0  # label repeats within a row, merged
    no_labels: int = 0  # rows without any label
    examples: tuple[str, ...] = ()  # messages of the first bad lines
    fields: tuple[FieldRead, ...] = ()  # read as text, where records have named fields
    left: tuple[str, ...] = ()  # names of fields that were not read
    lines: int = 0  # lines of the file, or records of one that has no lines
    header: int = 0  # lines before the first record
    blank: int = 0  # lines without anything
    inner: int = 0  # second and later lines of records with line feeds in them

    def __add__(self, more: ReadReport) -> ReadReport:
        """The report of both, read one after the other."""
        return ReadReport(
            rows=self.rows + more.rows,
            skipped=self.skipped + more.skipped,
            replaced=self.replaced + more.replaced,
            duplicate_labels=self.duplicate_labels + more.duplicate_labels,
            no_labels=self.no_labels + more.no_labels,
            examples=(*self.examples, *more.examples)[:EXAMPLES],
            fields=_added(self.fields, more.fields),
            left=tuple(dict.fromkeys((*self.left, *more.left))),
            lines=self.lines + more.lines,
            header=self.header + more.header,
            blank=self.blank + more.blank,
            inner=self.inner + more.inner,
        )


def _added(fields: tuple[FieldRead, ...], more: tuple[FieldRead, ...]) -> tuple[FieldRead, ...]:
    """The fields of two reports, with the records of both."""
    records = dict.fromkeys([(name, weight) for name, weight, _ in (*fields, *more)], 0)
    for name, weight, count in (*fields, *more):
        records[name, weight] += count
    return tuple(FieldRead(name, weight, count) for (name, weight), count in records.items())


@dataclasses.dataclass(frozen=True, eq=False)
class Dataset:
    """n documents: texts, or features, or both; labels (n, L) whose data are relevances; names of the L labels."""

    texts: Texts | None
    features: Features | None
    labels: Csr | None
    names: tuple[str, ...]  # label id → name, sorted
    ids: tuple[str, ...] | None = None
    report: ReadReport = ReadReport()
    label_texts: tuple[str, ...] = ()  # label id → words a person would read, "" where there are none; or nothing
    taxonomy: Taxonomy | None = None  # the user's own tree over the labels

    def __post_init__(self) -> None:
        kinds = {"texts": Texts, "features": Features, "labels": Csr}
        for name, kind in kinds.items():
            value = getattr(self, name)
            if value is not None and not isinstance(value, kind):
                raise DataError(
                    f"the {name} of a Dataset are a {kind.__name__}, but are of type {type(value).__name__}; make a "
                    "Dataset of lists, tables and matrices with from_documents or from_matrix of labelwood.data."
                )
        if not isinstance(self.names, tuple):
            raise DataError(f"the names of a Dataset are a tuple, but are of type {type(self.names).__name__}.")

    def __repr__(self) -> str:
        kinds = {"text": self.texts, "features": self.features, "a taxonomy": self.taxonomy}
        held = [name for name, value in kinds.items() if value is not None]
        labels = "" if self.labels is None else f", {counted(len(self.names), 'label')}"
        return f"<labelwood.Dataset: {counted(len(self), 'document')}{labels}; {', '.join(held) or 'labels alone'}>"

    def __len__(self) -> int:
        if self.texts is not None:
            return len(self.texts)
        if self.features is not None:
            return self.features.rows
        return self.labels.rows if self.labels is not None else 0

    def take(self, rows: NDArray[np.integer[Any]]) -> Dataset:
        """The named documents, in that order; label names stay as they are."""
        return dataclasses.replace(
            self,
            texts=None if self.texts is None else self.texts.take(rows),
            features=None if self.features is None else self.features.take(rows),
            labels=None if self.labels is None else self.labels.take(rows),
            ids=None if self.ids is None else tuple(self.ids[r] for r in rows),
        )


def ordered(names: Iterable[str]) -> tuple[str, ...]:
    """Label names in the order of their ids: by number if all are plain whole numbers, else by code points."""
    names = list(names)
    by_number = all(name.isascii() and name.isdigit() and (name == "0" or name[0] != "0") for name in names)
    return tuple(sorted(names, key=(lambda name: (len(name), name)) if by_number else None))


class _Numbers(dict[str, int]):
    """Names with the numbers that they are given when they are first asked for."""

    def __missing__(self, name: str) -> int:
        number = self[name] = len(self)
        return number


class LabelTable:
    """Collects label rows by name while reading, then numbers the names in sorted order."""

    def __init__(self, names: Iterable[str] = ()) -> None:
        self._ids = _Numbers()
        self._flat, self._values, self._counts = array("i"), array("d"), array("q")
        self.duplicates = 0
        self._places = np.zeros(0, np.int32)  # of names that others have numbered: see `add_many`
        for name in names:
            self._ids[name]

    def add(self, labels: Sequence[str], relevance: Sequence[float] | None = None) -> None:
        """One row. Repeats within it are merged (relevances summed); names are checked by the caller."""
        check_row(len(labels))
        numbers = list(map(self._ids.__getitem__, labels))
        row = dict.fromkeys(numbers, 0.0)
        if relevance is not None:
            for number, value in zip(numbers, relevance, strict=True):
                row[number] += value
            self._fill()
            self._values.extend(row.values())
        self.duplicates += len(numbers) - len(row)
        self._flat.extend(row)
        self._counts.append(len(row))

    def add_many(self, labels: NDArray[np.int32], counts: NDArray[np.int32], names: Sequence[str]) -> None:
        """Rows of `counts` labels, all different within a row. `names` are those of their numbers, and only grow."""
        if len(names) > len(self._places):
            more = np.full(len(names) + len(names) // 4 - len(self._places), -1, np.int32)
            self._places = np.concatenate([self._places, more])
        places = self._places[labels]
        if (places < 0).any():
            for number in np.unique(labels[places < 0]).tolist():
                self._places[number] = self._ids[names[number]]
            places = self._places[labels]
        self._flat.frombytes(places.tobytes())
        self._counts.frombytes(counts.astype(np.int64).tobytes())

    def _fill(self) -> None:
        """Give the labels so far the relevance 1 that were added without any."""
        self._values.frombytes(np.ones(len(self._flat) - len(self._values)).tobytes())

    def finish(self) -> tuple[Csr, tuple[str, ...]]:
        """The (n, L) matrix and the sorted names."""
        self._fill()
        names = ordered(self._ids)
        rank = np.empty(len(names), np.int32)
        rank[[self._ids[name] for name in names]] = np.arange(len(names), dtype=np.int32)
        indptr = np.zeros(len(self._counts) + 1, np.int64)
        np.cumsum(self._counts, out=indptr[1:])
        columns = rank[np.array(self._flat)] if self._flat else np.zeros(0, np.int32)
        with np.errstate(over="ignore"):  # a sum beyond float32 is refused below, with its row
            values = np.array(self._values).astype(np.float32)
        by_label = Csr(indptr, columns, values, len(names)).transpose()
        return checked(by_label.transpose(), "labels"), names  # twice: sorts each row


def check_label(name: object) -> str:
    """A label as text: str or int (kept as its digits), not empty, not too long."""
    if isinstance(name, str) and name.isascii() and len(name) <= limits.MAX_LABEL_BYTES and name.strip():
        return name  # nearly all of them; the rest is for the others
    if isinstance(name, bool) or not isinstance(name, str | int):
        raise DataError(f"a label must be text or a whole number, but is {type(name).__name__}.")
    try:
        text = str(name)
    except ValueError as error:  # Python refuses to print numbers of thousands of digits
        raise DataError("a label is a number with too many digits.") from error
    if not text.strip():
        raise DataError("a label is empty; give it a name or leave it out.")
    try:
        size = len(text.encode("utf-8"))
    except UnicodeEncodeError as error:
        raise DataError("a label is not valid Unicode (lone surrogate).") from error
    if size > limits.MAX_LABEL_BYTES:
        raise DataError(f"a label has {size} bytes; at most {limits.MAX_LABEL_BYTES} are allowed ({text[:40]!r}...).")
    return text


def check_row(labels: int) -> None:
    """Refuse more labels of one document than any data set has: lists of millions take many times their bytes."""
    if labels > limits.MAX_ROW_LABELS:
        seen = f"a document has more than {limits.MAX_ROW_LABELS:,} labels"
        raise DataError(f"{seen}, which are all that are allowed; is the file damaged, or are these features?")


def align_labels(dataset: Dataset, ids: dict[str, int]) -> Csr:
    """The dataset's labels Y (n, len(ids)) numbered by `ids`, which grows by the labels that are not in it yet."""
    if (y := dataset.labels) is None:
        raise DataError("the data has no labels; evaluation needs them.")
    rank = np.array([ids.setdefault(name, len(ids)) for name in dataset.names], np.int32)
    columns = rank[y.indices]
    order = np.lexsort((columns, y.row_of()))
    return checked(Csr(y.indptr, columns[order], y.data[order], len(ids)), "labels")
