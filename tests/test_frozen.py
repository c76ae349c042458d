"""M5: folders that an earlier release wrote open and predict as they did then (files/v1, frozen.py)."""

from __future__ import annotations

import json

import pytest

import frozen
import labelwood as lw
from labelwood import _core

LINEAR = [*frozen.LINEAR, frozen.ENSEMBLE]


@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_of_the_past_predict_the_same_bits(name):
    expected = frozen.recorded()[name]
    assert set(expected) == set(frozen.PATHS)
    assert frozen.predictions(name) == expected[_core.isa()]


@pytest.mark.native  # a build with sanitizers contracts sums in another way
@pytest.mark.parametrize("name", LINEAR)
def test_linear_models_of_the_past_predict_alike_in_any_build(name):
    for ours, theirs in zip(frozen.predictions(name), frozen.recorded()[name][_core.isa()], strict=True):
        assert [score for _, score in ours] == pytest.approx([score for _, score in theirs], abs=1e-4)


@pytest.mark.native
@pytest.mark.parametrize("method", frozen.NEURAL)
def test_networks_of_the_past_predict_the_same_labels(method):
    if method.startswith("onnx"):
        pytest.importorskip("onnxruntime")
    else:
        pytest.importorskip("torch")
    assert frozen.alike(frozen.predictions(method), frozen.recorded()[method]["any"])


def test_frozen_folders_are_of_the_schema_that_their_place_names():
    for name in frozen.NAMES:
        manifest = json.loads((frozen.FOLDER / name / "labelwood.json").read_text(encoding="utf-8"))
        assert manifest["schema"] == 1, name


def test_frozen_folders_stay_small():
    size = sum(path.stat().st_size for path in frozen.FOLDER.rglob("*") if path.is_file())
    assert size < 3 * 2**20


def test_members_of_a_frozen_ensemble():
    assert [member.recipe.method for member in lw.load(frozen.FOLDER / "ensemble").members] == ["xr-linear", "plt"]
