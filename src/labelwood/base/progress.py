"""Progress for long work: named stages, one after another or nested, each giving a callback f(done, total).

    with progress.stage("training level 2", total=labels, unit="labels") as tick:
        _core.train_level(..., progress=tick)  # native calls take the callback as it is
    progress.timings  # {"training level 2": 12.3}

`QUIET` does nothing; `Silent` only keeps the times; `Terminal` also draws a line while a stage takes long. A
fine-tuning says more than how far it is: an `Event` after each step.
"""

from __future__ import annotations

import dataclasses
import logging
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext
from typing import Any, Protocol, TextIO

from .log import LOG

Tick = Callable[[int, int], None]
WIDE = 120  # columns of a terminal on which there is room for a bar


@dataclasses.dataclass(frozen=True)
class Event:
    """Report of a step of a fine-tuning to `Run(on_event=…)`; `quality` only where the model was measured."""

    stage: str
    step: int
    steps: int
    loss: float
    docs_per_second: float
    candidates: float  # per document
    rate: float  # of learning
    seconds_left: float  # of training steps, those of levels to come included, at the present pace
    quality: float | None = None  # 0 to 1


class Progress(Protocol):
    """Receiver of reports of long work."""

    @property
    def timings(self) -> dict[str, float]:
        """Seconds by stage, in the order of their start; nested ones as "outer / inner", repeats added up."""

    def stage(self, name: str, total: int = 0, unit: str = "") -> AbstractContextManager[Tick]:
        """A stretch of work of `total` units (0: unknown), open while the context is."""


class Silent:
    """Shows nothing, keeps the times."""

    def __init__(self, clock: Callable[[], float] = time.monotonic) -> None:
        self.timings: dict[str, float] = {}
        self._clock = clock
        self._open: list[str] = []

    @contextmanager
    def stage(self, name: str, total: int = 0, unit: str = "") -> Iterator[Tick]:
        """Time the stage, also when it fails; repeated stages add up."""
        self._open.append(name)
        path, start = " / ".join(self._open), self._clock()
        self.timings.setdefault(path, 0.0)
        try:
            yield self._tick(path, start, total, unit)
        finally:
            seconds = self._clock() - start
            self.timings[path] += seconds
            LOG.debug("stage %s: %.2f s", path, seconds)
            self._open.pop()
            self._clear()

    def _tick(self, path: str, start: float, total: int, unit: str) -> Tick:
        return lambda done, total: None

    def _clear(self) -> None:
        """Called when a stage ends: nothing of it may stay on the screen."""


class Quiet:
    """Shows nothing, keeps nothing, costs nothing; one is enough for all threads. Stages are logged."""

    timings: dict[str, float] = {}  # noqa: RUF012 — always empty

    def stage(self, name: str, total: int = 0, unit: str = "") -> AbstractContextManager[Tick]:
        return _logged(name) if LOG.isEnabledFor(logging.DEBUG) else _NOTHING


@contextmanager
def _logged(name: str) -> Iterator[Tick]:
    start = time.monotonic()
    try:
        yield _nothing
    finally:
        LOG.debug("stage %s: %.2f s", name, time.monotonic() - start)


def _nothing(done: int, total: int) -> None:
    """A tick that nobody sees."""


_NOTHING: AbstractContextManager[Tick] = nullcontext(_nothing)
QUIET = Quiet()


class Terminal(Silent):
    """One live line: stage, bar, done/total, rate, time left. Only on a terminal, only after `delay` seconds.

    The line is drawn from the callback, at most ten times a second; there is no thread behind it.
    """

    def __init__(
        self, stream: TextIO | None = None, delay: float = 2.0, clock: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(clock)
        self._stream = sys.stderr if stream is None else stream
        self._delay = delay
        self._drawn = float("-inf")
        self._bar: Any = None
        self._note = ""
        self._make_bar = _bar_maker(self._stream) if _is_terminal(self._stream) else None

    def _tick(self, path: str, start: float, total: int, unit: str) -> Tick:
        expected = total
        first = (0, start)  # what was done before, and when: a training that is continued does not begin at 0

        def tick(done: int, total: int) -> None:
            nonlocal first
            now = self._clock()
            if done and not first[0] and now - start < 0.5:
                first = (done, now)
            if self._make_bar is None or now - start < self._delay or now - self._drawn < 0.1:
                return
            self._drawn = now
            text = status(done, total or expected, unit, now - first[1], first[0])
            self._draw(path, done, total or expected, text + self._note)

        return tick

    def _draw(self, path: str, done: int, total: int, text: str) -> None:
        if self._bar is None:
            assert self._make_bar is not None
            self._bar = self._make_bar()
            self._bar.start()
            self._bar.add_task("", total=None, status="")
        self._bar.update(
            self._bar.task_ids[0], description=path, completed=done, total=total or None, status=text, refresh=True
        )

    def tell(self, event: Event) -> None:
        """Show a step of a fine-tuning: its loss, candidates and last quality, beside the bar."""
        parts = [
            f"loss {event.loss:.3g}",
            f"{event.docs_per_second:,.0f} docs/s",
            f"{event.candidates:,.0f} candidates",
            f"{_span(event.seconds_left)} for all steps",
        ]
        if event.quality is not None:
            self._quality = f"validation {100 * event.quality:.1f}"
        self._note = "".join(f" · {part}" for part in (*parts, self._quality) if part)

    _quality = ""

    def _clear(self) -> None:
        self._note = self._quality = ""
        if self._bar is not None:
            self._bar.stop()
            self._bar = None


def _is_terminal(stream: TextIO | None) -> bool:
    """Can a line be drawn there? Not on a stream that is closed, or was never there."""
    return stream is not None and not stream.closed and stream.isatty()


def status(done: int, total: int, unit: str, seconds: float, before: int = 0) -> str:
    """Text after the bar: "1,200/5,000 labels · 300/s · 0:13 left"; less while less is known."""
    parts = [f"{done:,}" + (f"/{total:,}" if total else "") + (f" {unit}" if unit else "")]
    rate = (done - before) / seconds if seconds > 0 else 0.0
    if rate > 0:
        parts.append(f"{rate:,.0f}/s" if rate >= 10 else f"{rate:.2g}/s")
        if total:
            parts.append(f"{_span(max(0, total - done) / rate)} left")
    return " · ".join(parts)


def _span(seconds: float) -> str:
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02}:{rest:02}" if hours else f"{minutes}:{rest:02}"


def _bar_maker(stream: TextIO) -> Callable[[], Any]:
    """Makes rich's progress display; rich is imported here, once something is to be shown on a terminal."""
    from rich.console import Console
    from rich.progress import BarColumn, TextColumn
    from rich.progress import Progress as RichProgress
    from rich.table import Column

    def make() -> Any:
        console = Console(file=stream, force_terminal=True)
        said = TextColumn("{task.fields[status]}", table_column=Column(overflow="fold"))
        bars = (BarColumn(24),) if console.width >= WIDE else ()  # words first: they fold onto a second line
        columns = (TextColumn("{task.description}", markup=False), *bars, said)
        return RichProgress(*columns, console=console, transient=True, auto_refresh=False)

    return make
