"""Costs that stages tell of themselves before they run: the memory that each adds, from the sizes of a problem.

The file of a stage has its formula, `costs`; docs/reference/planning.md explains them. A cost names its stage as the
workspace does, so that the time which the stage took in a trial is found by its name.
"""

from __future__ import annotations

import dataclasses


@dataclasses.dataclass(frozen=True)
class Cost:
    """Cost of one stage."""

    stage: str  # its name in the workspace
    title: str  # for people
    memory: float  # bytes that it adds to what the run holds anyway
    share: float = 1.0  # of the time of all stages of that name
    seconds: float | None = None  # CPU time, where it is known without a trial


@dataclasses.dataclass(frozen=True)
class Sizes:
    """All that the formulas know of a problem."""

    held: int  # bytes the process holds before the run
    rows: int
    x: int  # entries of the sparse block
    cols: int
    dense: int  # columns of the dense block
    y: int  # entries
    z: int  # entries
    labels: int  # with positives
    levels: tuple[int, ...]  # K_1 … K_D
    listed: tuple[int, ...]  # entries of Y summed up to level t, if labels fell into clusters by chance
    model: int
    shares: tuple[float, ...]  # of the model, by level
    text: bool
    copied: bool  # X is scaled into a copy of its own
    spills: bool  # finished stages are on disk
    maps: bool  # and the user's own features too
    trees: int = 1  # models whose levels stay in memory where nothing spills
    threads: int = 1

    @property
    def scratch(self) -> int:
        """Columns at most that scratch memory has a place for: of a wide matrix only those that occur."""
        return min(self.cols, max(2**22, 8 * self.x))

    @property
    def x_bytes(self) -> int:
        """X in memory."""
        return 8 * self.x + 8 * self.rows + 4 * self.rows * self.dense

    @property
    def value_bytes(self) -> int:
        """Values that scaling X makes anew."""
        return 4 * self.x + 4 * self.rows * self.dense

    @property
    def y_bytes(self) -> int:
        """Y in memory."""
        return 8 * self.y + 8 * self.rows

    @property
    def z_bytes(self) -> float:
        """Z as it grows, and the rows of up to 1024 labels before they are appended."""
        return 10 * self.z + 16 * self.z * min(1, 1024 / self.labels)

    @property
    def base(self) -> int:
        """Memory that the process holds in every stage: itself, X where it is not on disk, and its scaled copy."""
        x = self.x_bytes if self.text and not self.spills else 0
        return self.held + x + (self.value_bytes if self.copied and not self.maps else 0)

    @property
    def models(self) -> int:
        """Memory of trained levels."""
        return 0 if self.spills else self.trees * self.model
