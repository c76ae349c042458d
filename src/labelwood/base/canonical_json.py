"""Plain data is what JSON can say. Here it has one spelling only, so equal data are equal bytes and equal digests.

Numbers are finite, keys are text without repeats, text is valid Unicode, nesting is shallow.
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any, NamedTuple

from .. import limits
from ..errors import ConfigError, ModelFileError


class _Trail(NamedTuple):
    """Place of a value, kept as links and spelled out only in an error: a hostile key may be megabytes long."""

    parent: _Trail | None
    step: str | int
    depth: int

    def __str__(self) -> str:
        step = f"[{self.step}]" if isinstance(self.step, int) else self.step[:80]
        dot = "" if self.parent is None or isinstance(self.step, int) else "."
        return f"{self.parent or ''}{dot}{step}"


def normal(value: object, where: str = "data") -> Any:
    """A copy made of dict, list, str, int, float, bool and None only; ConfigError names what is none of them."""
    return _normal(value, _Trail(None, where, 0))


def _normal(value: object, where: _Trail) -> Any:
    if value is None or isinstance(value, bool) or type(value) is int:
        return value
    if type(value) is float and math.isfinite(value):
        return value
    if isinstance(value, str):
        return _text(value, where)
    if where.depth >= limits.MAX_NESTING:
        raise ConfigError(f"{str(where)[:80]}... is nested more than {limits.MAX_NESTING} levels deep; flatten it.")
    if isinstance(value, list | tuple):
        return [
            item if type(item) is str and item.isascii() else _normal(item, _Trail(where, i, where.depth + 1))
            for i, item in enumerate(value)  # long lists are lists of digests
        ]
    if isinstance(value, Mapping):
        keys = [_key(key, where) for key in value]
        return {key: _normal(value[key], _Trail(where, key, where.depth + 1)) for key in keys}
    raise ConfigError(
        f"{where} must be plain data (text, finite numbers, true, false, none, lists, tables), "
        f"but is {type(value).__name__} {repr(value)[:80]}; convert it first."
    )


def dump(value: object, where: str = "data") -> bytes:
    """The one spelling: keys sorted, no spaces, UTF-8, a newline at the end."""
    return line(normal(value, where))


def line(value: object) -> bytes:
    """The one spelling of data that is known to be plain."""
    return spell(value, sort=True) + b"\n"


def spell(value: object, *, sort: bool = False) -> bytes:
    """Compact JSON of data that is known to be plain, keys in the order given or sorted."""
    text = json.dumps(value, sort_keys=sort, separators=(",", ":"), ensure_ascii=False, allow_nan=False)
    return text.encode("utf-8")


def parse(data: bytes, where: str) -> Any:
    """Strict JSON from a file; ModelFileError says what is wrong with it. Any spacing is accepted here."""
    if data.count(b",") > limits.MAX_JSON_ITEMS:  # counted before parsing: a small file must not fill the memory
        raise ModelFileError(f"{where}: more than {limits.MAX_JSON_ITEMS} values; this is not a file of ours.")
    try:
        found = json.loads(str(data, "utf-8"), parse_constant=_refuse, object_pairs_hook=_unique)
        return normal(found, "the value")
    except RecursionError as error:
        raise ModelFileError(f"{where}: not valid JSON: nested too deeply.") from error
    except (ValueError, ConfigError) as error:
        raise ModelFileError(f"{where}: not valid JSON: {str(error)[:300]}") from error


def _text(value: str, where: _Trail) -> str:
    if not value.isascii():
        try:
            value.encode("utf-8")
        except UnicodeEncodeError as error:
            raise ConfigError(f"{where} is not valid Unicode (lone surrogate).") from error
    return str(value)


def _key(key: object, where: _Trail) -> str:
    if not isinstance(key, str):
        raise ConfigError(f"{where} has the key {repr(key)[:80]}; keys must be text.")
    return _text(key, where)


def _refuse(constant: str) -> object:
    raise ValueError(f"{constant} is not allowed, numbers must be finite")


def _unique(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    table = dict(pairs)
    if len(table) < len(pairs):
        raise ValueError("a key stands twice in one table")
    return table
