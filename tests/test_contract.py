"""The contract, on every recipe."""

from __future__ import annotations

import pytest

import labelwood as lw
import tiny
from cases import acting
from contract import CHECKS, LISTS, SHAPES, TEXTS, Case, toy_model
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


@pytest.mark.parametrize("method", tiny.SHIPPED)
def test_a_recipe_as_it_is_shipped(method, monkeypatch, tmp_path):
    """The contract runs on a smaller network of it; at its own sizes it trains, saves and is right as well."""
    monkeypatch.setitem(METHODS, method, tiny.SHIPPED[method])
    model = lw.train(TEXTS, LISTS, method=method, threads=2)
    assert model.recipe == tiny.SHIPPED[method].recipe
    assert model.evaluate(TEXTS, LISTS, metrics=lw.MetricsConfig(bootstrap=0))["P@1"] > 95
    model.save(tmp_path / "m")
    assert lw.load(tmp_path / "m").predict(TEXTS[:20], k=2) == model.predict(TEXTS[:20], k=2)


def test_the_deep_tree_is_deep(tmp_path):
    """Or half of the contract would say nothing."""
    depths = {shape: Case("xr-linear", shape, tmp_path).model.members[0].tree.depth for shape in SHAPES}
    assert depths["flat"] == 1
    assert depths["deep"] >= 3
