"""Progress: stages and their times, and a terminal line that is quiet unless work is long."""

from __future__ import annotations

import io
import re
import subprocess
import sys

import pytest

from labelwood.base.progress import QUIET, Progress, Silent, Terminal, status


class Clock:
    now = 100.0

    def __call__(self) -> float:
        return self.now


class Screen(io.StringIO):
    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal

    @property
    def text(self) -> str:
        return re.sub(r"\x1b\[[0-9;?]*[a-zA-Z]", "", self.getvalue())


def test_times_of_sequential_nested_and_repeated_stages():
    clock = Clock()
    progress = Silent(clock)
    with progress.stage("read"):
        clock.now += 1
    for _ in range(2):
        with progress.stage("train"):
            clock.now += 2
            with progress.stage("level 1", 10, "labels") as tick:
                tick(3, 10)
                clock.now += 4
    assert list(progress.timings.items()) == [("read", 1.0), ("train", 12.0), ("train / level 1", 8.0)]


@pytest.mark.parametrize("make", [Silent, lambda clock: Terminal(Screen(True), clock=clock)])
def test_a_failing_stage_is_timed_and_closed(make):
    clock = Clock()
    progress: Progress = make(clock)

    def interrupted() -> None:
        with progress.stage("a"), progress.stage("b", 5) as tick:
            clock.now += 3
            tick(1, 5)
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        interrupted()
    with progress.stage("c"):
        clock.now += 1
    assert progress.timings == {"a": 3.0, "a / b": 3.0, "c": 1.0}


def test_short_stages_draw_nothing():
    clock, screen = Clock(), Screen(True)
    with Terminal(screen, clock=clock).stage("short", 10) as tick:
        clock.now += 1.9
        tick(9, 10)
    assert screen.getvalue() == ""


def test_nothing_is_drawn_where_there_is_no_terminal():
    clock, screen = Clock(), Screen(False)
    progress = Terminal(screen, clock=clock)
    with progress.stage("long", 10) as tick:
        clock.now += 60
        tick(5, 10)
    assert screen.getvalue() == ""
    assert progress.timings == {"long": 60.0}


def test_a_long_stage_draws_a_line_and_clears_it():
    clock, screen = Clock(), Screen(True)
    with Terminal(screen, clock=clock).stage("training [level 2]", 5000, "labels") as tick:
        clock.now += 4
        tick(1200, 5000)
        drawn = screen.text
        clock.now += 0.05
        tick(1300, 5000)  # too soon after the last one
        assert screen.text == drawn
        clock.now += 1
        tick(2000, 0)  # the native side does not know its total yet: the stage's own stands
        assert "2,000/5,000 labels" in screen.text
    assert "training [level 2]" in drawn
    assert "1,200/5,000 labels · 300/s · 0:13 left" in drawn
    assert screen.getvalue().endswith(("\x1b[2K", "\x1b[?25h"))  # line erased, cursor back


def test_the_inner_stage_is_the_one_shown():
    clock, screen = Clock(), Screen(True)
    progress = Terminal(screen, clock=clock, delay=0)
    with progress.stage("tree 1") as outer, progress.stage("level 1", 4) as tick:
        clock.now += 1
        tick(2, 4)
        clock.now += 1
        outer(1, 3)
    assert screen.text.index("tree 1 / level 1") < screen.text.index("1/3")


@pytest.mark.parametrize(
    ("done", "total", "unit", "seconds", "text"),
    [
        (1200, 5000, "labels", 4.0, "1,200/5,000 labels · 300/s · 0:13 left"),
        (3, 10, "", 6.0, "3/10 · 0.5/s · 0:14 left"),
        (1, 10_000, "rows", 2.0, "1/10,000 rows · 0.5/s · 5:33:18 left"),
        (70, 0, "rows", 7.0, "70 rows · 10/s"),
        (0, 10, "rows", 3.0, "0/10 rows"),
        (12, 10, "rows", 1.0, "12/10 rows · 12/s · 0:00 left"),
        (5, 10, "rows", 0.0, "5/10 rows"),
    ],
)
def test_status(done, total, unit, seconds, text):
    assert status(done, total, unit, seconds) == text


def test_rich_is_imported_only_for_a_terminal():
    code = (
        "import io, sys; from labelwood.base.progress import Silent, Terminal; Silent(); Terminal(io.StringIO());"
        "assert 'rich' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_quiet_keeps_nothing():
    with QUIET.stage("outer", 3) as outer, QUIET.stage("inner") as inner:
        outer(1, 3)
        inner(1, 3)
    assert QUIET.timings == {}
