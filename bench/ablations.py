"""The ablations of the XR-Transformer, CascadeXML and X-Transformer papers on a real set, beside the linear recipes.

    LABELWOOD_DATA=… python bench/ablations.py --data quickstart-debtags --tables methods bootstrap --seeds 0 1 2

Runs share a workspace, so rows that differ only in what follows a fine-tuning do it once. Every result is kept by
settings, data and version in bench/cache/ablations; a table is printed as soon as its rows are there. Differences to
the first row of a table come with a paired-bootstrap interval over documents. The time is that of the whole training,
stages that another row had made included, docs/s is prediction from texts. --figures DIR draws the loss after each kind
of first weights (table bootstrap), and quality and time by resolution (table resolution).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import time
from pathlib import Path
from typing import Any

import numpy as np

from labelwood.base.progress import Silent
from labelwood.base.run import Keeping, Run
from labelwood.data import Dataset, align_labels, read, read_label_texts, with_label_texts
from labelwood.metrics.intervals import RowScores, compare
from labelwood.metrics.ranking import MetricsConfig, by_row
from labelwood.pipeline.train import train
from labelwood.recipes.resolve import acting, resolve
from prepare import TEXT_ALONE, locate, version
from tables import DEEP, SIZES, TABLES

HERE = Path(__file__).resolve().parent
KS = (1, 3, 5)


class Lab:
    """One data set with its results."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options = options
        self.name, train_file, held_file = locate(options.data)
        self.train = self._cut(read(train_file, TEXT_ALONE), options.docs)
        self.held = self._cut(read(held_file, TEXT_ALONE), options.held)
        if options.label_texts is not None:
            self.train = with_label_texts(self.train, read_label_texts(options.label_texts))
        self.folder = options.cache / f"{self.name}-{len(self.train)}"
        self.folder.mkdir(parents=True, exist_ok=True)

    @staticmethod
    def _cut(data: Dataset, most: int) -> Dataset:
        return data.take(np.arange(min(most, len(data)))) if most else data

    def cell(self, method: str, settings: dict[str, Any], seed: int) -> dict[str, Any]:
        """Metrics, times and losses of one run; from the cache where it ran before."""
        common = {k: v for k, v in self.options.set.items() if ":" not in k}
        common |= {k.partition(":")[2]: v for k, v in self.options.set.items() if k.startswith(f"{method}:")}
        if method not in DEEP:  # a frozen encoder, or none
            common = {k: v for k, v in common.items() if k.startswith("encoder.") and "encoder.model" in settings}
        settings = {**acting(method, {**common, **settings}), **settings}
        what = json.dumps([method, settings, seed, len(self.held), version()], sort_keys=True)
        file = self.folder / f"{hashlib.sha256(what.encode()).hexdigest()[:16]}.json"
        if not file.exists():
            self._run(method, settings, seed, file)
        found: dict[str, Any] = json.loads(file.read_text(encoding="utf-8"))
        return {**found, "rows": np.load(file.with_suffix(".npz"))}

    def _run(self, method: str, settings: dict[str, Any], seed: int, file: Path) -> None:
        print(f"{time.strftime('%H:%M:%S')} {method} {settings} seed {seed}", flush=True)
        losses: list[tuple[str, int, float, float | None]] = []
        progress, start, reused = Silent(), time.perf_counter(), list[float]()
        recipe = resolve(method, settings=settings, seed=seed)
        run = Run(
            self.options.threads, progress=progress, work=self.folder / f"work-{version()}",
            on_event=lambda e: losses.append((e.stage, e.step, e.loss, e.quality)),
        )  # fmt: skip
        model = train(self.train, recipe, run, keeping=Keeping(shared=True, reused=reused.append))
        spent = time.perf_counter() - start + sum(reused)
        ids = {name: i for i, name in enumerate(model.labels)}
        truth = align_labels(self.held, ids)
        start = time.perf_counter()
        found = model.predict_data(self.held, k=max(KS), threads=self.options.threads)[0]
        speed = len(self.held) / (time.perf_counter() - start)
        config = MetricsConfig(ks=KS, bootstrap=0, unseen="drop")
        rows = by_row(found, truth, model.counts, model.rows, config)
        values = {name: 100 * row.top.sum() / row.bottom.sum() for name, row in rows.items()}
        np.savez(
            file.with_suffix(".npz"), **{f"{n}.{p}": getattr(r, p) for n, r in rows.items() for p in ("top", "bottom")}
        )
        kept = {"method": method, "settings": settings, "seed": seed, **values}
        kept |= {"seconds": spent, "docs/s": speed, "timings": progress.timings, "losses": losses}
        file.write_text(json.dumps(kept), encoding="utf-8")

    def table(self, name: str) -> str:
        title, rows = TABLES[name]
        cells = {row: [self.cell(*what, seed) for seed in self.options.seeds] for row, what in rows.items()}
        first = next(iter(cells.values()))
        lines = [
            f"### {title}",
            "",
            "| | P@1 | P@3 | P@5 | PSP@1 | PSP@5 | ΔP@1 | ΔP@3 | ΔP@5 | training s | docs/s |",
            "|---" * 11 + "|",
        ]
        for row, found in cells.items():
            means = [f"{np.mean([f[m] for f in found]):.2f}" for m in ("P@1", "P@3", "P@5", "PSP@1", "PSP@5")]
            gains = [""] * 3 if found is first else [_gain(first, found, metric) for metric in ("P@1", "P@3", "P@5")]
            seconds, speed = (np.mean([f[name] for f in found]) for name in ("seconds", "docs/s"))
            lines.append(f"| {row} | " + " | ".join([*means, *gains, f"{seconds:.0f}", f"{speed:,.0f}"]) + " |")
        return "\n".join(lines)

    def figures(self, folder: Path) -> None:
        """What the tables bootstrap and resolution show, drawn; cells must be there."""
        import matplotlib as mpl

        mpl.use("svg")
        from matplotlib import pyplot as plt

        mpl.rcParams["svg.hashsalt"] = "labelwood"
        folder.mkdir(parents=True, exist_ok=True)
        if "bootstrap" in self.options.tables:
            figure, axis = plt.subplots(figsize=(6, 3.6), layout="constrained")
            for row, what in TABLES["bootstrap"][1].items():
                losses = self.cell(*what, self.options.seeds[0])["losses"]
                last = losses[-1][0] if losses else ""
                curve = np.array([loss for stage, _, loss, _ in losses if stage == last])
                wide = max(1, len(curve) // 20)
                axis.plot(np.convolve(curve, np.ones(wide) / wide, "valid"), label=row)
            axis.set(xlabel="step of the last level", ylabel="loss, running mean", yscale="log")
            axis.legend(frameon=False)
            figure.savefig(folder / "ablation-bootstrap.svg", metadata={"Date": None})
        if "resolution" in self.options.tables:
            figure, axes = plt.subplots(1, 3, figsize=(12, 3.6), layout="constrained", sharex=True)
            units = (("P@1", "P@1"), ("P@5", "P@5"), ("seconds", "training, s"))
            for tail, style in (("", "o-"), (", no tf-idf", "s--")):
                names = [*(f"single, {k} clusters" for k in SIZES), "single, all labels"]
                cells = [self.cell(*TABLES["resolution"][1][name + tail], self.options.seeds[0]) for name in names]
                several = self.cell(*TABLES["resolution"][1]["multi-resolution" + tail], self.options.seeds[0])
                for axis, (metric, name) in zip(axes, units, strict=True):
                    color = axis.plot([c[metric] for c in cells], style, label=f"one level{tail}")[0].get_color()
                    axis.axhline(several[metric], ls=style[1:], color=color, alpha=0.5)
                    axis.set(title=name, xlabel="clusters of the one level; lines: all levels")
                    axis.set_xticks(range(len(names)), [*map(str, SIZES), "all"])
            axes[0].legend(frameon=False)
            axes[2].set_ylim(bottom=0)
            figure.savefig(folder / "ablation-resolution.svg", metadata={"Date": None})


def _gain(first: list[dict[str, Any]], other: list[dict[str, Any]], metric: str) -> str:
    """The difference with its paired interval: a document counts with all its seeds."""
    a, b = (
        RowScores(*(sum(f["rows"][f"{metric}.{part}"] for f in found) for part in ("top", "bottom")))
        for found in (first, other)
    )
    gain = compare(b, a)
    return f"{gain.difference:+.2f} ({gain.low:+.1f} … {gain.high:+.1f})"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="quickstart-debtags")
    parser.add_argument("--tables", nargs="+", choices=sorted(TABLES), default=list(TABLES))
    parser.add_argument("--seeds", type=int, nargs="+", default=[0])
    parser.add_argument("--docs", type=int, default=0, help="only the first so many documents; 0: all")
    parser.add_argument("--held", type=int, default=0)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--label-texts", type=Path, help="texts of the labels, for rows that cluster by them")
    parser.add_argument(
        "--set", nargs="*", default=[], help="settings of every row with a network; METHOD:… of its rows alone"
    )
    parser.add_argument("--cache", type=Path, default=HERE / "cache" / "ablations")
    parser.add_argument("--out", type=Path, help="also append the tables to this file")
    parser.add_argument("--figures", type=Path, help="draw figures into this folder")
    options = parser.parse_args()
    options.set = dict(pair.split("=", 1) for pair in options.set)
    lab = Lab(options)
    for name in options.tables:
        text = lab.table(name)
        print(f"\n{text}\n", flush=True)
        if options.out is not None:
            with options.out.open("a", encoding="utf-8") as stream:
                stream.write(f"{text}\n\n")
    if options.figures is not None:
        lab.figures(options.figures)


if __name__ == "__main__":
    main()
