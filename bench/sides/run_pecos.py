"""PECOS XR-Linear: pifa, hierarchical k-means, tfn negatives. {"splits": 16, "seeds": [0], …}; seeds are summed."""

from __future__ import annotations

from functools import reduce
from operator import add
from typing import Any

from pecos.xmc import Indexer, LabelEmbeddingFactory
from pecos.xmc.xlinear.model import XLinearModel
from side import TOP, Side, best, main


class Pecos(Side):
    package = "libpecos"

    def train(self, x: Any, y: Any) -> Any:
        z = LabelEmbeddingFactory.create(y, x, method="pifa", threads=self.threads)
        return [self.member(x, y, z, seed) for seed in self.config.get("seeds", [0])]

    def member(self, x: Any, y: Any, z: Any, seed: int) -> Any:
        shape = {"nr_splits": self.config.get("splits", 16), "max_leaf_size": 100}
        chain = Indexer.gen(z, indexer_type="hierarchicalkmeans", seed=seed, threads=self.threads, **shape)
        return XLinearModel.train(x, y, C=chain, threads=self.threads, threshold=0.1, negative_sampling_scheme="tfn")

    def save(self, model: Any) -> None:
        for i, member in enumerate(model):
            member.save(str(self.folder / str(i)))

    def load(self) -> Any:
        count = len(self.config.get("seeds", [0]))
        return [XLinearModel.load(str(self.folder / str(i)), is_predict_only=True) for i in range(count)]

    def batch(self, model: Any, x: Any) -> Any:
        return answer(model, x, self.threads)

    def one(self, model: Any, row: Any) -> Any:
        return answer(model, row, 1)

    def ids(self, found: Any) -> Any:
        return best(found)


def answer(model: Any, x: Any, threads: int) -> Any:
    return reduce(add, (member.predict(x, only_topk=TOP, beam_size=10, threads=threads) for member in model))


main(Pecos)
