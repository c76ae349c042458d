"""labelwood: {"method": …, "preset": …, "settings": {…}}. The one side that imports it."""

from __future__ import annotations

import dataclasses
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from side import TOP, Side, main

import labelwood as lw
from labelwood.base.progress import Silent
from labelwood.parts.tfidf import Tfidf, TfidfConfig


class Labelwood(Side):
    package = "labelwood"

    def __init__(self, config: dict[str, Any], threads: int, model: Path) -> None:
        super().__init__(config, threads, model)
        self.progress = Silent(time.process_time)  # CPU seconds of each stage

    def train(self, x: Any, y: Any) -> Any:
        return lw.train(X=x, labels=y, run=lw.Run(self.threads, progress=self.progress), **self.config)

    def save(self, model: Any) -> None:
        model.save(self.folder)

    def load(self) -> Any:
        self.model = lw.load(self.folder)
        return self.model

    def batch(self, model: Any, x: Any) -> Any:
        return model.predict_arrays(X=x, k=TOP, threads=self.threads)[0]

    def one(self, model: Any, row: Any) -> Any:
        return model.predict_arrays(X=row, k=TOP, threads=1)[0]

    def ids(self, found: Any) -> Any:
        columns = np.array([*map(int, self.model.labels), -1])  # labels are named by their columns
        return columns[found]

    def text(self, model: Any, data: Path) -> Callable[[str], Any]:
        with np.load(data / "tfidf.npz") as file:
            tfidf = Tfidf.from_tensors(TfidfConfig(), dict(file))
        whole = reading(model, tfidf)
        return lambda text: whole.predict_arrays([text], k=TOP, threads=1)[0]

    def notes(self) -> dict[str, Any]:
        return {"stage CPU s": dict(self.progress.timings)}


def reading(model: Any, tfidf: Tfidf) -> Any:
    """The model, trained on the rows of X, with the vocabulary that X was made with; of an ensemble, each member."""
    if isinstance(model, lw.Ensemble):
        return lw.Ensemble([reading(member, tfidf) for member in model.members], model.config)
    return dataclasses.replace(model, tfidf=tfidf)


main(Labelwood)
