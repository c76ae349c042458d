"""Texts of labels, from a file of its own: label id → words a person would read.

JSON object {"id": "text"} or {"id": {"label": "text", ...}}, JSON lines {"id": ..., "label": ...}, or CSV/TSV of two
columns (id, text), with or without a header. Annif's vocabulary files (<uri><TAB>label) are such a TSV.
`read_names` is for the plainer case: names only, in the order of a matrix's columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path

from ...errors import DataError
from ..dataset import Dataset, check_label
from ..parsing.fields import kind_of
from ..parsing.input_pass import without_end
from ..parsing.rows import Log
from ..parsing.source import Source
from .pairs import Layout, either, entry, key_of

_LAYOUT = Layout(
    ids=("id", "uid", "uri", "label_id", "concept_id"),
    values=("label", "text", "title", "name"),
    columns="a label and its text",
)


def read_label_texts(path: str | Path) -> dict[str, str]:
    """The text of each label that the file names; a label that stands twice is a DataError."""
    texts: dict[str, str] = {}
    with Source(path) as source:
        for line, ident, value in _LAYOUT.pairs(source):
            try:
                name, text = check_label(ident), _text(value)
                if texts.setdefault(name, text) != text:
                    raise DataError(f"the label {name!r} stands twice, with different texts.")
            except DataError as error:
                raise error.at(file=source.name, line=line, field=entry(line, ident)) from error
        if not texts:
            raise DataError("there is not a single label in it.", file=source.name)
    return texts


def with_label_texts(data: Dataset, texts: Mapping[str, str]) -> Dataset:
    """The data with the texts of its labels; what is said of other labels is left out."""
    if not isinstance(texts, Mapping):
        raise DataError(
            f"label texts must map labels to texts, but are {type(texts).__name__}; give a dict, such as "
            "dict(zip(labels, texts)), or the path of a file."
        )
    known = {check_label(name): _text(value) for name, value in texts.items()}
    if data.names and known.keys().isdisjoint(data.names):
        raise DataError(
            f"none of the {len(known)} label texts is for a label of the data; "
            f"its labels are named like {data.names[0]!r}, the texts' like {next(iter(known), '')!r}."
        )
    return dataclasses.replace(data, label_texts=tuple(known.get(name, "") for name in data.names))


def read_names(path: str | Path) -> tuple[str, ...]:
    """A plain list of labels, one per line: line i names column i of a label matrix. Each must be different."""
    names: dict[str, int] = {}
    with Source(path) as source:
        for raw in source.lines():
            try:
                name = check_label(Log().utf8(without_end(raw)).decode())
            except DataError as error:
                raise error.at(file=source.name, line=source.line) from error
            if names.setdefault(name, source.line) != source.line:
                raise source.error(f"the name {name!r} stood at line {names[name]} before; each label needs its own.")
    return tuple(names)


def _text(value: object) -> str:
    if isinstance(value, dict):
        key = key_of(value, _LAYOUT.values)
        if not key:
            raise DataError(f"expected the label's text as {either(_LAYOUT.values)} in its object.")
        value = value[key]
    if not isinstance(value, str):
        raise DataError(f"a label's text must be a string, but is {kind_of(value)}.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError("a label's text is not valid Unicode (lone surrogate).") from error
    return value
