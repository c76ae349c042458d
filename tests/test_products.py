"""Linear layers by oneDNN beside torch's own."""

from __future__ import annotations

import pytest
import torch
from torch import nn

from labelwood.neural.encoders import encoder as encoders
from labelwood.neural.encoders import matmul
from small import READ, source, tokeniser


@pytest.fixture
def onednn(monkeypatch):
    """As on a machine where oneDNN is the faster one."""
    monkeypatch.setattr(matmul, "_FOUND", torch.ops.mkldnn._linear_pointwise)


@pytest.mark.usefixtures("onednn")
@pytest.mark.parametrize(("rows", "wide", "high"), [(7, 12, 5), (1, 3, 20), (130, 64, 64), (0, 4, 2)])
def test_numbers_and_gradients_are_those_of_torch(rows, wide, high):
    torch.manual_seed(0)
    ours, theirs = matmul.Linear(wide, high), nn.Linear(wide, high)
    theirs.load_state_dict(ours.state_dict())
    x, pull = torch.randn(rows, wide), torch.randn(rows, high)
    found = []
    for layer in (ours, theirs):
        given = x.clone().requires_grad_()
        y = layer(given)
        (y * pull).sum().backward()
        found.append((y, given.grad, layer.weight.grad, layer.bias.grad))
    assert rows == 0 or type(found[0][0].grad_fn).__name__ == "_ProductBackward"
    for a, b in zip(*found, strict=True):
        assert a.shape == b.shape
        assert torch.allclose(a, b, atol=1e-4, rtol=1e-4)


@pytest.mark.usefixtures("onednn")
def test_what_needs_no_gradient_gets_none():
    layer = matmul.Linear(4, 3)
    layer.weight.requires_grad_(False)
    layer(torch.ones(2, 4)).sum().backward()
    assert layer.weight.grad is None
    assert layer.bias.grad.tolist() == [2, 2, 2]
    assert layer(torch.ones(2, 4, dtype=torch.bfloat16).float()).dtype == torch.float32


@pytest.mark.usefixtures("onednn")
def test_large_batches_are_filled_up_and_say_the_same(monkeypatch):
    assert [matmul.spare(torch.zeros(n, 1)) for n in (10, 1023, 1024, 1025, 1088)] == [0, 0, 0, 63, 0]
    assert matmul.spare(torch.zeros(1025, 1, dtype=torch.float64)) == 0
    tokens = tokeniser()(["word1 word2", "common", "a b c d e f g h", "", "word3 " * 30])
    net = encoders.load(source(), READ).read([encoders.Reading((t,), "mean") for t in (0, 1, 2)])
    filled = []
    for size in (1, 5):
        monkeypatch.setattr(matmul, "ROUND", size)
        net.train()  # nothing is dropped: the shares are 0
        batch = encoders.packed(tokens, torch.arange(5).numpy())
        net.zero_grad()
        found = net(batch)
        sum(vector.square().sum() for vector in found).backward()
        filled.append([*found, *(p.grad for p in net.parameters() if p.grad is not None)])
    assert len(filled[0]) > 30
    for a, b in zip(*filled, strict=True):
        assert torch.allclose(a, b, atol=1e-4, rtol=1e-4)


def test_elsewhere_torch_multiplies(monkeypatch):
    monkeypatch.setattr(matmul, "_FOUND", None)
    layer = matmul.Linear(4, 3)
    assert type(layer(torch.ones(2, 4)).grad_fn).__name__ == "AddmmBackward0"
    assert matmul.spare(torch.zeros(1025, 1)) == 0
