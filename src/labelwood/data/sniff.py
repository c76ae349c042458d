"""Which format is it? Told by the content (the first line, or the files of a folder), never by the file's name."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import DataError
from .source import Source, beside, is_folder

_FOLDERS = (
    ("pecos", ("X.trn.txt", "X.trn.npz", "X.tst.txt", "X.tst.npz")),
    ("attentionxml", ("train_raw_texts.txt", "train_texts.txt", "test_raw_texts.txt", "test_texts.txt")),
    ("xmc-pair", ("trn_X_Xf.txt", "tst_X_Xf.txt")),
)
_LINES = (  # the first that matches the first line; csv and tsv come last because almost anything matches them
    ("jsonl", re.compile(rb"\s*\{")),
    ("xmc", re.compile(rb"\s*\d+\s+\d+\s+\d+\s*\Z")),
    ("xmc-pair", re.compile(rb"\s*\d+\s+\d+\s*\Z")),
    ("fasttext", re.compile(rb"\s*__label__\S")),
    ("annif", re.compile(rb"[^\t]*\t\s*<[^<>\s]+>(\s+<[^<>\s]+>)*\s*\Z")),
    ("tsv", re.compile(rb"[^,\t]*\t")),
    ("csv", re.compile(rb"[^\n]*[,;]|\s*\"?(text|title|content)\"?\s*\Z")),
    ("tsv", re.compile(rb"[^\n]*\t")),
)
_WAY_OUT = "name the format by option (jsonl, csv, tsv, parquet, fasttext, xmc, xmc-pair, attentionxml, pecos, annif)."


def sniff(path: str | Path) -> str:
    """The name of the format of a file or folder; DataError where it is none that is known."""
    if is_folder(path):
        return sniff_folder(Path(path))
    with Source(path) as source:
        return sniff_source(source)


def sniff_folder(folder: Path) -> str:
    for name, files in _FOLDERS:
        if beside(folder, *files) is not None:
            return name
    known = "; ".join(f"{name}: {files[0]}" for name, files in _FOLDERS)
    raise DataError(f"the folder is of no known format ({known}).", file=folder)


def sniff_source(source: Source) -> str:
    """From the first line that is not blank, which stays to be read."""
    if source.magic.startswith(b"PAR1"):
        return "parquet"
    line = first_line(source)
    for name, pattern in _LINES:
        if pattern.match(line):
            return name
    if line.lstrip().startswith(b"["):
        raise DataError("this looks like a JSON array; write one JSON object per line instead.", file=source.name)
    seen = line[:60].decode(errors="replace").rstrip()
    raise DataError(f"the format is not known from the first line {seen!r}; {_WAY_OUT}", file=source.name)


def first_line(source: Source) -> bytes:
    """The first line that is not blank; a file without one is an error in every format."""
    if not source.magic:
        raise DataError("the file is empty.", file=source.name)
    line = source.peek()
    if not line:
        raise DataError("the file holds only blank lines.", file=source.name)
    return line
