"""Detection of a format by the content (the first line, or the files of a folder), never by the file's name."""

from __future__ import annotations

import re
from pathlib import Path

from ..errors import DataError
from .formats.registry import FORMATS, in_order
from .parsing.source import Source, beside, first_line, is_folder

_ARRAY = re.compile(rb"\s*\[\s*(?:[\[{\"]|\Z)")
_NEVER_TEXT = re.compile(rb"[\x01-\x08\x0e-\x1a\x1c-\x1f\xc0\xc1\xf5-\xff]")
_HEAD = 4096  # bytes that tell whether it is text


def sniff(path: str | Path) -> str:
    """The name of the format of a file or folder; DataError where it is none that is known."""
    if is_folder(path):
        return sniff_folder(Path(path))
    with Source(path) as source:
        return sniff_source(source)


def sniff_folder(folder: Path) -> str:
    folders = [known for known in reversed(in_order()) if known.folder]
    for known in folders:
        if beside(folder, *known.folder) is not None:
            return known.name
    listed = "; ".join(f"{known.name}: {known.folder[0]}" for known in folders)
    raise DataError(f"the folder is of no known format ({listed}).", file=folder)


def sniff_source(source: Source) -> str:
    """Format by the first line that is not blank, which stays to be read."""
    for known in FORMATS.values():
        if known.magic and source.magic.startswith(known.magic):
            return known.name
    line = first_line(source)
    if _is_binary(line[:_HEAD]):
        raise DataError("this is not a text file; save the data as JSON lines or CSV.", file=source.name)
    if _ARRAY.match(line):
        raise DataError(
            "this looks like a JSON array; write one JSON object per line instead (jq -c '.[]').", file=source.name
        )
    signs = sorted((sign.rank, sign, known.name) for known in FORMATS.values() for sign in known.lines)
    for _, sign, name in signs:
        if sign.fits(line):
            return name
    seen = line[:60].decode(errors="replace").rstrip()
    names = ", ".join(known.name for known in in_order())
    way = f"name it with --format or ReadOptions(format=...): {names}."
    raise DataError(f"the format is not known from the first line {seen!r}; {way}", file=source.name)


def _is_binary(head: bytes) -> bool:
    """NUL among other bytes no text has; NUL alone may stand in a text, and UTF-16 is told by the readers."""
    utf16 = head[:2] in {b"\xff\xfe", b"\xfe\xff"}
    return b"\0" in head and not utf16 and _NEVER_TEXT.search(head) is not None
