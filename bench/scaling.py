"""Time, memory and latency as N and L double: xr-linear on synthetic sets in the shapes of Amazon-670K and Amazon-3M.

    python bench/scaling.py --shape 670k --scales 1/64 1/32 1/16 [--settings '{"labels.top": 1000}'] [--docs]

Every set is generated once and trained on in a process of its own, as in the scoreboard; finished ones are kept.
Results are collected in bench/cache/scaling.json. Exponents e are fitted by least squares to log y = e · log N + c: N
documents and L labels grow together, so that e = 1 is linear. With --docs the table goes into docs/results/scaling.md
and the curves into docs/results/scaling.svg (matplotlib).
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np

from cells import Bench, Limits, Row, alone, end_with_children
from prepare import from_pecos_folder
from synthetic import SHAPES, write

ROOT = Path(__file__).resolve().parents[1]
COLUMNS = (
    ("train s", "train s", ".1f"),
    ("train CPU s", "train CPU s", ".1f"),
    ("MB above X+Y", "peak MB", ",.0f"),
    ("X+Y MB", "X+Y MB", ",.0f"),
    ("model MB", "model MB", ",.0f"),
    ("save s", "save s", ".2f"),
    ("load s", "load s", ".3f"),
    ("docs/s", "docs/s", ",.0f"),
    ("one query ms", "one ms", ".3f"),
    ("p99", "one p99 ms", ".3f"),
    ("P@1", "P@1", ".1f"),
    ("P@3", "P@3", ".1f"),
    ("P@5", "P@5", ".1f"),
)
HEAD = """\
# Scaling of the linear recipes

For readers who plan with hundreds of thousands of labels or more: time, memory and latency as a set grows.
[Heads of a network](heads.md) is the page on networks over as many labels.

The sets are synthetic, in the shapes of Amazon-670K and Amazon-3M (`bench/synthetic.py` says how they are made). The
recipe is xr-linear with preset `fast` (eps 0.3, 10 passes, int8 weights), with 2 threads. This page is written by

    .venv/bin/python bench/scaling.py --shape 670k 3m --scales 1/64 1/32 1/16 1/8 1/4 1/2 1 --docs \\
      --settings '{"linear.eps": 0.3, "linear.max_iter": 10, "linear.weights": "int8"}'

Documents and labels grow together; e = 1 is linear. "MB above X+Y" is the highest memory of the process beyond the
matrices it was given. A query is one document by one thread, features ready. Models above 256 MB are opened by memory
map and verified block by block on first use, which is why the largest open faster than the middle ones.

![training time, memory and query time by the number of documents](scaling.svg)

"""
FITTED = ("train s", "train CPU s", "peak MB", "model MB", "save s", "load s", "one ms", "one p99 ms")


def point(bench: Bench, shape: str, scale: Fraction, options: argparse.Namespace) -> dict[str, Any]:
    """Generate the set, train on it and predict; from the cache where that was done before."""
    name = f"{shape}-{scale.numerator}-{scale.denominator}-seed{options.seed}"
    print(f"{time.strftime('%H:%M:%S')} {shape} × {scale}", flush=True)
    source = bench.cache / "synthetic" / name
    write(source, shape, scale, options.seed)
    data = from_pecos_folder(f"amazon-{name}", source, bench.cache)  # PSP with the constants of the Amazon sets
    config = {"method": options.method, "settings": options.settings}
    result, _ = bench.cell(Row(f"scaling {options.method}", "labelwood", config), data)
    if "error" in result or "over" in result:
        print(f"  {result.get('error') or 'over ' + result['over']}", flush=True)
    about = json.loads((data / "about.json").read_text(encoding="utf-8"))
    found = {"shape": shape, "scale": str(scale), "documents": about["documents"], "labels": about["labels"]}
    return {**found, **config, **result}


def stages(p: dict[str, Any]) -> dict[str, float]:
    """CPU seconds of the training by stage, the levels of the tree as one; what lies between them is the rest."""
    found: dict[str, float] = {}
    for name, seconds in p["stage CPU s"].items():
        kind = "CPU s, levels" if name.startswith("level ") else f"CPU s, {name.partition(' for level')[0]}"
        found[kind] = found.get(kind, 0.0) + seconds
    return {**found, "CPU s, rest": p["train CPU s"] - sum(found.values())}


def exponents(points: list[dict[str, Any]]) -> dict[str, float]:
    """e of y ∝ N^e for every measured quantity and every stage that takes a moment."""
    rows = [{**{key: p[key] for key in FITTED}, **stages(p)} for p in points]
    size = np.log([p["documents"] for p in points])
    columns = {key: [row.get(key, 0.0) for row in rows] for key in rows[-1]}
    return {key: float(np.polyfit(size, np.log(y), 1)[0]) for key, y in columns.items() if min(y) > 1e-3}


def stage_table(points: list[dict[str, Any]]) -> str:
    kinds = list(dict.fromkeys(kind for p in points for kind in stages(p)))
    lines = ["| shape | scale | " + " | ".join(kinds) + " |", "|---" * (len(kinds) + 2) + "|"]
    for p in points:
        found = stages(p)
        lines.append(f"| {p['shape']} | {p['scale']} | " + " | ".join(f"{found.get(k, 0):.2f}" for k in kinds) + " |")
    return "\n".join(lines)


def table(points: list[dict[str, Any]]) -> str:
    heads = ("shape", "scale", "documents", "labels", *(heading for heading, _, _ in COLUMNS))
    lines = ["| " + " | ".join(heads) + " |", "|---" * len(heads) + "|"]
    for p in points:
        cells = [p["shape"], p["scale"], f"{p['documents']:,}", f"{p['labels']:,}"]
        cells += [format(p[key], form) if key in p else "–" for _, key, form in COLUMNS]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def exponent_table(fits: dict[str, dict[str, float]]) -> str:
    keys = list(dict.fromkeys(key for fit in fits.values() for key in fit))
    lines = ["| grows as N^e | " + " | ".join(fits) + " |", "|---" * (len(fits) + 1) + "|"]
    for key in keys:
        lines.append(
            f"| {key} | " + " | ".join(f"{fit[key]:.2f}" if key in fit else "–" for fit in fits.values()) + " |"
        )
    return "\n".join(lines)


def collect(new: dict[str, Any], file: Path) -> list[dict[str, Any]]:
    """All points so far, the new one in place of an earlier one of the same shape, scale and settings."""
    old = json.loads(file.read_text(encoding="utf-8")) if file.exists() else []
    kept = {(p["shape"], p["scale"], p["method"], json.dumps(p["settings"])): p for p in [*old, new]}
    points = sorted(kept.values(), key=lambda p: (p["shape"], p["documents"]))
    file.write_text(json.dumps(points, indent=1) + "\n", encoding="utf-8")
    return points


def document(points: list[dict[str, Any]], text: str, folder: Path) -> None:
    """docs/results/scaling.md and docs/results/scaling.svg."""
    (folder / "scaling.md").write_text(HEAD + text + "\n", encoding="utf-8")
    draw(points, folder / "scaling.svg")


def draw(points: list[dict[str, Any]], file: Path) -> None:
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "labelwood"
    from matplotlib import pyplot as plt

    panels = (("train s", "training, s"), ("peak MB", "memory above X+Y, MB"), ("one ms", "one query, ms"))
    figure, axes = plt.subplots(1, len(panels), figsize=(12, 3.6), layout="constrained")
    for axis, (key, title) in zip(axes, panels, strict=True):
        for shape in sorted({p["shape"] for p in points}):
            line = [(p["documents"], p[key]) for p in points if p["shape"] == shape and key in p]
            axis.loglog(*zip(*line, strict=True), marker="o", label=shape)
        axis.set(title=title, xlabel="documents")
        axis.grid(alpha=0.3, which="both")
    axes[0].legend()
    figure.savefig(file, metadata={"Date": None})


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--shape", nargs="+", choices=sorted(SHAPES), default=["670k"])
    parser.add_argument("--scales", nargs="+", type=Fraction, default=[Fraction(1, n) for n in (64, 32, 16)])
    parser.add_argument("--method", default="xr-linear")
    parser.add_argument("--settings", type=json.loads, default={}, help="JSON, e.g. '{\"labels.top\": 1000}'")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=180.0, help="limit of a training, and of a prediction")
    parser.add_argument("--gb", type=float, default=20.0, help="limit of their memory")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "cache")
    parser.add_argument("--docs", action="store_true", help="write scaling.md and scaling.svg in docs/results")
    options = parser.parse_args()
    end_with_children()
    limits = Limits(options.minutes, options.gb)
    bench = Bench(options.cache.resolve(), {"labelwood": sys.executable}, options.threads, limits)
    points: list[dict[str, Any]] = []
    with alone(bench.cache):
        for shape in options.shape:
            for scale in sorted(options.scales):
                points = collect(point(bench, shape, scale, options), bench.cache / "scaling.json")
    whole = [
        p
        for p in points
        if "one ms" in p and "stage CPU s" in p and (p["method"], p["settings"]) == (options.method, options.settings)
    ]
    sizes = {shape: [p for p in whole if p["shape"] == shape] for shape in sorted({p["shape"] for p in whole})}
    fits = {shape: exponents(found) for shape, found in sizes.items() if len(found) > 1}
    text = f"{table(whole)}\n\n{stage_table(whole)}\n\n{exponent_table(fits)}"
    print(f"\n{text}")
    if options.docs:
        document(whole, text, ROOT / "docs/results")


if __name__ == "__main__":
    main()
