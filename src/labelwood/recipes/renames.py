"""Old names of settings and of their values: they are read wherever they stand, and every use gives the new name.

A name has one meaning in the whole project. Where it had two, one of them was renamed; configs and model folders of
earlier releases are still read through this table.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from typing import Any

from ..errors import ConfigError

_MOVED = {
    "optimiser": (
        "lr", "head_lr", "first_head_lr", "warmup", "schedule", "fall", "clip", "weight_decay", "head_moments",
        "average_from", "mixed",
    ),
    "levelwise": ("source", "matcher", "bootstrap", "bootstrap_c", "max_clusters", "refine"),
    "joint": ("layers", "maps", "level_weights", "truth"),
}  # fmt: skip

NAMES: dict[str, str] = {
    **{f"finetune.{name}": f"{section}.{name}" for section, names in _MOVED.items() for name in names},
    "finetune.head_decay": "finetune.lam",
    "finetune.head_shrink": "optimiser.head_weight_decay",
    "finetune.width": "finetune.parents",
    "finetune.readout": "joint.score",
    "finetune.share": "network_share",
    "shortlist.width": "shortlist.parents",
    "search.readout": "search.score",
    "tail.alpha": "tail.classifier_share",
    "tail.beta": "tail.propensity_power",
    "tail.gamma": "tail.sharpness",
}

# Of a setting by its new name: an old value, and the settings that say the same now.
VALUES: dict[str, dict[str, dict[str, str]]] = {
    "finetune.order": {"recursive": {"finetune.order": "levelwise"}},
    "finetune.loss": {"bce": {"finetune.loss": "logistic"}},
    "finetune.relevance": {
        "l1": {"finetune.relevance": "induce"},
        "counts": {"finetune.relevance": "induce", "finetune.relevance_norm": "none"},
    },
    "search.score": {"leaf": {"search.score": "label"}},
}


def current(settings: Mapping[str, Any], *, warn: bool = True) -> dict[str, Any]:
    """Settings by dotted name, in today's names and values."""
    found: dict[str, Any] = {}
    for name, value in settings.items():
        new = NAMES.get(str(name), str(name))
        changes = _value(new, value)
        told = " and ".join(f"{key} = {text}" if text != value else key for key, text in changes.items())
        if warn and told != str(name):
            was = f"{name} = {value}" if new == name else name
            warnings.warn(f"the setting {was} is called {told} now; the old name is still read.", stacklevel=3)
        for key, own in changes.items():
            if key in found and found[key] != own:
                raise ConfigError(f"{key} is set twice, to {found[key]!r} and (as {name}) to {own!r}; leave out one.")
            found[key] = own
    return found


def current_table(table: Mapping[str, Any]) -> dict[str, Any]:
    """A nested table of settings, as a manifest keeps it, in today's names; what is no table of them is left alone."""
    found: dict[str, Any] = {}
    for name, value in table.items():
        if not isinstance(value, Mapping):
            found[name] = value
            continue
        section = found.setdefault(str(name), {})
        if not isinstance(section, dict):
            raise ConfigError(f"{name} is given twice, as a value and as a table.")
        for key, own in value.items():
            for path, new in _value(NAMES.get(f"{name}.{key}", f"{name}.{key}"), own).items():
                _put(found, path, new)
    return found


def _put(table: dict[str, Any], path: str, value: Any) -> None:
    section, _, key = path.rpartition(".")
    place = table.setdefault(section, {}) if section else table
    if not isinstance(place, dict):
        raise ConfigError(f"{section} is given twice, as a value and as a table.")
    place[key] = value


def _value(name: str, value: Any) -> dict[str, Any]:
    """The settings that say today what `name` = `value` says; a list is looked at value by value."""
    old = VALUES.get(name, {})
    parts = value.split(",") if isinstance(value, str) else value if isinstance(value, list | tuple) else [value]
    if not any(isinstance(part, str) and part in old for part in parts):
        return {name: value}
    if len(parts) == 1:
        return dict(old[parts[0]])
    return {name: tuple(old.get(part, {name: part}).get(name, part) for part in parts)}
