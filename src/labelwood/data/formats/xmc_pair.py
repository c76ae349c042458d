"""The Extreme Classification Repository's pair of files: features `trn_X_Xf.txt` (header `N D`, lines of
`feature:value`) and labels `trn_X_Y.txt` (header `N L`, lines of `label:relevance`). The path is the folder, or the
features' file.
"""

from __future__ import annotations

from collections.abc import Iterator
from itertools import repeat
from pathlib import Path
from typing import cast

from ...errors import DataError
from ..dataset import check_row
from ..parsing.fields import weighted
from ..parsing.input_pass import InputPass
from ..parsing.rows import Entries, Row
from ..parsing.source import Source, beside, is_folder
from .registry import Format, Sign, register
from .xmc import counted, entries, header


def rows(reading: InputPass) -> Iterator[Row]:
    """Row i of both files is one document."""
    source, target = _open(reading)
    count, reading.width = header(source, ("documents N", "features D"))
    reading.log.header += 1
    labels, targets = 0, cast(Iterator[bytes], repeat(b"", count))
    if target is not None:
        count_y, labels = header(target, ("documents N", "labels L"))
        if count_y != count:
            raise target.error(f"the header promises {count_y} rows, but that of {source.name} {count}.")
        targets = counted(target, count)
    for raw, listed in zip(counted(source, count), targets, strict=True):
        try:
            row = Row(features=_placed(source, reading, raw, reading.width, "feature"))
            if target is not None:
                row = _labelled(row, _placed(target, reading, listed, labels, "label"), target)
        except DataError as error:
            reading.log.bad(error)
            continue
        yield row
    reading.log.blank += source.line - 1 - count


def _placed(source: Source, reading: InputPass, raw: bytes, width: int, what: str) -> Entries:
    try:
        return entries(reading.log.utf8(raw), 0, width, what)
    except DataError as error:
        raise error.at(file=source.name, line=source.line) from error


def _labelled(row: Row, found: Entries, target: Source) -> Row:
    try:
        check_row(len(found[0]))
        names = [str(label) for label in found[0]]
        labels, relevance = weighted(names, found[1].tolist(), "relevance")
    except DataError as error:
        raise error.at(file=target.name, line=target.line) from error
    return row._replace(labels=labels, relevance=relevance)


def _open(reading: InputPass) -> tuple[Source, Source | None]:
    path = Path(reading.path)
    prefix = {"train": "trn", "test": "tst"}[reading.options.split]
    if is_folder(path):
        features = reading.part(f"{prefix}_X_Xf.txt")
        target = reading.labels_part(f"{prefix}_X_Y.txt")
        return reading.open(features), None if target is None else reading.open(target)
    source = reading.main()
    name, found, _ = path.name.partition("_Xf.txt")
    target = beside(path.parent, f"{name}_Y.txt") if found and reading.want_labels else None
    if target is None and reading.need_labels:
        expected = f"{name}_Y.txt beside it" if found else "a name like trn_X_Xf.txt, with trn_X_Y.txt beside it"
        raise DataError(f"the labels are not there; expected {expected}.", file=path)
    return source, None if target is None else reading.open(target)


register(
    Format(
        "xmc-pair",
        rows,
        "`trn_X_Xf.txt`: `N D`, then `0:0.5 8:1.2`; `trn_X_Y.txt`: `N L`, then `3:1.0 17:1.0`; "
        "path: the folder or the first file",
        place=8,
        lines=(Sign(rb"\s*\d+\s+\d+\s*\Z", 30),),
        folder=("trn_X_Xf.txt", "tst_X_Xf.txt"),
    )
)
