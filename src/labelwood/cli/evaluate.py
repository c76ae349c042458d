"""`labelwood evaluate`: metrics with intervals on held-out data, as a table or JSON."""

from __future__ import annotations

import json
from typing import Annotated

import typer

from ..base.progress import Terminal
from ..data import ReadOptions, stream
from ..metrics.ranking import MetricsConfig
from ..models.ensemble import load
from . import show
from .files import Tally, check_target, name_of, write
from .options import DATA_FLAGS, METRIC_FLAGS, ModelFolder, TestData, Threads, expand


@expand("options", ReadOptions(split="test"), DATA_FLAGS)
@expand("metrics", MetricsConfig(), METRIC_FLAGS)
def evaluate(
    model: ModelFolder,
    test: TestData,
    *,
    json_: Annotated[
        str | None, typer.Option("--json", metavar="FILE", help="Write the metrics here; '-' is stdout, no table.")
    ] = None,
    threads: Threads = 0,
    metrics: MetricsConfig,
    options: ReadOptions,
) -> None:
    """Measure a model on held-out data.

    P, R, nDCG, PSP, PSnDCG, coverage and macro-F1 at k, in percent, with bootstrap intervals.
    """
    check_target(json_, test)
    loaded, tally = load(model), Tally()
    with Terminal().stage("predicting", 0, "bytes") as tick:  # block by block: the input may be larger than memory
        blocks = tally.watch(stream(test, options, need_labels=True, fields=loaded.record_fields, progress=tick))
        found = loaded.evaluate_blocks(blocks, metrics=metrics, threads=threads)
    show.bad_lines(name_of(test), tally.report)
    show.absent_fields(name_of(test), tally.report, loaded)
    if json_ != "-":
        show.labelled(name_of(test), tally.report, len(tally.names), tally.occurrences)
        show.metrics(found)
    if json_ is not None:
        write(json_, [json.dumps(found.to_json(), indent=2).encode() + b"\n"])
