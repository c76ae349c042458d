"""Checks of labels: names that look wrong, several names of one label, rare ones, those that only the test set has."""

from __future__ import annotations

import unicodedata
from collections.abc import Iterator

import numpy as np

from ..data.label_suspicions import suspicions
from ..errors import counted
from .findings import ERROR, EXAMPLES, NOTE, WARNING, Case, Finding, check, quoted

NEARLY_ALL = 0.95  # of the documents: a label that so many have says nothing of them


@check
def suspicious_names(case: Case) -> Iterator[Finding]:
    data = case.train.data
    if data.labels is None:
        return
    documents = len(data) - data.report.no_labels
    found = suspicions(
        data.names, _documents(case).tolist(), documents=documents, repeated=data.report.duplicate_labels
    )
    for seen in found:
        sign, share = repr(seen.separator), f"{counted(seen.count, 'label')} ({100 * seen.share:.1f} %)"
        what, way = {
            "joined": (
                f"{share} with {sign} in the name, in the form of several in one.",
                f"If it separates labels, say so: --separator {sign} for tables; or write lists.",
            ),
            "list": (
                f"{share} in the form of lists written as text.",
                'Write a JSON list, ["a", "b"], not its text in quotes.',
            ),
            "indicators": (
                "all labels are 0 or 1, several for each document: rows of a table of 0 and 1.",
                "Give the names of the labels, or in Python a matrix.",
            ),
        }[seen.kind]
        yield Finding(ERROR, f"labels-{seen.kind}", "train", what, seen.count, quoted(seen.examples), way)


@check
def variants_of_a_name(case: Case) -> Iterator[Finding]:
    names = list(dict.fromkeys(name for subject in case.subjects for name in subject.data.names))
    groups: dict[str, list[str]] = {}
    for name in names:
        plain = name if name.isascii() else unicodedata.normalize("NFKC", name)
        groups.setdefault(" ".join(plain.casefold().split()), []).append(name)
    several = [group for group in groups.values() if len(group) > 1]
    if several:
        count = sum(len(group) - 1 for group in several)
        yield Finding(
            WARNING, "label-variants", "both" if case.test is not None else "train",
            f"{counted(len(several), 'label')} with several spellings, which differ in case, white space or Unicode "
            "form.", count, tuple(" / ".join(map(repr, quoted(group))) for group in several[:EXAMPLES]),
            "Spell each label in one way; else each spelling is a label of its own, with fewer documents.",
        )  # fmt: skip


@check
def documents_without_labels(case: Case) -> Iterator[Finding]:
    for subject in case.subjects:
        y = subject.data.labels
        if y is None:
            severity = ERROR if subject is case.train else WARNING
            yield Finding(
                severity, "no-labels", subject.set, "no label was read.", len(subject.data), (),
                "Name the field of the labels with --labels-field.",
            )  # fmt: skip
            continue
        bare = np.flatnonzero(y.counts() == 0)
        if len(bare):
            yield Finding(
                NOTE, "documents-without-labels", subject.set, f"{counted(len(bare), 'document')} without a label.",
                len(bare), subject.some(bare),
                "They are examples of what no label fits. If they are unlabelled, leave them out.",
            )  # fmt: skip
        if subject.data.report.duplicate_labels:
            count = subject.data.report.duplicate_labels
            yield Finding(
                NOTE, "repeated-labels", subject.set,
                f"{counted(count, 'label')} stood twice at one document; each counts once.", count, (),
                "Nothing needs to be done, unless another label was meant.",
            )  # fmt: skip


@check
def rare_and_common_labels(case: Case) -> Iterator[Finding]:
    names, documents = case.train.data.names, _documents(case)
    once, often = np.flatnonzero(documents == 1), np.flatnonzero(documents > NEARLY_ALL * len(case.train.data))
    if len(once):
        yield Finding(
            NOTE, "labels-seen-once", "train",
            f"{len(once):,} of {counted(len(names), 'label')} ({100 * len(once) / len(names):.0f} %) with one "
            "document.",
            len(once), quoted([names[i] for i in once[:EXAMPLES]]),
            "Methods for rare labels: bonsai, or --preset tail; labels' texts help too (--label-texts).",
        )  # fmt: skip
    if len(often) and len(case.train.data) >= 20:
        yield Finding(
            NOTE, "labels-nearly-everywhere", "train",
            f"{counted(len(often), 'label')} that nearly all documents have.", len(often),
            quoted([names[i] for i in often[:EXAMPLES]]),
            "They raise figures and say nothing: consider leaving them out.",
        )  # fmt: skip


@check
def labels_only_in_test(case: Case) -> Iterator[Finding]:
    test = case.test
    if test is None or test.data.labels is None:
        return
    known = set(case.train.data.names)
    unseen = np.array([name not in known for name in test.data.names], bool)
    if not unseen.any():
        return
    y = test.data.labels
    new = np.zeros(y.rows, np.int64)
    np.add.at(new, y.row_of()[unseen[y.indices]], 1)
    alone = int(((new > 0) & (new == y.counts())).sum())
    names = [name for name, is_new in zip(test.data.names, unseen, strict=True) if is_new]
    yield Finding(
        WARNING, "labels-only-in-test", "test",
        f"{counted(len(names), 'label')} that no training document has: {100 * new.sum() / max(1, y.nnz):.1f} % of the "
        f"test set's occurrences, and all labels of {counted(alone, 'document')}.", len(names), quoted(names),
        "No model can predict them; they count as misses. Another split may have fewer.",
    )  # fmt: skip


def _documents(case: Case) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """Numbers of training documents of each label."""
    y = case.train.data.labels
    return np.zeros(0, np.int64) if y is None else np.bincount(y.indices, minlength=y.cols).astype(np.int64)
