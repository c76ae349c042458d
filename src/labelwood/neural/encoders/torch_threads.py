"""Number of threads that torch computes with, for the calling thread alone.

torch keeps one number for each thread of Python and one for threads that call it for the first time. Setting the
first also sets the second, so a prediction would leave its own number to whatever thread comes next. Here a helper
thread remembers the second and puts it back at once: several threads may predict, each with a number of its own. In
a build of torch that has one number for the whole process, that number stays as it is.
"""

from __future__ import annotations

import threading
from collections.abc import Iterator
from contextlib import contextmanager

import torch

_LOCK = threading.Lock()  # from reading a number of torch's until the other one is as it was


@contextmanager
def torch_threads(count: int) -> Iterator[None]:
    """Let torch use so many threads for what the calling thread does inside."""
    with _LOCK:
        before = torch.get_num_threads()  # a thread has no number of its own until it asks for it
    if before == count:
        yield
        return
    _set(count)
    try:
        yield
    finally:
        _set(before)


def _set(count: int) -> None:
    """Set the calling thread's number and leave that of threads to come as it is."""
    read, done = threading.Event(), threading.Event()

    def keep() -> None:
        others = torch.get_num_threads()
        read.set()
        done.wait()
        torch.set_num_threads(others)

    helper = threading.Thread(target=keep, name="labelwood-torch-threads", daemon=True)
    with _LOCK:
        try:
            helper.start()
        except RuntimeError:  # the system gives no more threads, so none is to come
            torch.set_num_threads(count)
            return
        read.wait()
        torch.set_num_threads(count)
        done.set()
        helper.join()
