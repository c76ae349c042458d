"""First biases of a head: those where the loss of a level is least while nothing is known of a document (F-S7)."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy.optimize import minimize_scalar

from labelwood.arrays.sparse import Csr, as_csr
from labelwood.base.run import Run
from labelwood.neural.finetune.base import Tuning, TuningData
from labelwood.neural.training.candidates import Candidates
from labelwood.neural.training.head import loss_of
from labelwood.parts.tree import Tree
from labelwood.recipes.resolve import resolve
from labelwood.storage.keyed import Keyed

DOCS, LABELS = 60, 12
TREE = Tree((np.array([0, 3]), np.array([0, 4, 7, 12])), np.arange(LABELS, dtype=np.int32))


def tuning(**settings: object) -> Tuning:
    """A fine-tuning of random documents whose labels are as frequent as they are: 5 to 70 %."""
    rng = np.random.default_rng(4)
    y = (rng.random((DOCS, LABELS)) < np.linspace(0.05, 0.7, LABELS)).astype(np.float32)
    recipe = resolve("xr-transformer", settings={"finetune.valid": 0.2, "finetune.alpha": 0.3, **settings})
    data = TuningData(Keyed(None, ""), Keyed(None, ""), Keyed(as_csr(y), ""), Keyed(TREE, ""))
    return Tuning(recipe, Run(), None, None, data)


def shortlist() -> Csr:
    """Clusters of each document, not all of those that are true among them."""
    mask = np.random.default_rng(5).random((DOCS, 3)) < 0.6
    return as_csr(mask.astype(np.float32))


def objective(tuned: Tuning, t: int, m: Csr | None):
    """(node, bias) → the node's part of the loss over all documents that are trained on."""
    rows = tuned.split[0]
    candidates = Candidates.every(len(rows), TREE.size(t))
    if m is not None:
        candidates = Candidates.below(m.take(rows), TREE.child_ptrs[t])
    true, value = candidates.targets(tuned.targets(t).take(rows))
    weight = np.where(true, value, tuned.at("finetune.alpha", t)) / np.repeat(candidates.counts, candidates.counts)

    def loss(node: int, bias: float) -> float:
        here = candidates.nodes == node
        logits = torch.full((int(here.sum()),), bias, dtype=torch.float64)
        each = loss_of(tuned.at("finetune.loss", t), logits, torch.from_numpy(true[here]))
        return float((each.numpy() * weight[here]).sum())

    return loss


@pytest.mark.parametrize("loss", ["logistic", "squared-hinge", "hinge"])
@pytest.mark.parametrize("norm", ["l1", "none"])
@pytest.mark.parametrize("shortlisted", [False, True])
def test_a_numeric_minimiser_finds_the_same_biases(loss, norm, shortlisted):
    tuned = tuning(**{"finetune.loss": loss, "finetune.relevance_norm": norm})
    t, m = (1, shortlist()) if shortlisted else (0, None)
    cost, biases = objective(tuned, t, m), tuned.prior(t, m)
    assert len(set(biases.round(3))) > 1 or loss == "hinge"
    for node, bias in enumerate(biases.tolist()):
        best = minimize_scalar(lambda b, node=node: cost(node, b), bounds=(-9, 9), method="bounded")
        assert cost(node, bias) <= best.fun + 1e-6
        if loss != "hinge":  # whose minimum may be flat
            assert bias == pytest.approx(best.x, abs=1e-3)


def test_a_share_of_the_negatives_where_the_shortlist_changes_as_it_learns():
    """Four true documents of ten; of the other six every third is a candidate."""
    y = as_csr(np.repeat(np.array([[1, 0], [0, 1]], np.float32), [4, 6], axis=0))
    recipe = resolve("cascadexml", settings={"finetune.valid": 0, "finetune.alpha": 0.5})
    tree = Tree((np.array([0, 2]),), np.arange(2, dtype=np.int32))
    tuned = Tuning(
        recipe, Run(), None, None, TuningData(Keyed(None, ""), Keyed(None, ""), Keyed(y, ""), Keyed(tree, ""))
    )
    assert tuned.prior(0, opened=1 / 3) == pytest.approx(np.log([4 / (0.5 * 2), 6 / (0.5 * 4 / 3)]))


def test_nodes_without_positives_or_negatives_have_half_of_one():
    y = as_csr(np.array([[1, 0, 1]] * 6 + [[1, 0, 0]] * 2, np.float32))
    recipe = resolve("cascadexml", settings={"finetune.valid": 0, "finetune.alpha": 2, "finetune.relevance": "off"})
    tree = Tree((np.array([0, 3]),), np.arange(3, dtype=np.int32))
    tuned = Tuning(
        recipe, Run(), None, None, TuningData(Keyed(None, ""), Keyed(None, ""), Keyed(y, ""), Keyed(tree, ""))
    )
    assert tuned.prior(0) == pytest.approx(np.log([8 / 1, 0.5 / 16, 6 / 4]))
