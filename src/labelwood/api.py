"""The verbs of the Python API that make a model: `train` and `load`, and `plan`, which says what training takes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .base.old_keywords import old_keywords
from .data import (
    Dataset,
    Labels,
    Parents,
    ReadOptions,
    read_label_texts,
    read_taxonomy,
    with_label_texts,
    with_taxonomy,
)
from .errors import ConfigError
from .models.ensemble import load
from .models.predictor import Predictor, as_dataset
from .pipeline.run_options import Run
from .pipeline.train import train as run_recipe
from .planning.estimate import Plan, within
from .planning.estimate import plan as run_plan
from .recipes.methods import resolve

__all__ = ["load", "plan", "train"]

_SAME = ("threads", "device", "memory", "progress", "work", "resume", "overwrite")
_OLD_TRAIN = {name: name for name in _SAME} | {"tell": "on_event"}
_OLD_PLAN = {"threads": "threads", "work": "work"}


def _somewhere(work: bool) -> Path | None:
    return Path() if work else None  # a plan writes nothing there


@old_keywords("run", Run, _OLD_TRAIN)
def train(
    data: str | Path | Dataset | Sequence[str] | None = None,
    labels: Labels | None = None,
    *,
    X: object = None,
    relevance: Iterable[Sequence[float]] | None = None,
    label_texts: Mapping[str, str] | str | Path | None = None,
    taxonomy: Parents | str | Path | None = None,
    options: ReadOptions = ReadOptions(),
    method: str = "xr-linear",
    preset: str | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
    time: str | float | None = None,
    valid: str | Path | Dataset | None = None,
    run: Run = Run(),
) -> Predictor:
    """Train a model: a `Model`, or an `Ensemble` if the recipe has several trees.

    First the data, then the recipe (what is trained), then the run (how).

    data      texts (list of str), a path to a file or folder in any supported format, or a Dataset
    labels    for texts or X: a list of label names per document; for X also a sparse (n, L) matrix
    X         features instead of text: sparse, dense, or a (sparse, dense) pair
    relevance how much each label matters, in the shape of `labels` (with `linear.relevance = "given"`)
    label_texts  words for labels that are named by codes: {label: text}, or a file that `read_label_texts` reads; kept
              in the model for people to read, and used in training if `labels.kind` says so
    taxonomy  your own label tree: {child: parent or parents}, or a file that `read_taxonomy` reads; it sets
              `tree.kind = "taxonomy"`, and the model does not need it any more
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
    dataset = as_dataset(data, labels, X=X, relevance=relevance, options=options)
    dataset = _with_sides(dataset, label_texts, taxonomy)
    if time is not None:
        from .planning.timing import timed

        recipe = timed(recipe, time, dataset, run)
    if isinstance(valid, str | Path) and Path(valid).is_dir():
        raise ConfigError(f"valid={str(valid)!r} is a folder, whose held-out part is a test set; give a file.")
    held_out = None if valid is None else as_dataset(valid, options=options)
    return run_recipe(dataset, recipe, within(dataset, recipe, run), held_out)


@old_keywords("run", Run, _OLD_PLAN, {"work": _somewhere})
def plan(
    data: str | Path | Dataset | Sequence[str] | None = None,
    labels: Labels | None = None,
    *,
    X: object = None,
    label_texts: Mapping[str, str] | str | Path | None = None,
    taxonomy: Parents | str | Path | None = None,
    options: ReadOptions = ReadOptions(),
    method: str = "xr-linear",
    preset: str | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, object] | None = None,
    run: Run = Run(),
) -> Plan:
    """What `train` would take: memory and time by stage, and the size of the model; nothing is written.

    `run` is that of the training: with `Run(work=FOLDER)` finished stages are on disk and less stays in memory.
    """
    _check_run(run)
    own_tree = _has_taxonomy(data, taxonomy)
    recipe = resolve(method, preset=preset, config=config, settings=settings, taxonomy=own_tree)
    dataset = _with_sides(as_dataset(data, labels, X=X, options=options), label_texts, taxonomy)
    return run_plan(dataset, recipe, run)


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
