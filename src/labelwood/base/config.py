"""Configs are frozen dataclasses; this file reads, checks, changes and prints them, and holds no setting itself.

A setting is declared once, beside the code it steers:

    threshold: PerLevel[float] = setting(0.1, "weights below this are dropped", low=0)

From that one line come the check, the `--set linear.threshold=...` option, the TOML key, the row printed by
`labelwood methods` and the entry in the model's manifest. Any `PerLevel` setting is one value or one per level.
"""

from __future__ import annotations

import dataclasses
import tomllib
import typing
from collections.abc import Callable, Collection, Hashable, Iterator, Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any, TypeVar, Union, cast

from .. import limits
from ..errors import ConfigError, nearest
from .setting_values import coerced, is_per_level, kind_words, options_of, parse_value, shown

C = TypeVar("C")
T = TypeVar("T")
PerLevel = Union[T, tuple[T, ...]]  # noqa: UP007 — an alias with a type parameter needs Union on 3.11


@dataclasses.dataclass(frozen=True)
class Acts:
    """Condition under which a setting, or a section of settings, makes a difference.

    `test` is given the section that holds the setting and the whole config; `where` completes "it acts …" for people.
    """

    test: Callable[[Any, Any], bool]
    where: str
    alone: bool = False  # of a setting: what its section says does not count


def setting(
    default: T,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    above: float | None = None,
    choices: tuple[str, ...] | None = None,
    acts: Acts | None = None,
    rank: int = 5,
) -> T:
    """A dataclass field with its meaning and what is allowed: low ≤ value ≤ high, value > above, or choices.

    `acts` says when it makes a difference (None: always); settings of a low `rank` are listed first.
    """
    meta = {"help": help, "low": low, "high": high, "above": above, "choices": choices, "acts": acts, "rank": rank}
    return dataclasses.field(default=default, metadata=meta)


def section(cls: type[C], help: str, *, acts: Acts | None = None, rank: int = 5) -> C:
    """A nested config; `acts` holds for all its settings, beside what each of them says."""
    return dataclasses.field(default_factory=cls, metadata={"help": help, "acts": acts, "rank": rank})


def idle(config: object) -> dict[str, str]:
    """The settings that can make no difference as the config stands, by dotted name, with where they would act."""
    found: dict[str, str] = {}
    for field in dataclasses.fields(cast(Any, config)):
        value = getattr(config, field.name)
        if not dataclasses.is_dataclass(value):
            where = _idle_by(field.metadata.get("acts"), config, config)
            found |= {} if where is None else {field.name: where}
            continue
        outer = _idle_by(field.metadata.get("acts"), value, config)
        for inner in dataclasses.fields(value):
            own: Acts | None = inner.metadata.get("acts")
            where = _idle_by(own, value, config) if outer is None or (own and own.alone) else outer
            found |= {} if where is None else {f"{field.name}.{inner.name}": where}
    return found


def _idle_by(rule: Acts | None, own: object, config: object) -> str | None:
    """Place where a setting of this rule would act; None if it acts as it is."""
    return None if rule is None or rule.test(own, config) else rule.where


def value_at(config: object, path: str) -> Any:
    """The value of the setting with this dotted name."""
    for name in path.split("."):
        config = getattr(config, name)
    return config


def replaced(config: C, values: Mapping[str, object]) -> C:
    """A copy with settings of checked values, by dotted name."""
    tables: dict[str, dict[str, object]] = {}
    for path, value in values.items():
        group, _, name = path.rpartition(".")
        tables.setdefault(group, {})[name] = value
    own = tables.pop("", {})
    inner = {group: dataclasses.replace(getattr(config, group), **table) for group, table in tables.items()}
    return cast(C, dataclasses.replace(cast(Any, config), **own, **inner))


def at(value: PerLevel[T], level: int, levels: int, name: str) -> T:
    """The value of a per-level setting at `level` (0-based) of `levels`."""
    if not isinstance(value, tuple):
        return value
    if len(value) != levels:
        raise ConfigError(
            f"{name} gives {len(value)} values {value} but the tree has {levels} levels; "
            f"give one value, or exactly {levels}."
        )
    return cast(T, value[level])


def each(value: PerLevel[T]) -> tuple[T, ...]:
    """The values of a per-level setting: one, or one for each level."""
    return value if isinstance(value, tuple) else (value,)


def at_path(config: object, path: str, level: int, levels: int) -> Any:
    """The value of the setting with this dotted name at `level` of `levels`."""
    return at(value_at(config, path), level, levels, path)


def check_levels(config: object, levels: int, where: str = "", *, skip: Collection[str] = ()) -> None:
    """ConfigError unless every per-level setting has one value, or one for each of the tree's levels."""
    for name, hint in _hints(type(config)).items():
        value, path = getattr(config, name), _join(where, name)
        if path in skip:
            continue
        if dataclasses.is_dataclass(value):
            check_levels(value, levels, path)
        elif is_per_level(hint):
            at(value, 0, levels, path)


def lists_by_level(config: object, where: str = "") -> Iterator[tuple[str, tuple[Any, ...]]]:
    """Every setting that is given as a list of values by level, with its values."""
    for name, hint in _hints(type(config)).items():
        value, path = getattr(config, name), _join(where, name)
        if dataclasses.is_dataclass(value):
            yield from lists_by_level(value, path)
        elif is_per_level(hint) and isinstance(value, tuple):
            yield path, value


def last_level(config: C) -> C:
    """A copy in which every list of values by level is its last one, that of the labels."""
    changes: dict[str, Any] = {}
    for name, hint in _hints(type(config)).items():
        value = getattr(config, name)
        if dataclasses.is_dataclass(value):
            changes[name] = last_level(value)
        elif is_per_level(hint) and isinstance(value, tuple):
            changes[name] = value[-1]
    return cast(C, dataclasses.replace(cast(Any, config), **changes))


def checked_config(cls: type[C], config: object, where: str) -> C:
    """A config made in Python, whose values nobody has looked at yet."""
    if not isinstance(config, cls):
        raise ConfigError(f"{where} must be a {cls.__name__}, but is {shown(config)}.")
    return from_dict(cls, to_dict(config), where)


def from_dict(cls: type[C], mapping: object, where: str = "") -> C:
    """Build a config from plain data (TOML, JSON, manifest); unknown keys and wrong types are errors."""
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{where or 'the config'} must be a table of settings, but is {shown(mapping)}.")
    hints = _hints(cls)
    for key in mapping:
        if key not in hints:
            label = f"{where}.{key}" if where else str(key)
            raise ConfigError(f"there is no setting {label[:200]!r}; {nearest(str(key)[:200], hints)}")
    for field in dataclasses.fields(cast(Any, cls)):
        if field.name not in mapping and field.default is field.default_factory is dataclasses.MISSING:
            raise ConfigError(f"the setting {_join(where, field.name)!r} is missing.")
    values = {key: _coerce(hints[key], value, _join(where, key), _meta(cls, key)) for key, value in mapping.items()}
    return cls(**values)


def to_dict(config: object) -> dict[str, Any]:
    """Plain data, every setting resolved; `from_dict` undoes it."""
    fields = dataclasses.fields(cast(Any, config))
    return {f.name: _plain(getattr(config, f.name)) for f in fields}


def with_settings(config: C, changes: Mapping[str, object]) -> C:
    """A copy with dotted settings changed: {"linear.threshold": "0.05"}. Text is read like TOML values."""
    if not isinstance(changes, Mapping):
        raise ConfigError(f"settings must be a table of dotted names and values, but are {shown(changes)}.")
    known = set(_leaves(config))
    for key, value in changes.items():
        path = str(key)
        if path not in known:
            raise ConfigError(_unknown(path, known))
        config = _with(config, path.split("."), value, path)
    return config


def merge(config: C, mapping: object, where: str = "") -> C:
    """A copy with a table of settings laid over it, nested or dotted; what is not named keeps its value."""
    return with_settings(config, dotted(config, mapping, where))


def dotted(config: object, mapping: object, where: str = "") -> dict[str, object]:
    """The settings of a table, nested or dotted, by their dotted names; groups are those of `config`."""
    groups = {leaf.rpartition(".")[0] for leaf in _leaves(config)}
    return dict(_dotted(mapping, where, groups))


def _dotted(mapping: object, where: str, groups: set[str]) -> Iterator[tuple[str, object]]:
    """The settings of a nested table by their dotted names."""
    if not isinstance(mapping, Mapping):
        raise ConfigError(f"{where or 'the config'} must be a table of settings, but is {shown(mapping)}.")
    for key, value in mapping.items():
        path = _join(where, key)
        if path in groups:
            yield from _dotted(value, path, groups)
        else:
            yield path, value


def read_toml(path: Path) -> dict[str, Any]:
    """A config file as plain data."""
    try:
        if path.stat().st_size > limits.MAX_CONFIG_BYTES:
            raise ConfigError(f"{path} is larger than {limits.MAX_CONFIG_BYTES} bytes; a config is a short TOML file.")
        return tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise ConfigError(f"cannot read the config {path}: {error.strerror}.") from error
    except (ValueError, RecursionError) as error:
        raise ConfigError(f"{path} is not valid TOML: {error}") from error


@dataclasses.dataclass(frozen=True)
class SettingRow:
    """One line of `labelwood methods NAME`."""

    path: str
    default: object
    help: str
    allowed: str
    rank: tuple[int, int] = (5, 5)  # of its section, and its own: low ones are listed first


def describe(config: object, where: str = "", rank: int = 0) -> Iterator[SettingRow]:
    """Every setting of a config: dotted name, value, meaning and what is allowed."""
    for field in dataclasses.fields(cast(Any, config)):
        value, path = getattr(config, field.name), _join(where, field.name)
        if dataclasses.is_dataclass(value):
            yield from describe(value, path, field.metadata.get("rank", 5))
        elif "help" in field.metadata:
            own = (rank, field.metadata["rank"])
            yield SettingRow(path, value, field.metadata["help"], _allowed(type(config), field.name), own)


def _leaves(config: object, where: str = "") -> Iterator[str]:
    """The dotted name of every setting."""
    for field in dataclasses.fields(cast(Any, config)):
        value, path = getattr(config, field.name), _join(where, field.name)
        if dataclasses.is_dataclass(value):
            yield from _leaves(value, path)
        else:
            yield path


def _unknown(path: str, known: set[str]) -> str:
    """Message about a setting that is not there: the nearest by its whole name, else by its last part."""
    path = path[:200]
    group = sorted(leaf for leaf in known if leaf.startswith(f"{path}."))
    if group:
        return f"{path!r} is a group of settings; name one of: {', '.join(group)}."
    last = {leaf.rpartition(".")[2]: leaf for leaf in sorted(known)}
    close = get_close_matches(path, known, n=1) or get_close_matches(path.rpartition(".")[2], last, n=1)
    hint = f"; did you mean {last.get(close[0], close[0])!r}?" if close else "."
    groups = ", ".join(dict.fromkeys(leaf.partition(".")[0] for leaf in sorted(known - {"method"})))
    return f"there is no setting {path!r}{hint} `labelwood methods NAME` lists all; their groups are: {groups}."


def _with(config: C, path: list[str], value: object, whole: str) -> C:
    """A copy with one setting, which is known to be there, changed."""
    key, rest = path[0], path[1:]
    if rest:
        new: object = _with(getattr(config, key), rest, value, whole)
    else:
        meta, hint = _meta(type(config), key), _hints(type(config))[key]
        words = meta.get("choices") or (("none",) if hint is str else ())  # there "none" is a word
        plain = not isinstance(value, str) or value in words
        new = _coerce(hint, value if plain else parse_value(cast(str, value)), whole, meta)
    return cast(C, dataclasses.replace(cast(Any, config), **{key: new}))


def _hints(cls: type[Any]) -> dict[str, Any]:
    return _hints_once(cast(Hashable, cls))


@cache
def _hints_once(cls: Any) -> dict[str, Any]:
    hints = typing.get_type_hints(cls)
    return {f.name: hints[f.name] for f in dataclasses.fields(cls)}


def _meta(cls: type[Any], key: str) -> Mapping[str, Any]:
    return next(f.metadata for f in dataclasses.fields(cls) if f.name == key)


def _coerce(hint: Any, value: object, path: str, meta: Mapping[str, Any]) -> object:
    """`value` as the annotated type, checked."""
    if dataclasses.is_dataclass(hint):
        return from_dict(cast(type[Any], hint), value, path)
    return coerced(hint, value, path, meta)


def _allowed(cls: type[Any], key: str) -> str:
    hint = _hints(cls)[key]
    options = options_of(hint)
    return kind_words(options, _meta(cls, key))


def _plain(value: object) -> object:
    if dataclasses.is_dataclass(value):
        return to_dict(value)
    return list(value) if isinstance(value, tuple) else value


def _join(where: str, key: object) -> str:
    return f"{where}.{key}" if where else str(key)
