"""Which format is it? Told by the content (the first line, or the files of a folder), never by the file's name."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import DataError
from .options import FORMATS
from .parsing.source import Source, beside, is_folder

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
_ARRAY = re.compile(rb"\s*\[\s*(?:[\[{\"]|\Z)")
_WAY_OUT = f"name it with --format or ReadOptions(format=...): {', '.join(FORMATS[1:])}."
_NEVER_TEXT = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f\xc0\xc1\xf5-\xff]")
_HEAD = 4096  # bytes that tell whether it is text


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
    if _is_binary(line[:_HEAD]):
        raise DataError("this is not a text file; save the data as JSON lines or CSV.", file=source.name)
    if _ARRAY.match(line):
        raise DataError(
            "this looks like a JSON array; write one JSON object per line instead (jq -c '.[]').", file=source.name
        )
    for name, pattern in _LINES:
        if pattern.match(line):
            return name
    seen = line[:60].decode(errors="replace").rstrip()
    raise DataError(f"the format is not known from the first line {seen!r}; {_WAY_OUT}", file=source.name)


def _is_binary(head: bytes) -> bool:
    """NUL among other bytes no text has; NUL alone may stand in a text, and UTF-16 is told by the readers."""
    utf16 = head[:2] in {b"\xff\xfe", b"\xfe\xff"}
    return b"\0" in head and not utf16 and _NEVER_TEXT.search(head) is not None


def first_line(source: Source) -> bytes:
    """The first line that is not blank; a file without one is an error in every format."""
    if not source.magic:
        raise DataError("the file is empty.", file=source.name)
    line = source.peek()
    if not line:
        raise DataError("the file holds only blank lines.", file=source.name)
    return line
