"""Model folders as a past release wrote them, with what it predicted by them: this release must open them for ever.

    python tests/frozen.py          compares the predictions of tests/files/v1 with those that are recorded
    python tests/frozen.py --write  trains and records them anew: only ever with the release whose format they freeze

Linear scores are recorded for each instruction set, and are equal bit for bit; those of networks are recorded once, and
agree to 1e-4 with the same best five labels.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
FOLDER = TESTS / "files" / "v1"
RECORDED = "predictions.json"
PATHS = ("portable", "avx2")
K = 5
TEXTS = [
    "word3 unheard words", "UNHEARD, Word11!", "word7 word2", "word0 word5 word9 filler1", "common", "",
    "word1 word1 word6 common filler2", "Ein Satz ohne ein bekanntes Wort: äöü 123",
]  # fmt: skip
SHORT: dict[str, Any] = {"finetune.epochs": 2, "finetune.checks": 1}
TWO_LEVELS: dict[str, Any] = {**SHORT, "coarse.levels": (4,)}
LINEAR: dict[str, dict[str, Any]] = {
    "xr-linear": {"settings": {"tree.leaf": 2, "tree.branch": 2}},
    "parabel": {"method": "parabel", "settings": {"tree.leaf": 2}},
    "dismec": {"method": "dismec"},
    "plt": {"method": "plt", "settings": {"tree.leaf": 2}},
    "tail": {"preset": "tail", "settings": {"linear.weights": "int8"}, "label_texts": {"label3": "three, ä"}},
}
NEURAL: dict[str, dict[str, Any]] = {
    "xr-transformer": {"method": "xr-transformer", "settings": {**TWO_LEVELS, "tree.leaf": 4, "tree.branch": 2}},
    "cascadexml": {"method": "cascadexml", "settings": TWO_LEVELS},
    "attentionxml": {"method": "attentionxml", "settings": {**TWO_LEVELS, "encoder.hidden": 8}},
    "onnx": {"method": "xr-transformer", "settings": {**TWO_LEVELS, "encoder.runtime": "onnx"}},
    "onnx-int8": {"method": "xr-transformer", "settings": {**TWO_LEVELS, "encoder.runtime": "onnx-int8"}},
}
ENSEMBLE = "ensemble"  # of xr-linear and plt
NAMES = (*LINEAR, ENSEMBLE, *NEURAL)


def predictions(name: str) -> list[list[list[Any]]]:
    """What the folder predicts now: for each text its labels with their scores."""
    import labelwood as lw

    return [[[label, score] for label, score in row] for row in lw.load(FOLDER / name).predict(TEXTS, k=K, threads=1)]


def recorded() -> dict[str, dict[str, Any]]:
    """The predictions of the release that wrote the folders: folder → instruction set, or "any" → predictions."""
    found: dict[str, dict[str, Any]] = json.loads((FOLDER / RECORDED).read_text(encoding="utf-8"))
    return found


def alike(ours: list[list[list[Any]]], theirs: list[list[list[Any]]]) -> bool:
    """Do two networks' predictions have the same labels, and scores that agree to 1e-4?"""
    for our_row, their_row in zip(ours, theirs, strict=True):
        near = all(abs(a - b) <= 1e-4 for (_, a), (_, b) in zip(our_row, their_row, strict=True))
        if not near or {label for label, _ in our_row} != {label for label, _ in their_row}:
            return False
    return True


def _train(name: str, options: dict[str, Any]) -> None:
    import labelwood as lw
    from toy import contract_set

    texts, labels = contract_set()
    lw.train(texts, labels, run=lw.Run(1), **options).save(FOLDER / name)


def write() -> None:
    """Train the models and record what they predict, on each instruction set that this machine has."""
    import labelwood as lw
    import tiny

    shutil.rmtree(FOLDER, ignore_errors=True)
    FOLDER.mkdir(parents=True)
    for name, options in LINEAR.items():
        _train(name, options)
    lw.Ensemble([lw.load(FOLDER / name) for name in ("xr-linear", "plt")]).save(FOLDER / ENSEMBLE)
    with tempfile.TemporaryDirectory() as folder, warnings.catch_warnings():
        warnings.simplefilter("ignore")
        os.environ["LABELWOOD_ENCODER"] = str(tiny.write(Path(folder) / "encoder"))
        for name, options in NEURAL.items():
            _train(name, options)
    table: dict[str, dict[str, Any]] = {name: {} for name in NAMES}
    for path in PATHS:
        told = subprocess.run(
            [sys.executable, __file__, "--tell"], env={**os.environ, "LABELWOOD_ISA": path}, check=True,
            capture_output=True, text=True,
        )  # fmt: skip
        for name, found in json.loads(told.stdout).items():
            table[name]["any" if name in NEURAL else path] = found
    (FOLDER / RECORDED).write_text(json.dumps(table, indent=1) + "\n", encoding="utf-8")


def main() -> None:
    sys.path.insert(0, str(TESTS))
    from labelwood import _core

    if "--tell" in sys.argv:
        print(json.dumps({name: predictions(name) for name in NAMES}))
        return
    if "--write" in sys.argv:
        write()
    table = recorded()
    for name in NAMES:
        now = predictions(name)
        same = alike(now, table[name]["any"]) if name in NEURAL else now == table[name].get(_core.isa())
        print("same" if same else "other", name)


if __name__ == "__main__":
    main()
