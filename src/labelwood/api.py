"""The verbs of the Python API that make a model: `train` and `load`, and `plan`, which says what training takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from .base import memory_budget
from .base.progress import Progress, Silent
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


def train(
    data: str | Path | Dataset | Sequence[str] | None = None,
    labels: Labels | None = None,
    *,
    X: object = None,
    relevance: Iterable[Sequence[float]] | None = None,
    label_texts: Mapping[str, str] | str | Path | None = None,
    taxonomy: Parents | str | Path | None = None,
    method: str = "xr-linear",
    preset: str | Sequence[str] | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, object] | None = None,
    seed: int | None = None,
    options: ReadOptions = ReadOptions(),
    threads: int = 0,
    progress: Progress | None = None,
    work: str | Path | None = None,
    resume: bool = False,
    overwrite: bool = False,
    memory: str | int | None = None,
    valid: str | Path | Dataset | None = None,
    time: str | float | None = None,
    device: str = "cpu",
    tell: Callable[[Any], None] | None = None,
) -> Predictor:
    """Train a model: a `Model`, or an `Ensemble` if the recipe has several trees.

    data      texts (list of str), a path to a file or folder in any supported format, or a Dataset
    labels    for texts or X: a list of label names per document; for X also a sparse (n, L) matrix
    X         features instead of text: sparse, dense, or a (sparse, dense) pair
    relevance how much each label matters, in the shape of `labels` (with `linear.relevance = "given"`)
    label_texts  words for labels that are named by codes: {label: text}, or a file that `read_label_texts` reads; kept
              in the model for people to read, and used in training if `labels.kind` says so
    taxonomy  your own label tree: {child: parent or parents}, or a file that `read_taxonomy` reads; it is
              the kind of every tree that the method grows, and the model does not need it any more
    settings  single settings by dotted name, e.g. {"linear.threshold": 0.05}; `labelwood methods NAME` lists them
    work      a folder that keeps finished stages, also after success; with `resume=True` a run goes on from there,
              with `overwrite=True` it starts over
    memory    a budget such as "8GB": a BudgetError says at once if it cannot do; no result depends on it
    valid     held-out data, a path or a Dataset, by which a fine-tuning chooses between its states (never your test
              set); without it some training documents are held back for that
    time      how long fine-tuning may take, such as "10m": the steps of each level are fixed by it at the start
    device    where an encoder is trained: cpu, cuda or mps
    tell      is called with an Event (stage, step, loss, docs per second, …) after every step of a fine-tuning
    """
    if (resume or overwrite) and (work is None or (resume and overwrite)):
        raise ConfigError("resume=True or overwrite=True, one of the two, goes with work=FOLDER, which keeps the run.")
    own_tree = _has_taxonomy(data, taxonomy)
    recipe = resolve(method, preset=preset, config=config, settings=settings, seed=seed, taxonomy=own_tree)
    dataset = as_dataset(data, labels, X=X, relevance=relevance, options=options)
    dataset = _with_sides(dataset, label_texts, taxonomy)
    folder = None if work is None else Path(work)
    run = Run(threads, progress or Silent(), folder, resume, overwrite, memory_budget.parse(memory), device, tell)
    if time is not None:
        from .planning.timing import timed

        recipe = timed(recipe, time, dataset, run)
    if isinstance(valid, str | Path) and Path(valid).is_dir():
        raise ConfigError(f"valid={str(valid)!r} is a folder, whose held-out part is a test set; give a file.")
    held_out = None if valid is None else as_dataset(valid, options=options)
    return run_recipe(dataset, recipe, within(dataset, recipe, run), held_out)


def plan(
    data: str | Path | Dataset | Sequence[str] | None = None,
    labels: Labels | None = None,
    *,
    X: object = None,
    label_texts: Mapping[str, str] | str | Path | None = None,
    taxonomy: Parents | str | Path | None = None,
    method: str = "xr-linear",
    preset: str | Sequence[str] | None = None,
    config: str | Path | Mapping[str, Any] | None = None,
    settings: Mapping[str, object] | None = None,
    options: ReadOptions = ReadOptions(),
    threads: int = 0,
    work: bool = False,
) -> Plan:
    """What `train` would take: memory and time by stage, and the size of the model; `work`: with a workspace."""
    own_tree = _has_taxonomy(data, taxonomy)
    recipe = resolve(method, preset=preset, config=config, settings=settings, taxonomy=own_tree)
    dataset = _with_sides(as_dataset(data, labels, X=X, options=options), label_texts, taxonomy)
    return run_plan(dataset, recipe, Run(threads, work=Path() if work else None))


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
