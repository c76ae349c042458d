"""XR-Linear side by side with PECOS: training, memory, model size, prediction, P@k. Same features, tree, negatives.

    LABELWOOD_DATA=/path/to/data python bench/xr_linear.py --pecos-python .venv-pecos/bin/python [--json FILE]

Both sides read the same matrices (labelwood's tf-idf), then train from X and Y in memory to a model object: label
features, tree (branch 16, leaf 100), classifiers (squared hinge, C = 1, eps 0.1, threshold 0.1, teacher negatives).
Every run is a process of its own; the sides take turns, one at a time; the table shows medians and their ratios.
"""

from __future__ import annotations

import argparse
import json
import os
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

HELD_OUT = {"eurlex57k": "dev", "tib-gnd-en": "dev"}
TOP = 10


def clock(work: Callable[[], Any]) -> tuple[Any, float, float]:
    """(result, wall seconds, CPU seconds of all threads)."""
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, time.perf_counter() - wall, time.process_time() - cpu


def peak_mb() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def folder_mb(folder: str) -> float:
    return sum(p.stat().st_size for p in Path(folder).rglob("*") if p.is_file()) / 1e6


def labelwood_verbs(threads: int) -> tuple[Callable[..., Any], ...]:
    import labelwood as lw

    def train(x: Any, y: Any) -> Any:
        return lw.train(X=x, labels=y, threads=threads)

    def predict(model: Any, x: Any) -> Any:
        return model.predict_arrays(X=x, k=TOP, threads=threads)[0]

    def one(model: Any, x: Any) -> Any:
        return model.predict_arrays(X=x, k=TOP, threads=1)[0]

    def columns(model: Any, ids: Any) -> Any:  # label names are the column numbers as text, ids their sorted order
        names = np.array([int(name) for name in model.labels] + [-1])
        return names[ids]

    return train, lambda m, d: m.save(d), lw.load, predict, one, columns


def pecos_verbs(threads: int) -> tuple[Callable[..., Any], ...]:
    from pecos.xmc import Indexer, LabelEmbeddingFactory
    from pecos.xmc.xlinear.model import XLinearModel

    def train(x: Any, y: Any) -> Any:
        z = LabelEmbeddingFactory.create(y, x, method="pifa", threads=threads)
        chain = Indexer.gen(z, indexer_type="hierarchicalkmeans", nr_splits=16, max_leaf_size=100, threads=threads)
        return XLinearModel.train(x, y, C=chain, threads=threads, threshold=0.1, negative_sampling_scheme="tfn")

    def ids(model: Any, x: Any, use: int) -> Any:
        scores = model.predict(x, only_topk=TOP, beam_size=10, threads=use).tocsr()
        out = np.full((x.shape[0], TOP), -1)
        for row in range(x.shape[0]):
            part = slice(scores.indptr[row], scores.indptr[row + 1])
            best = scores.indices[part][np.argsort(-scores.data[part], kind="stable")]
            out[row, : len(best)] = best
        return out

    def load(folder: str) -> Any:
        return XLinearModel.load(folder, is_predict_only=True)

    def one(model: Any, x: Any) -> Any:
        return model.predict(x, only_topk=TOP, beam_size=10, threads=1)

    def bulk(model: Any, x: Any) -> Any:
        return model.predict(x, only_topk=TOP, beam_size=10, threads=threads)

    return train, lambda m, d: m.save(d), load, bulk, one, lambda m, _, x: ids(m, x, threads)


def run_side(side: str, folder: Path, threads: int) -> dict[str, float]:
    """One training and what follows, in this process."""
    x, y, held_x, held_y = (sparse.load_npz(folder / f"{n}.npz") for n in ("x", "y", "held_x", "held_y"))
    train, save, load, bulk, one, columns = labelwood_verbs(threads) if side == "labelwood" else pecos_verbs(threads)
    before = peak_mb()
    model, wall, cpu = clock(lambda: train(x, y))
    result = {"train wall s": wall, "train CPU s": cpu, "peak MB above data": peak_mb() - before}
    with tempfile.TemporaryDirectory() as target:
        _, result["save s"], _ = clock(lambda: save(model, target))
        result["model MB"] = folder_mb(target)
        model, result["load s"], _ = clock(lambda: load(target))
        found, seconds, cpu = clock(lambda: bulk(model, held_x))
        result |= {"docs/s": held_x.shape[0] / seconds, "predict CPU ms/doc": 1000 * cpu / held_x.shape[0]}
        rows = [held_x[i] for i in range(min(500, held_x.shape[0]))]
        singles = [clock(lambda row=row: one(model, row))[1] for row in rows]
        result["one query ms"] = 1000 * statistics.median(singles)
        ids = columns(model, found) if side == "labelwood" else columns(model, found, held_x)
    truth = held_y.tocsr()
    hits = np.array([np.isin(ids[i], truth.indices[truth.indptr[i] : truth.indptr[i + 1]]) for i in range(len(ids))])
    return result | {f"P@{k}": 100 * float(hits[:, :k].mean()) for k in (1, 3, 5)}


def prepare(name: str, folder: Path, threads: int) -> str:
    """tf-idf matrices of a data set, as both sides read them."""
    import labelwood as lw
    from labelwood.data import align_labels
    from labelwood.features import Tfidf, TfidfConfig

    base = Path(os.environ.get("LABELWOOD_DATA", "data")) / name
    if not base.is_dir():
        raise SystemExit(f"{base} is missing; set LABELWOOD_DATA to the folder that holds {name}/.")
    data, held = (lw.read_data(base / f"{part}.jsonl.xz") for part in ("train", HELD_OUT.get(name, "test")))
    tfidf, x = Tfidf.fit(data.texts, TfidfConfig(), threads=threads)
    held_x = tfidf.transform(held.texts, threads=threads)
    held_y = align_labels(held, {name: i for i, name in enumerate(data.names)})
    matrices = {"x": x, "y": data.labels, "held_x": held_x, "held_y": held_y}
    for key, matrix in matrices.items():
        sparse.save_npz(folder / f"{key}.npz", matrix.to_scipy(), compressed=False)
    return f"{name}: {x.rows} documents, {x.cols} features, {x.nnz} non-zeros, {data.labels.cols} labels"


def call(python: str, side: str, folder: Path, threads: int) -> dict[str, float]:
    command = [python, __file__, "--side", side, "--folder", str(folder), "--threads", str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode:
        raise SystemExit(f"{side} failed:\n{done.stderr[-2000:]}")
    return json.loads(done.stdout.splitlines()[-1])


def report(title: str, ours: list[dict[str, float]], peer: list[dict[str, float]]) -> dict[str, Any]:
    print(f"\n{title}; medians of {len(ours)} runs each, PECOS and labelwood in turn")
    print(f"{'':22}{'labelwood':>12}{'PECOS':>12}{'ratio':>10}")
    rows = {}
    for key in ours[0]:
        a, b = statistics.median(r[key] for r in ours), statistics.median(r[key] for r in peer)
        ratio = a / b if key == "docs/s" else b / a if a else float("nan")
        rows[key] = {"labelwood": a, "pecos": b}
        print(f"{key:22}{a:12.3f}{b:12.3f}" + ("" if key.startswith("P@") else f"{ratio:9.2f}x"))
    return rows


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["debian-deps", "eurlex57k"])
    parser.add_argument("--pecos-python", default=".venv-pecos/bin/python")
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--json", type=Path)
    parser.add_argument("--side", choices=("labelwood", "pecos"), help=argparse.SUPPRESS)
    parser.add_argument("--folder", type=Path, help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.side:
        print(json.dumps(run_side(options.side, options.folder, options.threads)))
        return
    results = {}
    for name in options.data:
        with tempfile.TemporaryDirectory(prefix="labelwood-bench-") as temporary:
            folder = Path(temporary)
            title = prepare(name, folder, options.threads)
            sides: dict[str, list[dict[str, float]]] = {"pecos": [], "labelwood": []}
            for _ in range(options.repeats):
                for side, python in (("pecos", options.pecos_python), ("labelwood", sys.executable)):
                    sides[side].append(call(python, side, folder, options.threads))
            results[name] = report(title, sides["labelwood"], sides["pecos"])
    if options.json:
        options.json.write_text(json.dumps(results, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
