"""A data set as all sides of the scoreboard read it: the same float32 CSR rows for everybody, made once and kept.

x.npz y.npz            training features (n, d) and labels (n, L)
held_x.npz truth.npz   held-out rows and their labels; labels never seen in training are dropped, and with them the
                       rows left without a label
texts.json             the first held-out texts, for queries that start from raw text
terms.json idf.npy     the vocabulary, from which scikit-learn's vectoriser gives the same rows
tfidf.npz              the same for labelwood
about.json             sizes and a digest of the matrices
"""

from __future__ import annotations

import hashlib
import json
import os
import shutil
from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

import labelwood as lw
from labelwood.data import align_labels
from labelwood.parts.tfidf import Tfidf, TfidfConfig

VERSION = 1  # of the recipe below; to be raised when it changes
TEXT_ALONE = lw.ReadOptions(text=("text",))  # what recorded tables were made of, and what peers read of these sets
TEXTS = 500
MATRICES = ("x", "y", "held_x", "truth")


def locate(data: str) -> tuple[str, Path, Path]:
    """(name, training file, held-out file) of a set in LABELWOOD_DATA, or of "train.jsonl:test.jsonl"."""
    if ":" in data:
        train, held = (Path(part) for part in data.split(":", 1))
        stem = train.name.partition(".")[0]
        return train.absolute().parent.name if stem == "train" else stem, _there(train), _there(held)
    folder = Path(os.environ.get("LABELWOOD_DATA", "data")) / data
    for ending in ("jsonl.xz", "svm.xz", "jsonl", "txt"):
        for part in ("test", "dev"):
            if (folder / f"train.{ending}").exists() and (folder / f"{part}.{ending}").exists():
                return data, folder / f"train.{ending}", folder / f"{part}.{ending}"
    raise SystemExit(f"{folder} holds no train and test (or dev) files; set LABELWOOD_DATA, or give --data TRAIN:TEST.")


def version() -> str:
    """Names the Python code of this build: results of another one are not reused."""
    files = sorted(Path(lw.__file__).parent.rglob("*.py"))
    return hashlib.sha256(b"".join(path.read_bytes() for path in files)).hexdigest()[:12]


def _there(path: Path) -> Path:
    if not path.exists():
        raise SystemExit(f"{path} is missing.")
    return path


def prepare(data: str, cache: Path, threads: int) -> Path:
    """The folder with the prepared set."""
    name, train, held = locate(data)
    stamp = hashlib.sha256(b"%d" % VERSION)
    for path in (train, held):
        stamp.update(path.read_bytes())
    folder = cache / "data" / f"{name}-{stamp.hexdigest()[:12]}"
    if not (folder / "about.json").exists():
        shutil.rmtree(folder, ignore_errors=True)
        folder.mkdir(parents=True)
        _write(name, lw.read_data(train, TEXT_ALONE), lw.read_data(held, TEXT_ALONE), folder, threads)
    return folder


def from_pecos_folder(name: str, source: Path, cache: Path) -> Path:
    """The same for ready matrices (X.trn.npz, …), as bench/synthetic.py writes them; they have no texts."""
    folder = cache / "data" / name
    if not (folder / "about.json").exists():
        folder.mkdir(parents=True, exist_ok=True)
        x, y, held_x, held_y = (sparse.load_npz(source / f"{k}.npz") for k in ("X.trn", "Y.trn", "X.tst", "Y.tst"))
        _save(name, {"x": x, "y": y, "held_x": held_x, "truth": held_y}, folder)
    return folder


def _write(name: str, data: lw.Dataset, held: lw.Dataset, folder: Path, threads: int) -> None:
    labels = {label: i for i, label in enumerate(data.names)}
    truth = align_labels(held, labels).to_scipy()
    assert data.labels is not None
    if data.texts is not None and held.texts is not None:
        tfidf, x = Tfidf.fit(data.texts, TfidfConfig(), threads=threads)
        held_x = tfidf.transform(held.texts, threads=threads)
        _write_vocabulary(tfidf, folder)
        features = x.to_scipy(), held_x.to_scipy()
    else:
        features = _unit(data, data.features.sparse_cols), _unit(held, data.features.sparse_cols)  # type: ignore[union-attr]
    found = {"x": features[0], "y": data.labels.to_scipy(), "held_x": features[1], "truth": truth}
    rows = _save(name, found, folder)
    if held.texts is not None:
        texts = [held.texts[i] for i in rows[:TEXTS].tolist()]
        (folder / "texts.json").write_text(json.dumps(texts), encoding="utf-8")


def _write_vocabulary(tfidf: Tfidf, folder: Path) -> None:
    (folder / "terms.json").write_text(json.dumps(tfidf.terms()), encoding="utf-8")
    np.save(folder / "idf.npy", tfidf.idf)
    np.savez(folder / "tfidf.npz", **tfidf.tensors())


def _unit(data: lw.Dataset, columns: int) -> Any:
    """Features as they came, rows of length one."""
    x = data.features.sparse.to_scipy()  # type: ignore[union-attr]
    x.resize(x.shape[0], columns)
    norm = np.sqrt(np.asarray(x.multiply(x).sum(axis=1)).ravel())
    return sparse.csr_matrix(sparse.diags(1 / np.where(norm > 0, norm, 1)) @ x)


def _save(name: str, found: dict[str, Any], folder: Path) -> Any:
    """Drop what was never seen, write the matrices; the held-out rows that stay."""
    seen = np.bincount(found["y"].indices, minlength=found["y"].shape[1]) > 0
    truth = found["truth"].tocsr()[:, : len(seen)] @ sparse.diags(seen.astype(np.float32))
    truth.eliminate_zeros()
    rows = np.flatnonzero(np.diff(truth.indptr))
    found |= {"held_x": found["held_x"][rows], "truth": truth[rows]}
    digest = hashlib.sha256()
    for key in MATRICES:
        matrix = sparse.csr_matrix(found[key], dtype=np.float32)
        matrix.sort_indices()
        matrix.indices, matrix.indptr = matrix.indices.astype(np.int32), matrix.indptr.astype(np.int32)
        for array in (matrix.data, matrix.indices, matrix.indptr):
            digest.update(array.tobytes())
        sparse.save_npz(folder / f"{key}.npz", matrix, compressed=False)
    x, y = found["x"], found["y"]
    about = {"name": name, "documents": x.shape[0], "held out": len(rows), "features": x.shape[1], "labels": y.shape[1]}
    about |= {"nnz": int(x.nnz), "labels/doc": y.nnz / y.shape[0], "digest": digest.hexdigest()}
    (folder / "about.json").write_text(json.dumps(about, indent=1) + "\n", encoding="utf-8")
    return rows
