"""Records with named fields (JSON lines, CSV, Parquet) → rows: which field is what, and what may stand in it.

Where nobody says which fields hold the text, the usual ones are joined: title, then text, abstract, … A model knows the
fields that it has learned from, and finds them in other records by their names.
"""

from __future__ import annotations

import dataclasses
import math
import re
from collections.abc import Iterable, Mapping, Sequence, Sized
from typing import TYPE_CHECKING, Any

import numpy as np

from ... import limits
from ...arrays.texts import TextField, joined
from ...errors import ConfigError, DataError, counted
from ..dataset import FieldRead, check_label, check_row
from .rows import Log, Row

if TYPE_CHECKING:
    from ..options import ReadOptions

# Fields that hold text by their usual names, in the order in which they are read.
USUAL = ("title", "headline", "subtitle", "text", "abstract", "summary", "content", "description", "body")
_ALONE = "text"  # what a model reads that knows no fields: this one, or the first of the others that is there
_IDS = ("id", "uid")
_SMALLEST = float(np.finfo(np.float32).smallest_subnormal)
_WEIGHTED = re.compile(r"(.+):(\d{1,9})", re.DOTALL)
_SHAPES = 1000  # kinds of records that are remembered


@dataclasses.dataclass(frozen=True)
class Reading:
    """The fields that a model reads as text. None: the usual ones, those that are there."""

    fields: tuple[TextField, ...] = ()
    alone: bool = False  # as models did before they knew fields: `text`, or else the usual ones


@dataclasses.dataclass(eq=False)
class Shape:
    """Roles of the fields in records that have the same names."""

    texts: tuple[tuple[int, str], ...]  # (number of the field that is read, its name here)
    left: tuple[str, ...]  # names that are not read
    records: int = 0


class Fields:
    """The fields to read. Id, labels and relevance are chosen at the first record, and all records must have them."""

    def __init__(
        self,
        first: Iterable[str],
        options: ReadOptions,
        need_labels: bool,
        reading: Reading | None = None,
        *,
        alike: bool = False,
    ) -> None:
        """Find the fields by the options or their usual names; a DataError names what is missing and what is there.

        All records of a table are `alike`; others may have fields that the first one lacks.
        """
        names = list(first)
        reading = reading or Reading()
        self.strict = options.text is not None  # named by the user: every record must have them all
        self.text, self._called = _text_fields(names, options, reading)
        self.usual = not self.strict and not reading.fields
        self.apart = not reading.fields or len(self.text) == len(reading.fields)  # else they are one text to the model
        if alike and not self.strict:
            here = tuple(field for field in self.text if _found(field.name, names, exact=False) is not None)
            self.text = here or self.text
            self._called = tuple(field.name for field in self.text)
        self._wanted = reading.fields[0].name if reading.fields else _ALONE
        self.labels, self.relevance = options.labels, options.relevance
        self.id = options.id or next((name for name in _IDS if name in names), None)
        self._need_labels = need_labels
        self._shapes: dict[tuple[str, ...], Shape] = {}
        self._told: list[Shape] = []
        self._left = self.shape(names).left if alike else None  # of a table, whose records need not have all columns

    def row(self, record: Mapping[str, Any], log: Log) -> Row:
        """One record; its values are text (str, or bytes still to be checked), numbers, lists or None."""
        shape = self.shape(record)
        labels = None if self.labels is None else labels_of(record.get(self.labels), self.labels)
        if labels is None and self._need_labels:
            raise DataError("the labels are null; write [] for a document without any.", field=self.labels)
        text, cuts = self._text(record, shape, log)
        ident = None if self.id is None else id_of(record[self.id], self.id)
        if labels is None or self.relevance is None:
            return Row(text, labels, None, ident, cuts=cuts, shape=shape)
        if self.relevance not in record:
            raise _missing("relevance", self.relevance, record)
        return Row(text, *weighted(labels, record[self.relevance], self.relevance), ident, cuts=cuts, shape=shape)

    def known(self, names: tuple[str, ...]) -> Shape | None:
        """The shape of records with these names, if it was met before and such records are read."""
        return self._shapes.get(names)

    def names(self, found: Iterable[str]) -> set[str]:
        """Names that hold text among those of a table's columns."""
        return {name for _, name in self.shape(found).texts}

    def told(self) -> tuple[tuple[FieldRead, ...], tuple[str, ...]]:
        """Report since the last call: the fields that were read, 0 times too, and the names that were not."""
        counts = [0] * len(self.text)
        left: dict[str, None] = {}
        for shape in self._told:
            for place, _ in shape.texts if shape.records else ():
                counts[place] += shape.records
            left |= dict.fromkeys(shape.left if shape.records else ())
            shape.records = 0
        if self._left is not None:
            left = dict.fromkeys(self._left)
        read = zip(self._called, self.text, counts, strict=True)
        return tuple(FieldRead(name, field.weight, count) for name, field, count in read), tuple(left)

    def shape(self, found: Iterable[str]) -> Shape:
        """Roles of the names in a record that has these; a DataError says what is missing."""
        key = tuple(found)
        shape = self._shapes.get(key)
        if shape is None:
            shape = self._new_shape(key)
            if len(self._shapes) < _SHAPES:
                self._shapes[key] = shape
            else:  # of records that are all different, the report may miss names that were left
                shape.left = ()
            self._told.append(shape)
        return shape

    def _new_shape(self, names: tuple[str, ...]) -> Shape:
        texts = [(place, _found(name, names, exact=self.strict)) for place, name in enumerate(self._called)]
        here = tuple((place, name) for place, name in texts if name is not None)
        absent = [self._called[place] for place, name in texts if name is None]
        if absent and (self.strict or not here):
            raise _missing("text", absent[0] if self.strict else self._wanted, names)
        if self.id is not None and self.id not in names:
            raise _missing("id", self.id, names)
        if self._need_labels and self.labels is not None and self.labels not in names:
            raise _missing("labels", self.labels, names)
        used = {*(name for _, name in here), self.labels, self.id, self.relevance}
        return Shape(here, tuple(name for name in names if name not in used))

    def _text(self, record: Mapping[str, Any], shape: Shape, log: Log) -> tuple[bytes, tuple[int, ...] | None]:
        """The fields joined, and where the second and later ones begin; no places where one field is read."""
        if len(self.text) == 1:
            return text_of(record[shape.texts[0][1]], shape.texts[0][1], log), None
        parts = [b""] * len(self.text)
        for place, name in shape.texts:
            parts[place] = text_of(record[name], name, log)
        return joined(parts)


def _text_fields(
    names: Sequence[str], options: ReadOptions, reading: Reading
) -> tuple[tuple[TextField, ...], tuple[str, ...]]:
    """The fields that hold text, and the names they have here: as the user says, as the model reads, or the usual."""
    if options.text is not None:
        named = _once(_named(spelled, names) for spelled in _not_too_many(options.text))
        called = tuple(field.name for field in named)
        return (_in_place(named, reading.fields) if reading.fields else named), called
    if reading.fields:
        fields = reading.fields
    elif reading.alone and _ALONE in names:
        fields = (TextField(_ALONE),)
    else:
        fields = tuple(TextField(name) for name in USUAL)
    return fields, tuple(field.name for field in fields)


def _in_place(named: tuple[TextField, ...], known: tuple[TextField, ...]) -> tuple[TextField, ...]:
    """The fields of a model whose place those take that the user names, where there are as many."""
    weights = [field.weight for field in named]
    same = len(named) == len(known)
    if max(weights) > 1 and not (same and weights == [field.weight for field in known]):
        own = ", ".join(f"{field.name}:{field.weight}" for field in known)
        raise ConfigError(
            f"the model has the weights of its fields from its training ({own}); name fields without any."
        )
    return known if same else named


def _not_too_many(named: tuple[str, ...]) -> tuple[str, ...]:
    if not 1 <= len(named) <= limits.MAX_TEXT_FIELDS:
        most = limits.MAX_TEXT_FIELDS
        raise ConfigError(f"1 to {most} fields can be read as text, but {len(named)} are named.")
    return named


def _named(spelled: str, names: Sequence[str]) -> TextField:
    """`title:2` is the field `title` with weight 2, unless a field is called so."""
    found = None if spelled in names else _WEIGHTED.fullmatch(spelled)
    if found is None:
        return TextField(spelled)
    weight = int(found[2])
    if not 1 <= weight <= limits.MAX_FIELD_WEIGHT:
        most = limits.MAX_FIELD_WEIGHT
        raise ConfigError(
            f"the weight of a field is a whole number from 1 to {most}, but {spelled!r} asks for {weight}."
        )
    return TextField(found[1], weight)


def _once(fields: Iterable[TextField]) -> tuple[TextField, ...]:
    """A field that is named twice counts twice."""
    weights: dict[str, int] = {}
    for name, weight in fields:
        weights[name] = weights.get(name, 0) + weight
    return tuple(TextField(name, weight) for name, weight in weights.items())


def _found(field: str, names: Sequence[str], *, exact: bool) -> str | None:
    """The name under which a record has a field: as it is, or in other letters (`Title`)."""
    if field in names:
        return field
    if exact:
        return None
    return next((name for name in names if name.strip().lower() == field.lower()), None)


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
        if isinstance(value, Sized):
            check_row(len(value))
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
        known = isinstance(value, float) or (type(value) is int and abs(value) < 10**15)
        seen = repr(value) if known else kind_of(value)
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
