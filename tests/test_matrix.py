"""Every method with every setting: it trains, saves, loads and predicts the same, or is refused before any work.

On each commit every setting once per method, and what cannot act. `make matrix` tries all values drawn, lists by level,
and every pair of settings of different parts, by a covering array without randomness.
"""

from __future__ import annotations

import os

import pytest

import labelwood as lw
from cases import acting
from labelwood.base.config import idle, with_settings
from labelwood.recipes.methods import METHODS
from matrix import (
    LISTS,
    SMALL,
    TEXTS,
    base,
    by_level,
    covering,
    goes_together,
    refusal,
    rows,
    smallest,
    tried,
    values,
    weights,
)

FULL = bool(os.environ.get("MATRIX"))  # make matrix
SECTIONS = tuple(dict.fromkeys(path.rpartition(".")[0] for path in rows("xr-linear")))


@pytest.fixture(autouse=True)
def _no_waiting_for_disks(monkeypatch):
    """Thousands of models are saved here and thrown away."""
    monkeypatch.setattr("os.fsync", lambda _: None)


@pytest.mark.parametrize("section", SECTIONS)
@pytest.mark.parametrize("method", METHODS)
def test_every_setting_trains_or_is_refused(method, section):
    results = {"trained": 0, "refused": 0}
    for path in rows(method):
        if path.rpartition(".")[0] != section:
            continue
        drawn = [*values(method, path), *by_level(method, path)] if FULL else values(method, path)[:1]
        for value in drawn:
            try:
                results[tried(method, {path: value})] += 1
            except Exception as error:
                raise AssertionError(f"{method} with {path} = {value!r}: {error}") from error
    print(method, section, results)


@pytest.mark.parametrize("method", METHODS)
def test_what_cannot_act_changes_nothing(method):
    """What a user may not set would not change a bit, so that it can be dropped where it stands."""
    recipe = base(method, {})
    expected = weights(recipe)
    for path in idle(recipe):
        for value in values(method, path)[: 2 if FULL else 1]:
            said = refusal(method, {path: value})
            changed = with_settings(recipe, {path: value})
            if path not in idle(changed):  # it makes itself act
                continue
            assert said is not None
            assert f"{path} = " in said
            if "cannot act" in said and goes_together(changed):
                assert weights(changed) == expected, (path, value)


# Combinations that a run of all pairs has found wrong, each as few settings as show it.
FOUND = [
    ("xr-transformer", {"finetune.order": "joint", "encoder.pooling": "pooler", "encoder.runtime": "onnx"}),
    ("xr-transformer", {"finetune.order": "joint", "encoder.pooling": "pooler", "encoder.runtime": "onnx-int8"}),
    ("lightxml", {"encoder.layer": 0}),
    ("x-transformer", {"coarse.kind": "unbalanced"}),
    ("x-transformer", {"coarse.kind": "unbalanced", "coarse.depth": 2}),
    ("cascadexml", {"encoder.engine": "bilstm", "joint.layers": ("1+2",)}),
    ("cascadexml", {"coarse.kind": "unbalanced", "joint.layers": ("1", "2")}),
    ("cascadexml", {"ranker": "tree", "linear.cp": (1.0, 2.0, 3.0, 4.0), "tree.levels": (2, 4, 6)}),
]


@pytest.mark.parametrize(("method", "settings"), FOUND)
def test_what_the_matrix_has_found_stays_mended(method, settings):
    assert tried(method, settings) in {"trained", "refused"}


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("cascadexml", {"linear.start": "network", "linear.solver": "newton"}),
        ("cascadexml", {"linear.cp": (1.0, 2.0), "coarse.levels": (4,)}),
        ("xr-transformer", {"levelwise.refine": False, "linear.cp": (1.0, 2.0), "coarse.levels": (4,)}),
        ("x-transformer", {"labels.kind": "text-neural", "encoder.features": "words"}),
    ],
)
def test_what_trains_can_be_planned(method, settings):
    """A plan trains samples on words alone, where a network's settings have no place."""
    assert tried(method, settings) == "trained"
    assert lw.plan(TEXTS, LISTS, method=method, settings=acting(SMALL, method, settings)).memory > 0


@pytest.mark.skipif(not FULL, reason="make matrix")
@pytest.mark.parametrize("method", METHODS)
def test_every_pair_of_parts_trains_or_is_refused(method):
    """Pairs that clash are refused one by one, with a way out; rows of the array cover the others."""
    array, refused = covering(method)
    print(f"{method}: {len(array)} rows cover all pairs, {len(refused)} pairs are refused")
    failed = []
    for settings in array:
        try:
            tried(method, settings)
        except Exception as error:
            failed.append(f"{smallest(method, settings)}: {error}")
    assert not failed, "\n".join(failed)
