"""Output never goes over an input, nor into a model, by whatever name or link; refused before any work (F-D3)."""

from __future__ import annotations

import hashlib
import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

import labelwood as lw
from labelwood.cli import main
from toy import keyword_set


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model, its data, and links to the data."""
    texts, lists = keyword_set()
    for name in ("train", "test"):
        rows = (json.dumps({"text": text, "labels": row}) for text, row in zip(texts, lists, strict=True))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(rows) + "\n")
    lw.train(texts, lists).save(tmp_path / "m")
    (tmp_path / "soft").symlink_to("test.jsonl")
    os.link(tmp_path / "test.jsonl", tmp_path / "hard")
    (tmp_path / "model-by-link").symlink_to("m")
    (tmp_path / "out").mkdir()
    (tmp_path / "out" / "analysis.json").symlink_to(tmp_path / "test.jsonl")
    os.link(tmp_path / "test.jsonl", tmp_path / "out" / "plan.json")
    monkeypatch.chdir(tmp_path)
    return tmp_path


def content(folder: Path) -> dict[str, str]:
    """Every file with its digest, and where each link leads."""
    found = {}
    for path in sorted(folder.rglob("*")):
        told = str(path.readlink()) if path.is_symlink() else "" if path.is_dir() else path.read_bytes().hex()
        found[str(path)] = hashlib.sha256(told.encode()).hexdigest()
    return found


IS_INPUT = "which would be lost; write to another file."
IN_MODEL = "stands in the folder of a model"
IS_MODEL = "m is the folder of a model; choose another folder."


@pytest.mark.parametrize(
    ("command", "message"),
    [
        ("predict m test.jsonl -o test.jsonl", f"test.jsonl is the input test.jsonl, {IS_INPUT}"),
        ("predict m test.jsonl -o ./m/../test.jsonl", IS_INPUT),
        ("predict m test.jsonl -o soft", f"soft is the input test.jsonl, {IS_INPUT}"),
        ("predict m soft -o test.jsonl", IS_INPUT),
        ("predict m test.jsonl -o hard", IS_INPUT),
        ("predict m hard -o soft", IS_INPUT),
        ("predict m . -o test.jsonl", "is a file of the input folder ."),
        ("predict m test.jsonl -o m", "cannot write m: Is a directory."),
        ("predict m test.jsonl -o m/labelwood.json", IN_MODEL),
        ("predict m test.jsonl -o m/new", IN_MODEL),
        ("predict m test.jsonl -o model-by-link/new", IN_MODEL),
        ("predict m --text word -o m/new", IN_MODEL),
        ("evaluate m test.jsonl --json test.jsonl", IS_INPUT),
        ("evaluate m test.jsonl --json m/labelwood.json", IN_MODEL),
        ("train train.jsonl -m m/sub", IN_MODEL),
        ("train train.jsonl -m train.jsonl", "A file stands where a folder is needed"),
        ("train m/labelwood.json -m m --overwrite", "stands in m, which the model is to take"),
        ("train train.jsonl -m m --overwrite --config m/mine.toml", "stands in m, which the model is to take"),
        ("train train.jsonl -m new --valid new.work/held.jsonl", "new.work, which the model is to take"),
        ("train train.jsonl -m new --logs new/logs", "stands in new, which the model is to take"),
        ("train train.jsonl -m new --logs m", IS_MODEL),
        ("ensemble m m -m m/e", IN_MODEL),
        ("quickstart -m m/q", IN_MODEL),
        ("analyse m test.jsonl --out m", IS_MODEL),
        ("analyse m test.jsonl --out m/a", IN_MODEL),
        ("analyse m test.jsonl --out out", IS_INPUT),
        ("compare train.jsonl test.jsonl --methods xr-linear --out m", IS_MODEL),
        ("compare train.jsonl test.jsonl --methods xr-linear --out out", IS_INPUT),
    ],
)
def test_nothing_is_overwritten(folder, capsys, command, message):
    if "mine.toml" in command:
        (folder / "m" / "mine.toml").write_text("seed = 1\n")
    before = content(folder)
    assert main(command.split()) == 1
    found = capsys.readouterr()
    assert found.err.startswith("error: ")
    assert message in found.err
    assert found.out == ""
    assert content(folder) == before


def test_it_is_found_before_the_model_is_opened(folder, capsys):
    assert main(["predict", "no model", "test.jsonl", "-o", "test.jsonl"]) == 1
    assert IS_INPUT in capsys.readouterr().err


def test_streams_are_inputs_and_outputs_too(folder):
    before = content(folder)
    program = [sys.executable, "-m", "labelwood"]
    with (folder / "test.jsonl").open("rb") as data:
        ended = subprocess.run(
            [*program, "predict", "m", "-", "-o", "soft"], stdin=data, capture_output=True, check=False
        )
    assert (ended.returncode, b"soft is the input standard input" in ended.stderr) == (1, True)
    with (folder / "test.jsonl").open("ab") as data:
        ended = subprocess.run(
            [*program, "predict", "m", "test.jsonl"], stdout=data, stderr=subprocess.PIPE, check=False
        )
    assert (ended.returncode, b"standard output is the input test.jsonl" in ended.stderr) == (1, True)
    assert content(folder) == before


def test_what_is_no_input_is_replaced(folder):
    for _ in range(2):
        assert main(["predict", "m", "test.jsonl", "-o", "predictions.jsonl"]) == 0
        assert main(["evaluate", "m", "test.jsonl", "--json", "out/metrics.json"]) == 0
    assert main(["ensemble", "m", "-m", "m", "--overwrite"]) == 0  # as was asked for


def test_the_api_refuses_the_same(folder):
    with pytest.raises(lw.ConfigError, match="is the folder of a model"):
        lw.compare("train.jsonl", "test.jsonl", ["xr-linear"], out="m")


@pytest.mark.parametrize(
    "command",
    [
        ["train", "train.jsonl", "-m", ""], ["ensemble", "m", "-m", ""], ["ensemble", "", "-m", "e"],
        ["quickstart", "-m", ""], ["predict", "", "test.jsonl"], ["predict", "m", ""], ["evaluate", "m", ""],
        ["inspect", ""], ["verify", ""], ["plan", ""], ["train", "", "-m", "new"], ["analyse", "m", "t", "--out", ""],
        ["compare", "train.jsonl", "", "--out", "o"], ["compare", "train.jsonl", "test.jsonl", "--out", ""],
        ["train", "train.jsonl", "-m", "n", "--logs", ""], ["train", "train.jsonl", "-m", "n", "--config", ""],
        ["train", "train.jsonl", "-m", "n", "--taxonomy", ""], ["train", "train.jsonl", "-m", "n", "--valid", ""],
    ],
)  # fmt: skip
def test_an_empty_path_is_wrong_usage(folder, capsys, command):
    """An unset variable of a script must not stand for the folder that we are in (F-D22)."""
    before = content(folder)
    assert main(command) == 2
    assert "it is empty; name a file or a folder." in capsys.readouterr().err
    assert content(folder) == before


def test_an_empty_target_is_an_error(folder, capsys):
    for command in (["predict", "m", "test.jsonl", "-o", ""], ["evaluate", "m", "test.jsonl", "--json", ""]):
        assert main(command) == 1
        assert "the name of the file to write is empty" in capsys.readouterr().err


def test_compare_cannot_read_a_stream(folder, capsys):
    before = content(folder)
    assert main(["compare", "-", "test.jsonl", "--methods", "xr-linear"]) == 1
    assert "which standard input cannot give; save it first" in capsys.readouterr().err
    assert content(folder) == before


def test_compare_replaces_no_model_but_its_own(folder, capsys):
    (folder / "models").mkdir()
    lw.load("m").save("models/xr-linear")
    before = content(folder)
    given = ["compare", "train.jsonl", "test.jsonl", "--methods", "xr-linear", "--out", "."]
    assert main(given) == 1
    assert "there is a model in models/xr-linear, which no comparison in . has made" in capsys.readouterr().err
    assert content(folder) == before
    given[-1] = "fresh"
    assert main(given) == 0
    assert main([*given, "--seed", "1"]) == 0  # its own model is made anew
