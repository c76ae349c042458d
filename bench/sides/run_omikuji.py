"""omikuji: Parabel by default, Bonsai by its settings. It trains from a file only (reading it is part of its time)."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import omikuji
from side import TOP, Side, main, padded


class Omikuji(Side):
    package = "omikuji"
    reads_file = True

    def prepare(self, x: Any, y: Any) -> tuple[Any, ...]:
        path = self.folder.with_suffix(".txt")
        write_svm(path, x, y)
        return (str(path),)

    def train(self, *data: Any) -> Any:
        settings = omikuji.Model.default_hyper_param()
        for name, value in self.config.items():
            setattr(settings, name, value)
        return omikuji.Model.train_on_data(data[0], settings, self.threads)

    def save(self, model: Any) -> None:
        model.save(str(self.folder))
        self.folder.with_suffix(".txt").unlink()

    def load(self) -> Any:
        model = omikuji.Model.load(str(self.folder))
        model.init_prediction_thread_pool(self.threads)
        return model

    def alone(self, model: Any) -> Any:
        model = omikuji.Model.load(str(self.folder))
        model.init_prediction_thread_pool(1)
        return model

    def batch(self, model: Any, x: Any) -> Any:
        return [self.one(model, x[i]) for i in range(x.shape[0])]  # its Python interface takes one document at a time

    def one(self, model: Any, row: Any) -> Any:
        return model.predict(list(zip(row.indices.tolist(), row.data.tolist(), strict=True)), top_k=TOP)

    def ids(self, found: Any) -> Any:
        return padded([[label for label, _ in labels] for labels in found])


def write_svm(path: Path, x: Any, y: Any) -> None:
    """The Extreme Classification Repository's format, without documents that have no feature: omikuji refuses those."""
    rows = np.flatnonzero(np.diff(x.indptr))
    with path.open("w", encoding="ascii") as file:
        file.write(f"{len(rows)} {x.shape[1]} {y.shape[1]}\n")
        for i in rows:
            labels = ",".join(map(str, y.indices[y.indptr[i] : y.indptr[i + 1]]))
            part = slice(x.indptr[i], x.indptr[i + 1])
            pairs = zip(x.indices[part], np.char.mod("%.7g", x.data[part]), strict=True)
            file.write(labels + " " + " ".join(f"{column}:{value}" for column, value in pairs) + "\n")


main(Omikuji)
