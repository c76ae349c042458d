"""Heads, losses, and the schedule they are trained by."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from labelwood.arrays.sparse import as_csr
from labelwood.neural.training.head import Candidates, Head, batch_loss, loss_of
from labelwood.neural.training.trainer import Schedule


def test_candidates_are_the_children_of_the_shortlist():
    """Parents 0, 1, 2 with children 0-1, 2-4, 5; documents under {0, 2} and {1}."""
    m = as_csr(np.array([[1, 0, 1], [0, 1, 0]], np.float32))
    found = Candidates.below(m, np.array([0, 2, 5, 6]))
    assert found.nodes.tolist() == [0, 1, 2, 3, 4, 5]
    assert found.mask.astype(int).tolist() == [[1, 1, 0, 0, 0, 1], [0, 0, 1, 1, 1, 0]]
    y = as_csr(np.array([[0, 2, 0, 3, 0, 0], [0, 0, 0, 0, 5, 0]], np.float32))
    true, value = found.targets(y)
    assert true.astype(int).tolist() == [[0, 1, 0, 0, 0, 0], [0, 0, 0, 0, 1, 0]]  # 3 is true but no candidate
    assert value[true].tolist() == [2, 5]


def test_losses_by_hand():
    logits, true = torch.tensor([[2.0, 0.5, -3.0]]), torch.tensor([[True, True, False]])
    assert loss_of("hinge", logits, true).tolist() == [[0, 0.5, 0]]
    assert loss_of("squared-hinge", logits, true).tolist() == [[0, 0.25, 0]]
    assert np.allclose(loss_of("logistic", logits, true), [np.log1p(np.exp([-2, -0.5, -3]))])
    mask, weight = torch.tensor([[True, True, False]]), torch.tensor([[1.0, 3.0, 1.0]])
    assert batch_loss("hinge", logits, (mask, true, weight)).item() == pytest.approx(0.75)  # 1.5 over two candidates


def test_a_head_steps_as_adam_on_the_rows_it_touches():
    torch.manual_seed(0)
    head = Head.random(5, 3, torch.Generator().manual_seed(0))
    twin = torch.nn.Parameter(head.table[[1, 3], :3].clone()), torch.nn.Parameter(head.table[[1, 3], 3].clone())
    adam, before = torch.optim.Adam(twin, lr=0.1), head.table.clone()
    x = torch.randn(4, 3)
    for _ in range(3):
        rows = head.gather(np.array([1, 3]))
        rows(x).square().sum().backward()
        head.update(rows, 0.1, None)
        adam.zero_grad()
        torch.nn.functional.linear(x, *twin).square().sum().backward()
        adam.step()
    assert torch.allclose(head.table[[1, 3], :3], twin[0].detach(), atol=1e-6)
    assert torch.allclose(head.table[[1, 3], 3], twin[1].detach(), atol=1e-6)
    assert torch.equal(head.table[[0, 2, 4]], before[[0, 2, 4]])
    assert head.moments.steps.ravel().tolist() == [3, 3]  # the others have no state at all


@pytest.mark.parametrize("kind", ["full", "row"])
def test_the_state_of_a_head_grows_with_the_rows_it_meets(kind):
    """Touched one after the other or all at once, a row's steps are its own."""
    torch.manual_seed(0)
    weight, x = torch.randn(50, 3), torch.randn(4, 3)
    one, all_ = Head.of(weight, torch.zeros(50), kind), Head.of(weight, torch.zeros(50), kind)
    for nodes in (np.array([7]), np.array([3, 9, 20]), np.arange(10, 19), np.array([7, 40])):
        rows = one.gather(nodes)
        rows(x).square().sum().backward()
        one.update(rows, 0.1, 0.0, None)
    for nodes in (np.array([3, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 40]), np.array([7])):
        rows = all_.gather(nodes)
        rows(x).square().sum().backward()
        all_.update(rows, 0.1, 0.0, None)
    assert torch.allclose(one.table, all_.table, atol=1e-6)
    assert one.moments.used == 14
    again = Head.of(weight, torch.zeros(50), kind)
    again.load(one.tensors())
    for head in (one, again):
        rows = head.gather(np.array([7, 45]))
        rows(x).square().sum().backward()
        head.update(rows, 0.1, None)
    assert torch.equal(one.table, again.table)


def test_the_schedule_rises_and_falls():
    schedule = Schedule(10, 32, 100, 1.0, 0.2, 0.0, 0.0, None, 3)
    assert [round(schedule.rate(s), 3) for s in range(10)] == [0.5, 1, 1, 0.875, 0.75, 0.625, 0.5, 0.375, 0.25, 0.125]
    assert [s for s in range(1, 11) if schedule.is_check(s)] == [3, 7, 10]


def test_the_best_of_many():
    from labelwood.neural.finetune.matcher import largest

    logits = np.random.default_rng(0).integers(0, 9, size=(20, 50)).astype(np.float32)
    for keep in (1, 7, 50, 60):
        found = np.take_along_axis(logits, largest(logits, keep), 1)[:, :keep]
        assert np.array_equal(found, -np.sort(-logits, axis=1)[:, :keep])
