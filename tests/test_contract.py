"""The contract, on every recipe."""

from __future__ import annotations

import pytest

import labelwood as lw
from contract import CHECKS, SHAPES, Case, toy_model

pytestmark = pytest.mark.native


@pytest.fixture(scope="module", autouse=True)
def _free_models():
    yield
    toy_model.cache_clear()


@pytest.mark.parametrize("check", CHECKS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("method", lw.methods())
def test_contract(method, shape, check, tmp_path):
    CHECKS[check](Case(method, shape, tmp_path))


def test_the_deep_tree_is_deep(tmp_path):
    """Or half of the contract would say nothing."""
    depths = {shape: Case("xr-linear", shape, tmp_path).model.members[0].tree.depth for shape in SHAPES}
    assert depths["flat"] == 1
    assert depths["deep"] >= 3
