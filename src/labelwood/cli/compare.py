"""`labelwood compare`: several methods under one budget, as a leaderboard, JSON and a figure."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Annotated

import typer

from ..base.progress import Progress, Terminal
from ..base.run import Run
from ..data import ReadOptions
from ..errors import MissingExtraError, TrainingError
from ..recipes.recipe import Recipe
from ..reports.leaderboard import USUAL, Files, Standing, check_out, recipes
from ..reports.leaderboard import compare as run_all
from . import show
from .files import Sides, load_data, name_of, write
from .options import (
    DATA_FLAGS,
    Device,
    LabelTextsFile,
    Seed,
    Settings,
    TaxonomyFile,
    Threads,
    TimeAllowed,
    expand,
    parse_settings,
    place,
)


@expand("options", ReadOptions(), DATA_FLAGS)
def compare(
    data: Annotated[
        Path, typer.Argument(metavar="TRAIN", parser=place, help="Training data, a file or folder.", show_default=False)
    ],
    test: Annotated[
        Path, typer.Argument(metavar="TEST", parser=place, help="Held-out data, a file or folder.", show_default=False)
    ],
    *,
    methods: Annotated[
        str | None,
        typer.Option(
            "--methods",
            metavar="NAME,NAME,…",
            show_default=False,
            help=f"Comma-separated; method or method:preset.  [default: {','.join(USUAL)}]",
        ),
    ] = None,
    time: TimeAllowed = None,
    anchor: Annotated[
        str | None, typer.Option("--anchor", metavar="NAME", help="Method that the gains of the others are over.")
    ] = None,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", parser=place, help="Results, models and figure.")] = Path(
        "comparison"
    ),
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

    check_out(out, files := Files(data, test, label_texts, taxonomy))
    names = None if methods is None else [name.strip() for name in methods.split(",") if name.strip()]
    chosen = recipes(names, parse_settings(set_ or []), seed, taxonomy=taxonomy is not None)
    Sides(label_texts, taxonomy)  # a mistake in them is better found now
    allowed = None if time is None else seconds(time)
    run = Run(threads, device, progress=Terminal())
    _show_training(files, chosen, options, run.progress)
    board = run_all(files, chosen, out, seconds=allowed, anchor=anchor, run=run, options=options)
    if board.rows:
        table(board.rows, anchor if board.rows[0].gain is not None else None)
    write(str(out / "leaderboard.json"), [json.dumps(board.to_json(), indent=2).encode() + b"\n"])
    try:
        board.draw(out / "leaderboard.svg")
    except MissingExtraError as error:
        show.say(f"no figure: {error}")
    show.say(f"models, JSON and figure are in {out}")
    if board.failed:
        raise TrainingError("; ".join(board.failed))


def _show_training(files: Files, chosen: Mapping[str, Recipe], options: ReadOptions, progress: Progress) -> None:
    """Show what all methods will read, before they read it one by one."""
    data = load_data(files.train, options, progress, "reading data")
    show.dataset(name_of(files.train), data)
    show.analyser(next(iter(chosen.values())), data, others=True)


def table(rows: Sequence[Standing], anchor: str | None) -> None:
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
