"""labelwood's xr-transformer beside PECOS's: the same texts, encoder, tokens, steps and batch, one after the other.

    LABELWOOD_DATA=… python bench/transformer.py --data quickstart-debtags --steps 40 40 [--docs 2000] [--tokens 128]
      [--pecos .venv-xrt/bin/python] [--set encoder.runtime=onnx-int8 …]

`make bench-transformer` sets up PECOS's environment. Results are kept by configuration, data and version in
bench/cache/transformer; the table has whole training time, documents per second in fine-tuning and in prediction, the
time of one document, and P@k.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from labelwood.data import align_labels, read
from labelwood.metrics.ranking import MetricsConfig, evaluate
from labelwood.neural.encoders.pretrained import find
from labelwood.parts.tfidf import Tfidf, TfidfConfig
from prepare import TEXT_ALONE, locate, version

HERE = Path(__file__).resolve().parent


def prepare(options: argparse.Namespace) -> Path:
    """Texts, labels and tf-idf of both parts in a folder that both sides read."""
    name, train, held = locate(options.data)
    data, test = read(train, TEXT_ALONE), read(held, TEXT_ALONE)
    if options.docs:
        data = data.take(np.arange(min(options.docs, len(data))))
    if options.held:
        test = test.take(np.arange(min(options.held, len(test))))
    assert data.texts is not None and test.texts is not None and data.labels is not None  # noqa: PT018
    cut = (lambda text: " ".join(text.split()[: options.words])) if options.words else (lambda text: text)
    texts, others = ([cut(part.texts[i]) for i in range(len(part))] for part in (data, test))  # type: ignore[index]
    seen = np.flatnonzero(np.bincount(data.labels.indices, minlength=data.labels.cols))
    y = data.labels.to_scipy()[:, seen]
    ids = {data.names[label]: i for i, label in enumerate(seen)}
    truth = align_labels(test, dict(ids)).to_scipy()[:, : len(seen)]
    from labelwood.data import Texts

    tfidf, x = Tfidf.fit(Texts.from_strings(texts), TfidfConfig(), threads=options.threads)
    held_x = tfidf.transform(Texts.from_strings(others), threads=options.threads)
    about = {
        "name": name, "encoder": str(find("minilm").folder), "tokens": options.tokens, "steps": options.steps,
        "batch": options.batch, "lr": options.lr, "warmup": options.steps[0] // 10, "threads": options.threads,
        "tree": options.tree, "words": options.words,
        "docs": len(texts), "held": len(others), "labels": len(seen),
    }  # fmt: skip
    stamp = hashlib.sha256(json.dumps([about, texts[:50], others[:50]], sort_keys=True).encode()).hexdigest()[:12]
    folder = options.cache / f"{name}-{stamp}"
    folder.mkdir(parents=True, exist_ok=True)
    for key, value in (("texts", texts), ("held", others), ("about", {**about, "settings": {}})):
        (folder / f"{key}.json").write_text(json.dumps(value), encoding="utf-8")
    for key, matrix in (("x", x.to_scipy()), ("y", y), ("held_x", held_x.to_scipy()), ("truth", truth)):
        sparse.save_npz(folder / f"{key}.npz", sparse.csr_matrix(matrix))
    return folder


def run(side: str, python: str, folder: Path, settings: dict[str, str], turn: int) -> dict[str, Any]:
    """One side in a process of its own; from the cache where it ran before."""
    about = json.loads((folder / "about.json").read_text(encoding="utf-8"))
    (folder / "about.json").write_text(json.dumps({**about, "settings": settings}), encoding="utf-8")
    what = [side, settings, turn, "" if side == "pecos" else version()]
    out = folder / f"{side}-{hashlib.sha256(json.dumps(what).encode()).hexdigest()[:10]}.json"
    if not out.exists():
        print(f"{time.strftime('%H:%M:%S')} {side} {settings}", flush=True)
        subprocess.run([python, str(HERE / "sides" / f"xrt_{side}.py"), str(folder), str(out)], check=True)
    found: dict[str, Any] = json.loads(out.read_text(encoding="utf-8"))
    y, truth = (sparse.load_npz(folder / f"{name}.npz") for name in ("y", "truth"))
    counts = np.asarray((y != 0).sum(axis=0)).ravel()
    from labelwood.arrays.sparse import as_csr

    scores = evaluate(
        np.load(out.with_suffix(".npy")), as_csr(truth), counts, y.shape[0], MetricsConfig(ks=(1, 3, 5), bootstrap=0)
    )
    found |= {key: scores[key] for key in ("P@1", "P@3", "P@5")}
    found["tuning docs/s"] = sum(about["steps"]) * about["batch"] / found["tuning s"]
    return found


def table(rows: dict[str, dict[str, Any]]) -> str:
    columns = (
        ("train s", "train s", ".0f"),
        ("fine-tuning docs/s", "tuning docs/s", ".1f"),
        ("prediction docs/s", "docs/s", ".0f"),
        ("one document ms", "one ms", ".1f"),
        ("as it comes", "one ms as it comes", ".0f"),
        *((name, name, ".2f") for name in ("P@1", "P@3", "P@5")),
    )
    lines = ["| | " + " | ".join(head for head, _, _ in columns) + " |", "|---" * (len(columns) + 1) + "|"]
    for name, row in rows.items():
        cells = [format(row[key], form) if key in row else "" for _, key, form in columns]
        lines.append(f"| {name} | " + " | ".join(cells) + " |")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data", default="quickstart-debtags")
    parser.add_argument("--docs", type=int, default=0, help="only the first so many; 0: all")
    parser.add_argument("--held", type=int, default=0)
    parser.add_argument("--words", type=int, default=0, help="cut texts to so many words")
    parser.add_argument("--steps", type=int, nargs="+", default=[40, 40])
    parser.add_argument("--batch", type=int, default=32)
    parser.add_argument("--tokens", type=int, default=128)
    parser.add_argument("--lr", type=float, default=1e-4)
    parser.add_argument("--tree", type=int, nargs=3, default=[16, 16, 16], help="branch, least clusters, leaf")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--repeats", type=int, default=1)
    parser.add_argument("--pecos", default=".venv-xrt/bin/python")
    parser.add_argument("--no-pecos", action="store_true")
    parser.add_argument("--set", nargs="*", default=[], help="settings of labelwood's recipe")
    parser.add_argument("--cache", type=Path, default=HERE / "cache" / "transformer")
    options = parser.parse_args()
    settings = dict(pair.split("=", 1) for pair in options.set)
    folder = prepare(options)
    rows: dict[str, dict[str, Any]] = {}
    for turn in range(options.repeats):
        tail = "" if options.repeats == 1 else f" {turn + 1}"
        rows[f"labelwood{tail}"] = run("labelwood", sys.executable, folder, settings, turn)
        if not options.no_pecos:
            rows[f"PECOS{tail}"] = run("pecos", options.pecos, folder, {}, turn)
    print(f"\n{options.data}: {json.loads((folder / 'about.json').read_text())}\n\n{table(rows)}")


if __name__ == "__main__":
    main()
