"""How fast an encoder trains and embeds here, measured on a few batches; and what follows from it.

`plan` draws time and memory of a fine-tuning from it; `--time 10m` turns it into steps for each level. Those steps are
fixed before the run starts and become part of the recipe: a run that is continued later does the same.
"""

from __future__ import annotations

import dataclasses
import math
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .. import store
from ..config import at, with_settings
from ..data import Dataset
from ..errors import ConfigError, needs
from ..problem import prepare
from ..recipes import from_plain
from ..tree import level_sizes
from ..workspace import begun
from . import words
from .tokens import Tokeniser

if TYPE_CHECKING:
    from ..problem import Problem
    from ..recipes import Recipe
    from ..run import Run

SAMPLE, WARM, MEASURED = 256, 1, 3  # documents; steps before and while the clock runs
SHARE = 0.85  # of the time is planned: the classifiers and saving have the rest
FEWEST = 4  # steps of a level


@dataclasses.dataclass(frozen=True)
class Pace:
    """What was measured."""

    step: float  # seconds of a training step
    embed: float  # seconds to embed a document
    tokens: float  # per document
    parameters: int
    width: int
    layers: int


def tuned_levels(labels: int, recipe: Recipe) -> tuple[int, ...]:
    """Sizes of the levels that would be fine-tuned; a tree that follows the data is taken as a balanced one."""
    config = recipe.finetune
    if config.order == "joint":
        return (labels,)  # one training
    sizes = (labels,) if recipe.coarse.kind == "flat" else level_sizes(labels, recipe.coarse)
    fitting = [size for size in sizes if 1 < size <= config.max_clusters or recipe.encoder.attends]
    return tuple(fitting[: config.levels])


def measure(data: Dataset, recipe: Recipe, run: Run) -> Pace:
    """Train and embed a few documents and look at the clock; nothing of it is kept."""
    with needs(recipe.method, "neural"):
        import torch

        from . import encoder as encoders
        from .head import Head
        from .trainer import Task, Trainer
    if data.texts is None:
        raise ConfigError(f"{recipe.method} reads text, but the data holds features; give texts.")
    encoders.check_device(run.device)
    config, source = recipe.finetune, words.find(recipe.encoder, data.texts, recipe.seed)
    rows = np.unique(np.linspace(0, len(data) - 1, SAMPLE).astype(np.int64))
    tokens = Tokeniser(source.tokeniser(), recipe.encoder.max_tokens)([data.texts[int(i)] for i in rows])
    network = encoders.load(source, recipe.encoder)
    parameters = sum(p.numel() for p in network.parameters())
    network.to(run.device)
    network.drop(config.dropout, config.attention_dropout)
    network.freeze(config.frozen_layers)
    head = Head.random(256, network.width, torch.Generator().manual_seed(0), run.device)
    y = _one_each(len(tokens))
    task = Task(head, 0, y, None, np.array([0, 256]), "squared-hinge", 1.0, 1e-3)
    schedule = _schedule(recipe, WARM + MEASURED)
    with encoders.threads(run.workers, network, config.batch * float(tokens.lengths.mean())):
        trainer = Trainer(network, [task], tokens, np.arange(len(tokens)), schedule, key=(0, 0))
        seconds = []
        for _ in range(WARM + MEASURED):
            start = time.perf_counter()
            trainer.advance()
            seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        network.embed(tokens)
        embed = (time.perf_counter() - start) / len(tokens)
    step = float(np.median(seconds[WARM:]))
    return Pace(step, embed, float(tokens.lengths.mean()), parameters, network.width, network.depth)


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
    kept = _kept_recipe(run.work, model) if run.resume else None
    if kept is not None and kept.finetune.steps is not None:
        return dataclasses.replace(recipe, finetune=dataclasses.replace(recipe.finetune, steps=kept.finetune.steps))
    with run.progress.stage("measuring the pace"):
        return with_time(recipe, budget, data, prepare(data), run)


def _kept_recipe(work: Path | None, model: Path | None) -> Recipe | None:
    """Of a run that was begun, or of the model that it ended in."""
    found = None if work is None else begun(work)
    if found is None and model is not None and store.exists(model):
        meta = store.describe(model).meta
        found = meta if "recipe" in meta else next(iter(meta.get("members", [])), None)
    return None if not found or "recipe" not in found else from_plain(found["recipe"])


def with_time(recipe: Recipe, seconds: float, data: Dataset, problem: Problem, run: Run) -> Recipe:
    """The recipe with the steps that fit the time."""
    if not (recipe.encoder.on and recipe.finetune.on):
        raise ConfigError(f"a time can be given to a recipe that fine-tunes an encoder, but {recipe.method} does not.")
    steps = steps_within(seconds / recipe.ensemble.runs, data, problem, recipe, run)
    one = len(steps) == 1
    return with_settings(recipe, {"finetune.steps": steps[0] if one else steps}) if steps else recipe


def memory(pace: Pace, nodes: int, recipe: Recipe) -> dict[str, int]:
    """Bytes that the fine-tuning of a level adds, by what for (docs/planning.md)."""
    config = recipe.finetune
    encoder, head = 4 * pace.parameters, 4 * nodes * (pace.width + 1)
    most = min(config.shard_tokens, config.batch * pace.tokens)
    return {
        "encoder": encoder,
        "gradients": encoder,  # a head's are for the candidates of a batch alone
        "optimiser": 2 * encoder + (2 * head if config.head_moments == "full" else 0),
        "heads": head,
        "best state": encoder + head,
        "activations": int(4 * most * pace.width * pace.layers * 24),  # what a layer keeps for its backward pass
    }


def seconds(text: str) -> float:
    """Of "90s", "10m", "1.5h", or of a bare number."""
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


def _one_each(rows: int) -> Any:
    from ..sparse import Csr

    return Csr(np.arange(rows + 1), np.arange(rows, dtype=np.int32) % 256, np.ones(rows, np.float32), 256)


def _schedule(recipe: Recipe, steps: int) -> Any:
    from .trainer import Schedule

    config = recipe.finetune
    return Schedule(
        steps=steps, batch=config.batch, shard_tokens=config.shard_tokens, lr=1e-5, warmup=0.0, weight_decay=0.0,
        head_decay=0.0, clip=config.clip, checks=1,
    )  # fmt: skip
