"""JSON lines: one object per line, e.g. {"id": "7", "text": "...", "labels": ["a", "b"]}."""

from __future__ import annotations

from collections.abc import Iterator

from ...errors import DataError
from ..parsing import strict_json
from ..parsing.fields import Fields
from ..parsing.input_pass import InputPass, each_line
from ..parsing.rows import Row
from .registry import Format, Sign, register


def rows(reading: InputPass) -> Iterator[Row]:
    """One row per object; the first object decides which fields are read."""
    fields: Fields | None = None

    def parse(line: bytes) -> Row:
        nonlocal fields
        record = strict_json.loads(line, lean=True)
        if not isinstance(record, dict):
            raise DataError('expected one JSON object per line, like {"text": ..., "labels": [...]}.', column=1)
        fields = fields or reading.fields(record)
        return fields.row(record, reading.log)

    return each_line(reading, parse)


register(
    Format(
        "jsonl",
        rows,
        '`{"id": "7", "text": "…", "labels": ["fruit", "red"]}` one object per line, blank lines skipped',
        place=1,
        lines=(Sign(rb"\s*\{", 10),),
    )
)
