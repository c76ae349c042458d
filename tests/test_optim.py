"""The encoder's optimiser: word vectors by rows, the rest as torch does it."""

from __future__ import annotations

import copy
import dataclasses

import numpy as np
import pytest
import torch

from labelwood.neural.encoders import encoder as encoders
from labelwood.neural.training.optim import Optimiser, shorten
from labelwood.neural.training.trainer import Schedule
from small import READ, source, tokeniser

PLAN = Schedule(
    steps=10, batch=4, shard_tokens=100, lr=0.01, warmup=0.0, weight_decay=0.1, head_decay=0.0, clip=0.5, checks=1
)


def loss(net: encoders.Encoder, text: str) -> torch.Tensor:
    tokens = tokeniser()([text])
    return net.train()(encoders.packed(tokens, np.arange(1)))[0].square().sum()


def stepped(net: encoders.Encoder, texts: list[str], plan: Schedule = PLAN) -> Optimiser:
    found = Optimiser(net, plan, 0.01)
    for text in texts:
        loss(net, text).backward()
        found.step(0.5)
    return found


def test_words_of_the_batch_move_as_adamw_moves_them_and_no_others():
    """While every step has the same words, torch's AdamW on the whole table does the same to their rows."""
    ours = encoders.load(source(), READ)
    theirs, before = copy.deepcopy(ours), ours.net.words.weight.detach().clone()
    stepped(ours, ["word1 word2 common"] * 3)
    flat = [p for p in theirs.parameters() if p.ndim < 2]
    adam = torch.optim.AdamW(
        [
            {"params": [p for p in theirs.parameters() if p.ndim >= 2], "weight_decay": 0.1},
            {"params": flat, "weight_decay": 0.0},
        ],
        lr=0.005,
    )
    for _ in range(3):
        adam.zero_grad()
        loss(theirs, "word1 word2 common").backward()
        torch.nn.utils.clip_grad_norm_(theirs.parameters(), 0.5)
        adam.step()
    used = tokeniser()(["word1 word2 common"]).ids
    assert len(used) == 5
    a, b = ours.net.words.weight.detach(), theirs.net.words.weight.detach()
    assert torch.allclose(a[used], b[used], atol=1e-5)
    assert (a[used] - before[used]).abs().min() > 0
    others = np.setdiff1d(np.arange(len(a)), used)
    assert torch.equal(a[others], before[others])
    assert torch.allclose(ours.net.layers[1].up.weight, theirs.net.layers[1].up.weight, atol=1e-5)


def test_a_loaded_state_goes_on_as_the_one_it_was_taken_from():
    texts = ["word1 word2", "word2 word3 common", "word7"]
    whole, half = (encoders.load(source(), READ) for _ in range(2))
    kept = stepped(whole, texts[:1]).tensors()
    half.load(whole.state())
    again = Optimiser(half, PLAN, 0.01)
    again.load(kept)
    first = Optimiser(whole, PLAN, 0.01)
    first.load(kept)
    for net, optimiser in ((whole, first), (half, again)):
        for text in texts[1:]:
            loss(net, text).backward()
            optimiser.step(1.0)
    for a, b in zip(whole.state().values(), half.state().values(), strict=True):
        assert np.array_equal(a, b)
    assert {len(value) for name, value in kept.items() if name.endswith("table.0.steps")} == {4}  # rows with a state


def test_frozen_word_vectors_stay():
    net = encoders.load(source(), READ)
    net.freeze(0)
    before = net.net.words.weight.clone()
    found = stepped(net, ["word1 word2"], dataclasses.replace(PLAN, clip=None))
    assert not found.tables
    assert torch.equal(net.net.words.weight, before)


def test_gradients_are_shortened_together():
    grads = [torch.tensor([3.0, 0.0]), torch.tensor([[4.0]])]
    shorten(grads, 10.0)
    assert grads[1].item() == 4
    shorten(grads, 1.0)
    assert grads[0][0].item() == pytest.approx(0.6, abs=1e-5)
    assert grads[1].item() == pytest.approx(0.8, abs=1e-5)
