"""AttentionXML's folders: `train_raw_texts.txt` (or `train_texts.txt`), `train_labels.txt` and the same for test.

Line i of both files is one document; labels are separated by spaces, `/SEP/` stands between title and body.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

from ... import limits
from ...errors import DataError
from ..dataset import check_label, check_row
from ..parsing.input_pass import InputPass, without_end
from ..parsing.rows import Row
from ..parsing.source import Source
from .registry import Format, register

_SEP = re.compile(rb" ?/SEP/ ?")


def rows(reading: InputPass) -> Iterator[Row]:
    """One row per line of the texts, blank ones too."""
    split = reading.options.split
    source = reading.open(reading.part(f"{split}_raw_texts.txt", f"{split}_texts.txt"))
    place = reading.labels_part(f"{split}_labels.txt")
    target = None if place is None else reading.open(place)
    for raw in source.lines():
        listed = None if target is None else _partner(source, target)
        current = source
        try:
            row = Row(_SEP.sub(b"\n", without_end(reading.log.utf8(raw))))
            if target is not None and listed is not None:
                current = target
                names = reading.log.utf8(listed).decode().split(maxsplit=limits.MAX_ROW_LABELS)
                check_row(len(names))
                row = row._replace(labels=[check_label(name) for name in names])
        except DataError as error:
            reading.log.bad(error.at(file=current.name, line=current.line))
            continue
        yield row
    if target is not None and (left := target.readline()) and not left.isspace():
        raise target.error(f"there are more lines of labels than the {source.line} of texts.")


def _partner(source: Source, target: Source) -> bytes:
    listed = target.readline()
    if not listed:
        raise source.error(f"this text has no line in {target.name}, which ends at line {target.line}.")
    return listed


register(
    Format(
        "attentionxml",
        rows,
        "folder: `train_raw_texts.txt` (or `train_texts.txt`), `train_labels.txt` (`fruit red`); `/SEP/` becomes a "
        "line feed",
        place=9,
        folder=("train_raw_texts.txt", "train_texts.txt", "test_raw_texts.txt", "test_texts.txt"),
    )
)
