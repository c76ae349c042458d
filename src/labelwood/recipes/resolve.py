"""Resolving the name of a method into its recipe: presets, a config, single settings, and what of them can act."""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from ..base.config import dotted, from_dict, idle, read_toml, replaced, value_at, with_settings
from ..errors import ConfigError, nearest
from .checks import check
from .methods import METHODS, Method, method
from .recipe import Recipe
from .renames import current, current_table


def resolve(
    name: str = "xr-linear",
    *,
    preset: str | Sequence[str] | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
    taxonomy: bool = False,
) -> Recipe:
    """A recipe from its defaults, then presets from left to right, then a config (TOML file or table), then settings.

    What the config and the settings name must be able to act: ConfigError with all that cannot, and all that clashes.
    With a taxonomy the label trees are the user's own.
    """
    found = method(name)
    recipe = with_settings(found.recipe, _presets(name, found, preset))
    given: dict[str, object] = {}
    if config is not None:
        table = read_toml(Path(config)) if isinstance(config, str | Path) else config
        given |= _configured(name, recipe, table)
    if settings is not None:
        if not isinstance(settings, Mapping):
            raise ConfigError(f"settings must be a table of dotted names and values, but are {str(settings)[:80]!r}.")
        given |= current(settings)
    if seed is not None:
        given["seed"] = seed
    recipe = with_settings(recipe, given)
    if recipe.method != name:
        raise ConfigError(f"the config is for method {recipe.method!r}, but {name!r} was asked for.")
    recipe = _on_taxonomy(recipe, given) if taxonomy else recipe
    check(recipe, given=given.keys())
    return tidy(recipe)


def acting(name: str, settings: Mapping[str, object], **options: Any) -> dict[str, object]:
    """The settings that can act in a method as they stand together: what several methods are given."""
    given = current(settings)
    recipe = with_settings(resolve(name, **options), given)
    skipped = idle(recipe)
    return {path: value for path, value in given.items() if path not in skipped}


def tidy(recipe: Recipe) -> Recipe:
    """The recipe with what cannot act as its method has it: two recipes that train the same are the same."""
    known = METHODS.get(recipe.method)
    if known is None:
        return recipe
    idle_ones = idle(recipe).keys()
    found = replaced(recipe, {path: value_at(known.recipe, path) for path in idle_ones})
    return found if idle(found).keys() == idle_ones else recipe


def from_plain(table: object) -> Recipe:
    """A recipe read back from a manifest: every key known, by its name of today or an earlier one."""
    return tidy(from_dict(Recipe, current_table(table) if isinstance(table, Mapping) else table))


def _presets(name: str, found: Method, asked: str | Sequence[str] | None) -> dict[str, object]:
    """The settings of presets, a list or names with commas between; a later one holds, and is warned about."""
    presets = {**found.presets, **found.published}
    if asked is None:
        return {}
    listed = asked.split(",") if isinstance(asked, str) else asked
    if not isinstance(listed, list | tuple):
        raise ConfigError(f"preset must be a name or a list of names, but is {str(asked)[:80]!r}.")
    settings: dict[str, object] = {}
    by: dict[str, str] = {}
    for preset in listed:
        key = preset.strip() if isinstance(preset, str) else preset
        if not isinstance(key, str) or key not in presets:
            raise ConfigError(f"{name} has no preset {str(key)[:80]!r}; {nearest(str(key)[:80], presets)}")
        for path, value in presets[key].items():
            if path in settings and settings[path] != value:
                warnings.warn(
                    f"the presets {by[path]} and {key} both set {path}: {value!r} of {key} holds, not "
                    f"{settings[path]!r}.",
                    stacklevel=4,
                )
            settings[path], by[path] = value, key
    return settings


def _configured(name: str, recipe: Recipe, table: Mapping[str, Any]) -> dict[str, object]:
    """The settings of a config for one method: those for all, then those of its own table `[method.NAME]`."""
    own: object = {}
    if isinstance(table, Mapping) and isinstance(table.get("method"), Mapping):
        tables = table["method"]
        for other in tables:
            method(other)  # a misspelt one would be left out without a word
        own = tables.get(name, {})
        table = {key: value for key, value in table.items() if key != "method"}
    return current(dotted(recipe, table)) | current(dotted(recipe, own))


def _on_taxonomy(recipe: Recipe, given: Mapping[str, object]) -> Recipe:
    """The recipe with the user's own tree wherever it grows one, but where the user asks for another kind."""
    used = {"tree.kind": recipe.own_tree, "coarse.kind": recipe.grows_coarse}
    paths = [path for path, grown in used.items() if grown]
    recipe = replaced(recipe, {path: "taxonomy" for path in paths if path not in given})
    if not any(value_at(recipe, path) == "taxonomy" for path in paths):
        kinds = " and ".join(f"{path} is set to {value_at(recipe, path)!r}" for path in paths)
        raise ConfigError(f"a taxonomy is given, but {kinds}; leave out one of the two.")
    return recipe
