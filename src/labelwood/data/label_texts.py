"""Texts of labels, from a file of its own: label id → words a person would read.

JSON object {"id": "text"} or {"id": {"label": "text", ...}}, JSON lines {"id": ..., "label": ...}, or CSV/TSV of two
columns (id, text), with or without a header. Annif's vocabulary files (<uri><TAB>label) are such a TSV.
`read_names` is for the plainer case: names only, in the order of a matrix's columns.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from ..errors import DataError
from . import strictjson
from .dataset import Dataset, check_label
from .fields import kind_of
from .reading import without_end
from .records import Records
from .rows import Log
from .sniff import first_line
from .source import Source

_ID_KEYS = ("id", "uid", "uri", "label_id", "concept_id")
_TEXT_KEYS = ("label", "text", "title", "name")


def read_label_texts(path: str | Path) -> dict[str, str]:
    """The text of each label that the file names; a label that stands twice is a DataError."""
    texts: dict[str, str] = {}
    with Source(path) as source:
        for line, ident, value in _pairs(source):
            try:
                name, text = check_label(ident), _text(value)
                if texts.setdefault(name, text) != text:
                    raise DataError(f"the label {name!r} stands twice, with different texts.")
            except DataError as error:
                raise error.at(file=source.name, line=line) from error
        if not texts:
            raise DataError("there is not a single label in it.", file=source.name)
    return texts


def with_label_texts(data: Dataset, texts: Mapping[str, str]) -> Dataset:
    """The data with the texts of its labels; what is said of other labels is left out."""
    if not isinstance(texts, Mapping):
        raise DataError(f"label texts must map labels to texts, but are {type(texts).__name__}.")
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


Pair = tuple[int | None, Any, Any]  # line, id, text


def _pairs(source: Source) -> Iterator[Pair]:
    first = first_line(source)
    if first.lstrip().startswith(b"{"):
        return _from_json(source)
    return _from_table(source, "\t" if b"\t" in first else ",")


def _from_json(source: Source) -> Iterator[Pair]:
    """One object over the whole file, or one object per line: told by whether the first line is one of a record."""
    try:
        first = strictjson.loads(Log().utf8(source.peek()))
    except DataError:
        first = None  # an object over several lines, or a mistake that is reported with its place below
    if first is not None and _key(first, _ID_KEYS) and _key(first, _TEXT_KEYS):
        return _from_lines(source)
    return _from_object(source)


def _from_lines(source: Source) -> Iterator[Pair]:
    for raw in source.lines():
        if raw.isspace():
            continue
        try:
            record = strictjson.loads(Log().utf8(raw))
            ident, text = _key(record, _ID_KEYS), _key(record, _TEXT_KEYS)
            if not ident or not text:
                raise DataError(f"expected an object with {_either(_ID_KEYS)} and {_either(_TEXT_KEYS)}.")
        except DataError as error:
            raise error.at(file=source.name, line=source.line) from error
        yield source.line, record[ident], record[text]


def _from_object(source: Source) -> Iterator[Pair]:
    raw = b"".join(source.lines())
    try:
        found = strictjson.loads(Log().utf8(raw))
    except DataError as error:
        before = raw.decode(errors="replace")[: (error.column or 1) - 1]
        column = len(before) - before.rfind("\n")
        line = before.count("\n") + 1 if error.column else None
        raise DataError(error.message, file=source.name, line=line, column=column if error.column else None) from error
    return ((None, ident, value) for ident, value in found.items())


def _from_table(source: Source, delimiter: str) -> Iterator[Pair]:
    first, records = True, Records(source, delimiter, Log())
    for raw in records:
        cells = [cell.encode("latin-1").decode().strip() for cell in raw]
        if not any(cells):
            continue
        if len(cells) != 2:
            few = f"expected two columns, a label and its text, but found {len(cells)}."
            records.bad(DataError(few), min(len(cells), 2))
        header = first and cells[0].lower() in _ID_KEYS and cells[1].lower() in _TEXT_KEYS
        if not header:
            yield records.line, cells[0].removeprefix("<").removesuffix(">"), cells[1]
        first = False


def _text(value: object) -> str:
    if isinstance(value, dict):
        key = _key(value, _TEXT_KEYS)
        if not key:
            raise DataError(f"expected the label's text as {_either(_TEXT_KEYS)} in its object.")
        value = value[key]
    if not isinstance(value, str):
        raise DataError(f"a label's text must be a string, but is {kind_of(value)}.")
    try:
        value.encode("utf-8")
    except UnicodeEncodeError as error:
        raise DataError("a label's text is not valid Unicode (lone surrogate).") from error
    return value


def _key(record: object, keys: tuple[str, ...]) -> str | None:
    return next((key for key in keys if key in record), None) if isinstance(record, dict) else None


def _either(keys: tuple[str, ...]) -> str:
    return " or ".join(map(repr, keys))
