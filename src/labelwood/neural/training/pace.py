"""Pace of an encoder on this machine: a few steps on a few documents, of which nothing is kept."""

from __future__ import annotations

import dataclasses
import time
from typing import TYPE_CHECKING

import numpy as np
import torch

from ...arrays.sparse import Csr
from ..encoders import encoder as encoders
from ..encoders import word_vectors
from ..encoders.tokens import Tokeniser
from .head import Head
from .trainer import Schedule, Task, Trainer

if TYPE_CHECKING:
    from ...arrays.texts import Texts
    from ...recipes.recipe import Recipe

SAMPLE, WARM, MEASURED = 256, 1, 3  # documents; steps before and while the clock runs


@dataclasses.dataclass(frozen=True)
class Pace:
    """Figures that were measured."""

    step: float  # seconds of a training step
    embed: float  # seconds to embed a document
    tokens: float  # per document
    parameters: int
    width: int
    layers: int


def measure(texts: Texts, recipe: Recipe, threads: int, device: str) -> Pace:
    """Train and embed a few documents and look at the clock; nothing of it is kept."""
    encoders.check_device(device)
    config, source = recipe.finetune, word_vectors.find(recipe.encoder, texts, recipe.seed)
    rows = np.unique(np.linspace(0, len(texts) - 1, SAMPLE).astype(np.int64))
    tokens = Tokeniser(source.tokeniser(), recipe.encoder.max_tokens)([texts[int(i)] for i in rows])
    network = encoders.load(source, recipe.encoder)
    parameters = sum(p.numel() for p in network.parameters())
    network.to(device)
    network.drop(config.dropout, config.attention_dropout)
    network.freeze(config.frozen_layers)
    head = Head.random(256, network.width, torch.Generator().manual_seed(0), device)
    rows = np.arange(len(tokens) + 1)
    y = Csr(rows, rows[:-1].astype(np.int32) % 256, np.ones(len(tokens), np.float32), 256)
    task = Task(head, 0, y, None, np.array([0, 256]), "squared-hinge", 1.0, 1e-3)
    schedule = Schedule(
        steps=WARM + MEASURED, batch=config.batch, shard_tokens=config.shard_tokens, lr=1e-5, warmup=0.0,
        weight_decay=0.0, head_decay=0.0, clip=recipe.optimiser.clip, checks=1,
    )  # fmt: skip
    with encoders.threads(threads, network, config.batch * float(tokens.lengths.mean())):
        trainer = Trainer(network, [task], tokens, np.arange(len(tokens)), schedule, key=(0, 0))
        seconds = []
        for _ in range(WARM + MEASURED):
            start = time.perf_counter()
            trainer.advance()
            seconds.append(time.perf_counter() - start)
        start = time.perf_counter()
        network.embed(tokens)
        embed = (time.perf_counter() - start) / len(tokens)
    step = float(np.median(seconds[WARM:]))
    return Pace(step, embed, float(tokens.lengths.mean()), parameters, network.width, network.depth)
