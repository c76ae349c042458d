"""Reading data with progress and a report, and writing results whole or not at all."""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

from ..base.progress import Progress
from ..data import (
    Dataset,
    ReadOptions,
    ReadReport,
    read,
    read_label_texts,
    read_taxonomy,
    with_label_texts,
    with_taxonomy,
)
from ..data.parsing.fields import Reading
from ..errors import ConfigError
from ..storage import atomic_files, targets
from . import show


def name_of(path: str | Path) -> str:
    """Name of an input, for people."""
    return "standard input" if str(path) == "-" else str(path)


def load_data(
    path: Path, options: ReadOptions, progress: Progress, stage: str, fields: Reading | None = None
) -> Dataset:
    """The whole input; bad lines that were skipped or replaced are reported on stderr."""
    with progress.stage(stage, 0, "bytes") as tick:
        data = read(path, options, fields=fields, progress=tick)
    show.bad_lines(name_of(path), data.report)
    return data


class Sides:
    """Side files about the labels: read before the data, so that a mistake is found early, then laid over it."""

    def __init__(self, label_texts: Path | None, taxonomy: Path | None) -> None:
        self.label_texts, self.taxonomy = label_texts, taxonomy
        self.texts = None if label_texts is None else read_label_texts(label_texts)
        self.parents = None if taxonomy is None else read_taxonomy(taxonomy)

    def over(self, data: Dataset) -> Dataset:
        """The data with them; how they fit is shown."""
        if self.texts is not None:
            data = with_label_texts(data, self.texts)
            show.label_texts(name_of(str(self.label_texts)), self.texts, data)
        if self.parents is not None:
            data = with_taxonomy(data, self.parents)
            show.taxonomy(name_of(str(self.taxonomy)), data)
        return data


class Tally:
    """Adds up what the blocks of a stream hold: their reports, label names and label occurrences."""

    def __init__(self) -> None:
        self.report, self.occurrences = ReadReport(), 0
        self.names: set[str] = set()

    def watch(self, blocks: Iterable[Dataset]) -> Iterator[Dataset]:
        """The blocks as they are, each counted on its way."""
        for block in blocks:
            self.report += block.report
            self.names.update(block.names)
            self.occurrences += 0 if block.labels is None else block.labels.nnz
            yield block


def check_target(target: str | None, *inputs: str | Path | None) -> None:
    """Would `write` be refused, or lose one of the inputs? Asked before the work; nothing is written."""
    given = [0 if str(path) == "-" else path for path in inputs if path is not None]
    if target is None or target == "-":
        targets.check_file(1, given)
        return
    if not target:
        raise ConfigError("the name of the file to write is empty; name one, or '-' for standard output.")
    path = atomic_files.as_path(target)
    with atomic_files.refusing(path):
        if path.is_dir():
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
        folder = path.resolve().parent
        folder.stat()
        if not path.exists() and not os.access(folder, os.W_OK | os.X_OK):
            raise PermissionError(errno.EACCES, os.strerror(errno.EACCES))
    targets.check_file(path, given)


def write(target: str | None, chunks: Iterable[bytes]) -> None:
    """Write to stdout (None or "-"), else to a file that appears once it is complete."""
    if target is None or target == "-":
        _to_stdout(chunks)
        return
    path = atomic_files.as_path(target)
    if path.exists() and not path.is_file():  # a pipe or a device: renaming over it would destroy it
        with atomic_files.refusing(path), path.open("wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
        return
    atomic_files.publish(path.resolve(), chunks)


def _to_stdout(chunks: Iterable[bytes]) -> None:
    sys.stdout.flush()
    for chunk in chunks:
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()
