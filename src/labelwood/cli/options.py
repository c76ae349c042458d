"""Command-line options made from config dataclasses: name, help, default and check are those of the setting.

    @expand("options", ReadOptions(), DATA_FLAGS)
    def evaluate(..., *, options: ReadOptions) -> None: ...

turns the parameter `options` into one option per entry of DATA_FLAGS.
"""

from __future__ import annotations

import functools
import inspect
import types
import typing
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer

from .. import limits
from ..base.config import describe, from_dict, to_dict
from ..base.setting_values import parse_value
from ..errors import ConfigError

C = TypeVar("C")

DATA_FLAGS = {
    "format": "--format",
    "text": "--text-field",
    "labels": "--labels-field",
    "id": "--id-field",
    "relevance": "--relevance-field",
    "separator": "--separator",
    "on_bad": "--on-bad",
    "split": "--split",
}
ENSEMBLE_FLAGS = {"average": "--average", "weights": "--weights", "candidates": "--candidates"}
METRIC_FLAGS = {
    "ks": "--ks",
    "unseen": "--unseen",
    "propensity": "--propensity",
    "a": "--propensity-a",
    "b": "--propensity-b",
    "psndcg": "--psndcg",
    "bootstrap": "--bootstrap",
    "seed": "--bootstrap-seed",
    "level": "--level",
}


def whole(low: int, high: int) -> Callable[[Any], int]:
    """Reads a whole number from low to high; wrong usage says the value and what is allowed."""

    def parse(value: Any) -> int:
        try:
            number = int(value)
        except ValueError:
            number = low - 1
        if not low <= number <= high:
            raise typer.BadParameter(f"it must be a whole number from {low} to {high}, but is {str(value)[:80]!r}.")
        return number

    return parse


def choice(allowed: tuple[str, ...]) -> Callable[[Any], str]:
    """Reads one of a few words; wrong usage says the value and what is allowed."""

    def parse(value: Any) -> str:
        if value not in allowed:
            raise typer.BadParameter(f"it must be {', '.join(allowed[:-1])} or {allowed[-1]}, but is {value!r}.")
        return str(value)

    return parse


def place(value: Any) -> Path:
    """Reads the path of a file or folder; an empty one, such as an unset variable of a script gives, is wrong usage."""
    if value == "":
        raise typer.BadParameter("it is empty; name a file or a folder.")
    return Path(value)


ModelFolder = Annotated[
    Path, typer.Argument(metavar="MODEL", parser=place, help="Folder of a trained model.", show_default=False)
]
NewModel = Annotated[
    Path, typer.Option("--model", "-m", metavar="DIR", parser=place, help="Folder to write.", show_default=False)
]
TrainingData = Annotated[
    Path,
    typer.Argument(
        metavar="TRAIN", parser=place, help="Training data, a file or folder; '-' is stdin.", show_default=False
    ),
]
TestData = Annotated[
    Path,
    typer.Argument(
        metavar="TEST", parser=place, help="Held-out data, a file or folder; '-' is stdin.", show_default=False
    ),
]
MethodName = Annotated[str, typer.Option("--method", metavar="NAME", help="See `labelwood methods`.")]
PresetName = Annotated[
    str | None,
    typer.Option(
        "--preset", metavar="NAME", help="Named settings of the method: one, or a,b,… where a later one wins."
    ),
]
ConfigFile = Annotated[
    Path | None, typer.Option("--config", metavar="FILE", parser=place, help="Settings in a TOML file.")
]
Settings = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="NAME=VALUE", help="One setting, e.g. linear.threshold=0.05 (may be repeated)."),
]
Threads = Annotated[
    int,
    typer.Option(
        "--threads", metavar="N", parser=whole(0, limits.MAX_THREADS), show_default=False,
        help="Threads; the default is all cores. Changes no result.",
    ),
]  # fmt: skip

Memory = Annotated[
    str | None,
    typer.Option(
        "--memory", metavar="SIZE", show_default=False,
        help="Memory that training may hold, e.g. 8GB: it refuses at once if that cannot do. Changes no result.",
    ),
]  # fmt: skip

TimeAllowed = Annotated[
    str | None,
    typer.Option("--time", metavar="T", help="How long fine-tuning may take, e.g. 10m or 1.5h: it fixes the steps."),
]
Device = Annotated[str, typer.Option("--device", metavar="cpu|cuda|mps", help="Where an encoder is trained.")]
LogsFolder = Annotated[
    Path | None,
    typer.Option("--logs", metavar="DIR", parser=place, help="Write TensorBoard's events of a fine-tuning there."),
]
KeepEvery = Annotated[
    float,
    typer.Option(
        "--keep-every",
        metavar="SECONDS",
        min=0,
        help="Time between two kept states of a fine-tuning, from which --resume continues.",
    ),
]
Seed = Annotated[
    int | None,
    typer.Option("--seed", metavar="N", parser=whole(0, limits.MAX_SEED), help="Every random choice follows from it."),
]
HeldOutFile = Annotated[
    Path | None,
    typer.Option(
        "--valid", metavar="FILE", parser=place,
        help="Held-out data to measure on, and to choose checkpoints by (a folder's test part is only measured on).",
    ),
]  # fmt: skip
LabelTextsFile = Annotated[
    Path | None,
    typer.Option(
        "--label-texts", metavar="FILE", parser=place,
        help="Texts of labels (JSON, CSV, TSV), shown by `predict`; labels.kind = text trains on them.",
    ),
]  # fmt: skip
TaxonomyFile = Annotated[
    Path | None,
    typer.Option(
        "--taxonomy", metavar="FILE", parser=place,
        help="Your own label tree, child and parent (TSV, CSV, JSON): it shapes all trees; see docs/reference/data.md.",
    ),
]  # fmt: skip


def expand(parameter: str, base: object, flags: Mapping[str, str]) -> Callable[[Callable[..., None]], Any]:
    """Replace `parameter` of a command by an option for each setting in `flags`; what is not given is as in `base`."""

    def wrap(function: Callable[..., None]) -> Any:
        @functools.wraps(function)
        def command(**given: Any) -> None:
            texts = {name: given.pop(_key(parameter, name)) for name in flags}
            function(**given, **{parameter: _built(base, texts, flags)})

        signature = inspect.signature(function, eval_str=True)
        kept = [p for p in signature.parameters.values() if p.name != parameter]
        command.__dict__["__signature__"] = signature.replace(parameters=[*kept, *_options(parameter, base, flags)])
        command.__annotations__ = {p.name: p.annotation for p in kept}
        return command

    return wrap


def _key(parameter: str, name: str) -> str:
    return f"{parameter}_{name}"


def _options(parameter: str, base: object, flags: Mapping[str, str]) -> list[inspect.Parameter]:
    rows = {row.path: row for row in describe(base)}
    made = []
    for name, flag in flags.items():
        row, many = rows[name], _is_list_of_text(type(base), name)
        text = _help(row.help, row.default, many)
        option = typer.Option(None, flag, help=text, metavar=_metavar(base, name), show_default=False)
        kind: Any = list[str] | None if many else str | None
        made.append(
            inspect.Parameter(_key(parameter, name), inspect.Parameter.KEYWORD_ONLY, default=option, annotation=kind)
        )
    return made


def _help(text: str, default: object, many: bool) -> str:
    text = text[0].upper() + text[1:] + (" (may be repeated)" if many else "")
    if default is None:
        return f"{text}."
    spelled = ",".join(map(str, default)) if isinstance(default, tuple) else str(default)
    return f"{text}.  [default: {spelled}]"


def _metavar(base: object, name: str) -> str:
    field = next(f for f in type(base).__dataclass_fields__.values() if f.name == name)  # type: ignore[attr-defined]
    if field.metadata.get("choices"):
        return "|".join(field.metadata["choices"])
    kinds = _kinds(type(base), name)
    if any(typing.get_origin(kind) is tuple and {int, float} & set(typing.get_args(kind)) for kind in kinds):
        return "N,N,…"
    return "TEXT" if _holds_text(type(base), name) else "N"


def _kinds(cls: type[Any], name: str) -> tuple[Any, ...]:
    hint = typing.get_type_hints(cls)[name]
    union = typing.get_origin(hint) in {typing.Union, types.UnionType}
    return typing.get_args(hint) if union else (hint,)


def _is_list_of_text(cls: type[Any], name: str) -> bool:
    return any(typing.get_origin(kind) is tuple and str in typing.get_args(kind) for kind in _kinds(cls, name))


def _holds_text(cls: type[Any], name: str) -> bool:
    return str in _kinds(cls, name) or _is_list_of_text(cls, name)


def _built(base: C, texts: Mapping[str, Any], flags: Mapping[str, str]) -> C:
    """The config with what was given laid over it; a wrong value is wrong usage and names its flag."""
    cls = type(base)
    values: dict[str, object] = {}
    for name, text in texts.items():
        if text is None or text == []:
            continue
        try:
            values[name] = _parsed(cls, name, text)
            from_dict(cls, {name: values[name]})
        except ConfigError as error:
            raise typer.BadParameter(str(error), param_hint=flags[name]) from error
    return from_dict(cls, {**to_dict(base), **values})


def _parsed(cls: type[Any], name: str, text: Any) -> object:
    kinds = _kinds(cls, name)
    if type(None) in kinds and text in ("none", ["none"]):
        return None
    if _holds_text(cls, name):  # as it stands: a field may be called 1, or true
        return text
    value = parse_value(text)
    return (value,) if typing.get_origin(kinds[0]) is tuple and not isinstance(value, tuple) else value


def parse_settings(pairs: list[str]) -> dict[str, object]:
    """`--set key=value …` as dotted settings."""
    found: dict[str, object] = {}
    for pair in pairs:
        key, equals, value = pair.partition("=")
        if not equals or not key.strip():
            raise typer.BadParameter(f"{pair!r} is not of the form name=value.", param_hint="--set")
        found[key.strip()] = value
    return found
