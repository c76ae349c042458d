"""`labelwood compare` on toy files: rows, gains, what is not done twice, budgets, errors."""

from __future__ import annotations

import json

import pytest

import labelwood as lw
from labelwood.cli import main
from labelwood.reports.leaderboard import recipes
from small import LISTS, TEXTS


@pytest.fixture
def files(tmp_path):
    for name, some in (("train", slice(None)), ("test", slice(0, 40))):
        lines = (json.dumps({"text": t, "labels": y}) for t, y in zip(TEXTS[some], LISTS[some], strict=True))
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines) + "\n", encoding="utf-8")
    return tmp_path


def run(files, *more: str) -> int:
    given = ["compare", str(files / "train.jsonl"), str(files / "test.jsonl"), "--out", str(files / "out")]
    return main([*given, "--threads", "1", *more])


def test_a_leaderboard(files, capsys):
    steps = ("--set", "finetune.steps=2")
    chosen = ("--methods", "xr-linear,parabel:one-tree,xr-transformer", "--anchor", "xr-linear")
    assert run(files, *chosen, *steps) == 0
    found = json.loads((files / "out" / "leaderboard.json").read_text(encoding="utf-8"))
    assert {row["name"] for row in found} == {"xr-linear", "parabel:one-tree", "xr-transformer"}
    quality = [row["metrics"]["P@1"] for row in found]
    assert quality == sorted(quality, reverse=True)
    by_name = {row["name"]: row for row in found}
    assert by_name["xr-linear"]["gain"] == 0
    assert by_name["xr-transformer"]["size"] > by_name["xr-linear"]["size"] > 0
    assert by_name["xr-transformer"]["memory"] > by_name["xr-linear"]["memory"] > 1e7
    assert all(row["latency"] > 0 and row["training"] > 0 for row in found)
    assert all(row["metrics"]["intervals"]["P@1"][0] <= row["metrics"]["P@1"] for row in found)
    model = lw.load(files / "out" / "models" / "xr-transformer")
    assert model.recipe.finetune.steps == 2
    assert "over xr-linear" in capsys.readouterr().out
    stamps = {p: p.stat().st_mtime_ns for p in (files / "out").glob("*-*.json")}
    assert run(files, *chosen, *steps) == 0  # nothing is done again
    assert {p: p.stat().st_mtime_ns for p in (files / "out").glob("*-*.json")} == stamps


def test_a_budget_is_planned_once(files):
    chosen = ("--methods", "xr-linear,xr-transformer", "--time", "5s", "--set", "finetune.batch=8")
    assert run(files, *chosen) == 0
    plan = (files / "out" / "plan.json").read_text(encoding="utf-8")
    steps = json.loads(plan)["recipes"]["xr-transformer"]["finetune"]["steps"]
    assert steps >= 4  # one level
    assert run(files, *chosen) == 0
    assert (files / "out" / "plan.json").read_text(encoding="utf-8") == plan


def test_settings_of_encoders_go_to_recipes_that_have_one():
    found = recipes(["dismec", "xr-transformer"], {"encoder.max_tokens": 32, "linear.eps": 0.2}, 3)
    assert found["xr-transformer"].encoder.max_tokens == 32
    assert found["dismec"].encoder.max_tokens == 128
    assert {recipe.linear.eps for recipe in found.values()} == {0.2}
    assert {recipe.seed for recipe in found.values()} == {3}


def test_what_does_not_fit_is_refused(files, capsys):
    assert run(files, "--methods", "xr-linear,xr-linear") == 1
    assert run(files, "--methods", "xr-linear", "--anchor", "parabel") == 1
    assert run(files, "--methods", "xr-lienar") == 1
    told = capsys.readouterr().err
    assert "named twice" in told
    assert "not among the methods" in told
    assert "did you mean 'xr-linear'" in told


def test_a_method_that_fails_is_named(files, capfd):
    assert run(files, "--methods", "xr-linear", "--set", "tree.levels=500") == 1
    told = capfd.readouterr().err
    assert "sizes must grow" in told
    assert "xr-linear ended with code" in told


def test_a_method_that_fails_does_not_keep_the_others_from_the_board(files, capfd):
    given = ("--methods", "cascadexml:amazon-670k,parabel:one-tree,xr-linear", "--anchor", "cascadexml:amazon-670k")
    assert run(files, *given) == 1
    found = json.loads((files / "out" / "leaderboard.json").read_text(encoding="utf-8"))
    assert {row["name"] for row in found} == {"parabel:one-tree", "xr-linear"}
    assert "cascadexml:amazon-670k ended with code" in capfd.readouterr().err


def test_what_other_files_say_of_the_labels(files):
    """Texts of the labels, and a taxonomy as the tree; a mistake in them is told before anything is trained."""
    names = sorted({name for row in LISTS for name in row})
    texts, parents = files / "texts.tsv", files / "parents.tsv"
    texts.write_text("".join(f"{name}\tthe word{i}\n" for i, name in enumerate(names)), encoding="utf-8")
    parents.write_text("".join(f"{name}\tgroup{i % 3}\n" for i, name in enumerate(names)), encoding="utf-8")
    chosen = ("--methods", "xr-linear", "--set", "labels.kind=pifa+text")
    assert run(files, *chosen, "--label-texts", str(texts)) == 0
    assert run(files, "--methods", "xr-linear", "--taxonomy", str(parents)) == 0
    assert lw.load(files / "out" / "models" / "xr-linear").recipe.tree.kind == "taxonomy"
    before = sorted(p.name for p in (files / "out").iterdir())
    assert run(files, *chosen, "--label-texts", str(files / "nowhere.tsv")) != 0
    assert sorted(p.name for p in (files / "out").iterdir()) == before


def test_the_python_verb_returns_what_the_command_shows(files):
    options = {"out": files / "out", "settings": {"seed": 4}, "run": lw.Run(1), "anchor": "dismec"}
    board = lw.compare(files / "train.jsonl", str(files / "test.jsonl"), ["dismec", "parabel:one-tree"], **options)
    assert isinstance(board, lw.Leaderboard)
    assert all(isinstance(row, lw.Standing) for row in board.rows)
    assert [row.metrics["P@1"] for row in board.rows] == sorted((r.metrics["P@1"] for r in board.rows), reverse=True)
    assert board["dismec"].gain == 0
    assert board.failed == ()
    assert lw.load(board.folder / "models" / "parabel-one-tree").recipe.seed == 4
    assert json.loads(json.dumps(board.to_json()))[0]["name"] == board.rows[0].name
    with pytest.raises(lw.ConfigError, match=r"'dismek' is not on the board; did you mean 'dismec'"):
        board["dismek"]


def test_the_processes_of_the_methods_say_nothing_of_their_own(files, capfd):
    assert run(files, "--methods", "dismec") == 0
    assert capfd.readouterr().err == ""


def test_a_board_can_be_drawn(files):
    pytest.importorskip("matplotlib")
    board = lw.compare(files / "train.jsonl", files / "test.jsonl", ["dismec"], out=files / "out", run=lw.Run(1))
    board.draw(files / "board.svg")
    assert "dismec" in (files / "board.svg").read_text(encoding="utf-8")


def test_a_failure_is_returned_with_its_reason(files):
    chosen = ["parabel:one-tree", "xr-linear"]
    board = lw.compare(
        files / "train.jsonl", files / "test.jsonl", chosen, out=files / "out", settings={"tree.levels": (500,)},
        run=lw.Run(1),
    )  # fmt: skip
    assert board.rows == ()
    assert all(name in told and "sizes must grow" in told for name, told in zip(chosen, board.failed, strict=True))
    assert not list((files / "out").glob("*.error"))


@pytest.mark.parametrize(
    ("given", "message"),
    [
        ({"run": {"memory": "1GB"}}, r"Run\(memory=…\) cannot act in compare"),
        ({"run": {"work": "w"}}, r"Run\(work=…\) cannot act in compare"),
        ({"methods": "dismec"}, r"methods must be a list of names, but is 'dismec'; write \['dismec'\]"),
        ({"train": lw.data.from_lists(["a"], [["b"]])}, "compare reads files"),
        ({"taxonomy": "nowhere.tsv"}, "nowhere.tsv"),
    ],
)
def test_what_the_verb_cannot_use_is_refused_before_any_work(files, given, message):
    given = {"train": files / "train.jsonl", "methods": ["dismec"], **given}
    given["run"] = lw.Run(1, **given.get("run", {}))
    with pytest.raises(lw.LabelwoodError, match=message):
        lw.compare(test=files / "test.jsonl", out=files / "out", **given)
    assert not (files / "out").exists()
