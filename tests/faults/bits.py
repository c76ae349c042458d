"""Trains a recipe in fresh processes under varied surroundings and compares the models' SHA-256 (goals D1-D3).

    python tests/faults/bits.py METHOD         one JSON line: digest of the model folder, predictions, instruction set

The model must not depend on threads, hash seed, locale, time zone, working folder or umask. Instruction sets may differ
in bits, not in answers.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

TESTS = Path(__file__).resolve().parents[1]
SURROUNDINGS: dict[str, dict[str, Any]] = {
    "plain": {},
    "2 threads": {"threads": 2},
    "3 threads": {"threads": 3},
    "16 threads": {"threads": 16},
    "hash seed 1": {"PYTHONHASHSEED": "1"},
    "hash seed 99": {"PYTHONHASHSEED": "99", "threads": 7},
    "C locale": {"LC_ALL": "C", "LANG": "C", "PYTHONUTF8": "0"},
    "Turkish": {"LC_ALL": "tr_TR.UTF-8", "TZ": "Asia/Tokyo"},
    "German": {"LC_ALL": "de_DE.UTF-8", "LC_NUMERIC": "de_DE.UTF-8"},
    "elsewhere": {"cwd": "/", "umask": 0o077},
}


def train_here(method: str, threads: int) -> dict[str, Any]:
    """What a child process does."""
    sys.path.insert(0, str(TESTS))
    import labelwood as lw
    from cases import acting
    from contract import digest
    from labelwood import _core
    from labelwood.recipes.methods import METHODS
    from toy import contract_set, noisy_set

    noise, answers = noisy_set(8, docs=80, labels=50), contract_set()
    data = [*noise[0], *answers[0]], [*noise[1], *answers[1]]
    settings = {"tree.leaf": 20, "tree.branch": 2, "shortlist.source": "predicted", "shortlist.parents": 2}
    settings = acting(settings, method)
    if METHODS[method].recipe.encoder.on:  # short, and of so little work that one thread does it
        settings |= acting({"finetune.epochs": 1, "finetune.checks": 1, "encoder.hidden": 16}, method)
    model = lw.train(*data, method=method, settings=settings, threads=threads)
    with tempfile.TemporaryDirectory() as folder:
        model.save(Path(folder) / "model")
        found = digest(Path(folder) / "model")
    return {"sha256": found, "isa": _core.isa(), "found": model.predict(data[0], k=5, threads=threads)}


def run(
    method: str, *, threads: int = 1, cwd: str | None = None, umask: int | None = None, **env: str
) -> dict[str, Any]:
    """The same in a fresh process with other surroundings."""
    command = [sys.executable, __file__, method, str(threads)]
    before = None if umask is None else (lambda: os.umask(umask) and None)
    done = subprocess.run(
        command, env={**os.environ, **env}, cwd=cwd, preexec_fn=before, capture_output=True, text=True, check=True
    )
    found: dict[str, Any] = json.loads(done.stdout)
    return found


if __name__ == "__main__":
    print(json.dumps(train_here(sys.argv[1], int(sys.argv[2]) if len(sys.argv) > 2 else 1)))
