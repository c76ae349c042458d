"""How many random cases a test runs."""

from __future__ import annotations

import os

from hypothesis import settings

import labelwood as lw

# One recipe for each set of stages: what starts processes or draws thousands of cases takes these. The contract runs on
# all; x-transformer and lightxml are cascadexml's stages with other settings.
DISTINCT = tuple(name for name in lw.methods() if name not in {"x-transformer", "lightxml"})


def cases(n: int) -> settings:
    """n random cases; HYPOTHESIS_SHARE=0.1 runs a tenth of them, for the slow sanitizer build."""
    return settings(max_examples=max(1, int(n * float(os.environ.get("HYPOTHESIS_SHARE", "1")))), deadline=None)
