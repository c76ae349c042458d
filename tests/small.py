"""What tests of the neural rooms share: the toy set, the tiny encoder as the default one, and a short training."""

from __future__ import annotations

import labelwood as lw
from cases import acting
from labelwood.base.run import Keeping, Run
from labelwood.data import from_lists
from labelwood.neural.encoders import pretrained
from labelwood.neural.encoders.tokens import Tokeniser
from labelwood.pipeline.train import train
from labelwood.recipes.encoder_settings import EncoderConfig
from labelwood.recipes.resolve import resolve
from toy import contract_set

TEXTS, LISTS = contract_set()
READ = EncoderConfig(model="minilm")
SMALL: dict[str, object] = {"finetune.epochs": 2, "coarse.levels": (4,), "tree.leaf": 4, "tree.branch": 2}


def source() -> pretrained.Checkpoint:
    return pretrained.find("minilm")


def tokeniser(most: int = 128) -> Tokeniser:
    return Tokeniser(source().tokeniser(), most)


def fit(settings: dict[str, object] | None = None, data=None, keeping=Keeping(), **run) -> lw.Predictor:
    recipe = resolve("xr-transformer", settings=acting(SMALL, "xr-transformer", settings))
    return train(from_lists(TEXTS, LISTS) if data is None else data, recipe, Run(1, **run), keeping=keeping)


class Stop(Exception):
    """A kill."""


def stop_at_once(event):
    raise Stop
