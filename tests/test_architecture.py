"""The map in docs/architecture.md: every room stands on it, and imports go up it only."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[1]
SOURCE = ROOT / "src" / "labelwood"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
FREE = {"__init__", "__main__", "_core", "__version__"}  # they import all; the core and the version import nothing


def rooms() -> dict[str, int]:
    """The line of each room, counted from the ground."""
    block = re.search(r"```rooms\n(.*?)```", PAGE, re.DOTALL)
    assert block is not None
    lines = [re.split(r"\s{3,}", line)[0].split() for line in block.group(1).splitlines()]
    return {name: number for number, names in enumerate(lines) for name in names}


ROOMS = rooms()


def imported(path: Path) -> Iterator[tuple[str, int]]:
    """The rooms that a file imports from, wherever it does, and the lines."""
    here = path.relative_to(SOURCE).with_suffix("").parts
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        if isinstance(node, ast.ImportFrom) and node.level:
            above = here[: len(here) - node.level]
            names = [node.module] if node.module else [name.name for name in node.names]
            for name in names:
                yield [*above, *name.split(".")][0], node.lineno


def test_every_room_is_on_the_map():
    found = {path.name.removesuffix(".py") for path in SOURCE.iterdir() if path.suffix == ".py" or path.is_dir()}
    assert found - FREE - {"__pycache__"} == set(ROOMS)


@pytest.mark.parametrize("path", sorted(SOURCE.rglob("*.py")), ids=lambda path: str(path.relative_to(SOURCE)))
def test_a_room_imports_only_rooms_above_it(path):
    own = path.relative_to(SOURCE).with_suffix("").parts[0]
    if own in FREE:
        return
    wrong = [f"line {line}: {room}" for room, line in imported(path) if room not in FREE and ROOMS[room] > ROOMS[own]]
    assert not wrong


@pytest.mark.parametrize("name", sorted(set(re.findall(r"`((?:[a-z_]+/)+(?:[a-z_]+\.(?:py|cpp|h))?)`", PAGE))))
def test_what_the_page_names_is_there(name):
    to_come = {"integrations/", "pipeline/calibrate.py"}
    places = (SOURCE / name, ROOT / name, ROOT / "src" / name)
    assert any(place.exists() for place in places) != (name in to_come)
