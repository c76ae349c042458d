"""What tests of the neural rooms share: the toy set, the tiny encoder as the default one, and a short training."""

from __future__ import annotations

import labelwood as lw
from labelwood.data import from_lists
from labelwood.neural import pretrained
from labelwood.neural.config import EncoderConfig
from labelwood.neural.tokens import Tokeniser
from labelwood.recipes import resolve
from labelwood.run import Run
from labelwood.train import train
from toy import contract_set

TEXTS, LISTS = contract_set()
READ = EncoderConfig(model="minilm")
SMALL: dict[str, object] = {"finetune.epochs": 2, "coarse.levels": (4,), "tree.leaf": 4, "tree.branch": 2}


def source() -> pretrained.Source:
    return pretrained.find("minilm")


def tokeniser(most: int = 128) -> Tokeniser:
    return Tokeniser(source().tokeniser(), most)


def fit(settings: dict[str, object] | None = None, data=None, **run) -> lw.Predictor:
    recipe = resolve("xr-transformer", settings={**SMALL, **(settings or {})})
    return train(from_lists(TEXTS, LISTS) if data is None else data, recipe, Run(1, **run))


class Stop(Exception):
    """A kill."""


def stop_at_once(event):
    raise Stop
