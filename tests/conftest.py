"""Settings every test shares."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import random
import re
import tempfile
from pathlib import Path

import hypothesis
import pytest

import tiny
from labelwood.base.config import with_settings
from labelwood.recipes.methods import METHODS

hypothesis.settings.register_profile("labelwood", deadline=None, print_blob=True)
hypothesis.settings.load_profile("labelwood")

for _name, _smaller in tiny.SMALLER.items():  # test_contract.py trains them as they are shipped, too
    tiny.SHIPPED[_name] = METHODS[_name]
    METHODS[_name] = dataclasses.replace(METHODS[_name], recipe=with_settings(METHODS[_name].recipe, _smaller))

os.environ.setdefault("OMP_WAIT_POLICY", "PASSIVE")  # torch's threads wait asleep: other tests are at work beside them

# The default encoder of all tests: what `minilm` means is whatever this folder holds. Where torch is not installed, as
# in the sanitizer build and in `make test-linear`, what needs it is left out here and nowhere else: test files that
# import torch or a room that needs it, and (below) the neural recipes of tests that run on every recipe.
HAS_TORCH = importlib.util.find_spec("torch") is not None
_FOLDER = tempfile.TemporaryDirectory(prefix="labelwood-tiny-")
if HAS_TORCH:
    os.environ["LABELWOOD_ENCODER"] = str(tiny.write(Path(_FOLDER.name) / "encoder"))
    os.environ["HF_HUB_OFFLINE"] = "1"
else:
    _ROOMS = r"from labelwood\.(?:neural|evaluation|planning\.timing|pipeline\.networks)"
    _NEEDS = re.compile(rf"^(import torch|from torch|{_ROOMS}|from small|import small)\b", re.MULTILINE)
    _FILES = Path(__file__).parent.glob("test_*.py")
    collect_ignore = [file.name for file in _FILES if _NEEDS.search(file.read_text(encoding="utf-8"))]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Where torch is not installed, recipes with an encoder are left out of tests that run on every recipe.

    TEST_ORDER=7 in the environment shuffles all tests by that seed: none may lean on those before it.
    """
    if order := os.environ.get("TEST_ORDER"):
        random.Random(int(order)).shuffle(items)
    for item in items:
        method = getattr(item, "callspec", None) and item.callspec.params.get("method")
        if not HAS_TORCH and method in METHODS and METHODS[method].recipe.encoder.on:
            item.add_marker(pytest.mark.skip(reason="torch is not installed"))
