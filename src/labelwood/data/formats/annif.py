"""Annif's TSV corpus: `text<TAB><uri1> <uri2>`, one document per line, without header or quoting."""

from __future__ import annotations

import re
from collections.abc import Iterator

from ...errors import DataError
from ..dataset import check_label, check_row
from ..parsing.input_pass import InputPass, each_line, without_end
from ..parsing.rows import Row
from .registry import Format, Sign, register

_WORD = re.compile(rb"\S+")
_URI = re.compile(rb"<([^<>\s]+)>")


def rows(reading: InputPass) -> Iterator[Row]:
    """One row per line that is not blank."""
    return each_line(reading, lambda line: _parse(without_end(line), reading))


def _parse(line: bytes, reading: InputPass) -> Row:
    text, tab, uris = line.partition(b"\t")
    if not tab and reading.need_labels:
        raise DataError("expected the text, a tab and the subjects like <http://example.org/1>, but there is no tab.")
    if not tab or not reading.want_labels:
        return Row(text)
    labels: list[str] = []
    for match in _WORD.finditer(uris):
        labels.append(_label(match, line, len(text) + 1))
        check_row(len(labels))
    return Row(text, labels)


def _label(match: re.Match[bytes], line: bytes, offset: int) -> str:
    uri = _URI.fullmatch(match.group())
    try:
        if uri is None:
            raise DataError(
                f"expected a subject in angle brackets, but found {match.group()[:60].decode(errors='replace')!r}."
            )
        return check_label(uri.group(1).decode())
    except DataError as error:
        raise error.at(column=len(line[: offset + match.start()].decode()) + 1) from error


register(
    Format(
        "annif",
        rows,
        "`a red apple<TAB><http://example.org/fruit> <http://example.org/red>`",
        place=6,
        lines=(Sign(rb"[^\t]*\t\s*<[^<>\s]+>(?:\s++<[^<>\s]++>)*+\s*\Z", 50),),
    )
)
