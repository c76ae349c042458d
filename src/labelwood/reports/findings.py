"""Findings of a check of data: what is wrong or odd, how often, for example where, and the way out.

A check is a function of a `Case` that yields findings, registered with `@check`; `find` runs them all.
"""

from __future__ import annotations

import dataclasses
import re
from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from ..data import Dataset
from ..data.duplicates import Duplicates
from ..data.sketches import Sketches

ERROR, WARNING, NOTE = SEVERITIES = ("error", "warning", "note")
EXAMPLES = 5  # of a finding
SHOWN = 80  # characters of an example


@dataclasses.dataclass(frozen=True)
class Finding:
    """Something that is wrong with the data, or that is good to know before a training."""

    severity: str  # "error": a training stops or learns nonsense; "warning": it is worse, or its figures are; "note"
    name: str  # the same for the same kind of finding: "duplicate-texts"
    set: str  # where: "train", "test" or "both"
    what: str  # a sentence
    count: int  # of documents, labels or lines
    examples: tuple[str, ...] = ()
    way_out: str = ""


@dataclasses.dataclass(frozen=True, eq=False)
class Subject:
    """One of the two sets, and what is known of its texts."""

    set: str  # "train" or "test"
    data: Dataset
    sketches: Sketches | None = None  # None: it has features only
    repeats: Duplicates | None = None  # within it
    languages: dict[str, float] = dataclasses.field(default_factory=dict)

    def shown(self, row: int) -> str:
        """A document as people find it again: its id or row, counted from 0, and how it begins."""
        if self.data.texts is None:
            return self.name(row)
        text = " ".join(self.data.texts[row][: 4 * SHOWN].split())
        return f"{self.name(row)}: {text[:SHOWN]}{'…' if len(text) > SHOWN else ''}"

    def name(self, row: int) -> str:
        """The id of a document, or its row."""
        return f"row {row}" if self.data.ids is None else self.data.ids[row][:SHOWN]

    def around(self, row: int, pattern: re.Pattern[str]) -> str:
        """The place in a document where a pattern first stands."""
        assert self.data.texts is not None
        text = self.data.texts[row]
        found = pattern.search(text)
        begin, end = (0, 0) if found is None else found.span()
        return f"{self.name(row)}: …{text[max(0, begin - SHOWN // 2) : end + SHOWN // 2]}…"

    def some(self, rows: Iterable[int] | NDArray[np.int64]) -> tuple[str, ...]:
        """The first few of these documents."""
        return tuple(self.shown(int(row)) for row, _ in zip(rows, range(EXAMPLES), strict=False))


@dataclasses.dataclass(frozen=True, eq=False)
class Case:
    """All that checks know."""

    train: Subject
    test: Subject | None = None
    crossing: Duplicates | None = (
        None  # texts of the test set, behind those of the training set, that repeat some of it
    )
    lost: float = 0.0  # share of the words that an encoder of the usual length does not read
    longer: float = 0.0  # share of the documents that it does not read to their end
    usual: int = 128  # pieces that it reads

    @property
    def subjects(self) -> tuple[Subject, ...]:
        return (self.train,) if self.test is None else (self.train, self.test)


Check = Callable[[Case], Iterator[Finding]]
CHECKS: list[Check] = []


def check(function: Check) -> Check:
    """Register a check."""
    CHECKS.append(function)
    return function


def find(case: Case) -> tuple[Finding, ...]:
    """Findings of all checks, the worst first, and in each severity what concerns most."""
    found = [finding for one in CHECKS for finding in one(case)]
    return tuple(sorted(found, key=lambda f: (SEVERITIES.index(f.severity), -f.count, f.set, f.name)))


def quoted(names: Sequence[str], most: int = EXAMPLES) -> tuple[str, ...]:
    """The first few names, each short enough to be shown."""
    return tuple(name if len(name) <= SHOWN else f"{name[:SHOWN]}…" for name in names[:most])
