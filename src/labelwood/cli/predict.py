"""`labelwood predict`: one JSON object per document, in blocks, so that the input may be larger than memory."""

from __future__ import annotations

import dataclasses
import json
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Annotated

import typer

from .. import limits
from ..base.progress import Progress, Silent, Terminal
from ..data import Dataset, ReadOptions, from_lists, stream
from ..models.ensemble import load
from ..models.predictor import Predictor
from . import show
from .files import Tally, check_target, name_of, write
from .options import DATA_FLAGS, ModelFolder, Threads, expand, whole


@expand("options", ReadOptions(split="test"), DATA_FLAGS)
def predict(
    model: ModelFolder,
    source: Annotated[
        str | None, typer.Argument(metavar="INPUT", help="File or folder; '-' is stdin.", show_default=False)
    ] = None,
    *,
    text: Annotated[
        list[str] | None,
        typer.Option("--text", metavar="TEXT", help="A text itself, instead of INPUT (may be repeated)."),
    ] = None,
    k: Annotated[
        int, typer.Option("-k", metavar="N", parser=whole(1, limits.MAX_K), help="Labels for each document.")
    ] = 5,
    output: Annotated[
        str | None, typer.Option("-o", "--output", metavar="FILE", help="Write here instead of stdout.")
    ] = None,
    threads: Threads = 0,
    options: ReadOptions,
) -> None:
    """Predict labels, as one line of JSON for each document.

    {"id": …, "labels": [{"label": …, "score": …}, …]}, best label first; "id" is the document's id, or else its row
    number, counted from 0. "text" stands after "label" if the model was trained with --label-texts. Labels in INPUT are
    not read.
    """
    if (source is None) == (not text):
        raise typer.BadParameter("give INPUT or --text, one of the two.")
    check_target(output)
    loaded = load(model)
    if text:
        write(output, _lines(loaded, [from_lists(text)], k, threads))
        return
    assert source is not None
    tally = Tally()
    on_screen = output in {None, "-"} and sys.stdout.isatty()
    progress: Progress = Silent() if on_screen else Terminal()
    with progress.stage("predicting", 0, "bytes") as tick:
        unlabelled = dataclasses.replace(options, labels=None, relevance=None)
        blocks = stream(Path(source), unlabelled, progress=tick)
        write(output, _lines(loaded, tally.watch(blocks), k, threads))
    show.bad_lines(name_of(source), tally.report)


def _lines(model: Predictor, blocks: Iterable[Dataset], k: int, threads: int) -> Iterator[bytes]:
    row, texts = 0, dict(zip(model.labels, model.label_texts, strict=False))
    for block in blocks:
        ids, scores = model.predict_data(block, k=k, threads=threads)
        numbers: Iterable[str | int] = block.ids or range(row, row + len(block))
        rows = zip(numbers, model.named(ids, scores), strict=True)
        yield "".join(_line(number, labels, texts) for number, labels in rows).encode()
        row += len(block)


def _line(number: str | int, labels: list[tuple[str, float]], texts: dict[str, str]) -> str:
    found = [
        {"label": name, "text": texts[name], "score": score} if texts else {"label": name, "score": score}
        for name, score in labels
    ]
    return json.dumps({"id": number, "labels": found}, ensure_ascii=False) + "\n"
