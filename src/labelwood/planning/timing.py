"""Pace of an encoder here, measured on a few batches; and what follows from it.

`plan` draws time and memory of a fine-tuning from it; `--time 10m` turns it into steps for each level. Those steps are
fixed before the run starts and become part of the recipe: a run that is continued later does the same.
"""

from __future__ import annotations

import math
from pathlib import Path
from typing import TYPE_CHECKING

from ..base.config import at, replaced, with_settings
from ..data import Dataset
from ..errors import ConfigError, needs
from ..parts.tree import level_sizes
from ..pipeline.facts import facts_of
from ..pipeline.training_set import prepare
from ..pipeline.words import settled
from ..recipes.checks import check
from ..recipes.resolve import from_plain, tidy
from ..storage import model_folder
from ..storage.run_folder import begun

if TYPE_CHECKING:
    from ..base.run import Run
    from ..neural.training.pace import Pace
    from ..pipeline.training_set import Problem
    from ..recipes.recipe import Recipe

SHARE = 0.85  # of the time is planned: the classifiers and saving have the rest
FEWEST = 4  # steps of a level


def tuned_levels(labels: int, recipe: Recipe) -> tuple[int, ...]:
    """Sizes of the levels that would be fine-tuned; a tree that follows the data is taken as a balanced one."""
    config = recipe.finetune
    if config.order == "joint":
        return (labels,)  # one training
    sizes = (labels,) if recipe.coarse.kind == "flat" else level_sizes(labels, recipe.coarse)
    fitting = [size for size in sizes if 1 < size <= recipe.levelwise.max_clusters or recipe.encoder.attends]
    return tuple(fitting[: config.levels])


def measure(data: Dataset, recipe: Recipe, run: Run) -> Pace:
    """The pace of the recipe's encoder here, on some of the documents."""
    with needs(recipe.method, "neural"):
        from ..neural.training import pace
    if data.texts is None:
        raise ConfigError(f"{recipe.method} reads text, but the data holds features; give texts.")
    return pace.measure(data.texts, recipe, run.workers, run.device)


def steps_within(seconds: float, data: Dataset, problem: Problem, recipe: Recipe, run: Run) -> tuple[int, ...]:
    """Steps of each level that fit the time; ConfigError with the time that is needed at least."""
    sizes = tuned_levels(len(problem.seen), recipe)
    if not sizes:
        return ()
    pace, n, config = measure(data, recipe, run), problem.y.rows, recipe.finetune
    shares: list[float] = [at(config.epochs, t, len(sizes), "finetune.epochs") for t in range(len(sizes))]
    if config.steps is not None:  # a preset's: they tell how the time is shared
        shares = [at(config.steps, t, len(sizes), "finetune.steps") for t in range(len(sizes))]
    checks = sum(at(config.checks, t, len(sizes), "finetune.checks") for t in range(len(sizes)))
    held = min(config.valid if config.valid >= 1 else config.valid * n, config.valid_most, n // 2)
    fixed = pace.embed * (len(sizes) * n + checks * held)
    least = (fixed + FEWEST * len(sizes) * pace.step) / SHARE
    if seconds < least:
        raise ConfigError(
            f"a time of {_spelled(seconds)} is too short: embedding {n} documents {len(sizes)} times and {FEWEST} "
            f"steps at each level take about {_spelled(least)} here; give more, or fewer levels (finetune.levels)."
        )
    total = (SHARE * seconds - fixed) / pace.step
    found = tuple(max(FEWEST, math.floor(total * share / max(sum(shares), 1e-9))) for share in shares)
    sure = recipe.finetune.order == "joint" or recipe.coarse.kind in {"balanced", "flat"}
    return found if sure else (sum(found) // len(found),)  # the tree may turn out deeper: the same at every level


def timed(recipe: Recipe, allowed: str | float, data: Dataset, run: Run, model: Path | None = None) -> Recipe:
    """The recipe with as many steps as fit the time; a run that is continued keeps those it was begun with."""
    budget = seconds(str(allowed))
    recipe = settled(recipe, data)
    check(recipe, facts_of(data, recipe))
    kept = _kept_recipe(run.folder, model) if run.resume else None
    if kept is not None and kept.finetune.steps is not None:
        return tidy(replaced(recipe, {"finetune.steps": kept.finetune.steps}))
    with run.progress.stage("measuring the pace"):
        return with_time(recipe, budget, data, prepare(data), run)


def _kept_recipe(work: Path | None, model: Path | None) -> Recipe | None:
    """Recipe of a run that was begun, or of the model that it ended in."""
    found = None if work is None else begun(work)
    if found is None and model is not None and model_folder.exists(model):
        meta = model_folder.describe(model).meta
        found = meta if "recipe" in meta else next(iter(meta.get("members", [])), None)
    return None if not found or "recipe" not in found else from_plain(found["recipe"])


def with_time(recipe: Recipe, seconds: float, data: Dataset, problem: Problem, run: Run) -> Recipe:
    """The recipe with the steps that fit the time."""
    if not (recipe.encoder.on and recipe.finetune.on):
        raise ConfigError(f"a time can be given to a recipe that fine-tunes an encoder, but {recipe.method} does not.")
    steps = steps_within(seconds / recipe.ensemble.runs, data, problem, recipe, run)
    one = len(steps) == 1
    return tidy(with_settings(recipe, {"finetune.steps": steps[0] if one else steps})) if steps else recipe


def seconds(text: str) -> float:
    """Seconds of "90s", "10m", "1.5h", or of a bare number."""
    units = {"s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
    plain = text.strip().lower()
    unit = units.get(plain[-1:], 0.0)
    try:
        value = float(plain[:-1] if unit else plain) * (unit or 1.0)
    except ValueError:
        value = -1.0
    if not 0 < value < 1e9:
        raise ConfigError(f"a time must be like 90s, 10m or 1.5h, but is {text[:40]!r}.")
    return value


def _spelled(seconds: float) -> str:
    return f"{seconds:.0f} s" if seconds < 120 else f"{seconds / 60:.0f} min"
