"""A fault at every step: run an operation with I/O call 1 failing, then call 2, and so on until none is left.

Kinds: the process dies before, during or after the call; the disk is full; the device fails; a write is short; a
signal interrupts. Each once, and from that call on for ever. After each run the caller's invariant is checked.
"""

from __future__ import annotations

import errno
import os
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

from labelwood import LabelwoodError
from labelwood.storage import atomic_files

KINDS = ("die before", "die during", "die after", "full", "broken", "short", "interrupted")
ERRORS = {"full": errno.ENOSPC, "broken": errno.EIO, "interrupted": errno.EINTR}
CALLS = [name for name in vars(atomic_files.Io) if not name.startswith("_")]


class Died(BaseException):
    """Stands for the end of the process: no clean-up can reach the disk after it."""


class FaultyIo(atomic_files.Io):
    """System calls that go wrong at call number `step`, or from it on."""

    def __init__(self, kind: str = "", step: int = 0, lasting: bool = False) -> None:
        self.kind, self.step, self.lasting = kind, step, lasting
        self.calls = self.hits = 0
        self.log: list[str] = []
        self.fds: set[int] = set()

    def run(self, name: str, *args):
        if self.kind.startswith("die") and self.hits:
            raise Died
        self.calls += 1
        self.log.append(name)
        if self.kind and (self.calls == self.step or (self.lasting and self.calls > self.step)):
            self.hits += 1
            return self.fail(name, *args)
        return self.real(name, *args)

    def real(self, name: str, *args):
        if name == "fsync":
            return None  # power cuts cannot be simulated here, and real ones would make the tests slow
        found = getattr(atomic_files.Io, name)(self, *args)
        if name == "open":
            self.fds.add(found)
        elif name == "close":
            self.fds.discard(args[0])
        return found

    def fail(self, name: str, *args):
        if self.kind == "short" or (self.kind == "die during" and name == "write"):
            half = (args[0], args[1][: (len(args[1]) + 1) // 2]) if name == "write" else args
            found = self.real(name, *half)
            return found if self.kind == "short" else self.die()
        if name == "close" or self.kind == "die after":  # a close that fails has closed all the same
            with suppress(OSError):
                self.real(name, *args)
        if self.kind.startswith("die"):
            self.die()
        number = ERRORS[self.kind]
        raise OSError(number, os.strerror(number))

    def die(self) -> None:
        for fd in self.fds:  # with the process its descriptors and locks go
            os.close(fd)
        self.fds.clear()
        raise Died


def _method(name: str):
    return lambda self, *args: self.run(name, *args)


for _name in CALLS:
    setattr(FaultyIo, _name, _method(_name))


@contextmanager
def installed(io: atomic_files.Io) -> Iterator[None]:
    before, atomic_files.system = atomic_files.system, io
    try:
        yield
    finally:
        atomic_files.system = before


def every_step(
    prepare: Callable[[], None],
    operation: Callable[[], object],
    check: Callable[[str, bool], None],
    kinds: tuple[str, ...] = KINDS,
) -> int:
    """Returns the number of faults tried. `check` gets a description and whether the operation claimed success."""
    tried = 0
    for kind in kinds:
        for lasting in (False,) if kind.startswith("die") else (False, True):
            step = 0
            while True:
                step += 1
                prepare()
                io, done = FaultyIo(kind, step, lasting), False
                with installed(io), suppress(Died, LabelwoodError):
                    operation()
                    done = True
                assert not io.fds, f"a descriptor was left open: {kind} {lasting} {step} {io.log[step - 2 :]}"
                if not io.hits:
                    break
                tried += 1
                check(f"{kind}{' lasting' if lasting else ''} at call {step}, {io.log[step - 1]}", done)
    return tried
