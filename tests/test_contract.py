"""The contract, on every recipe."""

from __future__ import annotations

import pytest

import labelwood as lw
from contract import CHECKS, SHAPES, Case, toy_model
from labelwood.recipes.methods import METHODS

pytestmark = pytest.mark.native


@pytest.fixture(scope="module", autouse=True)
def _free_models():
    yield
    toy_model.cache_clear()


# A deep tree of classifiers says nothing of a recipe whose classifiers stand below its network's own clusters.
CASES = [(m, s) for m in lw.methods() for s in SHAPES if s == "flat" or METHODS[m].recipe.ranker == "tree"]


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize(("method", "shape"), CASES)
def test_contract(method, shape, check, tmp_path):
    CHECKS[check](Case(method, shape, tmp_path))


def test_the_deep_tree_is_deep(tmp_path):
    """Or half of the contract would say nothing."""
    depths = {shape: Case("xr-linear", shape, tmp_path).model.members[0].tree.depth for shape in SHAPES}
    assert depths["flat"] == 1
    assert depths["deep"] >= 3
