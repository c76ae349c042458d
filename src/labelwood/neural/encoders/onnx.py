"""An encoder's graph at work in ONNX Runtime, without torch.

Graphs are made on the machine that runs them, from the weights of a model (graph.py): for MiniLM in 0.05 seconds, less
than it takes to read a stored one and compare it with its digest. So none is stored, and none from elsewhere ever runs.
"""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.tokens import Tokens
from ...base.progress import Tick
from ...errors import ModelFileError, needs
from .description import Description
from .graph import Shape
from .tokens import by_length

TOKENS = 2048  # that go through at once


def check_exportable(what: Description) -> None:
    """Say before a training what would keep its encoder from becoming a graph: another architecture, or no package."""
    Shape.of(what)
    with needs("encoder.runtime = onnx", "onnx"):
        import onnxruntime  # noqa: F401


class Session:
    """A graph at work. One session for each number of threads; threads of Python may share it."""

    def __init__(self, make: Callable[[], bytes], width: int) -> None:
        self.make, self.width = make, width
        self._made: dict[int, Any] = {}
        self._lock = threading.Lock()

    def _session(self, threads: int) -> Any:
        with self._lock:
            if threads not in self._made:
                with needs("this model's encoder", "onnx"):
                    import onnxruntime as ort
                options = ort.SessionOptions()
                options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
                options.log_severity_level = 4  # what is fatal; errors are raised
                graph = self.make()
                try:
                    made = ort.InferenceSession(graph, options, providers=["CPUExecutionProvider"])
                except Exception as error:  # the package has a dozen classes for it
                    raise ModelFileError(f"the model's encoder cannot be opened as a graph: {error}") from error
                self._made[threads] = made
            return self._made[threads]

    def embed(self, tokens: Tokens, threads: int, progress: Tick | None = None) -> NDArray[np.float32]:
        """(documents, d)."""
        session, done = self._session(threads), 0
        out = np.zeros((len(tokens), self.width), np.float32)
        for rows in by_length(tokens, TOKENS):
            part = tokens.take(rows)
            longest = int(part.lengths.max())
            mask = np.arange(longest) < part.lengths[:, None]
            ids = np.zeros(mask.shape, np.int32)
            ids[mask] = part.ids
            try:
                out[rows] = session.run(None, {"ids": ids, "mask": mask.astype(np.int32)})[0]
            except Exception as error:  # as above
                raise ModelFileError(f"the model's encoder cannot read these texts: {error}") from error
            done += len(rows)
            if progress is not None:
                progress(done, len(tokens))
        return out
