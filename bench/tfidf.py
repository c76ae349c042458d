"""tf-idf side by side: labelwood (2 threads), scikit-learn (1 thread), PECOS (2 threads, in its own environment).

    LABELWOOD_DATA=/path/to/data python bench/tfidf.py --pecos-python /path/to/venv/bin/python --json tfidf.json

Fit is list[str] → vocabulary and training matrix; transform is list[str] → matrix. Rates are MB of raw text. PECOS gets
text already lower-cased and joined by spaces, because it does neither; that preparation is not timed. The three take
turns, so that other load on the machine hits all of them; the table shows medians.
"""

from __future__ import annotations

import argparse
import json
import lzma
import os
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from pathlib import Path

SETS = ("debian-deps", "eurlex57k")
Times = dict[str, tuple[float, float]]  # "fit" and "transform" → (wall seconds, CPU seconds)


def clock(work: Callable[[], object]) -> tuple[object, tuple[float, float]]:
    wall, cpu = time.perf_counter(), time.process_time()
    result = work()
    return result, (time.perf_counter() - wall, time.process_time() - cpu)


def run_labelwood(texts: list[str], threads: int) -> Times:
    from labelwood.data import Texts
    from labelwood.parts.tfidf import Tfidf

    (tfidf, _), fit = clock(lambda: Tfidf.fit(Texts.from_strings(texts), threads=threads))  # type: ignore[misc]
    _, transform = clock(lambda: tfidf.transform(Texts.from_strings(texts), threads=threads))
    return {"fit": fit, "transform": transform}


def run_sklearn(texts: list[str]) -> Times:
    import numpy as np
    from sklearn.feature_extraction.text import TfidfVectorizer

    model = TfidfVectorizer(min_df=2, sublinear_tf=True, dtype=np.float32)
    _, fit = clock(lambda: model.fit_transform(texts))
    _, transform = clock(lambda: model.transform(texts))
    return {"fit": fit, "transform": transform}


def run_pecos(texts: list[str], threads: int) -> Times:
    from pecos.utils.featurization.text.vectorizers import Tfidf

    config = {"min_df_cnt": 2, "sublinear_tf": True, "add_one_idf": True, "threads": threads}
    model, train = clock(lambda: Tfidf.train(texts, config))
    _, predict = clock(lambda: model.predict(texts, threads=threads))  # type: ignore[attr-defined]
    return {"fit": (train[0] + predict[0], train[1] + predict[1]), "transform": predict}


def pecos_side(path: str, threads: int) -> None:
    """The other end of `Pecos`: one run per line of input."""
    texts = json.loads(Path(path).read_text(encoding="utf-8"))
    print("ready", flush=True)
    for _ in sys.stdin:
        print(json.dumps(run_pecos(texts, threads)), flush=True)


class Pecos:
    """PECOS in its own interpreter, run on request."""

    def __init__(self, python: str, texts: list[str], threads: int) -> None:
        prepared = [" ".join(re.findall(r"\w\w+", text.lower())) for text in texts]
        self.folder = tempfile.TemporaryDirectory(prefix="labelwood-bench-")
        file = Path(self.folder.name) / "texts.json"
        file.write_text(json.dumps(prepared), encoding="utf-8")
        command = [python, __file__, "--pecos-side", str(file), "--threads", str(threads)]
        self.process = subprocess.Popen(
            command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
        )
        self._line()  # it has read the file
        self.folder.cleanup()

    def __call__(self) -> Times:
        self.process.stdin.write("go\n")  # type: ignore[union-attr]
        self.process.stdin.flush()  # type: ignore[union-attr]
        return {k: tuple(v) for k, v in json.loads(self._line()).items()}  # type: ignore[misc]

    def close(self) -> None:
        self.process.stdin.close()  # type: ignore[union-attr]
        self.process.wait()

    def _line(self) -> str:
        line = self.process.stdout.readline()  # type: ignore[union-attr]
        if not line:
            raise SystemExit("PECOS failed to run; try --pecos-python with an environment that has libpecos.")
        return str(line)


def read(name: str, limit_mb: float | None) -> list[str]:
    path = Path(os.environ.get("LABELWOOD_DATA", "data")) / name / "train.jsonl.xz"
    if not path.exists():
        raise SystemExit(f"{path} is missing; set LABELWOOD_DATA to the folder that holds {name}/.")
    texts, size = [], 0
    with lzma.open(path, "rt", encoding="utf-8") as file:
        for line in file:
            texts.append(json.loads(line)["text"])
            size += len(texts[-1])
            if limit_mb is not None and size > limit_mb * 1e6:
                break
    return texts


def measure(name: str, options: argparse.Namespace) -> Iterator[dict[str, object]]:
    """One row per (tool, verb): medians over the repeats."""
    texts = read(name, options.limit_mb)
    mb = sum(len(t.encode()) for t in texts) / 1e6
    pecos = Pecos(options.pecos_python, texts, options.threads) if options.pecos_python else None
    tools: dict[str, Callable[[], Times]] = {
        "labelwood": lambda: run_labelwood(texts, options.threads),
        "scikit-learn": lambda: run_sklearn(texts),
    }
    if pecos is not None:
        tools["PECOS"] = pecos
    runs: dict[str, list[Times]] = {tool: [] for tool in tools}
    for _ in range(options.repeats):
        for tool, run in tools.items():
            runs[tool].append(run())
    if pecos is not None:
        pecos.close()
    for tool, times in runs.items():
        for verb in ("fit", "transform"):
            wall, cpu = (statistics.median(t[verb][i] for t in times) for i in (0, 1))
            yield {"set": name, "mb": mb, "tool": tool, "verb": verb, "wall": mb / wall, "cpu": mb / cpu}


def table(rows: list[dict[str, object]]) -> str:
    """MB/s by the clock and per CPU second; ratios are ours over theirs."""
    ours = {(r["set"], r["verb"]): r for r in rows if r["tool"] == "labelwood"}
    lines = [
        "| set | verb | tool | MB/s | MB/CPU-s | ours / it, wall | ours / it, CPU |",
        "|---|---|---|---|---|---|---|",
    ]
    for r in sorted(rows, key=lambda r: (str(r["set"]), str(r["verb"]))):
        own = ours[r["set"], r["verb"]]
        ratios = " | ".join(f"{float(own[k]) / float(r[k]):.1f}×" for k in ("wall", "cpu"))  # type: ignore[arg-type]
        lines.append(f"| {r['set']} | {r['verb']} | {r['tool']} | {r['wall']:.1f} | {r['cpu']:.1f} | {ratios} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sets", nargs="+", default=SETS)
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2, help="for labelwood and PECOS")
    parser.add_argument("--limit-mb", type=float, help="only the first texts of each set")
    parser.add_argument("--pecos-python", help="an interpreter with libpecos; left out without it")
    parser.add_argument("--pecos-side", help=argparse.SUPPRESS)
    parser.add_argument("--json", type=Path, help="write the rows here")
    options = parser.parse_args()
    if options.pecos_side:
        pecos_side(options.pecos_side, options.threads)
        return
    rows = [row for name in options.sets for row in measure(name, options)]
    print(table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
