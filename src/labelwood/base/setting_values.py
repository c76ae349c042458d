"""Values of settings: read from text, brought to their annotated type, checked, and described in words."""

from __future__ import annotations

import math
import re
import tomllib
import types
import typing
from collections.abc import Mapping
from typing import Any, Union

from ..errors import ConfigError


def parse_value(text: str) -> object:
    """Read the right side of `--set key=value`: none, true, 3, 0.1, a,b,c, [1, 2] or plain text."""
    text = text.strip()
    if text.lower() in {"none", "null"}:
        return None
    if text.lower() in {"true", "false"}:
        return text.lower() == "true"
    if "," in text and not text.startswith(("[", '"', "'")):
        return tuple(parse_value(part) for part in text.split(",") if part.strip())
    try:
        table = tomllib.loads(f"v = {text}\n")
    except (tomllib.TOMLDecodeError, RecursionError):
        return text
    return table["v"] if len(table) == 1 else text


def coerced(hint: Any, value: object, path: str, meta: Mapping[str, Any]) -> object:
    """`value` as the annotated type, checked; ConfigError names the path, the value and what is allowed."""
    options = options_of(hint)
    if value is None and type(None) in options:
        return None
    lists = any(typing.get_origin(o) is tuple for o in options)
    if isinstance(value, str) and str not in options and lists:
        value = tuple(parse_value(part) for part in re.split(r"[,\-]", value) if part)  # levels: 16-256-3956
    if isinstance(value, int) and lists and int not in options and float not in options:
        value = (value,)  # a list of one: --set tree.levels=16
    if isinstance(value, list | tuple):
        for option in options:
            if typing.get_origin(option) is tuple:
                if not value:
                    break
                inner = typing.get_args(option)[0]
                if inner is str:  # --set joint.layers=5+6,8
                    value = [str(item) if type(item) is int else item for item in value]
                return tuple(_scalar((inner,), item, path, meta) for item in value)
    return _scalar(options, value, path, meta)


def _scalar(options: tuple[Any, ...], value: object, path: str, meta: Mapping[str, Any]) -> object:
    kinds = [o for o in options if o in {bool, int, float, str}]
    if value is None and "none" in (meta.get("choices") or ()):
        value = "none"  # the word, as in linear.weighting=none,pw
    result: object
    if isinstance(value, bool):
        ok, result = bool in kinds, value
    elif isinstance(value, int):
        ok = int in kinds or float in kinds
        result = value if int in kinds else (float(value) if abs(value) < 2**1000 else math.inf)
    elif isinstance(value, float):
        whole = int in kinds and float not in kinds and value.is_integer()
        ok, result = (float in kinds or whole), (int(value) if whole else value)
    else:
        ok, result = (isinstance(value, str) and str in kinds), value
    if not ok or _out_of_range(result, meta):
        raise ConfigError(f"{path} must be {kind_words(options, meta)}, but is {shown(value)}.")
    return result


def _out_of_range(value: object, meta: Mapping[str, Any]) -> bool:
    choices = meta.get("choices")
    if isinstance(value, str):
        return choices is not None and value not in choices
    if isinstance(value, bool) or not isinstance(value, int | float):
        return False
    if isinstance(value, float) and not math.isfinite(value):
        return True
    low, high, above = meta.get("low"), meta.get("high"), meta.get("above")
    too_low = (low is not None and value < low) or (above is not None and value <= above)
    return too_low or (high is not None and value > high)


def is_per_level(hint: Any) -> bool:
    """Is it a value or a tuple of such values? What is a tuple always, like tree.levels, has its own meaning."""
    options = options_of(hint)
    return any(typing.get_origin(o) is tuple for o in options) and any(o in {bool, int, float, str} for o in options)


def options_of(hint: Any) -> tuple[Any, ...]:
    """The types that an annotation allows."""
    return typing.get_args(hint) if typing.get_origin(hint) in {Union, types.UnionType} else (hint,)


def kind_words(options: tuple[Any, ...], meta: Mapping[str, Any]) -> str:
    """Words for what a setting allows."""
    names = {bool: "true or false", int: "a whole number", float: "a number", str: "text"}
    choices, low, high, above = (meta.get(k) for k in ("choices", "low", "high", "above"))
    words = [" or ".join(choices)] if choices else []
    words += [names[o] for o in options if o in names and not (o is str and choices)]
    bounds = (("≥", low), (">", above), ("≤", high))
    limit = [f"{sign} {x}" if isinstance(x, int) else f"{sign} {x:g}" for sign, x in bounds if x is not None]
    text = " or ".join(words) + (f" {' and '.join(limit)}" if limit and not choices else "")
    if any(typing.get_origin(o) is tuple for o in options):
        each = kind_words(typing.get_args(_tuple_of(options)), meta)
        text = f"{text}, or a list of them" if words else f"a list: {each}"
    return f"{text}, or none" if type(None) in options else text


def _tuple_of(options: tuple[Any, ...]) -> Any:
    return next(o for o in options if typing.get_origin(o) is tuple)


def shown(value: object) -> str:
    """A value for people, not too long."""
    text = repr(value) if not isinstance(value, Mapping | list) else f"a {type(value).__name__}"
    return text if len(text) <= 80 else text[:77] + "..."
