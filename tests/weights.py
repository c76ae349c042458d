"""Digests of the weight files of every recipe on a small fixed set: what a change of the code's shape must not change.

    python tests/weights.py              linear recipes: compares with tests/files/weights.json
    python tests/weights.py --write      writes that table anew, for the instruction set at hand
    python tests/weights.py --neural     prints those of recipes with an encoder: two commits, one sitting, one machine

Bits are promised for one kind of CPU, so the table has a part for each instruction set of the core
(LABELWOOD_ISA=portable forces the plain one). Those of networks depend on torch and the machine and are not kept.
"""

from __future__ import annotations

import json
import os
import sys
import tempfile
import warnings
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parent
TABLE = TESTS / "files" / "weights.json"
TAXONOMY = {f"label{i}": f"group{i % 5}" for i in range(40)} | {f"group{i}": "all" for i in range(5)}
DEEP = {"tree.leaf": 4, "tree.branch": 2}

LINEAR: dict[str, dict[str, Any]] = {
    "xr-linear": {},
    "xr-linear fast": {"preset": "fast"},
    "xr-linear ensemble": {"preset": "ensemble"},
    "xr-linear tail": {"preset": "tail"},
    "xr-linear deep": {"settings": DEEP},
    "xr-linear deep union": {"settings": {**DEEP, "shortlist.source": "union", "shortlist.parents": 3}},
    "xr-linear kway": {"settings": {**DEEP, "tree.split": "kway", "tree.branch": 4}},
    "xr-linear costs": {"settings": {**DEEP, "linear.relevance": "induce", "linear.cp": 4.0}},
    "xr-linear pw": {"settings": {**DEEP, "linear.weighting": "pw"}},
    "xr-linear cooccurrence": {"settings": {**DEEP, "labels.kind": "both"}},
    "xr-linear walks": {"settings": {**DEEP, "labels.walks": 20}},
    "xr-linear words and characters": {"settings": {"tfidf.chars": (3, 4), "tfidf.words": (1, 2)}},
    "xr-linear taxonomy": {"taxonomy": TAXONOMY},
    "parabel": {"method": "parabel", "settings": {"tree.leaf": 4}},
    "bonsai": {"method": "bonsai", "settings": {"tree.leaf": 4, "tree.branch": 6}},
    "bonsai large": {"method": "bonsai", "preset": "large", "settings": {"tree.leaf": 3, "tree.branch": 3}},
    "plt": {"method": "plt", "settings": {"tree.leaf": 4}},
    "dismec": {"method": "dismec"},
    "dismec newton": {"method": "dismec", "settings": {"linear.solver": "newton", "linear.start": "mean-separating"}},
    "dismec proximal": {"method": "dismec", "settings": {"linear.solver": "proximal"}},
    "dismec shortlist": {"method": "dismec", "preset": "shortlist", "settings": {"tree.leaf": 4}},
    "features": {"features": True, "settings": DEEP},
}

SHORT = {"finetune.epochs": 1, "finetune.checks": 1}
LEVELS = {"coarse.levels": (4,), **SHORT}
NEURAL: dict[str, dict[str, Any]] = {
    "frozen encoder": {"method": "parabel", "settings": {"encoder.model": "minilm", "tree.leaf": 4}},
    "frozen encoder alone": {
        "method": "dismec", "settings": {"encoder.model": "minilm", "encoder.features": "embedding"},
    },
    "xr-transformer": {"method": "xr-transformer", "settings": {**LEVELS, "tree.leaf": 4, "tree.branch": 2}},
    "xr-transformer refine=false": {"method": "xr-transformer", "settings": {**LEVELS, "levelwise.refine": False}},
    "xr-transformer three levels": {
        "method": "xr-transformer", "settings": {**SHORT, "coarse.levels": (3, 9), "levelwise.matcher": "average"},
    },
    "xr-transformer onnx": {"method": "xr-transformer", "settings": {**LEVELS, "encoder.runtime": "onnx-int8"}},
    "xr-transformer runs": {"method": "xr-transformer", "settings": {**LEVELS, "ensemble.runs": 2}},
    "cascadexml": {"method": "cascadexml", "settings": LEVELS},
    "cascadexml three levels": {"method": "cascadexml", "settings": {**SHORT, "coarse.levels": (3, 9)}},
    "cascadexml tree": {"method": "cascadexml", "settings": {**LEVELS, "ranker": "tree"}},
    "cascadexml none": {"method": "cascadexml", "settings": {**LEVELS, "ranker": "none"}},
    "cascadexml onnx": {"method": "cascadexml", "settings": {**LEVELS, "encoder.runtime": "onnx"}},
    "cascadexml start": {
        "method": "cascadexml",
        "settings": {**LEVELS, "linear.start": "network", "linear.solver": "newton"},
    },
    "x-transformer": {"method": "x-transformer", "settings": SHORT},
    "x-transformer words": {"method": "x-transformer", "settings": {**SHORT, "encoder.features": "words"}},
    "x-transformer neural labels": {"method": "x-transformer", "settings": {**SHORT, "labels.kind": "pifa-neural"}},
    "x-transformer label texts": {"method": "x-transformer", "settings": {**SHORT, "labels.kind": "text-neural"}},
    "lightxml": {"method": "lightxml", "settings": SHORT},
    "lightxml groups": {"method": "lightxml", "preset": "groups", "settings": {**SHORT, "joint.maps": (0, 8)}},
    "attentionxml": {"method": "attentionxml", "settings": {**SHORT, "encoder.hidden": 8}},
    "attentionxml levels": {"method": "attentionxml", "settings": {**LEVELS, "encoder.hidden": 8}},
    "attentionxml none": {"method": "attentionxml", "settings": {**LEVELS, "encoder.hidden": 8, "ranker": "none"}},
}  # fmt: skip


def texts_and_labels() -> tuple[list[str], list[list[str]]]:
    """Noise, where every random choice shows, and documents with a right answer."""
    from toy import contract_set, noisy_set

    noise, answers = noisy_set(8, docs=120, labels=40), contract_set()
    return [*noise[0], *answers[0]], [*noise[1], *answers[1]]


def digests(options: dict[str, Any]) -> dict[str, str]:
    """The content digest of each file that a training writes, but the manifest, by part."""
    import numpy as np

    import labelwood as lw

    options, (texts, labels) = dict(options), texts_and_labels()
    given: dict[str, Any] = {"data": texts}
    if options.pop("features", False):
        rng = np.random.default_rng(3)
        given = {"X": rng.normal(size=(len(texts), 12)).astype(np.float32)}
    with warnings.catch_warnings(), tempfile.TemporaryDirectory() as folder:
        warnings.simplefilter("ignore")
        lw.train(**given, labels=labels, **options).save(folder)
        manifest = json.loads((Path(folder) / "labelwood.json").read_text(encoding="utf-8"))
    names = {part: entry["name"] for part, entry in manifest["files"].items()}
    return {part: name.removesuffix(".safetensors")[-16:] for part, name in sorted(names.items())}


def recorded() -> dict[str, dict[str, dict[str, str]]]:
    """The table: instruction set → case → part → digest."""
    found: dict[str, dict[str, dict[str, str]]] = json.loads(TABLE.read_text(encoding="utf-8"))
    return found


def main() -> None:
    sys.path.insert(0, str(TESTS))
    from labelwood import _core

    if "--neural" in sys.argv:
        import tiny

        with tempfile.TemporaryDirectory() as folder:
            os.environ["LABELWOOD_ENCODER"] = str(tiny.write(Path(folder) / "encoder"))
            for name, options in NEURAL.items():
                print(json.dumps({name: digests(options)}), flush=True)
        return
    now = {name: digests(options) for name, options in LINEAR.items()}
    table = recorded() if TABLE.exists() else {}
    if "--write" in sys.argv:
        table[_core.isa()] = now
        TABLE.write_text(json.dumps(table, indent=1, sort_keys=True) + "\n", encoding="utf-8")
    for name, found in now.items():
        print("same" if table[_core.isa()].get(name) == found else "CHANGED", name)


if __name__ == "__main__":
    main()
