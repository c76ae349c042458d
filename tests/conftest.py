"""Settings every test shares."""

from __future__ import annotations

import importlib.util
import os
import tempfile
from pathlib import Path

import hypothesis

import tiny

hypothesis.settings.register_profile("labelwood", deadline=None, print_blob=True)
hypothesis.settings.load_profile("labelwood")

# The default encoder of all tests: what `minilm` means is whatever this folder holds. Where torch is not installed, as
# in the sanitizer build, what needs it is left out.
HAS_TORCH = importlib.util.find_spec("torch") is not None
_FOLDER = tempfile.TemporaryDirectory(prefix="labelwood-tiny-")
if HAS_TORCH:
    os.environ["LABELWOOD_ENCODER"] = str(tiny.write(Path(_FOLDER.name) / "encoder"))
    os.environ["HF_HUB_OFFLINE"] = "1"
else:
    collect_ignore = ["test_neural.py", "test_onnx.py"]
