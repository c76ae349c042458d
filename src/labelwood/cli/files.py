"""Reading data with progress and a report, and writing results whole or not at all."""

from __future__ import annotations

import signal
import sys
from collections.abc import Iterable
from pathlib import Path

from .. import disk
from ..data import Dataset, ReadOptions, read
from ..progress import Progress
from . import show


def name_of(path: str | Path) -> str:
    """What to call an input."""
    return "standard input" if str(path) == "-" else str(path)


def load_data(path: Path, options: ReadOptions, progress: Progress, stage: str) -> Dataset:
    """The whole input; bad lines that were skipped or replaced are reported on stderr."""
    with progress.stage(stage, 0, "bytes") as tick:
        data = read(path, options, progress=tick)
    show.bad_lines(name_of(path), data.report)
    return data


def write(target: str | None, chunks: Iterable[bytes]) -> None:
    """To stdout (None or "-"), else to a file that appears once it is complete."""
    if target is None or target == "-":
        _to_stdout(chunks)
        return
    path = disk.as_path(target)
    if path.exists() and not path.is_file():  # a pipe or a device: renaming over it would destroy it
        with disk.refusing(path), path.open("wb") as stream:
            for chunk in chunks:
                stream.write(chunk)
        return
    disk.publish(path.resolve(), chunks)


def _to_stdout(chunks: Iterable[bytes]) -> None:
    stream = sys.stdout.buffer
    sys.stdout.flush()
    for chunk in chunks:
        try:
            stream.write(chunk)
            stream.flush()
        except BrokenPipeError:
            raise show.Stopped(signal.SIGPIPE) from None
