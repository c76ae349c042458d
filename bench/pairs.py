"""Two checkouts of labelwood beside each other: CPU time of training and of bulk prediction, in interleaved pairs.

    LABELWOOD_DATA=… python bench/pairs.py --before ../before/.venv/bin/python --data debian-deps eurlex57k

Both read the same prepared X and Y. The machine drifts, so each pair runs one after the other, the first of them in
turns, and what is told is the median of the pairs' ratios.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
from pathlib import Path
from statistics import median

from prepare import prepare

HERE = Path(__file__).parent
ROWS = {
    "xr-linear": {},
    "xr-linear fast": {"preset": "fast"},
    "xr-linear tail": {"preset": "tail"},
    "xr-linear three trees": {"preset": "ensemble"},
}
TIMES = ("training", "prediction")


def measured(python: str, data: Path, options: dict[str, str], threads: int) -> dict[str, float]:
    """One run of one side."""
    command = [python, str(HERE / "sides" / "pair_labelwood.py"), str(data), json.dumps(options), str(threads)]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    found: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return found


def main() -> None:
    asked = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    asked.add_argument("--before", required=True, help="the other checkout's Python")
    asked.add_argument("--data", nargs="+", default=["debian-deps", "eurlex57k"])
    asked.add_argument("--rows", nargs="+", default=list(ROWS), choices=list(ROWS))
    asked.add_argument("--pairs", type=int, default=9)
    asked.add_argument("--threads", type=int, default=2)
    asked.add_argument("--cache", type=Path, default=HERE / "cache")
    options = asked.parse_args()
    print("| data | row | time | before | now | now / before | lowest–highest | P@1, P@5 before | now |")
    print("|---|---|---|---|---|---|---|---|---|")
    for name in options.data:
        folder = prepare(name, options.cache, options.threads)
        for row in options.rows:
            pairs = []
            for turn in range(options.pairs):
                sides = [options.before, sys.executable]
                order = sides if turn % 2 == 0 else sides[::-1]
                found = {python: measured(python, folder, ROWS[row], options.threads) for python in order}
                pairs.append((found[options.before], found[sys.executable]))
            for time in TIMES:
                ratios = sorted(now[time] / before[time] for before, now in pairs)
                spans = [median(side[time] for side in both) for both in zip(*pairs, strict=True)]
                quality = [f"{side['P@1']:.2f}, {side['P@5']:.2f}" for side in pairs[0]]
                print(
                    f"| {name} | {row} | {time} | {spans[0]:.2f} s | {spans[1]:.2f} s | {median(ratios):.3f} | "
                    f"{ratios[0]:.3f}–{ratios[-1]:.3f} | {quality[0]} | {quality[1]} |",
                    flush=True,
                )


if __name__ == "__main__":
    main()
