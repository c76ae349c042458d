"""A taxonomy of labels, from a file of its own: child → parents, several or none.

CSV/TSV of two columns (child, parent), with or without a header, a child with several parents on several lines, a root
with an empty parent or not at all; JSON lines {"child": ..., "parent": ...} or {"id": ..., "parents": [...]}; or one
JSON object {"child": "parent"}, {"child": [...]} or {"child": {"parents": [...], ...}}.
"""

from __future__ import annotations

import dataclasses
import warnings
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from ...arrays.taxonomy import Taxonomy
from ...errors import DataError, counted
from ..dataset import Dataset, check_label
from ..parsing.fields import kind_of
from ..parsing.source import Source
from .pairs import Layout, bare, either, entry, key_of

_LAYOUT = Layout(
    ids=("child", "id", "uid", "uri", "label_id", "concept_id"),
    values=("parents", "parent", "broader"),
    columns="a child and its parent",
    id_marks=frozenset({"child", "narrower", "sub", "subclass", "subtopic", "subcategory"}),
    value_marks=frozenset({"parent", "parents", "broader", "super", "superclass", "supertopic", "supercategory"}),
)

Parents = Mapping[str, str | Sequence[str] | None]


def read_taxonomy(path: str | Path) -> dict[str, tuple[str, ...]]:
    """The parents of each node the file names; a cycle is a DataError with the line that closes it."""
    parents: dict[str, dict[str, int | None]] = {}  # child → parent → line
    with Source(path) as source:
        named, pairs = _LAYOUT.read(source)
        for line, ident, value in pairs:
            try:
                own = parents.setdefault(check_label(ident), {})
                for name in _names(value):
                    own.setdefault(name, line)
            except DataError as error:
                raise error.at(file=source.name, line=line, field=entry(line, ident)) from error
        if not parents:
            raise DataError("there is not a single label in it.", file=source.name)
        if cycle := _cycle({name: tuple(own) for name, own in parents.items()}):
            lines = [parents[child][parent] for child, parent in pairwise(cycle)]
            last = max((line for line in lines if line is not None), default=None)
            raise DataError(_circle(cycle), file=source.name, line=last)
    found = {name: tuple(own) for name, own in parents.items()}
    if not named and _stands_alone(found):
        child, (parent, *_) = next(iter(found.items()))
        warnings.warn(
            f"{source.name}: the first line, {child[:40]!r} below {parent[:40]!r}, has nothing in common with the "
            "others; if it is a header, name the columns child,parent or parent,child.",
            stacklevel=2,
        )
    return found


def _stands_alone(parents: Mapping[str, tuple[str, ...]]) -> bool:
    """Is the first pair the only one whose names stand nowhere else, as those of an unknown header do?"""
    counts = Counter(name for child, above in parents.items() for name in (*[child] * len(above), *above))
    alone = [child for child, above in parents.items() if len(above) == 1 and counts[child] == counts[above[0]] == 1]
    return len(parents) > 2 and alone == [next(iter(parents))]


def with_taxonomy(data: Dataset, parents: Parents) -> Dataset:
    """The data with a taxonomy over its labels, child → parent or parents; other nodes in it are inner ones."""
    if not isinstance(parents, Mapping):
        raise DataError(
            f"a taxonomy must map children to parents, but is {type(parents).__name__}; give a dict, such as "
            "dict(zip(children, parents)), or the path of a file."
        )
    found = {check_label(child): tuple(dict.fromkeys(_names(value))) for child, value in parents.items()}
    if cycle := _cycle(found):
        raise DataError(_circle(cycle))
    numbers = {name: i for i, name in enumerate(data.names)}
    inside = np.zeros(len(numbers), bool)
    edges = []
    for child, above in found.items():
        for name in (child, *above):
            if numbers.setdefault(name, len(numbers)) < len(inside):
                inside[numbers[name]] = True
        edges += [(numbers[child], numbers[name]) for name in above]
    _check_overlap(inside, data, found)
    _check_direction(found)
    pairs = np.array(edges, np.int32).reshape(-1, 2)
    child_ids, parent_ids = (np.ascontiguousarray(pairs[:, side]) for side in (0, 1))
    return dataclasses.replace(data, taxonomy=Taxonomy(len(numbers), inside, child_ids, parent_ids))


def _check_overlap(inside: NDArray[np.bool_], data: Dataset, found: Mapping[str, object]) -> None:
    if data.names and not inside.any():
        raise DataError(
            f"none of the {len(found)} children of the taxonomy is a label of the data, nor is any parent; "
            f"its labels are named like {data.names[0]!r}, the taxonomy's like {next(iter(found), '')!r}."
        )
    if missing := int((~inside).sum()):
        warnings.warn(
            f"not in the taxonomy: {counted(missing, 'label')} of {len(inside):,}; together they stand under one node "
            "of their own.",
            stacklevel=3,
        )


def _check_direction(found: Mapping[str, tuple[str, ...]]) -> None:
    children, parents = sum(map(bool, found.values())), len({name for above in found.values() for name in above})
    if children < parents:
        warnings.warn(
            f"the taxonomy has more parents ({parents:,}) than children ({children:,}), like {_example(found)}; are "
            "they the wrong way round? A mapping goes from child to parents, and a file may say so: child,parent or "
            "parent,child above its columns.",
            stacklevel=3,
        )


def _example(found: Mapping[str, tuple[str, ...]]) -> str:
    child, (parent, *_) = next((child, above) for child, above in found.items() if above)
    return f"{parent[:40]!r} above {child[:40]!r}"


def _names(value: object) -> Iterator[str]:
    """The parents in one entry: none, one or several."""
    if isinstance(value, dict):
        key = key_of(value, _LAYOUT.values)
        if not key:
            raise DataError(f"expected the parents as {either(_LAYOUT.values)} in its object; write [] for none.")
        value = value[key]
    if value is None or (isinstance(value, str) and not value.strip()):
        return
    if isinstance(value, dict | float | bool):
        raise DataError(f"a parent must be a name, a list of names or nothing, but is {kind_of(value)}.")
    for name in value if isinstance(value, list | tuple) else [value]:
        yield bare(check_label(name))


def _cycle(parents: Mapping[str, tuple[str, ...]]) -> list[str] | None:
    """Names along a cycle from child to parent, the first again at the end; None where there is none."""
    done: set[str] = set()
    for start in parents:
        path: dict[str, Iterator[str]] = {}  # the way up from `start`, with what is still to be tried at each step
        here: str | None = start
        while here is not None:
            if here not in done and here not in path:
                path[here] = iter(parents.get(here, ()))
            onward = next(path[here], None) if here in path else None
            if onward is None:
                done.add(here)
                path.pop(here, None)
                here = next(reversed(path), None)
            elif onward in path:
                names = list(path)
                return [*names[names.index(onward) :], onward]
            elif onward not in done:
                here = onward
    return None


def _circle(cycle: list[str]) -> str:
    shown = cycle if len(cycle) <= 8 else [*cycle[:6], "…", cycle[-1]]
    return (
        f"the taxonomy goes round in a circle: {' → '.join(shown)} (child → parent); "
        "a node may not lie above itself. Take out one of these parents."
    )
