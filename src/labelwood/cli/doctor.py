"""`labelwood doctor`: what a training would meet in the data, before it is begun."""

from __future__ import annotations

import dataclasses
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ..base.progress import Progress, Terminal
from ..data import ReadOptions, read, sniff
from ..data.language_words import NAMES
from ..data.parsing.fields import Reading
from ..errors import counted
from ..reports.checkup_page import SETS, duration, fields_of, memory, percent, pieces_note, span, summary
from ..reports.doctor import Checkup, Examined, Histogram, Source, examine, unwarned
from ..reports.findings import Finding
from . import show
from .files import check_target, name_of, write
from .options import DATA_FLAGS, Threads, TrainingData, expand, place


@expand("options", ReadOptions(on_bad="skip"), DATA_FLAGS)
def doctor(
    data: TrainingData,
    test: Annotated[
        Path | None, typer.Argument(metavar="TEST", parser=place, help="Held-out data.", show_default=False)
    ] = None,
    *,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write all of it as JSON; '-' prints that alone.")
    ] = None,
    page: Annotated[
        str | None, typer.Option("--html", metavar="FILE", help="Write it as one page; '-' prints that alone.")
    ] = None,
    threads: Threads = 0,
    options: ReadOptions,
) -> None:
    """Check TRAIN, and TEST beside it, before a training.

    Lines that cannot be read, damaged and empty texts, duplicates, suspicious labels, lengths, languages, and methods
    that suit. Nothing is trained.
    """
    if (json_ == "-") + (page == "-") + (str(data) == "-" and str(test) == "-") > 1:
        raise typer.BadParameter("only one of them can be '-'.")
    if json_ is not None and json_ == page:
        raise typer.BadParameter("--json and --html name the same file.")
    for target in (json_, page):
        check_target(target, data, test)
    progress = Terminal()
    train = _source(data, options, progress, None)
    fields = None if train.data.texts is None else Reading(train.data.texts.fields)
    beside = None if test is None else _source(test, _of_test(options), progress, fields)
    found = examine(train, beside, threads=threads, progress=progress)
    if json_ is not None:
        write(json_, [json.dumps(found.to_json(), indent=2, ensure_ascii=False, allow_nan=False).encode() + b"\n"])
    if page is not None:
        write(page, [found.html().encode()])
    if "-" not in {json_, page}:
        _show(found)


def _of_test(options: ReadOptions) -> ReadOptions:
    """The same for the held-out part of a folder."""
    return dataclasses.replace(options, split="test")


def _source(path: Path, options: ReadOptions, progress: Progress, fields: Reading | None) -> Source:
    with progress.stage(f"reading {name_of(path)}", 0, "bytes") as tick, unwarned():
        found = read(path, options, fields=fields, progress=tick)
    kind = options.format if options.format != "auto" else "" if str(path) == "-" else sniff(path)
    return Source(found, name_of(path), kind)


def _show(found: Checkup) -> None:
    """All of it on the terminal: what was read, the findings, then figures."""
    sets = [one for one in (found.train, found.test) if one is not None]
    for one in sets:
        _read(one)
    show.heading(summary(found))
    for finding in found.findings:
        _finding(finding, several=len(sets) > 1)
    for one, which in zip(sets, SETS, strict=False):
        _spread(one, which, several=len(sets) > 1)
    if found.train.languages:
        show.heading("Languages")
        codes = list(dict.fromkeys(code for one in sets for code in one.languages))
        rows = [(NAMES[code], *(percent(one.languages.get(code, 0.0)) for one in sets)) for code in codes]
        show.table(rows, ("language", *SETS[: len(sets)]), right=range(1, len(sets) + 1))
    if found.pieces is not None:
        show.heading("What an encoder will cut")
        show.say(pieces_note(found))
        cuts = [(f"{cut.pieces:,}", percent(cut.documents), percent(cut.words)) for cut in found.cuts]
        show.table(cuts, ("pieces it reads", "longer documents", "words not read"), right=[0, 1, 2])
    if found.methods:
        show.heading("Methods that suit, roughly (labelwood plan measures)")
        methods = [(one.method, duration(one.cpu_seconds), memory(one.memory), one.why) for one in found.methods]
        show.table(methods, ("method", "CPU time", "memory", "why"), right=[1, 2])


def _read(one: Examined) -> None:
    kind = f" ({one.format})" if one.format else ""
    mean = f"{one.occurrences / max(1, one.documents):.2f} labels per document"
    counts = f"{counted(one.documents, 'document')}, {counted(one.labels, 'label')}, {mean}"
    show.say(f"{one.name}{kind}: {counts}")
    if one.fields:
        left = f"; not read: {', '.join(one.left)}" if one.left else ""
        show.say(f"  text from {fields_of(one)}{left}")


def _finding(found: Finding, *, several: bool) -> None:
    where = f" in {found.set}" if several else ""
    show.say("", f"{found.severity}{where}: {found.what}")
    show.say(*(f"    {example}" for example in found.examples))
    if found.way_out:
        show.say(f"  → {found.way_out}")


def _spread(one: Examined, which: str, *, several: bool) -> None:
    """The histograms, side by side as tables of counts."""
    of = f", {which}" if several else ""
    for title, found in (
        (f"Labels per document{of}", one.labels_per_document),
        (f"Documents per label{of}", one.documents_per_label),
        (f"Words per document{of}", one.words_per_document),
    ):
        if found is not None and found.bars:
            show.heading(f"{title}: mean {found.mean:,.1f}, median {found.median:,.0f}, most {found.most:,}")
            show.table(_bars(found), right=[0, 1])


def _bars(found: Histogram) -> Iterable[tuple[str, str, str]]:
    most = max(bar.count for bar in found.bars)
    for bar in found.bars:
        yield span(bar.low, bar.high), f"{bar.count:,}", "█" * max(bool(bar.count), round(30 * bar.count / most))
