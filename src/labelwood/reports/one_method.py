"""One method of a comparison, in a process of its own: train, save, open and measure it, and write down how it went.

    python -m labelwood.reports.one_method JOB.json STANDING.json

leaderboard.py starts it, so that the peak memory of a method is its own.
"""

from __future__ import annotations

import dataclasses
import json
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np

from ..base.config import from_dict
from ..base.progress import Progress, Silent, Terminal
from ..base.run import Keeping, Run
from ..data import Dataset, ReadOptions, read
from ..errors import LabelwoodError
from ..metrics.ranking import MetricsConfig
from ..models.ensemble import load
from ..pipeline.train import train_into
from ..recipes.resolve import from_plain
from ..storage import atomic_files
from .leaderboard import Files, Standing, file_name

ONE = 60  # documents that are predicted alone, for the latency


def work(job: dict[str, Any], progress: Progress) -> Standing:
    """Train, save, open and measure one method."""
    options, metrics = from_dict(ReadOptions, job["options"]), from_dict(MetricsConfig, job["metrics"])
    recipe, out, files = from_plain(job["recipe"]), Path(job["folder"]), Files.of(job["files"])
    data = files.training(options)
    folder = out / "models" / file_name(job["name"])
    tell = progress.tell if isinstance(progress, Terminal) else None
    before: list[float] = []
    run = Run(job["threads"], job["device"], progress=progress, work=out / "work", on_event=tell)
    start = time.perf_counter()
    keeping = Keeping(shared=True, reused=before.append)
    train_into(folder, data, recipe, run, keeping=keeping, keep_work=True)
    training = time.perf_counter() - start + sum(before)
    memory = _peak()
    model = load(folder)
    test = read(files.test, dataclasses.replace(options, split="test"), fields=model.record_fields)
    found = model.evaluate(test, metrics=metrics, threads=job["threads"], progress=progress)
    size = sum(path.stat().st_size for path in folder.iterdir())
    return Standing(job["name"], found.to_json(), training, _latency(model, test), size, memory)


def _peak() -> int:
    """Bytes that this process has held at most; where Linux tells, without what its parent held when it began."""
    try:
        status = Path("/proc/self/status").read_text(encoding="ascii")
        return 1024 * int(status.split("VmHWM:")[1].split()[0])
    except (OSError, IndexError, ValueError):
        import resource

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
    asked = json.loads(job.read_text(encoding="utf-8"))
    try:
        row = work(asked, Terminal() if asked["shown"] and sys.stderr.isatty() else Silent())
    except LabelwoodError as error:
        atomic_files.publish(out.with_suffix(".error"), [str(error).encode()])
        sys.exit(1)
    atomic_files.publish(out, [json.dumps(dataclasses.asdict(row), indent=2).encode()])


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
