"""Checks of a recipe, all in one place and before any work: no stage has run, no file is written, nothing is loaded.

    facts.py    what is known of the data and the encoders
    clashes.py  settings that do not go together, or not with the data: refused
    hints.py    settings that do nothing with this data: warned about

Whether a setting can act at all is said where it is declared (`acts` of base/config.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Collection, Iterator

from ..base.config import idle
from ..errors import ConfigError
from .clashes import CLASHES
from .facts import Case, Facts
from .hints import HINTS
from .recipe import Recipe

__all__ = ["Facts", "check", "refuse"]


def check(recipe: Recipe, facts: Facts = Facts(), given: Collection[str] = ()) -> None:
    """Refuse every clash; warn about what only does nothing with this data.

    `given` are the settings that the user has set: each of them must be able to act.
    """
    refuse(recipe, facts, given)
    for line in (line for rule in HINTS for line in rule(Case(recipe, facts))):
        warnings.warn(line, stacklevel=4)


def refuse(recipe: Recipe, facts: Facts, given: Collection[str] = ()) -> None:
    """Raise a ConfigError with a line for each clash; once more with a tree whose depth was not known before."""
    case = Case(recipe, facts)
    lines = [*_idle(case, given), *(line for rule in CLASHES for line in rule(case))]
    if lines:
        raise ConfigError.of(lines)


def _idle(case: Case, given: Collection[str]) -> Iterator[str]:
    """Settings of the user's that can make no difference."""
    for path, where in idle(case.recipe).items():
        if path in given:
            yield (
                f"{path} = {case.shown(path)} cannot act in {case.recipe.method} as it is set: it acts {where}. "
                "Leave it out, or change that."
            )
