"""`labelwood compare`: several methods under one budget, as a leaderboard, JSON and a figure."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from ..base.progress import Terminal
from ..data import ReadOptions
from ..errors import MissingExtraError, TrainingError, needs
from ..metrics.ranking import MetricsConfig
from ..pipeline.run_options import Run
from . import show
from .files import Sides, write
from .options import (
    DATA_FLAGS,
    Device,
    LabelTextsFile,
    Seed,
    Settings,
    TaxonomyFile,
    Threads,
    TimeAllowed,
    TrainingData,
    expand,
    parse_settings,
)

if TYPE_CHECKING:
    from ..reports.leaderboard import Row

MARKS = "osD^v<>Pp*X"  # of a figure's points, so that colours are not all that tells them apart


@expand("options", ReadOptions(), DATA_FLAGS)
def compare(
    data: TrainingData,
    test: Annotated[Path, typer.Argument(metavar="TEST", help="Held-out data.", show_default=False)],
    *,
    methods: Annotated[str, typer.Option("--methods", help="Comma-separated; method or method:preset.")] = (
        "xr-linear,parabel,dismec,xr-transformer,cascadexml"
    ),
    time: TimeAllowed = None,
    anchor: Annotated[str | None, typer.Option("--anchor", help="Gains are told over this one.")] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", help="Results, models and figure.")] = Path("comparison"),
    set_: Settings = None,
    seed: Seed = None,
    label_texts: LabelTextsFile = None,
    taxonomy: TaxonomyFile = None,
    threads: Threads = 0,
    device: Device = "cpu",
    options: ReadOptions,
) -> None:
    """Train several methods on TRAIN and rank them on TEST.

    --time is for all that fine-tune an encoder, together. Stages in common are computed once; the same command goes on
    after an interruption.
    """
    from ..planning.timing import seconds
    from ..reports.leaderboard import Files, recipes
    from ..reports.leaderboard import compare as run_all

    names = [name.strip() for name in methods.split(",") if name.strip()]
    chosen = recipes(names, parse_settings(set_ or []), seed, taxonomy=taxonomy is not None)
    Sides(label_texts, taxonomy)  # a mistake in them is better found now
    allowed = None if time is None else seconds(time)
    run = Run(threads, device, progress=Terminal())
    metrics = MetricsConfig(ks=(1, 3, 5))
    rows, failed = run_all(
        Files(data, test, label_texts, taxonomy),
        chosen,
        out,
        seconds=allowed,
        anchor=anchor,
        run=run,
        options=options,
        metrics=metrics,
    )
    if rows:
        table(rows, anchor if rows[0].gain is not None else None)
    plain = [dataclasses.asdict(row) for row in rows]
    write(str(out / "leaderboard.json"), [json.dumps(plain, indent=2).encode() + b"\n"])
    try:
        figure(rows, out / "leaderboard.svg")
    except MissingExtraError as error:
        show.say(f"no figure: {error}")
    show.say(f"models, JSON and figure are in {out}")
    if failed:
        raise TrainingError("; ".join(failed))


def table(rows: list[Row], anchor: str | None) -> None:
    """The leaderboard: quality, then cost."""
    names = ("P@3", "P@5", "PSP@1", "PSP@3", "PSP@5")
    quality, cost = [], []
    for row in rows:
        low, high = row.metrics["intervals"].get("P@1", (row.metrics["P@1"],) * 2)
        cells = [row.name, f"{row.metrics['P@1']:.1f}", f"{low:.1f}–{high:.1f}"]
        cells += [f"{row.metrics[name]:.1f}" for name in names]
        quality.append((*cells, *([] if row.gain is None else [f"{row.gain:+.1f}"])))
        spent = (show.seconds(row.training), f"{row.latency:.3g} ms", show.size(row.size), show.size(row.memory))
        cost.append((row.name, *spent))
    head = ("method", "P@1", "", *names, *([] if anchor is None else ["gain %"]))
    show.heading("Leaderboard", first=True)
    show.table(quality, head, right=list(range(1, len(head))))
    if anchor is not None:
        show.say(f"gain: of P@1 over {anchor}")
    show.heading("What it takes")
    show.table(cost, ("method", "training", "one text", "model", "memory"), right=[1, 2, 3, 4])


def figure(rows: list[Row], file: Path) -> None:
    """P@1 against the time of one text and against training time; the legend is in the order of the leaderboard."""
    with needs("drawing a figure", "figures"):
        import matplotlib as mpl

        mpl.use("svg")
        from matplotlib import pyplot as plt
    mpl.rcParams["svg.hashsalt"] = "labelwood"
    drawn, axes = plt.subplots(1, 2, figsize=(10, 4), layout="constrained", sharey=True)
    for axis, (name, title) in zip(axes, (("latency", "one text, ms"), ("training", "training, s")), strict=True):
        for i, row in enumerate(rows):
            x, y = max(1e-3, getattr(row, name)), row.metrics["P@1"]
            low, high = row.metrics["intervals"].get("P@1", (y, y))
            bar = [[max(0.0, y - low)], [max(0.0, high - y)]]
            look = {"fmt": MARKS[i % len(MARKS)], "color": f"C{i % 10}", "elinewidth": 0.8, "alpha": 0.9}
            axis.errorbar(x, y, yerr=bar, label=row.name, **look)
        axis.set(xscale="log", xlabel=title)
        axis.grid(alpha=0.3)
        axis.margins(x=0.1)
    axes[0].set_ylabel("P@1, with its 95 % interval")
    if rows:
        drawn.legend(*axes[0].get_legend_handles_labels(), loc="outside right center", frameon=False)
    drawn.savefig(file, metadata={"Date": None})
    plt.close(drawn)
