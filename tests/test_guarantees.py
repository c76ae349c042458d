"""The limits in docs/reference/guarantees.md are those of limits.py."""

from __future__ import annotations

import importlib.util
import re
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


def test_every_promise_has_a_test_that_exists():
    promises = set(re.findall(r"^\| ([A-Z]\d+b?) \|", DOC, re.MULTILINE))
    rows = re.findall(r"^\| ([A-Z]\d[^|]*) \| (`[^|]*) \| ([^|]+) \|$", DOC, re.MULTILINE)
    assert len(promises) >= 24
    named: set[str] = set()
    for given, command, figure in rows:
        span = re.fullmatch(r"H1 to H4, (.+)", given)
        named |= {"H1", "H2", "H3", "H4", *span[1].split(", ")} if span else set(given.split(", "))
        assert re.search(r"\d|in the suite", figure), given
        for file in re.findall(r"tests/\w+\.py", command):
            assert (ROOT / file).is_file(), file
        for target in re.findall(r"make ([a-z-]+)", command):
            assert f"\n{target}:" in (ROOT / "Makefile").read_text(encoding="utf-8"), target
    assert named == promises
