"""What all sides of the scoreboard share. A side is a library, run by its own interpreter; labelwood is not in here.

    python run_<library>.py train|predict --data DIR --model DIR --config JSON --threads N --out FILE

`train` reads X and Y, trains, saves, and writes what it took to FILE; `predict` loads the model, answers the held-out
rows in one batch and some of them one by one, and writes what that took, with the label ids beside it (FILE.npy).
"""

from __future__ import annotations

import argparse
import json
import resource
import time
from collections.abc import Callable
from importlib.metadata import version
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

TOP = 10
QUERIES = 500
SECONDS = 60.0  # one by one: at most this long for each of the two kinds


class Side:
    """A library: how it trains, saves, loads and answers. `config` is its row's own settings."""

    package = ""
    reads_file = False  # trains from a file, so that X and Y are inside what training takes

    def __init__(self, config: dict[str, Any], threads: int, model: Path) -> None:
        self.config, self.threads, self.folder = config, threads, model

    def prepare(self, x: Any, y: Any) -> tuple[Any, ...]:
        """X and Y in the form the library wants; not timed."""
        return x, y

    def train(self, *data: Any) -> Any:
        """X (n, d) and Y (n, L) to a model."""
        raise NotImplementedError

    def save(self, model: Any) -> None:
        """The model into `self.folder`."""
        raise NotImplementedError

    def load(self) -> Any:
        """The model from `self.folder`."""
        raise NotImplementedError

    def batch(self, model: Any, x: Any) -> Any:
        """The TOP best labels of all rows, with all threads."""
        raise NotImplementedError

    def one(self, model: Any, row: Any) -> Any:
        """The TOP best labels of a single row, with one thread."""
        raise NotImplementedError

    def ids(self, found: Any) -> Any:
        """What `batch` gave as label ids (n, TOP), best first, -1 for none; not timed."""
        raise NotImplementedError

    def alone(self, model: Any) -> Any:
        """The model made ready for single queries by one thread."""
        return model

    def text(self, model: Any, data: Path) -> Callable[[str], Any]:
        """A function that answers a raw text: scikit-learn's tf-idf with the vocabulary of X, then `one`."""
        vectorise = vectoriser(data)
        return lambda text: self.one(model, vectorise([text]))

    def notes(self) -> dict[str, Any]:
        """Anything else to keep of a training."""
        return {}


def vectoriser(data: Path) -> Callable[[list[str]], Any]:
    """scikit-learn's tf-idf with the vocabulary of X; it cuts some words differently, so rows are only nearly those."""
    from sklearn.feature_extraction.text import TfidfVectorizer

    terms = json.loads((data / "terms.json").read_text(encoding="utf-8"))
    model = TfidfVectorizer(vocabulary={t: i for i, t in enumerate(terms)}, sublinear_tf=True, dtype=np.float32)
    model.idf_ = np.load(data / "idf.npy").astype(np.float32)
    texts = json.loads((data / "texts.json").read_text(encoding="utf-8"))[:20]
    cosines = model.transform(texts).multiply(matrix(data, "held_x")[: len(texts)]).sum(axis=1)
    if cosines.min() < 0.9:
        raise SystemExit(f"scikit-learn's rows differ from those of X: cosine {cosines.min():.3f}")
    transform: Callable[[list[str]], Any] = model.transform
    return transform


def cpu_seconds() -> float:
    """Of all threads and of children that have ended."""
    parts = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(part.ru_utime + part.ru_stime for part in parts)


def memory_mb(field: str) -> float:
    """VmRSS (now) or VmHWM (highest since the last `forget_peak`)."""
    lines = Path("/proc/self/status").read_text(encoding="ascii").splitlines()
    return next(int(line.split()[1]) / 1024 for line in lines if line.startswith(field))


def forget_peak() -> None:
    """Let VmHWM start again from what is resident now."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def clock(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """(result, wall seconds, CPU seconds)."""
    wall, cpu = time.perf_counter(), cpu_seconds()
    result = work()
    return result, time.perf_counter() - wall, cpu_seconds() - cpu


def folder_mb(folder: Path) -> float:
    return sum(p.stat().st_size for p in folder.rglob("*") if p.is_file()) / 1e6


def best(scores: Any, top: int = TOP) -> Any:
    """Ids (n, top) of the highest stored entries of a sparse score matrix, -1 for none."""
    scores = scores.tocsr()
    found = np.full((scores.shape[0], top), -1, np.int64)
    rows = np.repeat(np.arange(scores.shape[0]), np.diff(scores.indptr))
    order = np.lexsort((scores.indices, -scores.data, rows))
    rank = np.arange(len(rows)) - scores.indptr[rows]  # rows are sorted already, so ranks count from their starts
    near = rank < top
    found[rows[near], rank[near]] = scores.indices[order][near]
    return found


def padded(lists: Any, top: int = TOP) -> Any:
    """Ids (n, top) from a list of label ids for each row."""
    found = np.full((len(lists), top), -1, np.int64)
    for row, labels in enumerate(lists):
        found[row, : len(labels[:top])] = labels[:top]
    return found


def matrix(data: Path, name: str) -> Any:
    return sparse.load_npz(data / f"{name}.npz")


def run_train(side: Side, data: Path) -> dict[str, Any]:
    x, y = matrix(data, "x"), matrix(data, "y")
    size = sum(a.nbytes for m in (x, y) for a in (m.data, m.indices, m.indptr)) / 2**20
    ready = side.prepare(x, y)
    if side.reads_file:
        del x, y
    forget_peak()
    before = memory_mb("VmRSS") + (size if side.reads_file else 0.0)
    model, wall, cpu = clock(lambda: side.train(*ready))
    result = {"train s": wall, "train CPU s": cpu, "peak MB": memory_mb("VmHWM") - before, "X+Y MB": size}
    _, result["save s"], _ = clock(lambda: side.save(model))
    return {**result, "model MB": folder_mb(side.folder), **side.notes()}


def run_predict(side: Side, data: Path, out: Path) -> dict[str, Any]:
    x = matrix(data, "held_x")
    model, load, _ = clock(side.load)
    result: dict[str, Any] = {"load s": load}
    side.batch(model, x[:50])  # the first call may build tables or threads
    runs = [clock(lambda: side.batch(model, x))]
    while len(runs) < 5 and sum(wall for _, wall, _ in runs) < 5.0:  # small sets are over in a blink
        runs.append(clock(lambda: side.batch(model, x)))
    wall, cpu = (float(np.median([run[i] for run in runs])) for i in (1, 2))
    result |= {"docs/s": x.shape[0] / wall, "CPU ms/doc": 1000 * cpu / x.shape[0]}
    np.save(out.with_suffix(".npy"), side.ids(runs[0][0]))
    keep(result, out)  # what is known stays known should the rest take too long
    rows = [x[i] for i in range(min(QUERIES, x.shape[0]))]
    model = side.alone(model)
    result |= latency("one", [lambda row=row: side.one(model, row) for row in rows])
    keep(result, out)
    if (data / "texts.json").exists():
        texts = json.loads((data / "texts.json").read_text(encoding="utf-8"))[: len(rows)]
        answer = side.text(model, data)
        result |= latency("text", [lambda text=text: answer(text) for text in texts])
    return result


def keep(result: dict[str, Any], out: Path) -> None:
    """Write the result whole or not at all."""
    part = out.with_suffix(".part")
    part.write_text(json.dumps(result), encoding="utf-8")
    part.replace(out)


def latency(name: str, calls: list[Callable[[], Any]]) -> dict[str, float]:
    """Median and 99th percentile in ms, after a warm-up of ten."""
    for call in calls[:10]:
        call()
    times: list[float] = []
    for call in calls:
        times.append(clock(call)[1])
        if sum(times) > SECONDS:
            break
    median, high = np.percentile(times, [50, 99])
    return {f"{name} ms": 1000 * float(median), f"{name} p99 ms": 1000 * float(high)}


def main(kind: type[Side]) -> None:
    parser = argparse.ArgumentParser()
    parser.add_argument("phase", choices=("train", "predict", "version"))
    parser.add_argument("--data", type=Path)
    parser.add_argument("--model", type=Path, default=Path())
    parser.add_argument("--config", type=json.loads, default={})
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    if options.phase == "version":
        print(version(kind.package))
        return
    side = kind(options.config, options.threads, options.model)
    run = run_train(side, options.data) if options.phase == "train" else run_predict(side, options.data, options.out)
    keep(run, options.out)
