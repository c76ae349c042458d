"""Label names that look like several labels, like lists written as text, or like rows of 0 and 1."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence

_SEPARATORS = "|;\t,"
_ENDS = {"[": "]", "(": ")", "{": "}"}


@dataclasses.dataclass(frozen=True)
class Suspicion:
    """Labels that look like something else, and how many they are."""

    kind: str  # "joined": several in one; "list": a list as text; "indicators": rows of 0 and 1
    separator: str  # what joins the labels; "" in other kinds
    count: int  # occurrences of such labels
    share: float  # of all occurrences of labels
    examples: tuple[str, ...]  # the most frequent ones


def suspicions(
    names: Sequence[str], counts: Sequence[int], *, documents: int, repeated: int = 0
) -> tuple[Suspicion, ...]:
    """Suspicions about label names that occur `counts` times, in that many documents with labels."""
    occurrences = {name: int(count) for name, count in zip(names, counts, strict=True) if count}
    total = sum(occurrences.values())
    if occurrences and occurrences.keys() <= {"0", "1"}:
        return (_found("indicators", "", occurrences, total),) if total + repeated >= 2 * documents else ()
    lists = {name: count for name, count in occurrences.items() if len(name) > 1 and _ENDS.get(name[0]) == name[-1]}
    found = [_found("list", "", lists, total)] if lists else []
    for separator in _SEPARATORS:
        joined = {name: n for name, n in occurrences.items() if separator in name and name not in lists}
        if sum(joined.values()) >= 0.1 * total > 0:
            found.append(_found("joined", separator, joined, total))
    return tuple(found)


def _found(kind: str, separator: str, names: Mapping[str, int], total: int) -> Suspicion:
    often = sorted(names, key=lambda name: (-names[name], name))[:3]
    count = sum(names.values())
    return Suspicion(kind, separator, count, count / total, tuple(often))
