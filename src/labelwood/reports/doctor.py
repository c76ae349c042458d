"""Check of data before a training: what was read, what is wrong with it, how it is spread, which methods suit.

Nothing is trained; the same data give the same result, byte for byte.

    checkup = examine(train, test)
    checkup.findings  # the worst first
"""

from __future__ import annotations

import dataclasses
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.texts import Texts
from ..base.progress import QUIET, Progress
from ..base.threads import workers
from ..data import Dataset
from ..data.dataset import FieldRead
from ..data.duplicates import duplicates
from ..data.label_suspicions import SuspiciousLabels
from ..data.languages import shares
from ..data.sketches import Sketches
from ..errors import DataError
from ..parts.tfidf import Tfidf, TfidfConfig
from ..planning.rough import Extent, Rough, suiting
from . import label_checks, text_checks  # noqa: F401 — they register their checks
from .findings import Case, Finding, Subject, find
from .pieces import Pieces, pieces_of

SCHEMA = 1  # of the JSON
LIMITS = (64, 128, 256, 512)  # pieces that encoders read
USUAL = 128  # encoder.max_tokens by default
SAMPLE = 2000  # texts whose distinct words are counted


@contextmanager
def unwarned() -> Iterator[None]:
    """Reading without warnings of labels, which are findings here."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", SuspiciousLabels)
        yield


@dataclasses.dataclass(frozen=True)
class Bar:
    """Documents or labels whose number is from `low` to `high`."""

    low: int
    high: int
    count: int


@dataclasses.dataclass(frozen=True)
class Histogram:
    """Spread of a number: bars of doubling width, and its middle."""

    bars: tuple[Bar, ...]
    mean: float
    median: float
    most: int

    @staticmethod
    def of(values: NDArray[Any]) -> Histogram:
        """0, 1, 2, 3–4, 5–8, 9–16, …"""
        if not len(values):
            return Histogram((), 0.0, 0.0, 0)
        most = int(values.max())
        bounds = [0, 1, 2]
        while bounds[-1] < most:
            bounds.append(2 * bounds[-1])
        counts = np.bincount(np.searchsorted(bounds, values), minlength=len(bounds)).tolist()
        lows = [0, *(bound + 1 for bound in bounds[:-1])]
        bars = [Bar(low, high, count) for low, high, count in zip(lows, bounds, counts, strict=True)]
        while bars and not bars[-1].count:
            bars.pop()
        while bars and not bars[0].count:
            bars.pop(0)
        return Histogram(tuple(bars), round(float(values.mean()), 4), float(np.median(values)), most)


@dataclasses.dataclass(frozen=True)
class Examined:
    """One set: what was read of it, and how it is spread."""

    name: str  # as the user named it
    format: str  # "" for what was in memory
    documents: int
    labels: int
    occurrences: int  # of labels
    fields: tuple[FieldRead, ...]
    left: tuple[str, ...]  # fields that were not read
    skipped: int
    replaced: int
    words_per_document: Histogram | None  # None: features only
    labels_per_document: Histogram | None  # None: no labels
    documents_per_label: Histogram | None
    languages: dict[str, float]  # shares, the largest first


@dataclasses.dataclass(frozen=True)
class Cut:
    """Shares that an encoder of so many pieces does not read."""

    pieces: int
    documents: float  # share of documents that are longer
    words: float  # share of the words that are not read


@dataclasses.dataclass(frozen=True)
class Checkup:
    """All that a check of data has found."""

    train: Examined
    test: Examined | None
    findings: tuple[Finding, ...]  # the worst first
    pieces: Pieces | None  # of a word, and how that is known
    cuts: tuple[Cut, ...]
    methods: tuple[Rough, ...]

    def to_json(self) -> dict[str, Any]:
        """Plain data; docs/reference/checkup.md has the schema."""
        plain = dataclasses.asdict(self)
        for examined in (plain["train"], plain["test"] or {}):
            if examined:
                examined["fields"] = [
                    {"name": name, "weight": weight, "records": records} for name, weight, records in examined["fields"]
                ]
        return {"schema": SCHEMA, **_listed(plain)}

    def html(self) -> str:
        """One page that needs no other file and no network."""
        from .checkup_page import page_of

        return page_of(self)


@dataclasses.dataclass(frozen=True)
class Source:
    """A set and how it is called."""

    data: Dataset
    name: str
    format: str = ""


def examine(train: Source, test: Source | None = None, *, threads: int = 0, progress: Progress = QUIET) -> Checkup:
    """Check a training set, and a test set beside it."""
    count = workers(threads)
    first = _subject("train", train.data, count, progress)
    second = None if test is None else _subject("test", test.data, count, progress)
    crossing = None
    if second is not None and first.sketches is not None and second.sketches is not None:
        crossing = duplicates(first.sketches + second.sketches, len(first.sketches), progress)
    pieces: Pieces | None = None
    cuts: tuple[Cut, ...] = ()
    if first.sketches is not None and train.data.texts is not None and len(train.data):
        pieces = pieces_of(train.data.texts, first.languages)
        cuts = tuple(_cut(first.sketches, pieces.per_word, limit) for limit in LIMITS)
    lost, longer = next(((cut.words, cut.documents) for cut in cuts if cut.pieces == USUAL), (0.0, 0.0))
    findings = find(Case(first, second, crossing, lost, longer, USUAL))
    methods = _methods(first, pieces, count)
    second_part = None if test is None or second is None else _examined(test, second)
    return Checkup(_examined(train, first), second_part, findings, pieces, cuts, methods)


def _subject(name: str, data: Dataset, threads: int, progress: Progress) -> Subject:
    """A set with its sketches, its repeats and its languages."""
    if data.texts is None:
        return Subject(name, data)
    with progress.stage(f"reading words, {name}", len(data), "docs") as tick:
        sketches = Sketches.of(data.texts, threads=threads, progress=tick)
    return Subject(name, data, sketches, duplicates(sketches, progress=progress), shares(data.texts))


def _examined(source: Source, subject: Subject) -> Examined:
    data, report, y = source.data, source.data.report, source.data.labels
    counts = None if y is None else np.bincount(y.indices, minlength=y.cols)
    return Examined(
        name=source.name,
        format=source.format,
        documents=len(data),
        labels=len(data.names),
        occurrences=0 if y is None else y.nnz,
        fields=report.fields,
        left=report.left,
        skipped=report.skipped,
        replaced=report.replaced,
        words_per_document=None if subject.sketches is None else Histogram.of(subject.sketches.words),
        labels_per_document=None if y is None else Histogram.of(y.counts()),
        documents_per_label=None if counts is None else Histogram.of(counts[counts > 0]),
        languages={code: round(share, 4) for code, share in subject.languages.items()},
    )


def _cut(sketches: Sketches, per_word: float, limit: int) -> Cut:
    """Losses at a limit, of which two places are taken by the marks of beginning and end."""
    words = sketches.words.astype(np.float64)
    room = (limit - 2) / per_word
    lost = np.maximum(words - room, 0.0).sum()
    return Cut(limit, round(float((words > room).mean()), 4), round(float(lost / max(1.0, words.sum())), 4))


def _methods(subject: Subject, pieces: Pieces | None, threads: int) -> tuple[Rough, ...]:
    """Methods that suit the training set, with rough costs."""
    data, y = subject.data, subject.data.labels
    if y is None or not y.nnz:
        return ()
    counts = np.bincount(y.indices, minlength=y.cols)
    distinct, vocabulary = _vocabulary(data, threads)
    read = 0.0
    if pieces is not None and subject.sketches is not None:
        read = float(np.minimum(subject.sketches.words * pieces.per_word + 2, USUAL).mean())
    texts = data.texts
    size = 0 if texts is None else len(texts.arena)
    extent = Extent(len(data), int((counts > 0).sum()), y.nnz, distinct, vocabulary, read, size)
    once = float((counts == 1).sum() / max(1, (counts > 0).sum()))
    told = 1.0 - subject.languages.get("unknown", 0.0)
    english = subject.languages.get("en", 0.0) / told if told >= 0.2 else 1.0
    return suiting(extent, once=once, english=english, texts=texts is not None)


def _vocabulary(data: Dataset, threads: int) -> tuple[float, int]:
    """Distinct words of a document on average, and about how many there are in all."""
    if data.features is not None:
        x = data.features
        entries = 0 if x.sparse is None else x.sparse.nnz
        return entries / max(1, x.rows) + x.dense_cols, x.sparse_cols + x.dense_cols
    assert data.texts is not None
    part = sample(data.texts, SAMPLE)
    if not (part.arena > 32).any():
        return 0.0, 0
    try:
        tfidf, words = Tfidf.fit(part, TfidfConfig(min_df=1), threads=threads)
    except DataError:  # signs alone
        return 0.0, 0
    growth = (len(data) / len(part)) ** 0.5  # Heaps' law
    return words.nnz / len(part), int(tfidf.size * growth)


def sample(texts: Texts, most: int) -> Texts:
    """Up to so many evenly spaced texts."""
    return texts.take(np.unique(np.linspace(0, len(texts) - 1, min(most, len(texts))).astype(np.int64)))


def _listed(value: Any) -> Any:
    """Tuples as lists, all the way down."""
    if isinstance(value, dict):
        return {key: _listed(item) for key, item in value.items()}
    return [_listed(item) for item in value] if isinstance(value, list | tuple) else value
