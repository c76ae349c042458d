"""`labelwood predict`: labels for each document, in blocks, so that the input may be larger than memory."""

from __future__ import annotations

import dataclasses
import sys
from pathlib import Path
from typing import Annotated

import typer

from .. import limits
from ..base.progress import Progress, Silent, Terminal
from ..data import ReadOptions, from_lists, stream
from ..models.ensemble import load
from . import show
from .files import Tally, check_target, name_of, write
from .options import DATA_FLAGS, ModelFolder, Threads, choice, expand, place, whole
from .predictions import OUTPUT_FORMATS, format_for, lines


@expand("options", ReadOptions(split="test"), DATA_FLAGS)
def predict(
    model: ModelFolder,
    source: Annotated[
        Path | None,
        typer.Argument(metavar="INPUT", parser=place, help="File or folder; '-' is stdin.", show_default=False),
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
    output_format: Annotated[
        str | None,
        typer.Option(
            "--output-format",
            metavar="|".join(OUTPUT_FORMATS),
            parser=choice(OUTPUT_FORMATS),
            show_default=False,
            help="How to write them. Default: by FILE's suffix (.csv, .tsv), else jsonl.",
        ),
    ] = None,
    threads: Threads = 0,
    options: ReadOptions,
) -> None:
    """Predict the labels of documents.

    One line of JSON for each document, or CSV, TSV or Annif's corpus.

    {"id": …, "labels": [{"label": …, "score": …}, …]}, best label first; "id" is the document's id, or else its row
    number, counted from 0. "text" stands after "label" if the model was trained with --label-texts. Labels in INPUT are
    not read. CSV and TSV have a row for each label of each document; Annif's format repeats the text.
    """
    if (source is None) == (not text):
        raise typer.BadParameter("give INPUT or --text, one of the two.")
    check_target(output, source)
    loaded, kind = load(model), format_for(output, output_format)
    if text:
        write(output, lines(loaded, [from_lists(text)], k, threads, kind))
        return
    assert source is not None
    tally = Tally()
    on_screen = output in {None, "-"} and sys.stdout.isatty()
    progress: Progress = Silent() if on_screen else Terminal()
    with progress.stage("predicting", 0, "bytes") as tick:
        unlabelled = dataclasses.replace(options, labels=None, relevance=None)
        blocks = stream(source, unlabelled, fields=loaded.record_fields, progress=tick)
        write(output, lines(loaded, tally.watch(blocks), k, threads, kind))
    show.bad_lines(name_of(source), tally.report)
    show.absent_fields(name_of(source), tally.report, loaded)
