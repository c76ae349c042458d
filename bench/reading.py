"""Reading files, every format: labelwood beside pandas and pyarrow, where those read the same.

    python bench/reading.py --json reading.json
    python bench/reading.py --documents 20000 --words 400 --formats jsonl csv

The documents are random words with one to six labels of 100,000, drawn by their rank; a title has 4 to 14 words. They
are the same in every format; formats of features hold as many numbers as the texts have words. labelwood gives a
Dataset: texts that are valid UTF-8, label names, a sparse matrix of labels. pandas and pyarrow give tables, and leave
labels as they stand: lists, or in CSV the text of a cell. What is not installed is left out. All sides take turns on
the same file, which the system has in memory; the figures are medians. Other processes may run beside them, so that
CPU time says more than the clock: records a second of CPU time are those of all threads together.
"""

from __future__ import annotations

import argparse
import csv
import gzip
import importlib.util
import json
import lzma
import random
import statistics
import tempfile
import time
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import zstandard

Document = tuple[str, str, list[str]]  # id, text, labels
Reader = Callable[[Path], int]  # path → records


def documents(count: int, words: int, seed: int = 0) -> Iterator[Document]:
    """Random documents of about so many words."""
    rng = random.Random(seed)
    letters = "abcdefghijklmnopqrstuvwxyz"
    known = ["".join(rng.choices(letters, k=rng.randint(2, 11))) for _ in range(50_000)] + ["über", "naïve", "数据"]
    for number in range(count):
        text = " ".join(rng.choices(known, k=rng.randint(words // 2, 3 * words // 2)))
        labels = [f"c{min(int(rng.paretovariate(0.4)), 100_000)}" for _ in range(rng.randint(1, 6))]
        yield str(number), text, labels


def put_jsonl(path: Path, docs: list[Document]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for number, text, labels in docs:
            file.write(json.dumps({"id": number, "text": text, "labels": labels}, ensure_ascii=False) + "\n")


def put_packed(pack: Callable[[bytes], bytes]) -> Callable[[Path, list[Document]], None]:
    """The same, compressed."""

    def put(path: Path, docs: list[Document]) -> None:
        put_jsonl(path, docs)
        path.write_bytes(pack(path.read_bytes()))

    return put


def put_csv(path: Path, docs: list[Document]) -> None:
    with path.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["id", "text", "labels"])
        writer.writerows([number, text, "|".join(labels)] for number, text, labels in docs)


def put_parquet(path: Path, docs: list[Document]) -> None:
    import pyarrow as pa
    import pyarrow.parquet as pq

    ids, texts, labels = (list(column) for column in zip(*docs, strict=True))
    pq.write_table(pa.table({"id": ids, "text": texts, "labels": labels}), path)


def put_fasttext(path: Path, docs: list[Document]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for _, text, labels in docs:
            file.write(" ".join([*(f"__label__{label}" for label in labels), text]) + "\n")


def put_annif(path: Path, docs: list[Document]) -> None:
    with path.open("w", encoding="utf-8") as file:
        for _, text, labels in docs:
            file.write(text + "\t" + " ".join(f"<http://example.org/{label}>" for label in labels) + "\n")


def put_xmc(path: Path, docs: list[Document]) -> None:
    with path.open("w", encoding="utf-8") as file:
        file.write(f"{len(docs)} 100000 100001\n")
        for _, text, labels in docs:
            columns = sorted({zlib.crc32(word.encode()) % 100_000 for word in text.split()})
            features = " ".join(f"{column}:{1 / len(columns):.6f}" for column in columns)
            file.write(",".join(dict.fromkeys(label[1:] for label in labels)) + f" {features}\n")


WRITERS: dict[str, Callable[[Path, list[Document]], None]] = {
    "jsonl": put_jsonl,
    "jsonl.gz": put_packed(lambda raw: gzip.compress(raw, 6)),
    "jsonl.xz": put_packed(lambda raw: lzma.compress(raw, preset=2)),
    "jsonl.zst": put_packed(lambda raw: zstandard.compress(raw, 3)),
    "csv": put_csv,
    "parquet": put_parquet,
    "fasttext": put_fasttext,
    "annif": put_annif,
    "xmc": put_xmc,
}


def with_labelwood(path: Path) -> int:
    from labelwood.data import read

    return len(read(path))


def line_by_line(path: Path) -> int:
    """JSON without the native reader: what lines take that it leaves to Python."""
    from labelwood.data import read
    from labelwood.data.formats import jsonl

    jsonl.NATIVE = False
    try:
        return len(read(path))
    finally:
        jsonl.NATIVE = True


def with_pandas(kind: str) -> Reader:
    import pandas as pd

    def run(path: Path) -> int:
        if kind == "csv":
            return len(pd.read_csv(path))
        return len(pd.read_parquet(path) if kind == "parquet" else pd.read_json(path, lines=True))

    return run


def with_pyarrow(kind: str) -> Reader:
    import pyarrow.csv
    import pyarrow.json
    import pyarrow.parquet

    readers = {"csv": pyarrow.csv.read_csv, "parquet": pyarrow.parquet.read_table}
    return lambda path: len(readers.get(kind, pyarrow.json.read_json)(path))


def sides(kind: str) -> dict[str, Reader]:
    """Who reads this format."""
    found: dict[str, Reader] = {"labelwood": with_labelwood}
    if kind == "jsonl":
        found["labelwood, line by line"] = line_by_line
    if kind in ("jsonl", "csv", "parquet"):
        for name, make in (("pandas", with_pandas), ("pyarrow", with_pyarrow)):
            if importlib.util.find_spec(name) is not None:
                found[name] = make(kind)
    return found


def measure(path: Path, kind: str, size: int, repeats: int) -> Iterator[dict[str, object]]:
    """One row for each side, which take turns; `size` is that of the file before it was compressed."""
    runs: dict[str, list[tuple[float, float]]] = {}
    records = 0
    for turn in range(repeats + 1):
        for name, run in sides(kind).items():
            wall, cpu = time.perf_counter(), time.process_time()
            records = run(path)
            if turn:  # the first one only loads what it needs
                runs.setdefault(name, []).append((time.perf_counter() - wall, time.process_time() - cpu))
    for name, times in runs.items():
        wall, cpu = (statistics.median(column) for column in zip(*times, strict=True))
        yield {
            "format": kind,
            "side": name,
            "records": records,
            "MB": size / 1e6,
            "wall s": wall,
            "CPU s": cpu,
            "records/s": records / wall,
            "MB/s": size / 1e6 / wall,
            "records/CPU-s": records / cpu,
        }


def table(rows: list[dict[str, object]]) -> str:
    """The rows in Markdown."""
    columns = {
        "MB": ".0f",
        "wall s": ".2f",
        "CPU s": ".2f",
        "records/s": ",.0f",
        "MB/s": ".0f",
        "records/CPU-s": ",.0f",
    }
    lines = ["| format | side | " + " | ".join(columns) + " |", "|---" * (2 + len(columns)) + "|"]
    for row in rows:
        numbers = " | ".join(format(row[name], how) for name, how in columns.items())
        lines.append(f"| {row['format']} | {row['side']} | {numbers} |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--documents", type=int, default=591_000)
    parser.add_argument("--words", type=int, default=9, help="of a document")
    parser.add_argument("--formats", nargs="+", choices=WRITERS, default=list(WRITERS))
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--json", type=Path, help="write the rows here")
    options = parser.parse_args()
    docs = list(documents(options.documents, options.words))
    rows = []
    with tempfile.TemporaryDirectory(prefix="labelwood-bench-") as folder:
        for kind in options.formats:
            path = Path(folder) / f"data.{kind}"
            WRITERS["jsonl" if kind.startswith("jsonl") else kind](path, docs)
            size = path.stat().st_size
            if kind.startswith("jsonl."):
                WRITERS[kind](path, docs)
            rows += measure(path, kind, size, options.repeats)
            path.unlink()
            print(table(rows[-len(sides(kind)) :]), flush=True)
    print("\n" + table(rows))
    if options.json:
        options.json.write_text(json.dumps(rows, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
