"""The runs of an ensemble: the same recipe, each with a seed, an encoder and label features of its own."""

from __future__ import annotations

import dataclasses

from ..parts.label_features import NEURAL_KINDS, LabelFeatureConfig
from .recipe import Recipe


def of_run(whole: Recipe, number: int) -> Recipe:
    """The recipe of one run."""
    encoders, kinds = whole.ensemble.encoders, whole.ensemble.labels
    encoder = whole.encoder if encoders is None else dataclasses.replace(whole.encoder, model=encoders[number])
    labels = whole.labels if kinds is None else dataclasses.replace(whole.labels, kind=kinds[number])
    seed = whole.ensemble.seed(whole.seed, number)
    return dataclasses.replace(whole, seed=seed, encoder=encoder, labels=labels)


def by_documents(labels: LabelFeatureConfig) -> LabelFeatureConfig:
    """Label features where no network has embedded the labels: by their documents."""
    return dataclasses.replace(labels, kind="pifa") if labels.kind in NEURAL_KINDS else labels


def first_network(whole: Recipe, own: Recipe) -> Recipe:
    """The run whose network embeds the documents for `pifa-neural` label features, whichever run asks for it: the first
    one of the ensemble that has this encoder and `pifa`, else one of this encoder's seed."""
    config = whole.ensemble
    kinds = config.labels or (whole.labels.kind,) * config.runs
    encoders = config.encoders or (whole.encoder.model,) * config.runs
    same = [number for number in range(config.runs) if encoders[number] == own.encoder.model]
    fitting = [number for number in same if kinds[number] == "pifa"]
    number = next(iter(fitting or same), 0)
    return dataclasses.replace(own, seed=config.seed(whole.seed, number), labels=by_documents(own.labels))
