"""`labelwood analyse`: what a trained network does inside, as a table, JSON and figures."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from .. import limits
from ..base.progress import Terminal
from ..data import ReadOptions, read
from ..errors import MissingExtraError
from ..models.ensemble import load
from ..reports.figures import draw_analysis
from ..storage import targets
from . import show
from .files import write
from .options import DATA_FLAGS, ModelFolder, TestData, Threads, expand, place, whole

if TYPE_CHECKING:
    from ..evaluation.network_analysis import Analysis

FILES = ("analysis.json", "beside.json", "attention.svg", "similarity.svg")


@expand("options", ReadOptions(split="test"), DATA_FLAGS)
def analyse(
    model: ModelFolder,
    test: TestData,
    *,
    out: Annotated[Path, typer.Option("--out", metavar="DIR", parser=place, help="Where JSON and figures go.")] = Path(
        "analysis"
    ),
    beside: Annotated[
        Path | None,
        typer.Option("--beside", metavar="DIR", parser=place, help="Another model, drawn into the same figures."),
    ] = None,
    most: Annotated[
        int,
        typer.Option("--most", metavar="N", parser=whole(1, limits.MAX_INDEX), help="Documents that are looked at."),
    ] = 4000,
    threads: Threads = 0,
    options: ReadOptions,
) -> None:
    """Look inside a model with an encoder.

    Recall of each level's shortlist, attention of the first token by layer, and how alike the layers' vectors are, next
    to the pretrained encoder.
    """
    from ..evaluation.network_analysis import analyse as look

    targets.check_folder(out, [test], FILES)
    opened = [(folder, load(folder)) for folder in (model, beside) if folder is not None]
    found = []
    for folder, loaded in opened:
        data = read(test, options, fields=loaded.record_fields)
        found.append(look(loaded, data, threads=threads, most=most, progress=Terminal()))
        _say(folder, found[-1], first=len(found) == 1)
    out.mkdir(parents=True, exist_ok=True)
    for name, one in zip(("analysis", "beside"), found, strict=False):
        write(str(out / f"{name}.json"), [json.dumps(one.to_json(), indent=2).encode() + b"\n"])
    try:
        draw_analysis(found, out)
    except MissingExtraError as error:
        show.say(f"no figures: {error}")
        return
    show.say(f"JSON and figures are in {out}")


def _say(model: Path, found: Analysis, *, first: bool) -> None:
    show.heading(f"{model}: {found.method}, {found.documents:,} documents", first=first)
    rows = [(str(k.level), f"{k.clusters:,}", f"{k.kept:,}", f"{k.recall:.2f}") for k in found.shortlists]
    if rows:
        show.table(rows, ("level", "clusters", "kept", "recall %"), right=[0, 1, 2, 3])
        show.say(f"labels whose whole path is kept: {found.paths:.2f} %")
    if found.remark:
        show.say(found.remark)
