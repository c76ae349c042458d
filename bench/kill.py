"""Kill a training at random moments, continue it, and compare the bytes with those of a run that was left alone.

    python bench/kill.py --kills 10 -- TRAIN.jsonl --method xr-transformer --set finetune.steps=20 …

What follows `--` is given to `labelwood train` as it is. One line for each kill: when, what was kept, and whether the
bytes are the same; ends with an error if any differs.
"""

from __future__ import annotations

import argparse
import hashlib
import random
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from pathlib import Path


def digest(folder: Path) -> str:
    found = hashlib.sha256()
    for path in sorted(folder.iterdir()):
        found.update(path.name.encode() + b"\0" + path.read_bytes())
    return found.hexdigest()[:16]


def run(command: list[str], kill_after: float | None = None) -> bool:
    """Run to the end, or until it is killed with all its threads; true if it ended by itself."""
    process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    try:
        return process.wait(kill_after) == 0
    except subprocess.TimeoutExpired:
        process.send_signal(signal.SIGKILL)
        process.wait()
        return False


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--kills", type=int, default=10)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("train", nargs="+")
    options = parser.parse_args()
    base = [sys.executable, "-m", "labelwood", "train", *options.train]
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        start = time.monotonic()
        assert run([*base, "--model", str(folder / "whole")]), "the undisturbed run failed"
        seconds, expected = time.monotonic() - start, digest(folder / "whole")
        print(f"undisturbed: {seconds:.0f} s, {expected}", flush=True)
        draw, wrong = random.Random(options.seed), 0
        for turn in range(options.kills):
            model, after = folder / f"{turn}", draw.uniform(0.05, 1.0) * seconds
            command = [*base, "--model", str(model)]
            ended = run(command, after)
            kept = sorted(p.name.rpartition("-")[0] for p in (folder / f"{turn}.work").glob("*-*"))
            start = time.monotonic()
            done = ended or run([*command, "--resume"])
            same = done and digest(model) == expected
            wrong += not same
            print(
                f"killed after {after:.1f} s, kept {', '.join(kept) or 'nothing'}; continued in "
                f"{time.monotonic() - start:.0f} s: {'the same bytes' if same else 'DIFFERENT'}",
                flush=True,
            )
            for path in (model, folder / f"{turn}.work"):
                shutil.rmtree(path, ignore_errors=True)
    raise SystemExit(wrong)


if __name__ == "__main__":
    main()
