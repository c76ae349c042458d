"""JSON without the holes of `json.loads`: no NaN or Infinity, no repeated keys, no endless nesting, clear places."""

from __future__ import annotations

import json
import re
from typing import Any, NoReturn

from ... import limits
from ...errors import DataError

_LARGE = 2**20
_STRINGS = re.compile(rb'"(?:[^"\\]++|\\.)*+"|,', re.DOTALL)
_WORDS = re.compile(r'"(?:[^"\\]++|\\.)*+"|NaN|-?Infinity', re.DOTALL)


def loads(raw: bytes, *, lean: bool = False) -> Any:
    """The value in these bytes (valid UTF-8), or a DataError with the column.

    `lean` bounds the memory of a huge line: strings above 1 MB may come back as bytes (their UTF-8). Structure is
    ASCII, so the line can be parsed as Latin-1 and its strings be decoded one by one, unless it has escapes (\\u00e9);
    a text with a single emoji would otherwise be held twice at four bytes per character.
    """
    if lean and len(raw) > _LARGE and raw.count(b",") >= limits.MAX_ROW_VALUES:
        _check_size(raw)
    narrow = lean and len(raw) > _LARGE and not raw.isascii() and b"\\u" not in raw
    try:
        found = _DECODER.decode(raw.decode("latin-1" if narrow else "utf-8"))
        return _encoded(found) if narrow else found
    except _Constant as error:
        column = next(m.start() for m in _WORDS.finditer(raw.decode()) if not m.group().startswith('"')) + 1
        raise DataError(f"{error} is not allowed in JSON; write a number or null.", column=column) from error
    except _Twice as error:
        raise DataError(f"the key {error.args[0][:60]!r} stands twice in one object.") from error
    except json.JSONDecodeError as error:
        column = (
            min(error.pos, len(error.doc.rstrip())) + 1
        )  # what is missing at the end is missing before the line feed
        raise DataError(f"not valid JSON: {error.msg}.", column=column) from error
    except RecursionError as error:
        raise DataError("the JSON is nested too deeply.") from error
    except ValueError as error:  # a whole number of thousands of digits
        raise DataError("a number in the JSON has too many digits.") from error


def _check_size(raw: bytes) -> None:
    """Refuse a record of more values than any has; commas within strings do not count."""
    count = 0
    for match in _STRINGS.finditer(raw):
        count += match.group() == b","
        if count >= limits.MAX_ROW_VALUES:
            seen = f"the record holds more than {limits.MAX_ROW_VALUES:,} values"
            raise DataError(f"{seen}, which are all that are allowed.", column=match.start() + 1)


class _Constant(ValueError):
    pass


class _Twice(ValueError):
    pass


def _constant(word: str) -> NoReturn:
    raise _Constant(word)


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        seen: set[str] = set()
        raise _Twice(next(key for key, _ in pairs if key in seen or seen.add(key)))  # type: ignore[func-returns-value]
    return found


def _encoded(value: Any) -> Any:
    if isinstance(value, str):
        text = value.encode("latin-1")
        return text if len(text) > _LARGE else text.decode("utf-8")
    if isinstance(value, list):
        return [_encoded(item) for item in value]
    if isinstance(value, dict):
        return {_encoded(key): _encoded(item) for key, item in value.items()}
    return value


_DECODER = json.JSONDecoder(object_pairs_hook=_unique, parse_constant=_constant)
