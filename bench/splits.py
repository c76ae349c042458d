"""Any settings on a split of the training data: the figures by which defaults were chosen.

    LABELWOOD_DATA=… python bench/splits.py --data debian-tags --rows xr-linear parabel "dismec linear.solver=newton"

A row is a method, then settings. Trains on a random four fifths of the training part (--seed), measures on the last
fifth: P@k, PSP@k, CPU seconds of training without reading words, and the size of the model.
"""

from __future__ import annotations

import argparse
import time

import numpy as np

import labelwood as lw
from labelwood.data import read
from labelwood.progress import Silent
from prepare import locate

METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


def measured(row: str, train: lw.Dataset, held: lw.Dataset, threads: int) -> list[str]:
    """The cells of a row."""
    method, *pairs = row.split()
    settings = dict(pair.split("=", 1) for pair in pairs)
    preset = settings.pop("preset", None)
    progress = Silent(time.process_time)
    model = lw.train(train, method=method, preset=preset, settings=settings, threads=threads, progress=progress)
    seconds = sum(s for name, s in progress.timings.items() if name != "reading words" and " / " not in name)
    size = sum(a.nbytes for member in model.members for part in member.parts().values() for a in part.values())
    found = model.evaluate(held, metrics=lw.MetricsConfig(bootstrap=0, ks=(1, 3, 5), unseen="drop"), threads=threads)
    return [*(f"{found[name]:.2f}" for name in METRICS), f"{seconds:.1f}", f"{size / 1e6:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="debian-tags")
    parser.add_argument("--rows", nargs="+", default=["xr-linear"])
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    options = parser.parse_args()
    data = read(locate(options.data)[1])
    order = np.random.default_rng(options.seed).permutation(len(data))
    cut = len(data) // 5
    train, held = data.take(np.sort(order[cut:])), data.take(np.sort(order[:cut]))
    print(f"{options.data}: {len(train):,} documents, {len(held):,} held out\n")
    print("| | " + " | ".join((*METRICS, "CPU s", "MB")) + " |\n" + "|---" * (len(METRICS) + 3) + "|")
    for row in options.rows:
        print(f"| {row} | " + " | ".join(measured(row, train, held, options.threads)) + " |", flush=True)


if __name__ == "__main__":
    main()
