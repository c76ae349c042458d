"""Writes docs/reference/api.md from the docstrings of what `labelwood` exports: `.venv/bin/python tools/api_page.py`.

Every public name stands there with its signature; classes with their fields, properties and methods.
"""

from __future__ import annotations

import dataclasses
import inspect
import sys
from functools import cached_property
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs/reference/api.md"
WIDTH = 100

HEAD = """\
# The Python API

For users of Python: every public name of `import labelwood as lw`. This page is written by `tools/api_page.py` from the
docstrings. What else is public is named in [Data](data.md) (`labelwood.data`) and [Metrics](metrics.md)
(`labelwood.metrics.ranking`).

Every call ends well or raises a `LabelwoodError`, whose message says what is wrong, the value, what is allowed and the
way out.
"""
CONFIGS = ("Config", "Options", "Run")


def _is_error(found: object) -> bool:
    return inspect.isclass(found) and issubclass(found, Exception)


def _is_thing(found: object) -> bool:
    return inspect.isclass(found) and not _is_config(found) and not _is_error(found)


def _is_config(found: object) -> bool:
    return inspect.isclass(found) and dataclasses.is_dataclass(found) and found.__name__.endswith(CONFIGS)


GROUPS = {
    "Verbs": inspect.isfunction,
    "Models and data": _is_thing,
    "Options": _is_config,
    "Errors": _is_error,
}


def page() -> str:
    """The whole page."""
    import labelwood

    public = {name: getattr(labelwood, name) for name in labelwood.__all__}
    parts = [HEAD]
    for title, belongs in GROUPS.items():
        names = [name for name, found in public.items() if belongs(found)]
        parts.append(f"## {title}\n")
        parts += [_errors(public, names)] if title == "Errors" else [_entry(name, public[name]) for name in names]
    parts.append("## The version\n\n`lw.__version__` is the version of the library, as text.\n")
    return "\n".join(parts)


def _entry(name: str, found: Any) -> str:
    head = f"### `{name}`\n"
    if inspect.isfunction(found):
        return f"{head}\n{_code(_call(name, found))}\n{_text(found)}\n"
    fields = _fields(found) if dataclasses.is_dataclass(found) else ""
    return "\n".join(part for part in (head, _text(found) + "\n", fields, _members(found)) if part)


def _fields(found: Any) -> str:
    """A row for each field of a dataclass: name, type, default, meaning."""
    rows = ["| field | type | default | meaning |", "|---|---|---|---|"]
    for field in dataclasses.fields(found):
        default = ""
        if field.default is not dataclasses.MISSING:
            default = f"`{_default(field.default)}`"
        meaning = str(field.metadata.get("help", "")) or _said(found, field.name)
        rows.append(f"| `{field.name}` | `{_cell(str(field.type))}` | {_cell(default)} | {_cell(meaning)} |")
    return "\n".join(rows) + "\n"


def _said(found: Any, name: str) -> str:
    """The comment behind a field in its class."""
    for line in inspect.getsource(found).splitlines():
        if line.strip().startswith(f"{name}:"):
            return line.partition("  # ")[2].strip()
    return ""


def _members(found: Any) -> str:
    """Methods and properties: its own, and by name alone those of the classes above it that are on this page too."""
    rows = []
    for name, member in _public(vars(found)):
        if isinstance(member, property | cached_property):
            getter = member.fget if isinstance(member, property) else member.func
            rows.append(f"- `{name}`{_after(_first(getter))}")
            continue
        bound = isinstance(member, staticmethod | classmethod)
        function = member.__func__ if bound else member
        shown = f"{found.__name__}.{name}" if bound else f".{name}"
        rows.append(f"- `{_line(_call(shown, function))}`{_after(_first(function))}")
    for above in found.__mro__[1:]:
        if above.__module__.startswith("labelwood"):
            names = [f"`{name}`" for name, _ in _public(vars(above)) if name not in vars(found)]
            rows.append(f"- as every `{above.__name__}`: {', '.join(names)}")
    return "\n".join(rows) + "\n" if rows else ""


def _public(names: Any) -> list[tuple[str, Any]]:
    """Methods and properties that a user may call, in the order of the source."""
    kinds = (property, cached_property, staticmethod, classmethod)
    return [
        (name, member)
        for name, member in names.items()
        if not name.startswith("_") and (isinstance(member, kinds) or inspect.isfunction(member))
    ]


def _after(text: str) -> str:
    return f": {text}" if text else ""


def _call(name: str, function: Any) -> str:
    """The signature, on one line or one parameter a line."""
    signature, parameters, starred = inspect.signature(function), [], False
    for key, value in signature.parameters.items():
        if key in {"self", "cls"}:
            continue
        if value.kind is inspect.Parameter.KEYWORD_ONLY and not starred:
            parameters.append("*")
            starred = True
        default = "" if value.default is inspect.Parameter.empty else f" = {_default(value.default)}"
        parameters.append(f"{key}: {value.annotation}{default}")
    result = signature.return_annotation
    back = "" if result is inspect.Signature.empty else f" -> {result}"
    line = f"{name}({', '.join(parameters)}){back}"
    return line if len(line) <= WIDTH else f"{name}(\n" + "".join(f"    {p},\n" for p in parameters) + f"){back}"


def _default(value: object) -> str:
    """A default as one would write it: a config of defaults is only its name."""
    if dataclasses.is_dataclass(value) and not isinstance(value, type):
        plain = all(f.default is not dataclasses.MISSING for f in dataclasses.fields(value))
        return f"{type(value).__name__}()" if plain and value == type(value)() else f"{type(value).__name__}(…)"
    return repr(value) if len(repr(value)) <= 40 and not repr(value).startswith("<") else "…"


def _line(call: str) -> str:
    return " ".join(call.split()).replace("( ", "(").replace(", )", ")")


def _code(text: str) -> str:
    return f"```python\n{text}\n```\n"


def _text(found: Any) -> str:
    """The docstring: paragraphs as they are, tables of parameters as code."""
    text = inspect.getdoc(found) or ""
    parts = []
    for paragraph in text.split("\n\n"):
        lines = paragraph.splitlines()
        table = len(lines) > 1 and any("  " in line.strip() for line in lines)
        parts.append(f"```text\n{paragraph}\n```" if table else paragraph)
    return "\n\n".join(parts)


def _first(function: Any) -> str:
    """The first paragraph of a docstring, on one line."""
    return " ".join((inspect.getdoc(function) or "").split("\n\n")[0].split())


def _cell(text: str) -> str:
    return text.replace("|", "\\|")


def _errors(public: dict[str, Any], names: list[str]) -> str:
    rows = "".join(f"| `{name}` | {_first(public[name])} |\n" for name in names)
    return f"| error | raised when |\n|---|---|\n{rows}"


if __name__ == "__main__":
    PAGE.write_text(page(), encoding="utf-8")
    sys.stdout.write(f"{PAGE.relative_to(ROOT)} is written\n")
