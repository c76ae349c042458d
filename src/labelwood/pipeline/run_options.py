"""How to run a training, never what comes out of it."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..base.memory_budget import Guard
from ..base.progress import Progress, Silent
from ..base.threads import workers
from ..errors import ConfigError


@dataclasses.dataclass(frozen=True)
class Run:
    """How to run, never what comes out: nothing here changes a bit of the model."""

    threads: int = 0  # 0: all cores of this process
    progress: Progress = dataclasses.field(default_factory=Silent)
    work: Path | None = None  # workspace folder; None: keep nothing
    resume: bool = False
    overwrite: bool = False
    memory: int | None = None  # bytes that may be held; None: no budget
    device: str = "cpu"  # where encoders are trained: cpu, cuda or mps
    tell: Callable[[Any], None] | None = None  # is given an Event after every step of a fine-tuning
    shared: bool = False  # the workspace serves several runs, which find each other's stages there
    keep_every: float = 180.0  # seconds between two states of a fine-tuning that are kept
    reused: Callable[[float], None] | None = None  # is given the seconds that a stage had taken which is found done

    def __post_init__(self) -> None:
        workers(self.threads)  # refuses nonsense before any work
        if self.device.partition(":")[0] not in {"cpu", "cuda", "mps"}:
            raise ConfigError(f"device must be cpu, cuda or mps, but is {self.device!r}.")
        if self.memory is not None and not isinstance(self.progress, Guard):
            object.__setattr__(self, "progress", Guard(self.progress, self.memory))

    @property
    def workers(self) -> int:
        return workers(self.threads)
