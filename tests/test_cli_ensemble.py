"""`labelwood ensemble`, and the other commands on what it makes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import labelwood as lw
from labelwood import cli
from labelwood.storage import model_folder
from toy import keyword_set

TEXTS, LISTS = keyword_set()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two models and their training data."""
    path = tmp_path_factory.mktemp("ensemble")
    lw.train(TEXTS, LISTS, settings={"tree.leaf": 2, "tree.branch": 2}).save(path / "tree")
    lw.train(TEXTS, LISTS, method="dismec").save(path / "flat")
    rows = ({"text": t, "labels": y} for t, y in zip(TEXTS, LISTS, strict=True))
    (path / "data.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    return path


def run(capsys: pytest.CaptureFixture[str], *args: object) -> tuple[int, Any]:
    capsys.readouterr()
    return cli.main([str(arg) for arg in args]), capsys.readouterr()


def test_models_become_one(folder, tmp_path, capsys):
    made = tmp_path / "both"
    options = ["--average", "sigmoid", "--weights", "1,3", "--candidates", "50"]
    code, found = run(capsys, "ensemble", folder / "tree", folder / "flat", "-m", made, *options)
    assert (code, found.err) == (0, "")
    assert found.out.startswith("xr-linear + dismec: sigmoid of 2 trees, 12 labels\nmodel: ")
    loaded = lw.load(made)
    assert isinstance(loaded, lw.Ensemble)
    assert loaded.config == lw.EnsembleConfig(2, "sigmoid", 50, (1.0, 3.0))
    assert {"tree", "tree_2", "tfidf", "labels", "level-1_2"} < set(model_folder.describe(made).files)
    assert "labels_2" not in model_folder.describe(made).files
    code, found = run(capsys, "predict", made, "--text", "word3 common", "-k", "1")
    assert json.loads(found.out)["labels"][0]["label"] == "label3"
    code, found = run(capsys, "evaluate", made, folder / "data.jsonl", "--json", "-")
    assert json.loads(found.out)["P@1"] == 100
    code, found = run(capsys, "verify", made)
    assert found.out.startswith(f"{made} is sound: xr-linear + dismec, 12 labels, ")
    rows = [line.split() for line in run(capsys, "inspect", made)[1].out.splitlines()]
    assert ["average", "sigmoid", "of", "2", "trees"] in rows
    assert ["tree", "2:", "dismec,", "weight", "0.75"] in rows
    assert ["1", "12", str(loaded.members[1].levels[0].nonzeros)] in rows


def test_a_model_that_is_there_stays(folder, tmp_path, capsys):
    made = tmp_path / "both"
    assert run(capsys, "ensemble", folder / "tree", "-m", made)[0] == 0
    code, found = run(capsys, "ensemble", folder / "tree", folder / "flat", "-m", made)
    assert code == 1
    assert found.err == f"error: there is a model in {made}; choose another folder, or replace it with --overwrite.\n"
    assert run(capsys, "ensemble", folder / "tree", folder / "flat", "-m", made, "--overwrite")[0] == 0
    assert len(lw.load(made).members) == 2


@pytest.mark.parametrize(
    ("args", "code", "message"),
    [
        (["tree", "--average", "median"], 2, "average must be mean or softmax"),
        (["tree", "--weights", "1,x"], 2, "weights must be"),
        (["tree", "--weights", "1,2"], 1, "gives 2 values (1.0, 2.0) for 1 trees"),
        (["nowhere"], 1, "is not a model"),
        ([], 2, "Missing argument"),
    ],
)
def test_mistakes(folder, tmp_path, capsys, monkeypatch, args, code, message):
    monkeypatch.chdir(folder)
    found = run(capsys, "ensemble", *args, "-m", tmp_path / "m")
    assert found[0] == code
    assert message in " ".join(found[1].err.replace("│", " ").split())
    assert not (tmp_path / "m").exists()


def test_several_trees_are_trained_shown_and_resumed(folder, tmp_path, capsys):
    train = ["train", folder / "data.jsonl", "-m", tmp_path / "m", "--method", "parabel", "--set", "tree.leaf=2"]
    code, found = run(capsys, *train)
    assert code == 0
    assert "tree 3: 2 → 4 → 8 → 12 (nodes by level" in found.out
    assert "tree 2 of 3, level 4 of 4" in found.out
    code, found = run(capsys, *train, "--resume")
    assert "nothing to do" in found.out
    code, found = run(capsys, *train, "--resume", "--set", "ensemble.trees=2")
    assert code == 1
    assert "ensemble.trees was 3 but is 2 now" in found.err
    assert run(capsys, "ensemble", tmp_path / "m", folder / "flat", "-m", tmp_path / "m", "--overwrite")[0] == 0
    code, found = run(capsys, *train, "--resume")
    assert code == 1
    assert "is that of another run" in found.err


def test_margins_and_probabilities_in_one_mean_are_told(folder, tmp_path, capsys):
    code, found = run(capsys, "ensemble", folder / "tree", folder / "flat", "-m", tmp_path / "mixed")
    assert code == 0
    assert found.err.startswith("warning: some of the models score by margins, others by probabilities, and their mean")
    assert "--average sigmoid, rank or round-robin" in found.err


def test_an_ensemble_of_texts_and_features_says_what_a_file_lacks(folder, tmp_path, capsys):
    lw.train(X=[[1.0, 0.0], [0.0, 1.0]], labels=[["label1"], ["label2"]]).save(tmp_path / "own")
    both = tmp_path / "both"
    assert run(capsys, "ensemble", folder / "tree", tmp_path / "own", "-m", both)[0] == 0
    for command in (["evaluate", both, folder / "data.jsonl"], ["predict", both, "--text", "word3"]):
        code, found = run(capsys, *command)
        assert (code, "others on features" in found.err) == (1, True)
