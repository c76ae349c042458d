"""JSON lines: one object per line, e.g. {"id": "7", "text": "...", "labels": ["a", "b"]}."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import DataError
from ..parsing import strict_json
from ..parsing.fields import Fields
from ..parsing.input_pass import InputPass, each_line
from ..parsing.json_blocks import JsonBlocks
from ..parsing.rows import Row, Rows
from .registry import Format, Sign, register

NATIVE = True  # False: every line is read one by one, to the same rows and messages


class Records:
    """Objects to rows, one by one. The first one decides which fields are read."""

    def __init__(self, reading: InputPass) -> None:
        self._reading = reading
        self.fields: Fields | None = None
        self.names: tuple[str, ...] = ()

    def row(self, line: bytes) -> Row:
        """The row of one line."""
        self.names = ()
        record = strict_json.loads(line, lean=True)
        if not isinstance(record, dict):
            raise DataError('expected one JSON object per line, like {"text": ..., "labels": [...]}.', column=1)
        self.names = tuple(record)
        self.fields = self.fields or self._reading.fields(record)
        return self.fields.row(record, self._reading.log)


def rows(reading: InputPass) -> Iterator[Row | Rows]:
    """One row per object; relevances are read one by one."""
    records = Records(reading)
    if not NATIVE or reading.options.relevance is not None:
        return each_line(reading, records.row)
    return JsonBlocks(reading, records).rows()


register(
    Format(
        "jsonl",
        rows,
        '`{"id": "7", "text": "…", "labels": ["fruit", "red"]}` one object per line, blank lines skipped',
        place=1,
        lines=(Sign(rb"\s*\{", 10),),
    )
)
