"""The command line: one function per command, and the one place that decides how a process ends.

Exit codes: 0 done, 1 a clear error (one line `error: …` on stderr), 2 wrong usage, 128 + n stopped by signal n
(130 Ctrl-C, 143 SIGTERM, 141 nobody reads our output any more).
"""

from __future__ import annotations

import io
import signal
import sys
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from types import FrameType
from typing import Annotated, Any

import typer

from ..errors import ConfigError, LabelwoodError
from . import analyse, compare, doctor, ensemble, evaluate, inspect, plan, predict, quickstart, train
from .show import complain
from .streams import Stopped, guarded

app = typer.Typer(
    name="labelwood",
    help="Extreme multi-label text classification: raw text in, label names out.",
    epilog="New here? Run: labelwood quickstart",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,  # plain help: the same on a terminal and in a pipe, and at once
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
for command in (
    quickstart.quickstart,
    doctor.doctor,
    plan.plan,
    train.train,
    predict.predict,
    evaluate.evaluate,
    ensemble.ensemble,
    compare.compare,
    analyse.analyse,
    inspect.inspect,
    inspect.verify,
    inspect.methods,
):
    app.command()(command)


def _version(wanted: bool) -> None:
    if wanted:
        from .. import __version__

        print(f"labelwood {__version__}")
        raise typer.Exit


@app.callback()
def _root(
    version: Annotated[
        bool, typer.Option("--version", help="Print the version and stop.", callback=_version, is_eager=True)
    ] = False,
) -> None:
    """Only here for the options of `labelwood` itself."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command and give its exit code; nothing escapes but bugs."""
    with guarded(), _signals(), _plain_warnings():
        for stream in (sys.stdout, sys.stderr):
            if isinstance(stream, io.TextIOWrapper):
                stream.reconfigure(errors="backslashreplace")  # a terminal that cannot spell a label is no failure
        try:
            return _reported(arguments)
        except Stopped as stop:
            if stop.signal != signal.SIGPIPE:  # a reader that has left wants no more words
                complain("stopped", stop.note or f"by {'Ctrl-C' if stop.signal == signal.SIGINT else stop.signal.name}")
            return 128 + stop.signal


def _reported(arguments: Sequence[str] | None) -> int:
    """Run the command; an error is a line each on stderr."""
    try:
        code = _run(arguments)
        sys.stdout.flush()
        return code
    except LabelwoodError as error:
        lines = error.lines if isinstance(error, ConfigError) else ()  # of settings that clash
        for line in lines or (str(error),):
            complain("error", line)
    except MemoryError:
        complain("error", "there is not enough memory; use a machine with more, or less data.")
    except BrokenPipeError:
        raise Stopped(signal.SIGPIPE) from None
    return 1


def _run(arguments: Sequence[str] | None) -> int:
    try:
        app(args=arguments, prog_name="labelwood")
    except SystemExit as end:  # typer ends every command this way, also when all went well
        return end.code if isinstance(end.code, int) else int(end.code is not None)
    return 0


def _stop(number: int, frame: FrameType | None) -> None:
    raise Stopped(signal.Signals(number))


@contextmanager
def _signals() -> Iterator[None]:
    """Ctrl-C and SIGTERM raise, so that temporary files are removed and locks let go on the way out."""
    before: dict[signal.Signals, Any] = {}
    with suppress(ValueError):  # only the main thread may
        for number in (signal.SIGINT, signal.SIGTERM):
            if signal.getsignal(number) is not signal.SIG_IGN:  # ignored by who started us (nohup): stays so
                before[number] = signal.signal(number, _stop)
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _plain_warnings() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.simplefilter("always", UserWarning)
        warnings.showwarning = lambda message, *_, **__: complain("warning", str(message))
        yield
