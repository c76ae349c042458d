"""The two doors for files: `read` gives one Dataset for training, `stream` an iterator of blocks for the rest."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

from ..base.log import LOG
from ..errors import ConfigError, DataError, counted
from .dataset import Dataset
from .formats.registry import FORMATS
from .label_suspicions import LabelTally
from .options import ReadOptions
from .parsing.fields import Reading
from .parsing.input_pass import InputPass
from .parsing.rows import Collector, Row, Rows
from .parsing.source import first_line, is_folder
from .sniff import sniff_folder, sniff_source

Progress = Callable[[int, int], object]  # (bytes done, bytes in all); (0, 0) where the size is unknown
_EVERY = 1024  # rows between two calls of `progress`


def read(
    path: str | Path,
    options: ReadOptions | None = None,
    *,
    fields: Reading | None = None,
    progress: Progress | None = None,
) -> Dataset:
    """The whole input ("-" is standard input) with its labels; a DataError names file, line and column.

    `fields` are those that a model reads, where the options name none.
    """
    reading = InputPass(path, options or ReadOptions(), need_labels=True, fields=fields)
    try:
        collector: Collector | None = None
        due = _EVERY
        for row in _rows(reading):
            if collector is None:  # a reader knows its label names at the first row
                collector = Collector(reading.log, reading.names)
            collector.add(row)
            if progress is not None and len(collector) >= due:
                progress(*reading.progress())
                due = len(collector) + _EVERY
        if collector is None:
            raise _no_rows(reading)
        if progress is not None:
            progress(*reading.progress())
        _log(reading)
        found = collector.finish(reading.width)
        tally = LabelTally()
        tally.add(found.labels, found.names, found.report)
        _warn(reading, tally)
        return found
    finally:
        reading.close()


def stream(
    path: str | Path,
    options: ReadOptions | None = None,
    *,
    block: int = 4096,
    need_labels: bool = False,
    fields: Reading | None = None,
    progress: Progress | None = None,
) -> Iterator[Dataset]:
    """The input in Datasets of `block` rows, never more than one in memory. Labels are read where there are some.

    Each block numbers only the labels it has; compare blocks by label name. Its report counts the bad lines
    since the block before. `progress` is told how far the input was read when a block was worked off.
    """
    if block < 1:
        raise ConfigError(f"block must be at least 1 row, but is {block}.")
    reading = InputPass(path, options or ReadOptions(), need_labels=need_labels, fields=fields)
    try:
        collector, tally = Collector(reading.log), LabelTally()
        for row in _in_blocks(_rows(reading), block):
            if len(collector) == block:  # not before the next row is there: the last block's report is then complete
                yield _finished(collector, reading, tally)
                if progress is not None:
                    progress(*reading.progress())
                collector = Collector(reading.log)
            collector.add(row)
        if not len(collector):
            raise _no_rows(reading)
        yield _finished(collector, reading, tally)
        _warn(reading, tally)
    finally:
        reading.close()


def _finished(collector: Collector, reading: InputPass, tally: LabelTally) -> Dataset:
    """The block that was collected, its labels counted."""
    found = collector.finish(reading.width)
    tally.add(found.labels, found.names, found.report)
    return found


def _warn(reading: InputPass, tally: LabelTally) -> None:
    """Warn of records that look like several, and of labels that look like something else."""
    place = _name(reading)
    if reading.log.spanning is not None:
        reading.log.spanning.warn(place, tally.counts)
    if reading.log.fields is not None:
        place += f", field {reading.log.fields.labels}"
    tally.warn(place, table=reading.log.spanning is not None)


def _rows(reading: InputPass) -> Iterator[Row | Rows]:
    kind = reading.options.format
    folder = is_folder(reading.path)
    if kind == "auto":
        kind = sniff_folder(Path(reading.path)) if folder else sniff_source(reading.main())
        reading.options = dataclasses.replace(reading.options, format=kind)
    elif not folder and FORMATS[kind].is_text:
        first_line(reading.main())
    return FORMATS[kind].rows(reading)


def _in_blocks(rows: Iterator[Row | Rows], block: int) -> Iterator[Row | Rows]:
    """The same rows, those that come many at once cut at the borders of blocks."""
    count = 0
    for found in rows:
        if isinstance(found, Row):
            count += 1
            yield found
            continue
        begin = 0
        while begin < len(found):
            end = min(len(found), begin + block - count % block)
            yield found.part(begin, end)
            count += end - begin
            begin = end


def _no_rows(reading: InputPass) -> DataError:
    name = _name(reading)
    if reading.log.skipped:
        first = reading.log.examples[0]
        lines = counted(reading.log.skipped, "line")
        return DataError(f"there is no good line among {lines}; the first: {first}", file=name)
    return DataError("there is not a single document in it.", file=name)


def _name(reading: InputPass) -> str:
    return "standard input" if str(reading.path) == "-" else str(reading.path)


def _log(reading: InputPass) -> None:
    """Report of a reading: the format, and lines that are not as they were written."""
    LOG.info("read %s as %s", reading.path, reading.options.format)
    if reading.log.skipped or reading.log.replaced:
        skipped, replaced = reading.log.skipped, reading.log.replaced
        LOG.info("%s: %d lines skipped, %d with replaced bytes", reading.path, skipped, replaced)
