"""How many random cases a test runs."""

from __future__ import annotations

import os
from contextlib import suppress

from hypothesis import settings

import labelwood as lw
from labelwood.base.config import idle, with_settings
from labelwood.recipes.methods import METHODS

# One recipe for each set of stages: what starts processes or draws thousands of cases takes these. The contract runs on
# all; x-transformer and lightxml are cascadexml's stages with other settings.
DISTINCT = tuple(name for name in lw.methods() if name not in {"x-transformer", "lightxml"})


def cases(n: int) -> settings:
    """n random cases; HYPOTHESIS_SHARE=0.1 runs a tenth of them, for the slow sanitizer build."""
    return settings(max_examples=max(1, int(n * float(os.environ.get("HYPOTHESIS_SHARE", "1")))), deadline=None)


def acting(
    settings: dict[str, object], method: str = "xr-linear", own: dict[str, object] | None = None
) -> dict[str, object]:
    """The settings that act in a method, as they stand together, and `own` laid over them: tests of every method set
    what most of them have."""
    recipe = METHODS[method].recipe
    for path, value in {**settings, **(own or {})}.items():
        with suppress(lw.ConfigError):  # what is wrong is refused by the method itself
            recipe = with_settings(recipe, {path: value})
    return {**{path: value for path, value in settings.items() if path not in idle(recipe)}, **(own or {})}
