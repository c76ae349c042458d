"""Several methods on the same data under one budget of time: a leaderboard.

Every method is trained, saved and measured in a process of its own, so that its peak memory is its own; stages that
methods have in common are computed once, in one workspace. What is finished is written down and not done again: the
same command goes on after an interruption.
"""

from __future__ import annotations

import dataclasses
import json
import signal
import subprocess
import sys
import warnings
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ..base.config import to_dict
from ..base.digests import digest_plain
from ..base.progress import Terminal
from ..base.run import Run
from ..data import Dataset, ReadOptions, read, read_label_texts, read_taxonomy, with_label_texts, with_taxonomy
from ..errors import ConfigError, MissingExtraError, TrainingError, nearest
from ..metrics.ranking import MetricsConfig
from ..pipeline.training_set import prepare
from ..recipes.extras import check_extras, missing
from ..recipes.recipe import Recipe
from ..recipes.resolve import acting, from_plain, resolve
from ..storage import atomic_files, model_folder, targets
from .figures import draw_leaderboard

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

USUAL = ("xr-linear", "parabel", "dismec", "xr-transformer", "cascadexml")
METRICS = MetricsConfig(ks=(1, 3, 5))


@dataclasses.dataclass(frozen=True)
class Files:
    """Files that methods are compared on."""

    train: Path
    test: Path
    label_texts: Path | None = None
    taxonomy: Path | None = None

    def training(self, options: ReadOptions) -> Dataset:
        """The training data with what other files say of its labels."""
        data = read(self.train, options)
        if self.label_texts is not None:
            data = with_label_texts(data, read_label_texts(self.label_texts))
        return data if self.taxonomy is None else with_taxonomy(data, read_taxonomy(self.taxonomy))

    def plain(self) -> dict[str, str | None]:
        found = {field.name: getattr(self, field.name) for field in dataclasses.fields(self)}
        return {name: None if path is None else str(path) for name, path in found.items()}

    @staticmethod
    def of(plain: dict[str, str | None]) -> Files:
        return Files(**{name: None if path is None else Path(path) for name, path in plain.items()})  # type: ignore[arg-type]

    def stamps(self) -> list[Any]:
        """Marks that tell changed files from those that were measured."""
        return [_stamp(Path(path)) for path in self.plain().values() if path is not None]


@dataclasses.dataclass(frozen=True)
class Standing:
    """A method on the leaderboard."""

    name: str
    metrics: dict[str, Any]  # as `Evaluation.to_json` gives them
    training: float  # seconds; stages that another method or an interrupted attempt had made count as well
    latency: float  # milliseconds of one document, the median
    size: int  # bytes of the model folder
    memory: int  # bytes at the peak
    gain: float | None = None  # P@1 over the anchor's, in per cent of it


@dataclasses.dataclass(frozen=True)
class Leaderboard:
    """Result of `compare`: a `Standing` for each method that ended well, and what is to be said of the others."""

    rows: tuple[Standing, ...]  # by P@1, the best first
    failed: tuple[str, ...]  # one message each
    folder: Path  # of results and models

    def __getitem__(self, name: str) -> Standing:
        """The standing of a method, by the name it was given by."""
        for row in self.rows:
            if row.name == name:
                return row
        raise ConfigError(f"{name!r} is not on the board; {nearest(name, [row.name for row in self.rows])}")

    def to_json(self) -> list[dict[str, Any]]:
        """The standings as plain data."""
        return [dataclasses.asdict(row) for row in self.rows]

    def draw(self, file: str | Path) -> None:
        """P@1 against the time of one text and of training, as SVG; needs the extra `figures`."""
        draw_leaderboard(self.rows, Path(file))


def recipes(
    methods: Sequence[str] | None, settings: Mapping[str, object], seed: int | None, *, taxonomy: bool = False
) -> dict[str, Recipe]:
    """Recipes by name; a name is a method, or method:preset+preset. Settings go to the recipes in which they act.

    None stands for the usual ones, without those that need a package that is not installed.
    """
    if isinstance(methods, str):
        raise ConfigError(f"methods must be a list of names, but is {methods!r}; write [{methods!r}].")
    found: dict[str, Recipe] = {}
    used: set[str] = set()
    for name in USUAL if methods is None else methods:
        method, _, preset = name.partition(":")
        presets = preset.replace("+", ",") or None
        recipe = resolve(method, preset=presets, seed=seed, taxonomy=taxonomy)
        if methods is None and missing(recipe) is not None:
            _warn_left_out(recipe)
            continue
        check_extras(recipe, way_out=", or leave it out of the methods")
        own = acting(method, settings, preset=presets, taxonomy=taxonomy)
        used |= own.keys()
        found[name] = resolve(method, preset=presets, settings=own, seed=seed, taxonomy=taxonomy)
    if left := [key for key in settings if key not in used]:
        raise ConfigError(f"{', '.join(left)} cannot act in any of {', '.join(found)}; leave it out.")
    if methods is not None and len(found) < len(methods):
        raise ConfigError("a method is named twice; give each once, or with different presets (method:preset).")
    return found


def _warn_left_out(recipe: Recipe) -> None:
    try:
        check_extras(recipe)
    except MissingExtraError as error:
        warnings.warn(f"{error} It is left out.", stacklevel=4)


def compare(
    files: Files, chosen: dict[str, Recipe], out: Path, *, seconds: float | None = None, anchor: str | None = None,
    run: Run = Run(), options: ReadOptions = ReadOptions(), metrics: MetricsConfig = METRICS,
) -> Leaderboard:  # fmt: skip
    """Train and measure all of them; `seconds` is for all that fine-tune an encoder."""
    _check_run(run)
    check_out(out, files)
    if anchor is not None and anchor not in chosen:
        raise ConfigError(f"the anchor {anchor!r} is not among the methods {', '.join(chosen)}; name it, too.")
    for name in chosen:
        _check_model(out, name)
    with atomic_files.refusing(out):
        out.mkdir(parents=True, exist_ok=True)
    chosen = _planned(files, chosen, out, seconds=seconds, run=run, options=options)
    rows, failed = [], []
    for name, recipe in chosen.items():
        job = {
            "name": name, "files": files.plain(), "options": to_dict(options), "metrics": to_dict(metrics),
            "recipe": to_dict(recipe), "threads": run.threads, "device": run.device, "folder": str(out),
        }  # fmt: skip
        key = digest_plain([job, *files.stamps()])
        try:
            file = out / f"{file_name(name)}-{key[:12]}.json"
            rows.append(_standing({**job, "shown": isinstance(run.progress, Terminal)}, file))
        except TrainingError as error:
            failed.append(str(error))
    base = next((row.metrics["P@1"] for row in rows if row.name == anchor), None)
    if base:
        rows = [dataclasses.replace(row, gain=100 * (row.metrics["P@1"] / base - 1)) for row in rows]
    return Leaderboard(tuple(sorted(rows, key=lambda row: -row.metrics["P@1"])), tuple(failed), out)


def check_out(out: Path, files: Files) -> None:
    """Refuse a folder in which the results would replace an input, or stand in a model."""
    inputs = [path for path in files.plain().values() if path is not None]
    if "-" in inputs:
        raise ConfigError(
            "compare reads its data once for each method, which standard input cannot give; save it first."
        )
    targets.check_folder(out, inputs, ("leaderboard.json", "leaderboard.svg", "plan.json"))


def _check_model(out: Path, name: str) -> None:
    """Refuse to replace a model that no comparison in this folder has made."""
    folder, ours = out / "models" / file_name(name), (out / "work", *out.glob(f"{file_name(name)}-*.json"))
    if model_folder.exists(folder) and not any(path.exists() for path in ours):
        raise ConfigError(
            f"there is a model in {folder}, which no comparison in {out} has made; choose another folder."
        )
    model_folder.check_target(folder, overwrite=True)


def file_name(name: str) -> str:
    """A method's name as that of a file."""
    return name.replace(":", "-")


def _check_run(run: Run) -> None:
    """Refuse what cannot act here: each method runs in a process of its own, in a workspace that they share."""
    for name in ("memory", "work", "resume", "overwrite", "on_event"):
        if getattr(run, name) != getattr(Run(), name):
            raise ConfigError(
                f"Run({name}=…) cannot act in compare, which trains each method in a process of its own and keeps "
                "finished stages in its own folder; leave it out."
            )


def _stamp(path: Path) -> list[Any]:
    try:
        found = path.stat()
    except FileNotFoundError:
        return []
    return [found.st_size, found.st_mtime_ns]


def _planned(
    files: Files, chosen: dict[str, Recipe], out: Path, *, seconds: float | None, run: Run, options: ReadOptions
) -> dict[str, Recipe]:
    """The recipes with the steps that fit the time; those of a plan that was made before are kept."""
    tuned = [name for name, recipe in chosen.items() if recipe.encoder.on and recipe.finetune.on]
    if seconds is None or not tuned:
        return chosen
    from ..planning.timing import with_time

    asked = {name: to_dict(recipe) for name, recipe in chosen.items()}
    key = digest_plain([asked, seconds, *files.stamps()])
    plan = out / "plan.json"
    if plan.exists():
        kept = json.loads(plan.read_text(encoding="utf-8"))
        if kept.get("key") == key:
            return {name: from_plain(table) for name, table in kept["recipes"].items()}
    data = files.training(options)
    problem, found = prepare(data), dict(chosen)
    for name in tuned:
        with run.progress.stage(f"measuring the pace of {name}"):
            found[name] = with_time(chosen[name], seconds / len(tuned), data, problem, run)
    table = {"key": key, "recipes": {name: to_dict(recipe) for name, recipe in found.items()}}
    atomic_files.publish(plan, [json.dumps(table, indent=2).encode()])
    return found


def _standing(job: dict[str, Any], file: Path) -> Standing:
    """One method, from what was written down or in a process of its own."""
    if not file.exists():
        atomic_files.publish(file.with_suffix(".job"), [json.dumps(job).encode()])
        command = [sys.executable, "-m", "labelwood.reports.one_method", str(file.with_suffix(".job")), str(file)]
        code = _run(command)
        if code or not file.exists():
            raise TrainingError(f"{job['name']} ended with code {code}{_why(file.with_suffix('.error'))}")
        atomic_files.discard(file.with_suffix(".job"))
    found = json.loads(file.read_text(encoding="utf-8"))
    return Standing(**found)


def _run(command: Sequence[str]) -> int:
    """Exit code of a process that leaves Ctrl-C, which reaches all processes of a terminal, to this one."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGINT})  # a process that is started inherits it
    try:
        process = subprocess.Popen(command)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    with process:
        try:
            return process.wait()
        except BaseException:
            process.kill()
            raise


def _why(file: Path) -> str:
    """Last words of the process of a method, if it came to that."""
    try:
        told = file.read_text(encoding="utf-8")
    except FileNotFoundError:
        return "; the same command tries it again."
    atomic_files.discard(file)
    return f": {told}"
