"""Where the system gives no more threads, work goes on without them."""

from __future__ import annotations

import os
import resource
import subprocess
import sys

import pytest

# 64 chunks with 72 MB of weights: more than may wait to be written while somebody writes.
CHILD = """
import threading
import numpy as np
from labelwood.parts.linear import LinearConfig, Place, train_level
from labelwood.arrays.sparse import Features, as_csr

try:
    threading.Thread(target=print).start()
except RuntimeError:
    print("no threads")
rng = np.random.default_rng(0)
x = Features(as_csr(np.eye(4)), rng.normal(size=(4, 3000)).astype(np.float32))
y, m = as_csr((rng.random((4, 6144)) < 0.3).astype(np.float32)), as_csr(np.ones((4, 64)))
config = LinearConfig(threshold=0.0, weights="float32", max_iter=1)
level = train_level(x, y, m, np.arange(0, 6145, 96), config, place=Place(0, 1, 0), threads=2)
print(len(level.records) > 64 * 2**20, level.native.faults() == "")
"""


@pytest.mark.skipif(
    resource.getrlimit(resource.RLIMIT_STACK)[1] != resource.RLIM_INFINITY, reason="the stack's limit cannot be raised"
)
def test_training_needs_no_thread():
    """A stack of 2^50 bytes is more than there is: no thread can be started."""
    run = subprocess.run(
        [sys.executable, "-c", CHILD],
        check=False,
        capture_output=True,
        text=True,
        timeout=120,
        env={**os.environ, "OPENBLAS_NUM_THREADS": "1"},
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_STACK, (2**50, resource.RLIM_INFINITY)),
    )
    assert run.stdout.split() == ["no", "threads", "True", "True"], run.stderr
