"""A cell of the scoreboard: one row on one set, run in processes of its own under limits, kept once it is done.

Training and prediction are two processes, each with limits of time and memory; whoever runs over one is killed with all
its children and leaves `{"over": "15 min"}` beside what it had written by then. Results are files named by a digest of
what they depend on, so an interrupted table goes on where it stopped.
"""

from __future__ import annotations

import dataclasses
import fcntl
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import labelwood
from labelwood.arrays.sparse import as_csr
from labelwood.metrics.ranking import MetricsConfig, evaluate

SIDES = Path(__file__).parent / "sides"


@dataclasses.dataclass(frozen=True)
class Row:
    """A library with its settings."""

    name: str
    side: str  # the runner: sides/run_<side>.py
    config: dict[str, Any] = dataclasses.field(default_factory=dict)


@dataclasses.dataclass(frozen=True)
class Limits:
    """Of a training, and of a prediction."""

    minutes: float = 15.0
    gb: float = 16.0


@dataclasses.dataclass(frozen=True)
class Bench:
    """What holds for all cells of a run."""

    cache: Path
    pythons: dict[str, str]  # side → interpreter
    threads: int
    limits: Limits = Limits()

    def version(self, side: str) -> str:
        return _version(self.pythons[side], side)

    def cell(self, row: Row, data: Path, turn: int = 0, beside: str = "") -> tuple[dict[str, Any], bool]:
        """The result of a row on a prepared set, and whether it was kept from an earlier run.

        `turn` numbers repeats; `beside` names the build of ours with which it takes turns.
        """
        about = json.loads((data / "about.json").read_text(encoding="utf-8"))
        what = {"side": row.side, "version": self.version(row.side), "config": row.config, "data": about["digest"]}
        what |= {"threads": self.threads, "turn": turn, "beside": beside}
        key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()[:16]
        file = self.cache / "cells" / f"{about['name']}-{row.name.replace(' ', '-')}-{key}.json"
        if file.exists():
            kept: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
            tried = Limits(**kept["limits"])
            if "over" not in kept or (tried.minutes >= self.limits.minutes and tried.gb >= self.limits.gb):
                return kept, True
        result = self.run(row, data)
        if "error" not in result:
            _publish(file, {**result, "row": row.name, **what, "limits": dataclasses.asdict(self.limits)})
        return result, False

    def run(self, row: Row, data: Path) -> dict[str, Any]:
        with tempfile.TemporaryDirectory(prefix="scoreboard-", dir=_there(self.cache / "models")) as work:
            model, out = Path(work) / "model", Path(work) / "out.json"
            model.mkdir()
            result = self._phase("train", row, data, model, out)
            if "train s" not in result:
                return result
            found = self._phase("predict", row, data, model, out)
            ids = out.with_suffix(".npy")
            quality = measure(np.load(ids), data) if ids.exists() else {}
        return result | found | quality

    def _phase(self, phase: str, row: Row, data: Path, model: Path, out: Path) -> dict[str, Any]:
        command = [self.pythons[row.side], str(SIDES / f"run_{row.side}.py"), phase, "--data", str(data)]
        command += ["--model", str(model), "--config", json.dumps(row.config)]
        command += ["--threads", str(self.threads), "--out", str(out)]
        out.unlink(missing_ok=True)
        code, said = limited(command, self.limits, _one_per_thread(self.threads))
        found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8")) if out.exists() else {}
        if code is None:
            return {**found, "over": said}
        return {**found, "error": f"{phase}: {said[-800:].strip()}"} if code else found


def limited(command: list[str], limits: Limits, environment: dict[str, str]) -> tuple[int | None, str]:
    """(exit code, what it said), or (None, the limit it went over), after which nothing of it runs any more."""
    with tempfile.TemporaryFile() as said:
        process = subprocess.Popen(
            command, stdout=said, stderr=subprocess.STDOUT, env=environment, start_new_session=True
        )
        try:
            over = _watch(process, limits)
        finally:
            _kill(process)
        said.seek(0)
        return (None, over) if over else (process.returncode, said.read().decode("utf-8", "replace"))


def _watch(process: subprocess.Popen[bytes], limits: Limits) -> str:
    """Wait for the end, or for a limit to be passed: then its name."""
    end = time.monotonic() + 60 * limits.minutes
    while (left := end - time.monotonic()) > 0:
        with suppress(subprocess.TimeoutExpired):
            process.wait(min(left, 1.0))
            return ""
        if _resident_gb(process.pid) > limits.gb:
            return f"{limits.gb:g} GB"
    return f"{limits.minutes:g} min"


def _resident_gb(pid: int) -> float:
    try:
        return int(Path(f"/proc/{pid}/statm").read_text(encoding="ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1e9
    except (OSError, IndexError):
        return 0.0  # it has just ended


def _kill(process: subprocess.Popen[bytes]) -> None:
    """The session that we started, as a whole; nothing if it has ended."""
    with suppress(ProcessLookupError):
        os.killpg(process.pid, signal.SIGKILL)
    process.wait()


def _one_per_thread(threads: int) -> dict[str, str]:
    """Libraries under the peers (BLAS, OpenMP, numba) get as many threads as the peers themselves."""
    names = ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS", "RAYON_NUM_THREADS")
    return {**os.environ, **dict.fromkeys(names, str(threads)), "HF_HUB_OFFLINE": "1", "PYTHONWARNINGS": "ignore"}


def measure(ids: Any, data: Path) -> dict[str, float]:
    """P and PSP of returned label ids (n, k), by the same code for everybody."""
    y, truth = (sparse.load_npz(data / f"{name}.npz") for name in ("y", "truth"))
    counts = np.bincount(y.indices, minlength=y.shape[1])
    name = json.loads((data / "about.json").read_text(encoding="utf-8"))["name"]
    config = MetricsConfig(ks=(1, 3, 5), unseen="drop", propensity=name, bootstrap=0)
    found = evaluate(distinct(ids), as_csr(truth, "truth"), counts, y.shape[0], config)
    return {f"{metric}@{k}": found[f"{metric}@{k}"] for metric in ("P", "PSP") for k in config.ks}


def distinct(ids: Any) -> Any:
    """A label that a library names twice in a row counts once."""
    ids = np.array(ids)
    for column in range(1, ids.shape[1]):
        ids[(ids[:, :column] == ids[:, column : column + 1]).any(axis=1), column] = -1
    return ids


@cache
def _version(python: str, side: str) -> str:
    """Of a peer its release; of labelwood the digest of its files, since it changes between releases."""
    if side == "labelwood":
        files = sorted(p for p in Path(labelwood.__file__).parent.rglob("*") if p.suffix in {".py", ".so"})
        native = Path(labelwood._core.__file__)  # type: ignore[attr-defined]
        return hashlib.sha256(b"".join(p.read_bytes() for p in [*files, native])).hexdigest()[:12]
    command = [python, str(SIDES / f"run_{side}.py"), "version"]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.split()[-1]


def _there(folder: Path) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    return folder


def _publish(file: Path, result: dict[str, Any]) -> None:
    _there(file.parent)
    temporary = file.with_suffix(".tmp")
    temporary.write_text(json.dumps(result, indent=1) + "\n", encoding="utf-8")
    temporary.replace(file)


@contextmanager
def alone(cache: Path) -> Iterator[None]:
    """Nobody else measures with this cache meanwhile: two runs at a time would disturb each other."""
    with (_there(cache) / "lock").open("w") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise SystemExit(f"another run is at work in {cache}; wait for it, or give another --cache.") from None
        shutil.rmtree(cache / "models", ignore_errors=True)  # what a killed run left behind
        yield


def end_with_children() -> None:
    """A script that is told to end also ends the child in work: it leaves by an exception, not at once."""
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))
