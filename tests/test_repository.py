"""The files around the code: make's targets explain themselves, pages for contributors speak of what is there."""

from __future__ import annotations

import re
import shutil
import subprocess
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
MAKEFILE = (ROOT / "Makefile").read_text(encoding="utf-8")
CONTRIBUTING = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
PAGES = ("CONTRIBUTING.md", "SECURITY.md", "CODE_OF_CONDUCT.md", "CITATION.cff", ".github/PULL_REQUEST_TEMPLATE.md")


def targets() -> set[str]:
    """What make can be asked for by name."""
    named = re.search(r"^\.PHONY: ((?:.*\\\n)*.*)", MAKEFILE, re.MULTILINE)
    assert named is not None
    return set(named[1].replace("\\", " ").split())


def test_make_help_explains_every_target():
    explained = dict(re.findall(r"^([a-z-]+):.*?## (.+)$", MAKEFILE, re.MULTILINE))
    assert explained.keys() == targets()
    assert len(targets()) > 10
    if shutil.which("make") is None:
        pytest.skip("make is not installed")
    shown = subprocess.run(["make", "help"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    for name, what in explained.items():
        assert re.search(rf"^  {name} +{re.escape(what)}$", shown, re.MULTILINE), name


@pytest.mark.parametrize("page", PAGES)
def test_the_page_is_there_and_its_commands_are(page):
    text = (ROOT / page).read_text(encoding="utf-8")
    assert len(text) > 200
    assert set(re.findall(r"`make ([a-z-]+)", text)) <= targets()


def test_contributing_speaks_of_what_is_there():
    """F-N11: of folders and files that exist, and of no package that the project does not use."""
    declared = (ROOT / "pyproject.toml").read_text(encoding="utf-8").lower()
    assert [name for name in ("FastAPI", "Ray", "Flask", "Keras") if re.search(rf"\b{name}\b", CONTRIBUTING)] == [
        name for name in ("FastAPI", "Ray", "Flask", "Keras") if f'"{name.lower()}' in declared
    ]
    for path in re.findall(r"`([a-z_]+(?:/[a-z_]+)*/?(?:\.py)?)`", CONTRIBUTING):
        if "/" in path or path.endswith(".py"):
            places = (ROOT / path, ROOT / "src" / "labelwood" / path)
            assert any(place.exists() for place in places), path


def test_templates_ask_for_what_helps():
    folder = ROOT / ".github" / "ISSUE_TEMPLATE"
    names = {path.stem for path in folder.glob("*.yml")}
    assert names == {"bug", "question", "wish", "config"}
    for path in folder.glob("*.yml"):
        if path.stem != "config":
            text = path.read_text(encoding="utf-8")
            assert all(re.search(rf"^{key}:", text, re.MULTILINE) for key in ("name", "description", "body")), path
