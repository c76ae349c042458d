"""Any settings on a split of the training data: the figures by which defaults were chosen.

    LABELWOOD_DATA=… python bench/splits.py --data debian-tags --rows xr-linear parabel "dismec linear.solver=newton"

A row is a method, then settings, and `preset=NAME` or `seed=N` if wanted. Trains on a random four fifths of the
training part, or of its first --docs documents (--seed), measures on the last fifth: P@k, PSP@k, seconds of training,
those of stages that another row had made included, and the size of the model. --work keeps stages.
"""

from __future__ import annotations

import argparse
import tempfile
import time
from pathlib import Path

import numpy as np

import labelwood as lw
from labelwood.base.run import Keeping, Run
from labelwood.data import read
from labelwood.pipeline.train import train as run_recipe
from labelwood.recipes.resolve import resolve
from prepare import TEXT_ALONE, locate

METRICS = ("P@1", "P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")


def measured(row: str, train: lw.Dataset, held: lw.Dataset, threads: int, work: Path) -> list[str]:
    """The cells of a row."""
    method, *pairs = row.split()
    settings: dict[str, object] = dict(pair.split("=", 1) for pair in pairs)
    preset, seed = settings.pop("preset", None), int(str(settings.pop("seed", 0)))
    recipe = resolve(method, preset=None if preset is None else str(preset), settings=settings, seed=seed)
    reused: list[float] = []
    start = time.perf_counter()
    model = run_recipe(train, recipe, Run(threads, work=work), keeping=Keeping(shared=True, reused=reused.append))
    seconds = time.perf_counter() - start + sum(reused)
    size = sum(a.nbytes for member in model.members for part in member.parts().values() for a in part.values())
    found = model.evaluate(held, metrics=lw.MetricsConfig(bootstrap=0, ks=(1, 3, 5), unseen="drop"), threads=threads)
    return [*(f"{found[name]:.2f}" for name in METRICS), f"{seconds:.1f}", f"{size / 1e6:.1f}"]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="debian-tags")
    parser.add_argument("--rows", nargs="+", default=["xr-linear"])
    parser.add_argument("--docs", type=int, default=0, help="only the first so many documents; 0: all")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--work", type=Path, help="a folder that keeps finished stages for later calls")
    options = parser.parse_args()
    data = read(locate(options.data)[1], TEXT_ALONE)
    if options.docs:
        data = data.take(np.arange(min(options.docs, len(data))))
    order = np.random.default_rng(options.seed).permutation(len(data))
    cut = len(data) // 5
    train, held = data.take(np.sort(order[cut:])), data.take(np.sort(order[:cut]))
    print(f"{options.data}: {len(train):,} documents, {len(held):,} held out\n")
    print("| | " + " | ".join((*METRICS, "s", "MB")) + " |\n" + "|---" * (len(METRICS) + 3) + "|", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        for row in options.rows:
            cells = measured(row, train, held, options.threads, options.work or Path(folder))
            print(f"| {row} | " + " | ".join(cells) + " |", flush=True)


if __name__ == "__main__":
    main()
