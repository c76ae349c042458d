"""Writes the table of data formats into the docs: `.venv/bin/python tools/formats_table.py`.

The rows come from the registry, src/labelwood/data/formats/; the page is the one under docs/ that has the marks.
tests/test_data_registry.py fails when the two disagree.
"""

from __future__ import annotations

from pathlib import Path

from labelwood.data.formats.registry import in_order

ROOT = Path(__file__).resolve().parents[1]
BEGIN, END = "<!-- formats: written by tools/formats_table.py -->", "<!-- end of formats -->"


def page() -> Path:
    """The page with the marks."""
    (found,) = [path for path in sorted((ROOT / "docs").rglob("*.md")) if BEGIN in path.read_text(encoding="utf-8")]
    return found


def table() -> str:
    """The table in Markdown."""
    rows = ["| `format` | what it looks like |", "|---|---|"]
    rows += [f"| `{known.name}` | {known.looks} |" for known in in_order()]
    return "\n".join(rows)


def with_table(doc: str) -> str:
    """The document with the table between its marks."""
    before, rest = doc.split(BEGIN)
    return f"{before}{BEGIN}\n\n{table()}\n\n{END}{rest.split(END)[1]}"


if __name__ == "__main__":
    file = page()
    file.write_text(with_table(file.read_text(encoding="utf-8")), encoding="utf-8")
