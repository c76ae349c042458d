"""`labelwood plan`: what training would take, before it is begun."""

from __future__ import annotations

from pathlib import Path

from ..base.progress import Terminal
from ..base.run import Run
from ..data import ReadOptions
from ..planning.estimate import plan as make_plan
from ..planning.estimate import within
from ..recipes.extras import check_extras
from ..recipes.resolve import resolve
from . import show
from .files import Sides, load_data, name_of
from .options import (
    DATA_FLAGS,
    ConfigFile,
    LabelTextsFile,
    Memory,
    MethodName,
    PresetName,
    Settings,
    TaxonomyFile,
    Threads,
    TrainingData,
    expand,
    parse_settings,
)


@expand("options", ReadOptions(), DATA_FLAGS)
def plan(
    data: TrainingData,
    *,
    method: MethodName = "xr-linear",
    preset: PresetName = None,
    config: ConfigFile = None,
    set_: Settings = None,
    label_texts: LabelTextsFile = None,
    taxonomy: TaxonomyFile = None,
    memory: Memory = None,
    threads: Threads = 0,
    options: ReadOptions,
) -> None:
    """Say what training on TRAIN would take.

    Memory, time and size of the model. Two samples of the documents are trained to find out; nothing is written.
    """
    settings, own_tree = parse_settings(set_ or []), taxonomy is not None
    recipe = resolve(method, preset=preset, config=config, settings=settings, taxonomy=own_tree)
    check_extras(recipe)
    run = Run(threads, memory=memory, progress=Terminal(), work=Path())  # as `train`, which has a workspace
    sides = Sides(label_texts, taxonomy)
    training = load_data(data, options, run.progress, "reading data")
    show.dataset(name_of(data), training)
    training = sides.over(training)
    if run.budget is not None:
        run = within(training, recipe, run)
    found = make_plan(training, recipe, run)
    rows = [(part.name, show.size(part.memory), show.seconds(part.cpu_seconds)) for part in found.parts]
    show.table(rows, ("stage", "memory", "CPU time"), right=[1, 2])
    show.say(
        f"peak memory: {show.size(found.memory)}, in stage {found.peak.name!r}",
        f"CPU time: about {show.seconds(found.cpu_seconds)}, shared by {found.threads} threads (from samples)",
        f"model: about {show.size(found.model)} (from samples)",
    )
    if found.parameters:
        show.say(f"encoder: {found.parameters / 1e6:.1f} million parameters")
    if found.network:
        parts = ", ".join(f"{name} {show.size(size)}" for name, size in found.network.items())
        show.say(f"in training, at its largest level: {parts}")
    if run.budget is not None:
        show.say(f"budget: {show.size(run.budget)}, enough")
