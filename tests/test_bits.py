"""One recipe, one seed, many surroundings: one model, bit for bit (D1, D2), and one answer on any CPU path (D3)."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest

import labelwood as lw
from cases import DISTINCT
from faults.bits import SURROUNDINGS, run
from labelwood import _core
from labelwood.recipes.methods import METHODS

pytestmark = pytest.mark.native
every_recipe = pytest.mark.parametrize("method", DISTINCT)


@cache
def plain(method: str) -> dict[str, Any]:
    return run(method)


@every_recipe
@pytest.mark.parametrize("name", [name for name in SURROUNDINGS if name != "plain"])
def test_surroundings_change_nothing(method, name):
    told = {"hash seed 99", "elsewhere"} if method == "xr-transformer" else {"hash seed 99"}
    if METHODS[method].recipe.encoder.on and name not in told:
        pytest.skip("torch takes seconds to start, and a few surroundings tell as much")
    assert run(method, **SURROUNDINGS[name]) == plain(method)


@every_recipe
def test_portable_path(method):
    """Its own bits for any number of threads; against the other path the same best label, scores within 1e-4.

    A fine-tuning starts from a linear solve and carries its last digits on, so an encoder's scores agree to 0.1 only.
    """
    near = 0.1 if METHODS[method].recipe.encoder.on else 1e-4
    one, many = (run(method, threads=threads, LABELWOOD_ISA="portable") for threads in (1, 7))
    assert one == many
    assert one["isa"] == "portable"
    for ours, theirs in zip(one["found"], plain(method)["found"], strict=True):
        assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=near)
        clear = len(theirs) < 2 or theirs[0][1] - theirs[1][1] > near
        assert not clear or ours[0][0] == theirs[0][0]


@pytest.mark.skipif(_core.isa() != "avx2", reason="this machine has one path only")
def test_the_two_paths_are_two():
    assert plain(lw.methods()[0])["isa"] == "avx2"
