"""Labels that look like something else: several in one (`a;b`), a list as text (`['a', 'b']`), a row of 0 and 1.

Told from the distinct names and how often each occurs, whatever the format. Separators stand in good names, too: `Law,
International`, `information retrieval`, `TCP/IP`. What tells a joined string from such a name is what its parts do
elsewhere: are they labels of their own, do they recur in other strings, now in front and now behind?
"""

from __future__ import annotations

import dataclasses
import re
import warnings
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from itertools import islice

import numpy as np

from ..arrays.sparse import Csr
from .dataset import ReadReport

_RARE = ";|\t\n"  # separators that hardly any name holds
_USUAL = ",/ "  # separators that good names hold, too; a space is looked at last, since `a, b` has one as well
_LIST = re.compile(r"""\s*(?:\[\s*\]|[\[({]\s*(['"]).*\1\s*[\])}]|\[\s*\d+(?:[\s,]\s*\d+)*+\s*\])\s*""", re.DOTALL)
_MOST_NAMES = 50_000  # names whose parts are looked at
_MOST_PARTS = 64  # parts of one name
_FEW = 20  # names that are too few for statistics of their parts
_EXAMPLES = 3


@dataclasses.dataclass(frozen=True)
class Suspicion:
    """Labels that look like something else, and how many they are."""

    kind: str  # "joined": several in one; "list": a list as text; "indicators": rows of 0 and 1
    separator: str  # what joins the labels; "" in other kinds
    count: int  # occurrences of such labels
    share: float  # of all occurrences of labels
    examples: tuple[str, ...]  # the most frequent ones

    def message(self, *, table: bool = False) -> str:
        """Text of a warning, with the way out; `table`: the labels come from a cell that is split by a separator."""
        seen = f"{100 * self.share:.1f} % of the labels ({self.count:,})"
        read = f"such as {_shown(self.examples[0])}, and each was read as one label"
        if self.kind == "indicators":
            what = "all labels are 0 or 1, several for each document: this looks like rows of an indicator matrix"
            return f"{what}. Give the names of the labels, or, in Python, a matrix: numpy.array(labels)."
        if self.kind == "list":
            way = "Write them as lists; in Python: ast.literal_eval(text)."
            return f"{seen} are lists written as text, {read}. {way}"
        way = f"write lists (in Python: text.split({self.separator!r}))"
        if table:
            typed = f"'{self.separator}'" if self.separator.isprintable() else f"${self.separator!r}"
            way = f"say so: --separator {typed} or ReadOptions(separator={self.separator!r})"
        what = f"look like several in one, joined by {self.separator!r}, {read}"
        return f"{seen} {what}. If {self.separator!r} separates labels, {way}."


def suspicions(
    names: Sequence[str], counts: Sequence[int], *, documents: int, repeated: int = 0
) -> tuple[Suspicion, ...]:
    """Suspicions about label names that occur `counts` times, in that many documents with labels.

    `repeated` is the number of labels that were merged because their document had them twice.
    """
    occurrences = {name: int(count) for name, count in zip(names, counts, strict=True) if count}
    total = sum(occurrences.values())
    if not total:
        return ()
    if occurrences.keys() <= {"0", "1"}:
        many = total + repeated >= 2 * documents
        return (_found("indicators", "", occurrences, total),) if many else ()
    found = []
    lists = {name: count for name, count in occurrences.items() if name[-1] in "])} \n" and _LIST.fullmatch(name)}
    if lists:
        found.append(_found("list", "", lists, total))
    rest = {name: count for name, count in occurrences.items() if name not in lists}
    alone = total <= 1.1 * documents
    everything = "".join(rest)
    for separator in _RARE + _USUAL:
        if separator not in everything:
            continue
        joined = {name: count for name, count in rest.items() if separator in name.strip().strip(separator)}
        if joined and _are_joined(joined, separator, occurrences, total, alone=alone):
            found.append(_found("joined", separator, joined, total))
            rest = {name: count for name, count in rest.items() if name not in joined}
    return tuple(found)


class SuspiciousLabels(UserWarning):
    """Warning of labels that look like something else."""


class LabelTally:
    """Counts of label names over the blocks of a data set, to warn of what is suspicious in them."""

    def __init__(self) -> None:
        self.counts: Counter[str] = Counter()  # by name
        self._documents = self._repeated = 0

    def add(self, labels: Csr | None, names: Sequence[str], report: ReadReport) -> None:
        """Count the labels (n, L) of a block, of documents that the report counts."""
        if labels is None:
            return
        found = np.bincount(labels.indices, minlength=len(names)).tolist()
        self.counts.update(dict(zip(names, found, strict=True)))
        self._documents += report.rows - report.no_labels
        self._repeated += report.duplicate_labels

    def warn(self, place: str, *, table: bool = False) -> None:
        """Warn of each suspicion; `place` is where the labels come from."""
        names, counts = list(self.counts), list(self.counts.values())
        for found in suspicions(names, counts, documents=self._documents, repeated=self._repeated):
            warnings.warn(f"{place}: {found.message(table=table)}", SuspiciousLabels, stacklevel=4)


def warn_of(labels: Csr | None, names: Sequence[str], report: ReadReport) -> None:
    """Warn of labels in memory that look like something else."""
    tally = LabelTally()
    tally.add(labels, names, report)
    tally.warn("labels")


def _found(kind: str, separator: str, names: Mapping[str, int], total: int) -> Suspicion:
    often = sorted(names, key=lambda name: (-names[name], name))[:_EXAMPLES]
    count = sum(names.values())
    return Suspicion(kind, separator, count, count / total, tuple(often))


@dataclasses.dataclass(frozen=True)
class _Parts:
    """Statistics of the parts of names, split by a separator; all but `number` are shares of all parts."""

    names: int  # distinct names that have several parts
    number: float  # parts of a name, on average
    alone: float  # labels of their own, weighted by how often the name occurs
    recurring: float  # parts of another name, too
    anywhere: float  # in front in one name, behind in another
    distinct: float  # distinct ones for each name


def _are_joined(
    joined: Mapping[str, int], separator: str, labels: Mapping[str, int], total: int, *, alone: bool
) -> bool:
    """Are these names several labels in one? `alone`: a document has one label, as if it were a list in one string."""
    count = sum(joined.values())
    share = count / total
    if separator in _RARE and share >= (0.1 if count > 1 else 0.3):
        return True
    if share < 0.01:
        return False
    parts = _parts(joined, separator, labels)
    if parts is None or parts.names < 2:
        return False
    if separator in _RARE:
        return parts.alone >= 0.25 or parts.recurring >= 0.5
    if parts.alone >= (0.75 if separator == " " else 0.6):
        return True
    if not alone:
        return False
    if separator == " ":  # words recur in names of several words: the measure is stricter
        some = parts.alone >= 0.5 or (parts.alone >= 0.25 and parts.recurring >= 0.95)
        return (some and parts.anywhere >= 0.3) or _is_recombined(parts, recurring=0.95, distinct=0.25)
    if separator == "," and len(labels) < _FEW and share > 0.5 and parts.recurring > 0:
        return True
    return (parts.alone >= 0.25 and parts.anywhere >= 0.3) or _is_recombined(parts, recurring=0.9, distinct=np.inf)


def _is_recombined(parts: _Parts, *, recurring: float, distinct: float) -> bool:
    """Are the names made of the same parts again and again, in any place?"""
    again = parts.recurring >= recurring and parts.distinct <= distinct
    return again and parts.number >= 3 and parts.anywhere >= 0.15


def _parts(joined: Mapping[str, int], separator: str, labels: Mapping[str, int]) -> _Parts | None:
    places: Counter[str] = Counter()  # names that a part stands in
    front, behind = set[str](), set[str]()
    names = weight = weight_alone = 0
    for name, parts in _split(joined, separator):
        names += 1
        places.update(set(parts))
        front.add(parts[0])
        behind.update(parts[1:])
        weight += len(parts) * joined[name]
        weight_alone += sum(part in labels for part in parts) * joined[name]
    if not names:
        return None
    number = sum(places.values())
    return _Parts(
        names=names,
        number=number / names,
        alone=weight_alone / weight,
        recurring=sum(count for count in places.values() if count > 1) / number,
        anywhere=sum(places[part] for part in front & behind) / number,
        distinct=len(places) / names,
    )


def _split(joined: Mapping[str, int], separator: str) -> Iterable[tuple[str, list[str]]]:
    """Names with several parts, and these."""
    step = 1 + len(joined) // _MOST_NAMES
    for name in islice(joined, 0, None, step):
        parts = [part for part in map(str.strip, name.split(separator, _MOST_PARTS)[:_MOST_PARTS]) if part]
        if len(parts) > 1:
            yield name, parts


def _shown(name: str) -> str:
    return repr(name if len(name) <= 60 else name[:60] + "…")
