"""Number of threads that a call uses."""

from __future__ import annotations

import os
from operator import index
from typing import SupportsIndex, cast

from .. import limits
from ..errors import ConfigError


def available() -> int:
    """Cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def workers(threads: object) -> int:
    """The number asked for, checked; 0 means all cores."""
    try:
        count = -1 if isinstance(threads, bool) else index(cast(SupportsIndex, threads))
    except TypeError:
        count = -1
    if not 0 <= count <= limits.MAX_THREADS:
        raise ConfigError(f"threads must be 1..{limits.MAX_THREADS}, or 0 for all cores, but is {threads!r}.")
    return count or available()
