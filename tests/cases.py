"""How many random cases a test runs."""

from __future__ import annotations

import os

from hypothesis import settings


def cases(n: int) -> settings:
    """n random cases; HYPOTHESIS_SHARE=0.1 runs a tenth of them, for the slow sanitizer build."""
    return settings(max_examples=max(1, int(n * float(os.environ.get("HYPOTHESIS_SHARE", "1")))), deadline=None)
