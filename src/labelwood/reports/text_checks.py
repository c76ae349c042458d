"""Checks of texts: lines that cannot be read, damage, empty ones, repeats within a set and across both."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr
from ..data.language_words import NAMES
from ..data.languages import UNKNOWN
from ..data.sketches import CONTROL, MARKUP, REPLACED, TWICE
from ..errors import counted
from ..parts.inflection import inflection, stemmer_of
from .findings import ERROR, EXAMPLES, NOTE, WARNING, Case, Finding, Subject, check

PAIRS = 3  # examples of two documents each
FEW = 3  # words: a text of fewer says little
SECOND = 0.05  # share from which a second language is worth a word
ENGLISH = 0.8  # share below which the default encoder is the wrong one
LOST = 0.25  # share of words that a note says are not read


class _Damage(NamedTuple):
    """A sign of damage: its bit, where it stands, and what is said of it."""

    sign: int
    name: str
    pattern: re.Pattern[str]
    severity: str
    what: str
    way_out: str


_DAMAGE = (
    _Damage(
        REPLACED, "replaced-characters", re.compile("\ufffd"), WARNING,
        "with U+FFFD, which stands for bytes that could not be read",
        "Make the file again from its source, as UTF-8.",
    ),
    _Damage(
        TWICE, "encoded-twice", re.compile("[ÂÃ][\x80-\xbf]|â€"), WARNING,
        "with characters such as Ã¤ or â€™: UTF-8 that was taken for another encoding",
        "Make the file again, and read its source as UTF-8.",
    ),
    _Damage(
        MARKUP, "markup", re.compile(r"</[A-Za-z]|&(?:#[0-9]|[A-Za-z]{2,7};)"), NOTE,
        "with tags or entities such as </p> or &amp;",
        "Take the text out of the markup; else its names are words, and pieces that an encoder reads in place of text.",
    ),
    _Damage(
        CONTROL, "control-characters", re.compile(r"[\x00-\x08\x0b\x0e-\x1f\x7f]"), WARNING,
        "with control characters, such as NUL",
        "Remove them; they come from cut or binary files.",
    ),
)  # fmt: skip


@check
def bad_lines(case: Case) -> Iterator[Finding]:
    for subject in case.subjects:
        report = subject.data.report
        if report.skipped:
            yield Finding(
                ERROR, "bad-lines", subject.set,
                f"{counted(report.skipped, 'line')} cannot be read and {_were(report.skipped)} left out.",
                report.skipped, tuple(report.examples),
                "Mend them: a training stops at the first one, unless --on-bad skip or replace is given.",
            )  # fmt: skip
        if report.replaced:
            yield Finding(
                WARNING, "replaced-bytes", subject.set,
                f"bytes that are not UTF-8 were replaced in {counted(report.replaced, 'line')}.", report.replaced, (),
                "Make the file again as UTF-8; many files of Windows are cp1252.",
            )  # fmt: skip


@check
def fields_that_are_missing(case: Case) -> Iterator[Finding]:
    for subject in case.subjects:
        report = subject.data.report
        for field, _, records in report.fields:
            if records < report.rows:
                absent = report.rows - records
                yield Finding(
                    NOTE, "missing-field", subject.set, f"{counted(absent, 'record')} without the field {field}.",
                    absent, (), "Its text is empty there. If it has another name in some files, make it one name.",
                )  # fmt: skip


@check
def empty_texts(case: Case) -> Iterator[Finding]:
    for subject in case.subjects:
        if subject.sketches is None:
            continue
        words = subject.sketches.words
        empty, few = np.flatnonzero(words == 0), np.flatnonzero((words > 0) & (words < FEW))
        if len(empty):
            yield Finding(
                WARNING, "empty-texts", subject.set,
                f"{counted(len(empty), 'text')} without a word: empty, or signs alone.", len(empty),
                subject.some(empty), "Leave these documents out, or find their text.",
            )  # fmt: skip
        if len(few):
            yield Finding(
                NOTE, "short-texts", subject.set, f"{counted(len(few), 'text')} of one or two words.", len(few),
                subject.some(few), "Read more fields (--text-field), if there are some.",
            )  # fmt: skip


@check
def damaged_texts(case: Case) -> Iterator[Finding]:
    for subject in case.subjects:
        if subject.sketches is None:
            continue
        for kind in _DAMAGE:
            rows = np.flatnonzero(subject.sketches.signs & kind.sign)
            if len(rows):
                yield Finding(
                    kind.severity, kind.name, subject.set, f"{counted(len(rows), 'text')} {kind.what}.", len(rows),
                    tuple(subject.around(int(row), kind.pattern) for row in rows[:EXAMPLES]), kind.way_out,
                )  # fmt: skip


@check
def repeated_texts(case: Case) -> Iterator[Finding]:
    for subject in case.subjects:
        if subject.repeats is None:
            continue
        same, near = np.flatnonzero(subject.repeats.same >= 0), np.flatnonzero(subject.repeats.near >= 0)
        if len(same):
            yield Finding(
                WARNING, "duplicate-texts", subject.set,
                f"{counted(len(same), 'text')} with the same words as an earlier one (case and punctuation aside).",
                len(same), _pairs(subject, subject, same, subject.repeats.same),
                "Keep one of each, with the labels of all; else they count several times.",
            )  # fmt: skip
        yield from _disagreeing(subject, same)
        if len(near):
            yield Finding(
                NOTE, "near-duplicates", subject.set,
                f"{counted(len(near), 'text')} nearly the same as an earlier one (at least 80 % of the word triples).",
                len(near), _pairs(subject, subject, near, subject.repeats.near),
                "Look whether they are versions of one document; keep all versions on one side of a split.",
            )  # fmt: skip


@check
def texts_of_both_sets(case: Case) -> Iterator[Finding]:
    if case.test is None or case.crossing is None:
        return
    begin, of = len(case.train.data), len(case.test.data)
    same, near = case.crossing.same[begin:], case.crossing.near[begin:]
    for rows, found, name, severity, what in (
        (np.flatnonzero(same >= 0), same, "test-texts-in-train", WARNING, "also in the training set, word by word"),
        (np.flatnonzero(near >= 0), near, "test-texts-nearly-in-train", NOTE, "nearly the same as a training text"),
    ):
        if len(rows):
            yield Finding(
                severity, name, "both", f"{len(rows):,} of {counted(of, 'test text')} {what}.", len(rows),
                _pairs(case.test, case.train, rows, found),
                "Split anew, so that copies and versions of a document stay on one side: figures are too good so.",
            )  # fmt: skip


@check
def inflection_of_words(case: Case) -> Iterator[Finding]:
    texts = case.train.data.texts
    if texts is None or not (found := inflection(texts)).strong:
        return
    stemmer = stemmer_of(texts)
    stems = "" if stemmer is None else f" Stems are faster: compare tfidf.analyser=stems, tfidf.stemmer={stemmer}."
    share = f"{100 * found.share:.0f} % of the words"
    yield Finding(
        NOTE, "inflection", case.train.set,
        f"{share} are unknown forms of known ones, so that a training slices the rarer ones.", found.words, (),
        f"Nothing needs to be done.{stems}",
    )  # fmt: skip


@check
def several_languages(case: Case) -> Iterator[Finding]:
    for subject in case.subjects:
        known = {code: share for code, share in subject.languages.items() if code != UNKNOWN}
        told = sum(known.values())
        if told < 0.2:  # too short or too odd to tell
            continue
        others = [(code, share) for code, share in list(known.items())[1:] if share >= SECOND * told]
        if others:
            named = ", ".join(f"{NAMES[code]} {100 * share:.0f} %" for code, share in others)
            count = round(sum(share for _, share in others) * len(subject.data))
            yield Finding(
                NOTE, "several-languages", subject.set,
                f"besides {NAMES[next(iter(known))]} there are texts in other languages: {named}.", count, (),
                "Linear methods learn all of them together; an encoder must know each.",
            )  # fmt: skip
        if subject is case.train and known.get("en", 0.0) < ENGLISH * told:
            yield Finding(
                NOTE, "not-english", subject.set,
                f"the default encoder reads English, but most texts are in {NAMES[next(iter(known))]}.",
                round((told - known.get("en", 0.0)) * len(subject.data)), (),
                "For a network name an encoder of that language: encoder.model.",
            )  # fmt: skip


@check
def texts_that_are_cut(case: Case) -> Iterator[Finding]:
    if case.lost >= LOST:
        yield Finding(
            NOTE, "cut-texts", "train",
            f"an encoder of {case.usual} pieces, as by default, does not read {100 * case.lost:.0f} % of the words.",
            round(case.longer * len(case.train.data)), (),
            "Linear methods read all. For a network raise encoder.max_tokens, or put first what matters.",
        )  # fmt: skip


@check
def repeated_ids(case: Case) -> Iterator[Finding]:
    for subject in case.subjects:
        ids = subject.data.ids
        if ids is None or len(set(ids)) == len(ids):
            continue
        seen: set[str] = set()
        twice: dict[str, None] = {}
        for name in ids:
            if name in seen:
                twice[name] = None
            seen.add(name)
        yield Finding(
            WARNING, "repeated-ids", subject.set, f"{counted(len(ids) - len(seen), 'id')} stood earlier too.",
            len(ids) - len(seen), tuple(list(twice)[:5]), "Give each document an id of its own.",
        )  # fmt: skip


def _were(count: int) -> str:
    return "was" if count == 1 else "were"


def _pairs(later: Subject, earlier: Subject, rows: NDArray[np.int64], found: NDArray[np.int64]) -> tuple[str, ...]:
    return tuple(f"{later.shown(int(row))} ⟷ {earlier.shown(int(found[row]))}" for row in rows[:PAIRS])


def _disagreeing(subject: Subject, same: NDArray[np.int64]) -> Iterator[Finding]:
    """Repeated texts whose labels are not those of the first of them."""
    y = subject.data.labels
    if y is None or subject.repeats is None or not len(same):
        return
    digests = _label_digests(y)
    rows = same[digests[same] != digests[subject.repeats.same[same]]]
    if len(rows):
        yield Finding(
            WARNING, "same-text-other-labels", subject.set,
            f"{counted(len(rows), 'repeated text')} with other labels than the first of the same words.", len(rows),
            _pairs(subject, subject, rows, subject.repeats.same),
            "One of them is wrong, or both lack labels of the other; no model can learn both.",
        )  # fmt: skip


def _label_digests(y: Csr) -> NDArray[np.uint64]:
    """A number for each set of labels."""
    mixed = (y.indices.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
    mixed = (mixed ^ mixed >> np.uint64(29)) * np.uint64(0xD6E8FEB86659FD93)
    sums = np.r_[np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)]
    digests: NDArray[np.uint64] = sums[y.indptr[1:]] - sums[y.indptr[:-1]]
    return digests
