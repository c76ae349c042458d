"""Heads, losses, and the schedule they are trained by."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from labelwood.arrays.sparse import as_csr, pointers
from labelwood.neural.training import products
from labelwood.neural.training.candidates import Candidates
from labelwood.neural.training.head import Head, batch_loss, loss_of
from labelwood.neural.training.products import RowGradients
from labelwood.neural.training.trainer import Schedule


def lists(candidates: Candidates) -> list[list[int]]:
    """Candidates of each document."""
    return [nodes.tolist() for nodes in np.split(candidates.nodes, candidates.ptr[1:-1])]


def drawn(documents: int, nodes: int, share: float, seed: int = 0) -> Candidates:
    """Random candidates."""
    mask = np.random.default_rng(seed).random((documents, nodes)) < share
    return Candidates(pointers(mask.sum(1)), np.nonzero(mask)[1])


def test_candidates_are_the_children_of_the_shortlist():
    """Parents 0, 1, 2 with children 0-1, 2-4, 5; documents under {0, 2} and {1}."""
    m = as_csr(np.array([[1, 0, 1], [0, 1, 0]], np.float32))
    found = Candidates.below(m, np.array([0, 2, 5, 6]))
    assert lists(found) == [[0, 1, 5], [2, 3, 4]]
    assert found.union.tolist() == [0, 1, 2, 3, 4, 5]
    y = as_csr(np.array([[0, 2, 0, 3, 0, 0], [0, 0, 0, 0, 5, 0]], np.float32))
    true, value = found.targets(y)
    assert true.tolist() == [False, True, False, False, False, True]  # 3 is true but no candidate of the first
    assert value.tolist() == [0, 2, 0, 0, 0, 5]


def test_true_nodes_are_added_in_their_places():
    m = as_csr(np.array([[0, 0, 1], [1, 0, 0], [0, 0, 0]], np.float32))
    y = as_csr(np.array([[1, 0, 0, 1, 0, 1], [0, 0, 1, 0, 1, 0], [0, 0, 0, 0, 0, 0]], np.float32))
    assert lists(Candidates.below(m, np.array([0, 2, 5, 6]), y)) == [[0, 3, 5], [0, 1, 2, 4], []]


def test_candidates_of_some_documents_and_their_table():
    candidates = Candidates(np.array([0, 2, 2, 5]), np.array([3, 7, 1, 3, 9]))
    some, places = candidates.take(np.array([2, 1, 0]))
    assert lists(some) == [[1, 3, 9], [], [3, 7]]
    assert places.tolist() == [2, 3, 4, 0, 1]
    assert candidates.union.tolist() == [1, 3, 7, 9]
    assert candidates.places.tolist() == [1, 2, 0, 1, 3]
    at, real = candidates.padded()
    assert real.astype(int).tolist() == [[1, 1, 0], [0, 0, 0], [1, 1, 1]]
    assert at[real].tolist() == [0, 1, 2, 3, 4]


@pytest.mark.parametrize("share", [0.0, 0.02, 0.3, 0.7, 1.0])
@pytest.mark.parametrize("way", ["kernel", "copies"])
def test_products_and_their_gradients_are_those_of_masked_matrices(share, way, monkeypatch):
    """Both sides of the rule by counts, and the way of devices that have no kernels for pairs."""
    if way == "copies":
        monkeypatch.setattr(products, "_sampled", products._gathered)
        monkeypatch.setattr(products, "_sums", products._added)
        monkeypatch.setattr(products, "PAIRS_AT_ONCE", 7)
    monkeypatch.setattr(products, "BLOCK", 16)
    torch.manual_seed(1)
    candidates = drawn(9, 60, share)
    assert products.is_whole(9, 60, candidates.pairs) == (share > 0.4)
    head = Head.of(torch.randn(60, 5), torch.randn(60))
    x = torch.randn(9, 5, requires_grad=True)
    scores = head.scores(x, candidates)
    pull = torch.randn(candidates.pairs)
    (scores.logits * pull).sum().backward()
    twin, table = x.detach().clone().requires_grad_(), head.table.clone().requires_grad_()
    whole = torch.nn.functional.linear(twin, table[:, :-1], table[:, -1])[candidates.rows, candidates.nodes]
    (whole * pull).sum().backward()
    assert torch.allclose(scores.logits, whole, atol=1e-5)
    assert torch.allclose(x.grad, twin.grad, atol=1e-5)
    found = [torch.cat(parts) for parts in zip(*scores.gradients().blocks(), strict=True)]
    if not share:
        assert found == []
        return
    assert found[0].tolist() == candidates.union.tolist()
    assert torch.allclose(found[1], table.grad[found[0]], atol=1e-5)


def test_documents_meet_their_own_candidates_alone(monkeypatch):
    """F-S6: 64 documents with nothing in common make 64 times the products of one, not 64²."""
    made = []

    def counted(function):
        def call(x, table, candidates):
            found = function(x, table, candidates)
            made.append(found.numel())
            return found

        return call

    monkeypatch.setattr(products, "_sampled", counted(products._sampled))
    head, generator = Head.random(6400, 8, torch.Generator().manual_seed(0)), torch.Generator().manual_seed(1)
    for documents in (1, 64):
        candidates = Candidates(np.arange(documents + 1) * 100, np.arange(documents * 100))
        scores = head.scores(torch.randn(documents, 8, generator=generator, requires_grad=True), candidates)
        assert scores.logits.shape == (documents * 100,)
        scores.logits.sum().backward()
        gradients = scores.gradients()
        numbers = [t.numel() for t in (gradients.nodes, gradients.index, gradients.scale)]
        assert numbers == [documents * 100] * 3
        assert gradients.vectors.shape == (documents, 9)
        assert max(len(at) for at, _ in gradients.blocks()) <= products.BLOCK
    assert made == [100, 6400]


def test_gradients_of_shards_are_added_row_by_row():
    torch.manual_seed(2)
    head, x, candidates = Head.random(40, 3, torch.Generator().manual_seed(0)), torch.randn(8, 3), drawn(8, 40, 0.1)
    parts = []
    for rows in (np.arange(8), np.arange(5), np.arange(5, 8)):
        scores = head.scores(x[rows], candidates.take(rows)[0])
        scores.logits.square().sum().backward()
        parts.append(scores.gradients())
    (whole,), (joined,) = parts[0].blocks(), RowGradients.joined(parts[1:]).blocks()
    assert torch.equal(whole[0], joined[0])
    assert torch.allclose(whole[1], joined[1], atol=1e-6)


def test_a_row_that_labels_attend_with_has_the_gradient_autograd_gave_it():
    head, candidates = Head.random(40, 3, torch.Generator().manual_seed(0)), drawn(8, 40, 0.1)
    rows = head.rows(candidates)
    rows.square().sum().backward()
    ((at, grad),) = RowGradients.of_rows(candidates.union, rows).blocks()
    assert at.tolist() == candidates.union.tolist()
    assert torch.allclose(grad, 2 * head.table[at])


def test_losses_by_hand():
    logits, true = torch.tensor([2.0, 0.5, -3.0, 0.0]), torch.tensor([True, True, False, True])
    assert loss_of("hinge", logits, true).tolist() == [0, 0.5, 0, 1]
    assert loss_of("squared-hinge", logits, true).tolist() == [0, 0.25, 0, 1]
    assert np.allclose(loss_of("logistic", logits, true), np.log1p(np.exp([-2, -0.5, -3, 0])))
    candidates, weight = Candidates(np.array([0, 3, 3, 4]), np.array([1, 4, 6, 0])), torch.tensor([1.0, 3.0, 1.0, 2.0])
    found = batch_loss("hinge", logits, candidates, true, weight).item()
    assert found == pytest.approx(1.5 / 3 + 2)  # a mean over three candidates, one over one


def squares(head: Head, x: torch.Tensor, nodes: np.ndarray) -> RowGradients:
    """Gradients of the sum of squares of some nodes' logits on all documents."""
    candidates = Candidates(np.arange(len(x) + 1) * len(nodes), np.tile(nodes, len(x)))
    scores = head.scores(x, candidates)
    scores.logits.square().sum().backward()
    return scores.gradients()


def test_a_head_steps_as_adam_on_the_rows_it_touches():
    torch.manual_seed(0)
    head = Head.random(5, 3, torch.Generator().manual_seed(0))
    twin = torch.nn.Parameter(head.table[[1, 3], :3].clone()), torch.nn.Parameter(head.table[[1, 3], 3].clone())
    adam, before = torch.optim.Adam(twin, lr=0.1), head.table.clone()
    x = torch.randn(4, 3)
    for _ in range(3):
        head.update(squares(head, x, np.array([1, 3])), 0.1, None)
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
        one.update(squares(one, x, nodes), 0.1, None)
    for nodes in (np.array([3, 7, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 20, 40]), np.array([7])):
        all_.update(squares(all_, x, nodes), 0.1, None)
    assert torch.allclose(one.table, all_.table, atol=1e-6)
    assert one.moments.used == 14
    again = Head.of(weight, torch.zeros(50), kind)
    again.load(one.tensors())
    for head in (one, again):
        head.update(squares(head, x, np.array([7, 45])), 0.1, None)
    assert torch.equal(one.table, again.table)


@pytest.mark.parametrize("block", [4, 1024])
def test_a_step_is_as_long_as_all_rows_together_allow(block, monkeypatch):
    """Clipping and the regulariser see the whole gradient, in however many blocks it is made."""
    monkeypatch.setattr(products, "BLOCK", block)
    torch.manual_seed(3)
    weight, x, nodes = torch.randn(30, 3), torch.randn(4, 3), np.arange(3, 25)
    head, met = Head.of(weight, torch.zeros(30)), []
    monkeypatch.setattr(head.moments, "direction", lambda at, grad: met.append(grad.clone()) or torch.zeros_like(grad))
    head.update(squares(head, x, nodes), 0.1, 0.5, decay=0.25)
    table = head.table.clone().requires_grad_()
    logits = torch.nn.functional.linear(x, table[nodes, :-1], table[nodes, -1])
    (logits.square().sum() + 0.25 * table[nodes, :-1].square().sum()).backward()
    expected = table.grad[nodes] * 0.5 / table.grad.norm()
    assert torch.allclose(torch.cat(met), expected, atol=1e-6)
    assert len(met) == -(-len(nodes) // block)


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
