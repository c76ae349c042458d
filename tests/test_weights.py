"""Weight files of every linear recipe are those of the table that is committed: moving code must not change a bit."""

from __future__ import annotations

import pytest

import weights
from labelwood import _core


@pytest.mark.parametrize("name", weights.LINEAR)
def test_weight_files_are_those_of_the_table(name):
    assert weights.digests(weights.LINEAR[name]) == weights.recorded()[_core.isa()][name]


def test_the_table_has_every_case_for_every_instruction_set():
    assert {isa: set(cases) for isa, cases in weights.recorded().items()} == {
        isa: set(weights.LINEAR) for isa in ("portable", "avx2")
    }
