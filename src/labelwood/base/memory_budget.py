"""A hard memory budget: its spelling ("8GB"), what the process holds, and a guard that stops a run that passes it.

What counts is memory that only this process can give back (anonymous pages). Pages of mapped files, where a run with a
workspace keeps its finished stages, do not: the system takes them back when it needs to.
"""

from __future__ import annotations

import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from ..errors import BudgetError, ConfigError
from .progress import Progress, Tick

UNITS = {"": 1, "B": 1} | {
    unit: base**power
    for power, letter in enumerate("KMGT", 1)
    for unit, base in ((f"{letter}B", 1000), (letter, 1000), (f"{letter}IB", 1024))
}
_SIZE = re.compile(r"\s*([0-9]+(?:\.[0-9]+)?)\s*([A-Za-z]*)\s*")
_STATM = Path("/proc/self/statm")


def parse(text: str | int | None) -> int | None:
    """Bytes from "8GB", "512 MiB", "1.5G" or a number; None is no budget."""
    if text is None:
        return None
    found = _SIZE.fullmatch(str(text)[:80])
    if isinstance(text, bool) or found is None or found[2].upper() not in UNITS:
        raise ConfigError(
            f"{str(text)[:80]!r} is no amount of memory; give a number and a unit such as 8GB, 512MB or 7.5GiB."
        )
    size = int(float(found[1]) * UNITS[found[2].upper()])
    if not 1 <= size <= 2**62:
        raise ConfigError(f"a memory budget of {size} bytes is out of range; give 1 byte to 4 EiB, such as 8GB.")
    return size


def show(size: float) -> str:
    """Bytes for people, as `parse` reads them."""
    for unit in ("KB", "MB"):
        size /= 1000
        if size < 1000:
            return f"{size:.0f}{unit}"
    return f"{size / 1000:.1f}GB"


def held() -> int:
    """Bytes that only this process can give back; 0 where the system does not tell."""
    try:
        resident, shared = _STATM.read_text(encoding="ascii").split()[1:3]
    except OSError:
        return 0
    return (int(resident) - int(shared)) * os.sysconf("SC_PAGE_SIZE")


class Guard:
    """Progress that looks at the memory at each call and raises BudgetError once the budget is passed."""

    def __init__(self, progress: Progress, budget: int) -> None:
        self.progress, self.budget = progress, budget

    @property
    def timings(self) -> dict[str, float]:
        return self.progress.timings

    @contextmanager
    def stage(self, name: str, total: int = 0, unit: str = "") -> Iterator[Tick]:
        """The stage of the progress within, watched while it ticks and when it begins and ends."""
        self.check(name)
        with self.progress.stage(name, total, unit) as tick:

            def watched(done: int, total: int) -> None:
                self.check(name)
                tick(done, total)

            yield watched
        self.check(name)

    def check(self, stage: str) -> None:
        """BudgetError if the process holds more than the budget."""
        if (now := held()) > self.budget:
            raise BudgetError(
                f"the run holds {show(now)} of memory in stage {stage!r}, more than the budget of {show(self.budget)}; "
                "it was stopped. Finished stages of a run with a workspace are kept: give more memory and resume."
            )
