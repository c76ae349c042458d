"""The limits in docs/reference/guarantees.md are those of limits.py."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from labelwood import limits

ROOT = Path(__file__).resolve().parents[1]
DOC = (ROOT / "docs" / "reference" / "guarantees.md").read_text(encoding="utf-8")


def test_every_limit_stands_in_the_document_with_its_value():
    names = [name for name in vars(limits) if name.isupper()]
    assert len(names) >= 11
    for name in names:
        assert f"| `{name}` | {getattr(limits, name):,} | " in DOC, "run: python tools/limits_table.py"


def test_the_document_has_no_limit_of_its_own():
    spec = importlib.util.spec_from_file_location("limits_table", ROOT / "tools" / "limits_table.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    assert tool.with_table(DOC) == DOC, "run: python tools/limits_table.py"
