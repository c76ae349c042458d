"""The scoreboard's Markdown: one table of all rows, then for every peer row our best setting of the same quality.

The bars: P@5 at least the peer's - 0.1, and then training in a quarter of its time, three times its documents a second,
a third of its latency (a fifth when the query is raw text), half its size on disk, and no more memory above X and Y
than the leanest peer takes.
"""

from __future__ import annotations

import statistics
from collections.abc import Callable
from typing import Any

Result = dict[str, Any]

# heading, key, format
COLUMNS = (
    ("train s", "train s", ".1f"),
    ("train CPU s", "train CPU s", ".1f"),
    ("MB above X+Y", "peak MB", ".0f"),
    ("model MB", "model MB", ".1f"),
    ("load s", "load s", ".3f"),
    ("docs/s", "docs/s", ",.0f"),
    ("CPU ms/doc", "CPU ms/doc", ".3f"),
    ("one query ms", "one ms", ".3f"),
    ("p99", "one p99 ms", ".3f"),
    ("from text ms", "text ms", ".3f"),
    ("p99", "text p99 ms", ".3f"),
    *((f"{m}@{k}", f"{m}@{k}", ".2f") for m in ("P", "PSP") for k in (1, 3, 5)),
)

# heading, key, how many times better ours must be, ratio of (ours, theirs)
BARS: tuple[tuple[str, str, float, Callable[[float, float], float]], ...] = (
    ("training", "train s", 4.0, lambda ours, theirs: theirs / ours),
    ("batch", "docs/s", 3.0, lambda ours, theirs: ours / theirs),
    ("one query", "one ms", 3.0, lambda ours, theirs: theirs / ours),
    ("from text", "text ms", 5.0, lambda ours, theirs: theirs / ours),
    ("disk", "model MB", 2.0, lambda ours, theirs: theirs / ours),
)
NEAR = 0.1  # points of P@5


def median(runs: list[Result]) -> Result:
    """Number by number over the repeats; a row that ran over its limit once, or failed, is shown as such."""
    bad = [run for run in runs if "over" in run or "error" in run]
    if bad:
        return bad[0]
    keys = [key for key, value in runs[0].items() if isinstance(value, int | float)]
    return {key: statistics.median(run[key] for run in runs if key in run) for key in keys}


def table(results: dict[str, Result]) -> str:
    """All rows."""
    lines = ["| row | " + " | ".join(heading for heading, _, _ in COLUMNS) + " |", "|---" * (len(COLUMNS) + 1) + "|"]
    for name, result in results.items():
        lines.append(f"| {name} | " + " | ".join(_cell(result, key, form) for _, key, form in COLUMNS) + " |")
    return "\n".join(lines)


def _cell(result: Result, key: str, form: str) -> str:
    """A number; where there is none, why: the first one missing says whether time ran out or the row failed."""
    if key in result:
        return format(result[key], form)
    if key == next(k for _, k, _ in COLUMNS if k not in result):
        return f"> {result['over']}" if "over" in result else "failed" if "error" in result else "–"
    return "–"


def ratios(results: dict[str, Result], ours: list[str]) -> str:
    """For every peer row the setting of ours that clears most bars, and by how much; ✓ or ✗ says whether it does."""
    peers = [name for name in results if name not in ours]
    memory = [results[name]["peak MB"] for name in peers if "peak MB" in results[name]]
    lines = [
        "| against | ours | ΔP@5 | " + " | ".join(f"{h} ≥ {bar:g}×" for h, _, bar, _ in BARS) + " | memory ≤ leanest |",
        "|---" * (len(BARS) + 4) + "|",
    ]
    for peer in peers:
        theirs = results[peer]
        if "P@5" not in theirs:
            lines.append(f"| {peer} | – | – |" + " – |" * (len(BARS) + 1))
            continue
        equal = [name for name in ours if results[name].get("P@5", -1.0) >= theirs["P@5"] - NEAR]
        if not equal:
            lines.append(f"| {peer} | none reaches P@5 {theirs['P@5'] - NEAR:.2f} ✗ | – |" + " – |" * (len(BARS) + 1))
            continue
        chosen = max(equal, key=lambda name: _rank(results[name], theirs))
        marks = [_mark(results[chosen], theirs, *bar[1:]) for bar in BARS]
        marks.append(_memory(results[chosen], min(memory)))
        gap = results[chosen]["P@5"] - theirs["P@5"]
        lines.append(f"| {peer} | {chosen} | {gap:+.2f} | " + " | ".join(marks) + " |")
    return "\n".join(lines)


def _rank(ours: Result, theirs: Result) -> tuple[int, float]:
    """Bars cleared, then the product of the ratios' shortfalls."""
    found = [ratio(ours[key], theirs[key]) / bar for _, key, bar, ratio in BARS if key in ours and key in theirs]
    shortfall = 1.0
    for value in found:
        shortfall *= min(value, 1.0)
    return sum(value >= 1 for value in found), shortfall


def _mark(ours: Result, theirs: Result, key: str, bar: float, ratio: Callable[[float, float], float]) -> str:
    if key not in ours or key not in theirs:
        return "–"
    value = ratio(ours[key], theirs[key])
    return f"{value:.1f}× {'✓' if value >= bar else '✗'}"


def _memory(ours: Result, leanest: float) -> str:
    return f"{ours['peak MB']:.0f} of {leanest:.0f} MB {'✓' if ours['peak MB'] <= leanest else '✗'}"
