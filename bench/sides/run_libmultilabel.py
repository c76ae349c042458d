"""LibMultiLabel's linear part: {"model": "tree"} or "1vsrest", with its defaults. Its models are pickles."""

from __future__ import annotations

from typing import Any

import numpy as np
import psutil
from libmultilabel import linear
from side import TOP, Side, main

BLOCK = 500  # rows at a time: its answers are dense (rows, labels)


class LibMultiLabel(Side):
    package = "libmultilabel"

    def prepare(self, x: Any, y: Any) -> tuple[Any, ...]:
        return y.astype(np.float64), x.astype(np.float64)

    def train(self, *data: Any) -> Any:
        psutil.cpu_count = lambda logical=True: self.threads  # it starts as many threads as there are cores
        train = linear.train_tree if self.config.get("model", "tree") == "tree" else linear.train_1vsrest
        return train(*data, verbose=False)

    def save(self, model: Any) -> None:
        linear.save_pipeline(str(self.folder), None, model)

    def load(self) -> Any:
        return linear.load_pipeline(str(self.folder / "linear_pipeline.pickle"))[1]

    def batch(self, model: Any, x: Any) -> Any:
        parts = [top(linear.predict_values(model, x[i : i + BLOCK])) for i in range(0, x.shape[0], BLOCK)]
        return np.concatenate(parts)

    def one(self, model: Any, row: Any) -> Any:
        return top(linear.predict_values(model, row))

    def ids(self, found: Any) -> Any:
        return found


def top(scores: Any) -> Any:
    """Ids of the highest of each row, best first, as its own `get_topk_labels` finds them, without names."""
    scores = np.asarray(scores)
    near = np.argpartition(-scores, TOP, axis=1)[:, :TOP] if scores.shape[1] > TOP else np.argsort(-scores, axis=1)
    order = np.argsort(-np.take_along_axis(scores, near, axis=1), axis=1, kind="stable")
    return np.take_along_axis(near, order, axis=1)


main(LibMultiLabel)
