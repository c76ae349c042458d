"""The scoreboard: labelwood beside PECOS, omikuji, napkinXC and LibMultiLabel. `make bench` installs and runs them all.

    LABELWOOD_DATA=/path/to/data .venv/bin/python bench/scoreboard.py --data debian-deps eurlex57k --out bench/cache/out

Everybody gets the same matrix, the same threads, a process of its own, one at a time. PECOS takes turns with labelwood
(--repeats times; medians), the others run once and are kept by release, settings and data. What goes over a limit is
killed and shown as "> 15 min". Every finished cell is kept, so the same command goes on after an interruption. Writes
one table in Markdown and everything in JSON for each set.
"""

from __future__ import annotations

import argparse
import fnmatch
import json
import sys
import time
from pathlib import Path
from typing import Any

import labelwood as lw
from cells import Bench, Limits, Row, alone, end_with_children
from labelwood.errors import LabelwoodError
from labelwood.recipes.resolve import resolve
from prepare import prepare
from report import median, ratios, table


def ours(name: str, method: str, preset: str | None = None, **settings: object) -> Row:
    """A row of ours; dots of setting names are written as two underscores."""
    config: dict[str, Any] = {"method": method}
    if preset is not None:
        config["preset"] = preset
    if settings:
        config["settings"] = {key.replace("__", "."): value for key, value in settings.items()}
    return Row(f"labelwood {name}", "labelwood", config)


# Rows whose method, preset or settings this release does not have are left out.
OURS = (
    ours("xr-linear", "xr-linear"),
    ours("xr-linear fast", "xr-linear", "fast"),
    ours("xr-linear float32", "xr-linear", linear__weights="float32"),
    ours("xr-linear int8", "xr-linear", linear__weights="int8"),
    ours("xr-linear ens3", "xr-linear", "ensemble"),
    ours("xr-linear fast ens3", "xr-linear", "fast", ensemble__trees=3),
    ours("xr-linear tail", "xr-linear", "tail"),
    ours("parabel", "parabel"),
    ours("bonsai", "bonsai"),
    ours("plt", "plt"),
    ours("plt ens3", "plt", "ensemble"),
    ours("dismec", "dismec"),
)
PECOS = (
    Row("pecos default", "pecos", {"splits": 16}),
    Row("pecos k32", "pecos", {"splits": 32}),
    Row("pecos ens3", "pecos", {"splits": 16, "seeds": [0, 1, 2]}),
)
OTHERS = (
    Row("omikuji parabel", "omikuji"),
    Row("omikuji bonsai", "omikuji", {"cluster_balanced": False, "cluster_k": 100, "max_depth": 3}),
    Row("napkinxc plt", "napkinxc", {"model": "PLT"}),
    Row("napkinxc br", "napkinxc", {"model": "BR"}),
    Row("libmultilabel tree", "libmultilabel", {"model": "tree"}),
    Row("libmultilabel 1vsrest", "libmultilabel", {"model": "1vsrest"}),
)


def available(row: Row) -> bool:
    """Does this release have the row's method, preset and settings?"""
    config = row.config
    try:
        resolve(config["method"], preset=config.get("preset"), settings=config.get("settings"))
    except LabelwoodError as error:
        say(f"  left out: {row.name} ({str(error)[:80]})")
        return False
    return True


def say(text: str) -> None:
    print(f"{time.strftime('%H:%M:%S')} {text}", flush=True)


def run_cell(bench: Bench, row: Row, data: Path, turn: int = 0, beside: str = "") -> dict[str, Any]:
    """A cell, with a line on what it is and what came out."""
    start = time.perf_counter()
    result, kept = bench.cell(row, data, turn, beside)
    spent = time.perf_counter() - start
    if "error" in result:
        found = f"failed: {result['error']}"
    elif "over" in result:
        found = f"over {result['over']}"
    else:
        found = f"train {result['train s']:.1f} s, {result['docs/s']:,.0f} docs/s, {result['one ms']:.3f} ms, "
        found += f"P@1 {result['P@1']:.2f} P@5 {result['P@5']:.2f}"
    say(f"  {row.name}, run {turn + 1}: {found}" + (" (kept)" if kept else f" [{spent:.0f} s]"))
    return result


def collect(bench: Bench, turns: list[Row], once: list[Row], data: Path, options: argparse.Namespace) -> dict[str, Any]:
    """All cells of one set: those that take turns, then those that run once. Row → list of results."""
    beside = "" if options.keep_pecos else bench.version("labelwood")
    runs: dict[str, Any] = {row.name: [] for row in (*turns, *once)}
    for turn in range(options.repeats):
        for row in turns:
            runs[row.name].append(run_cell(bench, row, data, turn, beside))
    for row in once:
        runs[row.name].append(run_cell(bench, row, data))
    return runs


def write(out: Path, about: dict[str, Any], runs: dict[str, Any], own: list[str], options: argparse.Namespace) -> None:
    results = {name: median(found) for name, found in runs.items()}
    head = f"## {about['name']}\n\n{about['documents']:,} documents to train on, {about['held out']:,} held out, "
    head += f"{about['features']:,} features, {about['nnz']:,} non-zeros, {about['labels']:,} labels; "
    head += f"{options.threads} threads, medians of {options.repeats} for labelwood and PECOS, one run of the others.\n"
    text = f"{head}\n{table(results)}\n\nHow many times better, at the same P@5 or more:\n\n{ratios(results, own)}\n"
    out.mkdir(parents=True, exist_ok=True)
    (out / f"{about['name']}.md").write_text(text, encoding="utf-8")
    kept = {"about": about, "runs": runs, "medians": results}
    (out / f"{about['name']}.json").write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    print(f"\n{text}\n{out / about['name']}.md and .json are written.\n", flush=True)


def chosen(rows: tuple[Row, ...], patterns: list[str]) -> list[Row]:
    return [row for row in rows if any(fnmatch.fnmatch(row.name, pattern) for pattern in patterns)]


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", nargs="+", default=["debian-deps", "eurlex57k", "tib-gnd-en"])
    parser.add_argument("--rows", nargs="+", default=["*"], help="only these, e.g. 'labelwood*' 'pecos default'")
    parser.add_argument("--repeats", type=int, default=3)
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--minutes", type=float, default=15.0, help="limit of a training, and of a prediction")
    parser.add_argument("--gb", type=float, default=16.0, help="limit of their memory")
    parser.add_argument("--keep-pecos", action="store_true", help="PECOS need not run again beside a new build of ours")
    parser.add_argument("--venvs", type=Path, default=Path(), help="where .venv-pecos and the others are")
    parser.add_argument("--cache", type=Path, default=Path(__file__).parent / "cache")
    parser.add_argument("--out", type=Path, default=Path(__file__).parent / "cache" / "out")
    options = parser.parse_args()
    end_with_children()
    sides = {row.side for row in (*PECOS, *OTHERS)}
    pythons = {side: str(options.venvs / f".venv-{side}" / "bin" / "python") for side in sides}
    pythons["labelwood"] = sys.executable
    bench = Bench(options.cache.resolve(), pythons, options.threads, Limits(options.minutes, options.gb))
    own = [row for row in chosen(OURS, options.rows) if row.config["method"] in lw.methods() and available(row)]
    with alone(bench.cache):
        for name in options.data:
            one_set(bench, name, own, options)


def one_set(bench: Bench, name: str, own: list[Row], options: argparse.Namespace) -> None:
    """Prepare a set, run its cells, write its table."""
    say(f"{name}: preparing")
    data = prepare(name, bench.cache, options.threads)
    about = json.loads((data / "about.json").read_text(encoding="utf-8"))
    runs = collect(bench, [*own, *chosen(PECOS, options.rows)], chosen(OTHERS, options.rows), data, options)
    write(options.out, about, runs, [row.name for row in own], options)


if __name__ == "__main__":
    main()
