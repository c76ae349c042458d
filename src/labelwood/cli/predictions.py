"""Predictions as lines of a file: JSON lines, CSV, TSV, or Annif's corpora."""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path

from ..data import Dataset
from ..errors import ConfigError, DataError
from ..models.predictor import Predictor

Labels = list[tuple[str, float]]  # of one document, the best first
Texts = dict[str, str]  # label → words for it; empty where the model has none
Documents = list[tuple[str | int, str]]  # id, and the text if there is one
OUTPUT_FORMATS = ("jsonl", "csv", "tsv", "annif")
DELIMITERS = {"csv": ",", "tsv": "\t"}
UNSEEN = re.compile(
    r"[\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff]"
)  # they steer a terminal or the order
SUFFIXES = {".csv": "csv", ".tsv": "tsv"}


def format_for(output: str | None, wanted: str | None) -> str:
    """The format that is asked for, or else that of the file's name; JSON lines where neither says."""
    if wanted is not None:
        return wanted
    return "jsonl" if output is None else SUFFIXES.get(Path(output).suffix.lower(), "jsonl")


def lines(model: Predictor, blocks: Iterable[Dataset], k: int, threads: int, kind: str) -> Iterator[bytes]:
    """A chunk of bytes for each block, and one before them where the format has a header."""
    texts: Texts = dict(zip(model.labels, model.label_texts, strict=False))
    if kind == "annif" and not model.reads_text:
        raise ConfigError("Annif's format holds texts, but the model was trained on features; write jsonl or csv.")
    if kind in DELIMITERS:
        yield _cells([["id", "rank", "label", *(["text"] if texts else []), "score"]], DELIMITERS[kind])
    row = 0
    for block in blocks:
        ids, scores = model.predict_data(block, k=k, threads=threads)
        yield MAKERS[kind](_documents(block, row), model.named(ids, scores), texts)
        row += len(block)


def _documents(block: Dataset, row: int) -> Documents:
    numbers: Iterable[str | int] = block.ids or range(row, row + len(block))
    texts = block.texts or [""] * len(block)
    return list(zip(numbers, texts, strict=True))


def _jsonl(documents: Documents, found: list[Labels], texts: Texts) -> bytes:
    """{"id": …, "labels": [{"label": …, "score": …}, …]}"""
    out = []
    for (number, _), labels in zip(documents, found, strict=True):
        told = [
            {"label": name, "text": texts[name], "score": score} if texts else {"label": name, "score": score}
            for name, score in labels
        ]
        out.append(json.dumps({"id": number, "labels": told}, ensure_ascii=False) + "\n")
    return UNSEEN.sub(lambda found: f"\\u{ord(found[0]):04x}", "".join(out)).encode()


def _csv(documents: Documents, found: list[Labels], texts: Texts) -> bytes:
    return _cells(_rows(documents, found, texts), ",")


def _tsv(documents: Documents, found: list[Labels], texts: Texts) -> bytes:
    return _cells(_rows(documents, found, texts), "\t")


def _rows(documents: Documents, found: list[Labels], texts: Texts) -> Iterator[list[object]]:
    """A row for each label of each document."""
    for (number, _), labels in zip(documents, found, strict=True):
        for rank, (name, score) in enumerate(labels, 1):
            yield [number, rank, name, *([texts[name]] if texts else []), score]


def _cells(rows: Iterable[list[object]], delimiter: str) -> bytes:
    out = io.StringIO()
    csv.writer(out, delimiter=delimiter, lineterminator="\n").writerows(rows)
    return out.getvalue().encode()


def _annif(documents: Documents, found: list[Labels], texts: Texts) -> bytes:
    """`text<TAB><uri> <uri>`; tabs and line feeds within a text become spaces."""
    out = []
    for (_, text), labels in zip(documents, found, strict=True):
        uris = " ".join(_uri(name) for name, _ in labels)
        out.append(f"{' '.join(text.split())}\t{uris}\n")
    return "".join(out).encode()


def _uri(label: str) -> str:
    if any(c in "<>" or c.isspace() for c in label):
        raise DataError(
            f"the label {label[:80]!r} cannot stand in Annif's format, which holds URIs; write jsonl or csv."
        )
    return f"<{label}>"


MAKERS: dict[str, Callable[[Documents, list[Labels], Texts], bytes]] = {
    "jsonl": _jsonl, "csv": _csv, "tsv": _tsv, "annif": _annif,
}  # fmt: skip
