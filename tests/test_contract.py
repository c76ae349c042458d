"""The contract, on every recipe."""

from __future__ import annotations

import dataclasses

import pytest

import labelwood as lw
import tiny
from cases import acting
from contract import CHECKS, LISTS, SHAPES, TEXTS, TRUTH, Case, best, toy_model
from labelwood.recipes.methods import METHODS

pytestmark = pytest.mark.native


@pytest.fixture(scope="module", autouse=True)
def _free_models():
    yield
    toy_model.cache_clear()


# A deep tree of classifiers says nothing of a recipe whose classifiers stand elsewhere, or that has no clusters.
CASES = [(m, s) for m in lw.methods() for s in SHAPES if s == "flat" or acting(SHAPES[s], m)]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(("method", "shape"), CASES)
def test_contract(method, shape, check, tmp_path):
    CHECKS[check](Case(method, shape, tmp_path))


def test_the_deep_tree_is_deep(tmp_path):
    """Or half of the contract would say nothing."""
    depths = {shape: Case("xr-linear", shape, tmp_path).model.members[0].tree.depth for shape in SHAPES}
    assert depths["flat"] == 1
    assert depths["deep"] >= 3


@pytest.mark.parametrize("method", sorted(tiny.SMALLER))
def test_the_shipped_sizes_learn_and_come_back(method, tmp_path, monkeypatch):
    """F-S13: the other tests make these recipes smaller; once, they run as users get them."""
    shipped = tiny.SHIPPED[method]
    monkeypatch.setitem(METHODS, method, shipped)
    case = Case(method, "flat", tmp_path)
    model = case.train(TEXTS, LISTS)
    settled = dataclasses.replace(shipped.recipe.tfidf, analyser="words")
    assert model.recipe == dataclasses.replace(shipped.recipe, seed=model.recipe.seed, tfidf=settled)
    assert best(model.predict(TEXTS, k=2)) == TRUTH
    assert lw.load(case.saved(model)).predict(TEXTS, k=2) == model.predict(TEXTS, k=2)
