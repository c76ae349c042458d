"""Records with named fields (JSON lines, CSV, Parquet) → rows: which field is what, and what may stand in it."""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import limits
from ...errors import DataError, counted
from ..dataset import check_label
from .rows import Log, Row

if TYPE_CHECKING:
    from ..options import ReadOptions

_TEXTS = ("title", "content", "body", "abstract", "description")  # where there is no 'text': those there are, joined
_IDS = ("id", "uid")
_SMALLEST = float(np.finfo(np.float32).smallest_subnormal)


@dataclasses.dataclass(frozen=True)
class Fields:
    """The names of the fields to read; chosen once per file, at its first record."""

    text: tuple[str, ...]
    labels: str | None
    id: str | None
    relevance: str | None
    required: dict[str, str]  # those of them that every record must have, and what for: text, id or labels

    @staticmethod
    def choose(found: Collection[str], options: ReadOptions, need_labels: bool) -> Fields:
        """Find the fields by the options or their usual names; a DataError names what is missing and what is there."""
        text = options.text or (("text",) if "text" in found else tuple(name for name in _TEXTS if name in found))
        if not text:
            raise _missing("text", "text", found)
        ident = options.id or next((name for name in _IDS if name in found), None)
        required = dict.fromkeys(text, "text")
        for name, role in ((ident, "id"), (options.labels if need_labels else None, "labels")):
            if name is not None:
                required.setdefault(name, role)
        fields = Fields(text, options.labels, ident, options.relevance, required)
        fields._demand(found)
        return fields

    def row(self, record: Mapping[str, Any], log: Log) -> Row:
        """One record; its values are text (str, or bytes still to be checked), numbers, lists or None."""
        self._demand(record)
        parts = [text_of(record[name], name, log) for name in self.text]
        labels = None if self.labels is None else labels_of(record.get(self.labels), self.labels)
        if labels is None and self.labels in self.required:
            raise DataError("the labels are null; write [] for a document without any.", field=self.labels)
        ident = None if self.id is None else id_of(record[self.id], self.id)
        text = parts[0] if len(parts) == 1 else b"\n".join(parts)
        if labels is None or self.relevance is None:
            return Row(text, labels, None, ident)
        if self.relevance not in record:
            raise _missing("relevance", self.relevance, record)
        return Row(text, *weighted(labels, record[self.relevance], self.relevance), ident)

    def _demand(self, found: Collection[str]) -> None:
        for name, role in self.required.items():
            if name not in found:
                raise _missing(role, name, found)


def text_of(value: object, field: str, log: Log) -> bytes:
    """A text as UTF-8; null is an empty text."""
    if isinstance(value, str):
        try:
            return value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise DataError(
                f"the text is not valid Unicode (lone surrogate at character {error.start}).", field=field
            ) from error
    if isinstance(value, bytes):
        try:
            return log.utf8(value)
        except DataError as error:
            raise error.at(field=field) from error
    if value is None:
        return b""
    raise DataError(f"the text must be a string, but is {kind_of(value)}.", field=field)


def labels_of(value: object, field: str) -> list[str] | None:
    """A list of labels; one string or whole number is one label; null is no answer."""
    if value is None:
        return None
    if isinstance(value, str | int) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list) and (not isinstance(value, Iterable) or isinstance(value, Mapping | bytes)):
        raise DataError(
            f"the labels must be a list of strings or whole numbers, but are {kind_of(value)}.", field=field
        )
    try:
        return [check_label(label) for label in value]
    except DataError as error:
        raise error.at(field=field) from error


def weighted(labels: Sequence[str], value: object, field: str) -> tuple[list[str], list[float]]:
    """Labels with their relevances: one number ≥ 0 for each; a label of relevance 0 is left out."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        value = [value]
    if not isinstance(value, list) or len(value) != len(labels):
        seen = counted(len(value), "number") if isinstance(value, list) else kind_of(value)
        wanted = f"{counted(len(labels), 'label')} must have {counted(len(labels), 'relevance')}"
        raise DataError(f"{wanted}, but the value is {seen}.", field=field)
    numbers = [_relevance(number, field) for number in value]
    kept = [(label, number) for label, number in zip(labels, numbers, strict=True) if number >= _SMALLEST]
    return [label for label, _ in kept], [number for _, number in kept]


def _relevance(value: object, field: str) -> float:
    try:
        number = float(value) if isinstance(value, int | float) and not isinstance(value, bool) else math.nan
    except OverflowError:  # a whole number of hundreds of digits
        number = math.inf
    if not 0 <= number <= limits.MAX_VALUE:
        seen = repr(value) if isinstance(value, float) else kind_of(value)
        raise DataError(f"a relevance must be a number from 0 to {limits.MAX_VALUE:.0e}, but is {seen}.", field=field)
    return number


def id_of(value: object, field: str) -> str:
    """A document's id as text (bytes are those of a field that is also a text, and checked as such)."""
    if isinstance(value, bytes):
        return value.decode("utf-8", errors="replace")
    if isinstance(value, bool) or not isinstance(value, str | int):
        raise DataError(f"an id must be text or a whole number, but is {kind_of(value)}.", field=field)
    try:
        text = str(value)
        text.encode("utf-8")
    except ValueError as error:  # lone surrogate, or thousands of digits
        raise DataError(f"the id cannot be written as text: {error}.", field=field) from error
    return text


def _missing(role: str, name: str, found: Iterable[str]) -> DataError:
    shown = ", ".join(repr(key)[:60] for key in list(found)[:20]) or "none"
    way = f"Name the right one with --{role}-field or ReadOptions({role}=...)."
    parts = tuple(part.strip() for part in name.split(","))
    if role == "text" and len(parts) > 1 and set(parts) <= set(found):
        way = f"For several, repeat --text-field for each, or give ReadOptions(text={parts})."
    return DataError(f"the field {name[:60]!r} is missing; fields found: {shown}. {way}", field=name)


def kind_of(value: object) -> str:
    """Kind of a value, in the words of JSON."""
    words = {type(None): "null", bool: "true or false", dict: "an object", list: "a list", str: "a string"}
    words |= {int: "a whole number", float: "a number"}
    return words.get(type(value), f"of type {type(value).__name__}")
