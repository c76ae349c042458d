"""Every method side by side. A paper is a recipe — data over the same parts — not a module of its own.

`Recipe` holds everything that changes the bits of a model and goes into its manifest, fully resolved. What does not
(threads, paths, progress) is `Run`, in train.py, and never does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from . import limits
from .config import from_dict, merge, read_toml, section, setting, with_settings
from .errors import ConfigError, nearest
from .features import TfidfConfig
from .labels import LabelFeatureConfig
from .linear import LinearConfig, SearchConfig
from .shortlist import ShortlistConfig
from .tail import TailConfig
from .tree import TreeConfig


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One method with all its settings."""

    method: str
    seed: int = setting(0, "every random choice follows from this", low=0, high=limits.MAX_SEED)
    tfidf: TfidfConfig = section(TfidfConfig, "text to sparse features")
    labels: LabelFeatureConfig = section(LabelFeatureConfig, "label features for clustering")
    tree: TreeConfig = section(TreeConfig, "the label tree")
    shortlist: ShortlistConfig = section(ShortlistConfig, "negatives of each level")
    linear: LinearConfig = section(LinearConfig, "the linear classifiers")
    search: SearchConfig = section(SearchConfig, "beam search at prediction")
    tail: TailConfig = section(TailConfig, "propensities, and ranking candidates again by them")


@dataclasses.dataclass(frozen=True)
class Method:
    """A recipe with its story: what `labelwood methods` shows."""

    recipe: Recipe
    summary: str
    paper: str
    good_at: str
    presets: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)


METHODS: dict[str, Method] = {
    "xr-linear": Method(
        recipe=Recipe("xr-linear"),
        summary="linear classifiers down a balanced label tree, beam search over l3-hinge path scores",
        paper="PECOS: Prediction for Enormous and Correlated Output Spaces (Yu et al., 2022)",
        good_at="large label sets on a CPU: trains in seconds to minutes, predicts in microseconds",
        presets={
            "default": {},
            "fast": {"tree.branch": 32, "search.beam": 5},
            "tail": {"tail.alpha": 0.6, "tail.beta": 0.5},  # nearness to a label's documents counts, rare labels more
        },
    ),
}


def methods() -> tuple[str, ...]:
    """Names of all recipes."""
    return tuple(METHODS)


def method(name: str) -> Method:
    """A method by name; ConfigError with the nearest name otherwise."""
    if not isinstance(name, str) or name not in METHODS:
        raise ConfigError(f"there is no method {str(name)[:80]!r}; {nearest(str(name)[:80], METHODS)}")
    return METHODS[name]


def resolve(
    name: str = "xr-linear",
    *,
    preset: str | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
) -> Recipe:
    """A recipe from its defaults, then a preset, then a config (TOML file or table), then single settings."""
    found = method(name)
    recipe = found.recipe
    if preset is not None:
        if not isinstance(preset, str) or preset not in found.presets:
            raise ConfigError(f"{name} has no preset {str(preset)[:80]!r}; {nearest(str(preset)[:80], found.presets)}")
        recipe = with_settings(recipe, found.presets[preset])
    if config is not None:
        table = read_toml(Path(config)) if isinstance(config, str | Path) else config
        recipe = merge(recipe, table)
    recipe = with_settings(recipe, {} if settings is None else settings)
    if seed is not None:
        recipe = with_settings(recipe, {"seed": seed})
    if recipe.method != name:
        raise ConfigError(f"the config is for method {recipe.method!r}, but {name!r} was asked for.")
    return recipe


def from_plain(table: object) -> Recipe:
    """A recipe read back from a manifest: strict, every key known."""
    recipe = from_dict(Recipe, table)
    method(recipe.method)
    return recipe
