"""Several methods on the same data under one budget of time: a leaderboard.

Every method is trained, saved and measured in a process of its own, so that its peak memory is its own; stages that
methods have in common are computed once, in one workspace. What is finished is written down and not done again: the
same command goes on after an interruption.
"""

from __future__ import annotations

import dataclasses
import json
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from ..base.config import from_dict, to_dict
from ..base.digests import digest_plain
from ..base.progress import Progress, Silent, Terminal
from ..data import Dataset, ReadOptions, read, read_label_texts, read_taxonomy, with_label_texts, with_taxonomy
from ..errors import ConfigError, LabelwoodError, TrainingError
from ..metrics.ranking import MetricsConfig
from ..models.ensemble import load
from ..pipeline.run_options import Run
from ..pipeline.train import train_into
from ..pipeline.training_set import prepare
from ..recipes.methods import acting, from_plain, resolve
from ..recipes.recipe import Recipe
from ..storage import atomic_files

if TYPE_CHECKING:
    from collections.abc import Sequence

ONE = 60  # documents that are predicted alone, for the latency


@dataclasses.dataclass(frozen=True)
class Files:
    """What is compared on."""

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
        """What tells changed files from those that were measured."""
        return [_stamp(Path(path)) for path in self.plain().values() if path is not None]


@dataclasses.dataclass(frozen=True)
class Row:
    """A method on the leaderboard."""

    name: str
    metrics: dict[str, Any]  # as `Evaluation.to_json` gives them
    training: float  # seconds; stages that another method or an interrupted attempt had made count as well
    latency: float  # milliseconds of one document, the median
    size: int  # bytes of the model folder
    memory: int  # bytes at the peak
    gain: float | None = None  # P@1 over the anchor's, in per cent of it


def recipes(
    methods: Sequence[str], settings: dict[str, object], seed: int | None, *, taxonomy: bool = False
) -> dict[str, Recipe]:
    """Recipes by name; a name is a method, or method:preset+preset. Settings go to the recipes in which they act."""
    found: dict[str, Recipe] = {}
    used: set[str] = set()
    for name in methods:
        method, _, preset = name.partition(":")
        presets = preset.replace("+", ",") or None
        own = acting(method, settings, preset=presets, taxonomy=taxonomy)
        used |= own.keys()
        found[name] = resolve(method, preset=presets, settings=own, seed=seed, taxonomy=taxonomy)
    if left := [key for key in settings if key not in used]:
        raise ConfigError(f"{', '.join(left)} cannot act in any of {', '.join(methods)}; leave it out.")
    if len(found) < len(methods):
        raise ConfigError("a method is named twice; give each once, or with different presets (method:preset).")
    return found


def compare(
    files: Files, chosen: dict[str, Recipe], out: Path, *, seconds: float | None, anchor: str | None,
    run: Run, options: ReadOptions = ReadOptions(), metrics: MetricsConfig = MetricsConfig(),
) -> tuple[list[Row], list[str]]:  # fmt: skip
    """Train and measure all of them: rows in the order of P@1, and what is to be said of methods that failed.

    `seconds` is for all that fine-tune an encoder.
    """
    if anchor is not None and anchor not in chosen:
        raise ConfigError(f"the anchor {anchor!r} is not among the methods {', '.join(chosen)}; name it, too.")
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
            rows.append(_row(job, out / f"{name.replace(':', '-')}-{key[:12]}.json"))
        except TrainingError as error:
            failed.append(str(error))
    base = next((row.metrics["P@1"] for row in rows if row.name == anchor), None)
    if base:
        rows = [dataclasses.replace(row, gain=100 * (row.metrics["P@1"] / base - 1)) for row in rows]
    return sorted(rows, key=lambda row: -row.metrics["P@1"]), failed


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


def _row(job: dict[str, Any], file: Path) -> Row:
    """One method, from what was written down or in a process of its own."""
    if not file.exists():
        atomic_files.publish(file.with_suffix(".job"), [json.dumps(job).encode()])
        command = [sys.executable, "-m", "labelwood.reports.leaderboard", str(file.with_suffix(".job")), str(file)]
        done = subprocess.run(command, check=False)
        if done.returncode or not file.exists():
            raise TrainingError(f"{job['name']} ended with code {done.returncode}; the same command tries it again.")
        atomic_files.discard(file.with_suffix(".job"))
    found = json.loads(file.read_text(encoding="utf-8"))
    return Row(**found)


def work(job: dict[str, Any], progress: Progress) -> Row:
    """Train, save, open and measure one method."""
    options, metrics = from_dict(ReadOptions, job["options"]), from_dict(MetricsConfig, job["metrics"])
    recipe, out, files = from_plain(job["recipe"]), Path(job["folder"]), Files.of(job["files"])
    data = files.training(options)
    folder = out / "models" / job["name"].replace(":", "-")
    tell = progress.tell if isinstance(progress, Terminal) else None
    before: list[float] = []
    run = Run(
        job["threads"], progress, out / "work", device=job["device"], shared=True, tell=tell, reused=before.append
    )
    start = time.perf_counter()
    train_into(folder, data, recipe, run, keep_work=True)
    training = time.perf_counter() - start + sum(before)
    memory = _peak()
    model = load(folder)
    test = read(files.test, dataclasses.replace(options, split="test"))
    found = model.evaluate(test, metrics=metrics, threads=job["threads"], progress=progress)
    size = sum(path.stat().st_size for path in folder.iterdir())
    return Row(job["name"], found.to_json(), training, _latency(model, test), size, memory)


def _peak() -> int:
    """Bytes that this process has held at most; where Linux tells, without what its parent held when it began."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    except (OSError, IndexError, ValueError):
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * (1 if sys.platform == "darwin" else 1024)


def _latency(model: Any, test: Dataset) -> float:
    """Median milliseconds of a document alone, on one thread."""
    times = []
    for i in range(min(ONE, len(test))):
        one = test.take(np.array([i]))
        start = time.perf_counter()
        model.predict_data(one, k=10, threads=1)
        times.append(1000 * (time.perf_counter() - start))
    return float(np.median(times[len(times) // 10 :])) if times else 0.0


def main(job: Path, out: Path) -> None:
    """The process of one method."""
    terminal = Terminal() if sys.stderr.isatty() else Silent()
    try:
        row = work(json.loads(job.read_text(encoding="utf-8")), terminal)
    except LabelwoodError as error:
        sys.exit(f"error: {error}")
    atomic_files.publish(out, [json.dumps(dataclasses.asdict(row), indent=2).encode()])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
