"""The verbs of the Python API that are not a model's own.

train, load       make or open a model
doctor            checks data before a training
plan              says what training takes
compare, analyse  rank methods by quality and cost; look inside a network
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from pathlib import Path
from time import monotonic as clock
from typing import Any

from .base.log import LOG
from .base.old_keywords import old_keywords
from .base.progress import QUIET, Progress
from .base.run import Run
from .data import (
    ColumnNames,
    Dataset,
    Labels,
    Parents,
    ReadOptions,
    Relevance,
    read_label_texts,
    read_taxonomy,
    sniff,
    with_label_texts,
    with_taxonomy,
)
from .data.parsing.fields import Reading
from .errors import ConfigError, counted
from .evaluation.network_analysis import Analysis
from .evaluation.network_analysis import analyse as look_inside
from .metrics.ranking import MetricsConfig
from .models.ensemble import load
from .models.predictor import Documents, Predictor, as_dataset
from .pipeline.train import train as run_recipe
from .planning.estimate import Plan, within
from .planning.estimate import plan as run_plan
from .recipes.extras import check_extras
from .recipes.resolve import resolve
from .reports.doctor import Checkup, Source, examine, unwarned
from .reports.leaderboard import METRICS, Files, Leaderboard, recipes
from .reports.leaderboard import compare as run_comparison

__all__ = ["analyse", "compare", "doctor", "load", "plan", "train"]

_SAME = ("threads", "device", "memory", "progress", "work", "resume", "overwrite")
_OLD_TRAIN = {name: name for name in _SAME} | {"tell": "on_event"}
_OLD_PLAN = {"threads": "threads", "work": "work"}


def _somewhere(work: bool) -> Path | None:
    return Path() if work else None  # a plan writes nothing there


@old_keywords("run", Run, _OLD_TRAIN)
def train(
    data: str | Path | Dataset | Documents | None = None,
    labels: Labels | None = None,
    *,
    X: object = None,
    names: ColumnNames | None = None,
    relevance: Relevance | None = None,
    label_texts: Mapping[str, str] | str | Path | None = None,
    taxonomy: Parents | str | Path | None = None,
    options: ReadOptions = ReadOptions(),
    method: str = "xr-linear",
    preset: str | Sequence[str] | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
    time: str | float | None = None,
    valid: str | Path | Dataset | None = None,
    run: Run = Run(),
) -> Predictor:
    """Train a model: a `Model`, or an `Ensemble` if the recipe has several trees.

    First the data, then the recipe (what is trained), then the run (how).

    data      texts (list of str), records with fields ({"title": …, "text": …, "labels": […]}) or a table of them
              (pandas, polars, pyarrow), a path to a file or folder in any supported format, or a Dataset
    labels    for texts or X: a list of label names per document; or a matrix (n, L), or a table of 0 and 1 with a
              column for each label
    X         features instead of text: sparse, dense, a table of numbers, or a (sparse, dense) pair
    names     names of the columns, where `labels` is a matrix; without them a column is named by its number
    relevance how much each label matters, in the shape of `labels` (with `linear.relevance = "given"`)
    label_texts  words for labels that are named by codes: {label: text}, or a file that `read_label_texts` reads; kept
              in the model for people to read, and used in training if `labels.kind` says so
    taxonomy  your own label tree: {child: parent or parents}, or a file that `read_taxonomy` reads; it is
              the kind of every tree that the method grows, and the model does not need it any more
    options   how a file is read: its format, its fields, what to do with bad lines
    method    the recipe, see `methods()`; `preset` names a set of its settings, `config` a TOML file or a mapping
    settings  single settings by dotted name, e.g. {"linear.threshold": 0.05}; `labelwood methods NAME` lists them
    seed      every random choice follows from it
    time      how long fine-tuning may take, such as "10m": the steps of each level are fixed by it at the start
    valid     held-out data, a path or a Dataset, by which a fine-tuning chooses between its states (never your test
              set); without it some training documents are held back for that
    run       threads, device, memory, progress, a workspace to resume from: see `Run`
    """
    _check_run(run)
    own_tree = _has_taxonomy(data, taxonomy)
    recipe = resolve(method, preset=preset, config=config, settings=settings, seed=seed, taxonomy=own_tree)
    check_extras(recipe)
    dataset = as_dataset(data, labels, X=X, names=names, relevance=relevance, options=options)
    dataset = _with_sides(dataset, label_texts, taxonomy)
    if time is not None:
        from .planning.timing import timed

        recipe = timed(recipe, time, dataset, run)
    if isinstance(valid, str | Path) and Path(valid).is_dir():
        raise ConfigError(f"valid={str(valid)!r} is a folder, whose held-out part is a test set; give a file.")
    fields = Reading() if dataset.texts is None else Reading(dataset.texts.fields)
    held_out = None if valid is None else as_dataset(valid, options=options, fields=fields)
    start, what = clock(), f"{recipe.method} on {counted(len(dataset), 'document')}"
    LOG.info("training %s with %s", what, counted(len(dataset.names), "label"))
    model = run_recipe(dataset, recipe, within(dataset, recipe, run), held_out)
    LOG.info("trained %s in %.1f s", what, clock() - start)
    return model


def doctor(
    train: str | Path | Dataset | Documents,
    test: str | Path | Dataset | Documents | None = None,
    *,
    labels: Labels | None = None,
    test_labels: Labels | None = None,
    options: ReadOptions = ReadOptions(on_bad="skip"),
    threads: int = 0,
    progress: Progress = QUIET,
) -> Checkup:
    """Check data before a training: what was read, what is wrong with it, how it is spread, and which methods suit.

    Nothing is trained, and the same data give the same `Checkup`. `train` and `test` are as for `train`: a path, texts
    with `labels` (`test_labels`), records, a table, or a Dataset. Lines that cannot be read are counted, unless
    `options` say otherwise.
    """
    sources: list[Source] = []
    fields: Reading | None = None
    for data, given, split in ((train, labels, options.split), (test, test_labels, "test")):
        if data is None:
            continue
        path = isinstance(data, str | Path)
        how = dataclasses.replace(options, split=split)
        with unwarned():
            found = as_dataset(data, given, options=how, fields=fields)
        fields = None if found.texts is None else Reading(found.texts.fields)
        kind = "" if not path or str(data) == "-" else how.format if how.format != "auto" else sniff(str(data))
        sources.append(Source(found, str(data) if path else ("test" if sources else "train"), kind))
    return examine(sources[0], sources[1] if len(sources) > 1 else None, threads=threads, progress=progress)


@old_keywords("run", Run, _OLD_PLAN, {"work": _somewhere})
def plan(
    data: str | Path | Dataset | Documents | None = None,
    labels: Labels | None = None,
    *,
    X: object = None,
    names: ColumnNames | None = None,
    label_texts: Mapping[str, str] | str | Path | None = None,
    taxonomy: Parents | str | Path | None = None,
    options: ReadOptions = ReadOptions(),
    method: str = "xr-linear",
    preset: str | Sequence[str] | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, object] | None = None,
    run: Run = Run(),
) -> Plan:
    """Plan of a training: memory and time by stage, and the size of the model; nothing is written.

    `run` is that of the training: with `Run(work=FOLDER)` finished stages are on disk and less stays in memory.
    """
    _check_run(run)
    own_tree = _has_taxonomy(data, taxonomy)
    recipe = resolve(method, preset=preset, config=config, settings=settings, taxonomy=own_tree)
    check_extras(recipe)
    dataset = _with_sides(as_dataset(data, labels, X=X, names=names, options=options), label_texts, taxonomy)
    return run_plan(dataset, recipe, run)


def compare(
    train: str | Path,
    test: str | Path,
    methods: Sequence[str] | None = None,
    *,
    out: str | Path = "comparison",
    anchor: str | None = None,
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
    time: str | float | None = None,
    label_texts: str | Path | None = None,
    taxonomy: str | Path | None = None,
    options: ReadOptions = ReadOptions(),
    metrics: MetricsConfig = METRICS,
    run: Run = Run(),
) -> Leaderboard:
    """Train several methods on one file, measure them on another, and rank them by P@1.

    Each method runs in a process of its own, so that its memory is its own; stages in common are computed once, and
    what is finished is not done again. A method that fails does not keep the others from the board.

    methods   names, or "method:preset+preset"; None is the usual ones, without those whose packages are not installed
    out       a folder for results, models (`out/models/NAME`) and finished stages
    anchor    a method: `Standing.gain` is P@1 over that of it, in per cent
    settings  for the methods in which they act; one that acts in none is an error
    time      how long all fine-tunings together may take, such as "30m"
    run       threads, device and progress act here; the rest of a `Run` does not
    """
    from .planning.timing import seconds

    _check_run(run)
    for path in (train, test):
        if not isinstance(path, str | Path):
            raise ConfigError(
                f"compare reads files, in a process for each method, but is given a {type(path).__name__}; save it "
                "first, for example as JSON lines."
            )
    sides = [None if path is None else Path(path) for path in (label_texts, taxonomy)]
    chosen = recipes(methods, settings or {}, seed, taxonomy=taxonomy is not None)
    if label_texts is not None:  # a mistake in these files is better found now
        read_label_texts(label_texts)
    if taxonomy is not None:
        read_taxonomy(taxonomy)
    allowed = None if time is None else seconds(str(time))
    return run_comparison(
        Files(Path(train), Path(test), *sides), chosen, Path(out),
        seconds=allowed, anchor=anchor, run=run, options=options, metrics=metrics,
    )  # fmt: skip


def analyse(
    model: str | Path | Predictor,
    data: str | Path | Dataset | Documents,
    labels: Labels | None = None,
    *,
    names: ColumnNames | None = None,
    options: ReadOptions = ReadOptions(split="test"),
    most: int = 4000,
    threads: int = 0,
    progress: Progress = QUIET,
) -> Analysis:
    """Look inside a model with an encoder, on up to `most` held-out documents with labels.

    What each level's shortlist keeps, what the first token attends to in each layer, and how alike the layers' vectors
    are, beside the pretrained encoder.
    """
    opened = load(model) if isinstance(model, str | Path) else model
    found = as_dataset(data, labels, names=names, options=options, fields=opened.record_fields)
    return look_inside(opened, found, threads=threads, most=most, progress=progress)


def _check_run(run: object) -> None:
    if not isinstance(run, Run):
        raise ConfigError(f"run must be a Run, such as Run(threads=4), but is of type {type(run).__name__}.")


def _has_taxonomy(data: object, taxonomy: object) -> bool:
    return taxonomy is not None or (isinstance(data, Dataset) and data.taxonomy is not None)


def _with_sides(
    data: Dataset, label_texts: Mapping[str, str] | str | Path | None, taxonomy: Parents | str | Path | None
) -> Dataset:
    """The data with what is said of its labels elsewhere, in a file or a mapping."""
    if label_texts is not None:
        texts = read_label_texts(label_texts) if isinstance(label_texts, str | Path) else label_texts
        data = with_label_texts(data, texts)
    if taxonomy is not None:
        parents = read_taxonomy(taxonomy) if isinstance(taxonomy, str | Path) else taxonomy
        data = with_taxonomy(data, parents)
    return data
