"""Options of how a training runs: `Run` for users, `Keeping` for what commands add to a workspace."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path

from ..errors import ConfigError
from . import memory_budget
from .memory_budget import Guard
from .progress import QUIET, Event, Progress
from .threads import workers

DEVICES = ("cpu", "cuda", "mps")


@dataclasses.dataclass(frozen=True)
class Run:
    """Options of how a training runs. Nothing of them stands in the model; what is trained is the recipe's.

    Linear recipes give the same bytes for every Run. An encoder rounds by the number of threads and by the device: with
    the same of both it gives the same bytes.

    threads    threads of all stages; 0 is all cores of this process
    device     where an encoder is trained: cpu, cuda or mps
    memory     a budget such as "8GB", or bytes: a BudgetError says at once if it cannot do
    progress   is told of stages as they begin, go on and end: `Terminal()` draws them, `Silent()` keeps their times
    work       a folder that keeps finished stages, also after success
    resume     goes on from the stages that are kept in `work`
    overwrite  starts over in `work`
    on_event   is called with an `Event` (stage, step, loss, documents per second, …) after every step of a fine-tuning
    """

    threads: int = 0
    device: str = "cpu"
    memory: str | int | None = None
    progress: Progress = QUIET
    work: str | Path | None = None
    resume: bool = False
    overwrite: bool = False
    on_event: Callable[[Event], None] | None = None

    def __post_init__(self) -> None:
        workers(self.threads)  # refuses nonsense before any work
        if not isinstance(self.device, str) or self.device.partition(":")[0] not in DEVICES:
            raise ConfigError(f"device must be {', '.join(DEVICES[:-1])} or {DEVICES[-1]}, but is {self.device!r}.")
        if (self.resume or self.overwrite) and (self.work is None or (self.resume and self.overwrite)):
            raise ConfigError(
                "resume=True or overwrite=True, one of the two, goes with work=FOLDER, which keeps the run."
            )
        if self.budget is not None and not isinstance(self.progress, Guard):
            object.__setattr__(self, "progress", Guard(self.progress, self.budget))

    @property
    def workers(self) -> int:
        """The number of threads, at least 1."""
        return workers(self.threads)

    @property
    def budget(self) -> int | None:
        """`memory` in bytes."""
        return memory_budget.parse(self.memory)

    @property
    def folder(self) -> Path | None:
        """`work` as a path."""
        return None if self.work is None else Path(self.work)


@dataclasses.dataclass(frozen=True)
class Keeping:
    """Options of how a workspace keeps a run; set by commands and reports, not by users of the library."""

    shared: bool = False  # several runs find each other's stages in it; none clears or removes them
    every: float = 180.0  # seconds between two states of a fine-tuning that are kept
    reused: Callable[[float], None] | None = None  # is given the seconds that a stage had taken which is found done
