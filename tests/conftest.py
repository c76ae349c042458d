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

# As small as the encoder below: the LSTM that starts from nothing.
SMALL_LSTM = {"encoder.hidden": 16, "finetune.epochs": 2, "finetune.checks": 2}
tiny.SHIPPED["attentionxml"] = METHODS["attentionxml"]
METHODS["attentionxml"] = dataclasses.replace(
    METHODS["attentionxml"], recipe=with_settings(METHODS["attentionxml"].recipe, SMALL_LSTM)
)

# The default encoder of all tests: what `minilm` means is whatever this folder holds. Where torch is not installed, as
# in the sanitizer build, what needs it is left out.
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
