"""Writes the limits of limits.py into docs/reference/guarantees.md: `.venv/bin/python tools/limits_table.py`.

A limit's meaning is the comment on its line. tests/test_guarantees.py fails when the two files disagree.
"""

from __future__ import annotations

import re
from pathlib import Path

from labelwood import limits

ROOT = Path(__file__).resolve().parents[1]
DOC = ROOT / "docs/reference/guarantees.md"
BEGIN, END = "<!-- limits: written by tools/limits_table.py -->", "<!-- end of limits -->"
LINE = re.compile(r"(?P<name>[A-Z_0-9]+): Final = (?P<formula>[^#\n]+?) *(?:# (?P<what>.*))?$", re.MULTILINE)


def table() -> str:
    """The table in Markdown."""
    rows = ["| limit | value | of what |", "|---|---|---|"]
    for found in LINE.finditer(Path(limits.__file__).read_text(encoding="utf-8")):
        name = found["name"]
        what = found["what"] or name.removeprefix("MAX_").replace("_", " ").lower()
        rows.append(f"| `{name}` | {getattr(limits, name):,} | {what} |")
    return "\n".join(rows)


def with_table(doc: str) -> str:
    """The document with the table between its marks."""
    before, rest = doc.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    DOC.write_text(with_table(DOC.read_text(encoding="utf-8")), encoding="utf-8")
