"""`labelwood train`: read, train, save; every finished stage is kept until the model is there."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from ..base.progress import Event, Progress, Terminal
from ..base.run import Keeping, Run
from ..data import Dataset, ReadOptions
from ..data.parsing.fields import Reading
from ..errors import ConfigError, ModelFileError, counted
from ..models.ensemble import load
from ..models.predictor import Predictor
from ..pipeline.train import identity, identity_of, problem_of, train_into
from ..pipeline.words import settled
from ..planning.estimate import within
from ..recipes.extras import check_extras
from ..recipes.recipe import Recipe
from ..recipes.resolve import resolve
from ..storage import model_folder, targets
from ..storage.run_folder import differences, has_stages, leftover, started, work_folder
from ..storage.stage_cache import Workspace
from . import show
from .files import Sides, load_data, name_of
from .options import (
    DATA_FLAGS,
    ConfigFile,
    Device,
    HeldOutFile,
    KeepEvery,
    LabelTextsFile,
    LogsFolder,
    Memory,
    MethodName,
    NewModel,
    PresetName,
    Seed,
    Settings,
    TaxonomyFile,
    Threads,
    TimeAllowed,
    TrainingData,
    expand,
    parse_settings,
)
from .streams import Stopped


@expand("options", ReadOptions(), DATA_FLAGS)
def train(
    data: TrainingData,
    *,
    model: NewModel,
    method: MethodName = "xr-linear",
    preset: PresetName = None,
    config: ConfigFile = None,
    set_: Settings = None,
    seed: Seed = None,
    label_texts: LabelTextsFile = None,
    taxonomy: TaxonomyFile = None,
    valid: HeldOutFile = None,
    threads: Threads = 0,
    memory: Memory = None,
    time: TimeAllowed = None,
    device: Device = "cpu",
    logs: LogsFolder = None,
    keep_every: KeepEvery = 180.0,
    resume: Annotated[bool, typer.Option("--resume", help="Continue an interrupted run.")] = False,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace the model and any run that is kept.")] = False,
    keep_work: Annotated[bool, typer.Option("--keep-work", help="Keep DIR.work after success.")] = False,
    options: ReadOptions,
) -> None:
    """Train a model on TRAIN and save it to DIR.

    An interrupted run leaves its finished stages in DIR.work; --resume continues to the very same model.
    """
    if resume and overwrite:
        raise typer.BadParameter("give --resume or --overwrite, not both.")
    settings, own_tree = parse_settings(set_ or []), taxonomy is not None
    recipe = resolve(method, preset=preset, config=config, settings=settings, seed=seed, taxonomy=own_tree)
    check_extras(recipe)
    progress = Terminal()
    run = Run(threads, device, memory, progress, work_folder(model), resume, overwrite)
    _check_free(model, run, logs, [data, valid, label_texts, taxonomy, config])
    sides = Sides(label_texts, taxonomy)
    training = load_data(data, options, run.progress, "reading data")
    held_out = None  # read before training: a mistake in it is better found now
    if valid is not None:
        fields = Reading() if training.texts is None else Reading(training.texts.fields)
        test = dataclasses.replace(options, split="test")
        held_out = load_data(valid, test, run.progress, "reading held-out data", fields)
    show.dataset(name_of(data), training)
    training = sides.over(training)
    show.analyser(recipe, training)
    recipe = settled(recipe, training)
    if time is not None:
        recipe = _timed(recipe, time, training, run, model)
    chooser = None if valid is not None and valid.is_dir() else held_out  # a folder's part is called test
    if resume and _is_finished(model, _identity(training, recipe, chooser), training, run, keep_work):
        show.say(f"{model}: already trained on this data with these settings; nothing to do")
        return
    run = dataclasses.replace(within(training, recipe, run), on_event=_teller(progress, logs))
    with _saying_what_is_kept(run):
        keeping = Keeping(every=keep_every)
        trained = train_into(model, training, recipe, run, valid=chooser, keeping=keeping, keep_work=keep_work)
    _report(trained, model, run.progress)
    if held_out is not None:
        show.heading(f"On {valid}")
        show.metrics(trained.evaluate(held_out, threads=threads, progress=run.progress))


def _timed(recipe: Recipe, time: str, data: Dataset, run: Run, model: Path) -> Recipe:
    """The recipe with the steps that fit the time, which are told."""
    from ..planning.timing import timed

    recipe = timed(recipe, time, data, run, model)
    steps = recipe.finetune.steps
    spelled = ",".join(map(str, steps)) if isinstance(steps, tuple) else str(steps)
    show.say(f"{time} of fine-tuning here: --set finetune.steps={spelled}")
    return recipe


@contextmanager
def _saying_what_is_kept(run: Run) -> Iterator[None]:
    """Tell how a run goes on that was stopped."""
    try:
        yield
    except Stopped as stop:
        if run.folder is not None and started(run.folder):
            kept = "finished stages are" if has_stages(run.folder) else "no stage was finished, but the run is"
            stop.note = f"{kept} kept in {run.work}; the same command with --resume continues."
        raise


def _teller(progress: Terminal, logs: Path | None) -> Callable[[Event], None]:
    """Shows each step beside the bar, and writes it down if asked to."""
    from ..neural.training.tensorboard import EventFile

    writers: list[Callable[[Event], None]] = [progress.tell]
    if logs is not None:
        writers.append(EventFile(logs))

    def tell(event: Event) -> None:
        for write in writers:
            write(event)
        if event.quality is not None:
            at = f"{event.stage}, step {event.step:,} of {event.steps:,}"
            show.say(f"{at}: loss {event.loss:.3g}, {100 * event.quality:.1f} on held-back documents")

    return tell


def _check_free(model: Path, run: Run, logs: Path | None, inputs: Sequence[Path | None]) -> None:
    """Refuse now what would be refused at the end, or would lose an input."""
    if model_folder.exists(model) and not (run.overwrite or run.resume):
        raise ConfigError(f"there is a model in {model}; choose another folder, or replace it with --overwrite.")
    model_folder.check_target(model, overwrite=True)
    assert run.folder is not None
    given = [path for path in (*inputs, logs) if path is not None and str(path) != "-"]
    for folder in (model, run.folder):
        targets.check_model(folder, given)
    if logs is not None:
        targets.check_folder(logs, [], [])
    if started(run.folder) and not (run.overwrite or run.resume):
        raise leftover(run.folder)


def _identity(data: Dataset, recipe: Recipe, held_out: Dataset | None) -> dict[str, Any]:
    return identity(recipe, problem_of(data, recipe, held_out).data_key)


def _is_finished(model: Path, now: dict[str, Any], data: Dataset, run: Run, keep_work: bool) -> bool:
    """Is the model there already? Another model there is an error, unless a run to replace it was begun."""
    assert run.folder is not None
    if not model_folder.exists(model):
        return False
    try:
        there = load(model)
    except ModelFileError:
        if started(run.folder):
            return False
        raise
    changes = list(differences(identity_of(there), now))
    if not changes and there.label_texts != data.label_texts:
        changes.append("the texts of its labels are not the same")
    if changes and not started(run.folder):
        raise ConfigError(
            f"cannot resume: the model in {model} is that of another run, {changes[0]}; "
            "train it anew with --overwrite, or choose another folder."
        )
    if changes:
        return False
    model_folder.tidy(model)
    if run.folder.is_dir() and not keep_work:  # killed between saving and tidying up
        with suppress(ConfigError), Workspace(run.folder) as space:  # a folder that is not ours stays as it is
            space.begin(now, resume=True, overwrite=False)
            space.remove()
    return True


def _report(trained: Predictor, folder: Path, progress: Progress) -> None:
    manifest = model_folder.describe(folder)
    for number, member in enumerate(trained.members, 1):
        sizes = " → ".join(f"{size:,}" for size in member.tree.sizes)
        name = "tree" if len(trained.members) == 1 else f"tree {number}"
        show.say(f"{name}: {sizes} (nodes by level, the last are the labels)")
    if unseen := int((trained.counts == 0).sum()):
        show.say(f"  {counted(unseen, 'label')} without a training document")
    show.table([(name, show.seconds(time)) for name, time in progress.timings.items()], ("stage", "time"), right=[1])
    show.say(f"model: {folder} ({counted(len(manifest.files), 'file')}, {show.size(manifest.bytes)})")
