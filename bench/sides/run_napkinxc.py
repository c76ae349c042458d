"""napkinXC: PLT or BR ({"model": "PLT"}) with its defaults; the other keys are its own parameters."""

from __future__ import annotations

from typing import Any

import napkinxc.models
from side import TOP, Side, main, padded


class NapkinXC(Side):
    package = "napkinxc"

    def make(self, threads: int) -> Any:
        settings = dict(self.config)
        kind = getattr(napkinxc.models, settings.pop("model", "PLT"))
        return kind(str(self.folder), threads=threads, verbose=0, **settings)

    def prepare(self, x: Any, y: Any) -> tuple[Any, ...]:
        return x, [y.indices[y.indptr[i] : y.indptr[i + 1]].tolist() for i in range(y.shape[0])]

    def train(self, *data: Any) -> Any:
        model = self.make(self.threads)
        model.fit(*data)
        return model

    def save(self, model: Any) -> None:
        """It has written its folder while training."""

    def load(self) -> Any:
        model = self.make(self.threads)
        model.load()
        return model

    def alone(self, model: Any) -> Any:
        model = self.make(1)
        model.load()
        return model

    def batch(self, model: Any, x: Any) -> Any:
        return model.predict(x, top_k=TOP)

    def one(self, model: Any, row: Any) -> Any:
        return model.predict(row, top_k=TOP)

    def ids(self, found: Any) -> Any:
        return padded(found)


main(NapkinXC)
