"""The program, `labelwood` or `python -m labelwood`: it answers Ctrl-C from here on, while the rest is imported."""

from __future__ import annotations

import os
import signal
import sys


def main() -> None:
    """Run the command line and end the process."""
    for number in (signal.SIGINT, signal.SIGTERM):
        if signal.getsignal(number) is not signal.SIG_IGN:  # ignored by the caller (nohup): stays so
            signal.signal(number, _end)
    _take_closed_streams()
    from .cli import main as run

    sys.exit(run())


def _end(number: int, frame: object) -> None:
    """Before a command has begun, and after it has ended, there is nothing to tidy up."""
    try:
        os.write(2, f"stopped: by {'Ctrl-C' if number == signal.SIGINT else 'SIGTERM'}\n".encode())
    finally:
        os._exit(128 + number)


def _take_closed_streams() -> None:
    """Give the numbers of closed standard streams to nobody: a file of the user's must not become standard error."""
    for number in range(3):
        try:
            os.fstat(number)
        except OSError:
            os.open(os.devnull, os.O_RDONLY if number else os.O_WRONLY)  # the lowest free number; refuses all bytes


if __name__ == "__main__":
    main()
