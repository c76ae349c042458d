"""Without torch: what needs it says so before any work, and how it is installed (F-N5)."""

from __future__ import annotations

import importlib.util
import json

import pytest

import labelwood as lw
from labelwood.cli import main
from labelwood.reports.leaderboard import recipes
from toy import keyword_set

TEXTS, LISTS = keyword_set()


@pytest.fixture
def files(tmp_path):
    for name in ("train", "test"):
        lines = (json.dumps({"text": t, "labels": y}) for t, y in zip(TEXTS, LISTS, strict=True))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def run(files, *more: str) -> int:
    given = ["compare", str(files / "train.jsonl"), str(files / "test.jsonl"), "--out", str(files / "out")]
    return main([*given, "--threads", "1", *more])


@pytest.fixture
def base_install(monkeypatch):
    """As if torch were not installed."""
    found = importlib.util.find_spec

    def find(name, *more):
        return None if name == "torch" else found(name, *more)

    monkeypatch.setattr(importlib.util, "find_spec", find)


def test_a_method_whose_package_is_missing_is_told_at_once(files, base_install, capsys):
    """F-N5: not after the others were trained, and with the command that installs it."""
    assert run(files, "--methods", "dismec,xr-transformer") == 1
    told = capsys.readouterr().err
    assert "xr-transformer needs torch, which is not installed: pip install 'labelwood[neural" in told
    assert "leave it out of the methods" in told
    assert not (files / "out").exists()


def test_the_usual_methods_are_those_that_can_run(files, base_install):
    with pytest.warns(UserWarning, match="needs torch, which is not installed: pip install .* It is left out") as told:
        assert list(recipes(None, {}, 0)) == ["xr-linear", "parabel", "dismec"]
    assert [str(w.message).partition(" ")[0] for w in told] == ["xr-transformer", "cascadexml"]


def test_a_training_without_its_package_leaves_nothing(files, base_install, capsys):
    given = ["train", str(files / "train.jsonl"), "--method", "xr-transformer", "-m", str(files / "m")]
    assert main(given) == 1
    assert "pip install 'labelwood[neural" in capsys.readouterr().err
    assert sorted(path.name for path in files.iterdir()) == ["test.jsonl", "train.jsonl"]
    with pytest.raises(lw.MissingExtraError, match="torch"):
        lw.train(TEXTS, LISTS, method="xr-transformer")
