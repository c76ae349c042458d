"""Without an optional package: what needs it says so before any work, and how it is installed (F-N5, F-D16, F-D17)."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from pathlib import Path

import pytest

import labelwood as lw
import tiny
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


FROZEN = Path(__file__).parent / "files" / "v1"
WITHOUT = "import sys; sys.modules.update(dict.fromkeys(sys.argv.pop(1).split(','))); from labelwood.cli import main; "


def without(packages: str, *arguments: object) -> subprocess.CompletedProcess[str]:
    """The program where these packages are not installed."""
    command = [sys.executable, "-c", f"{WITHOUT} sys.exit(main())", packages, *map(str, arguments)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


@pytest.mark.parametrize(
    ("name", "packages", "message"),
    [
        ("onnx", "onnxruntime", "needs onnxruntime, which is not installed: pip install 'labelwood[onnx]'."),
        ("onnx", "tokenizers", "needs tokenizers, which is not installed: pip install 'labelwood[onnx]'."),
        ("xr-transformer", "torch", "needs torch, which is not installed: pip install 'labelwood[neural]'."),
        ("xr-transformer", "tokenizers", "needs tokenizers, which is not installed: pip install 'labelwood[neural]'."),
    ],
)
def test_a_model_names_the_extra_that_serves_it(files, name, packages, message):
    """F-D17: a model served by ONNX Runtime asked for torch, whose extra lacks onnxruntime."""
    for more in (["predict", FROZEN / name, files / "test.jsonl", "-o", files / "out.jsonl"],
                 ["evaluate", FROZEN / name, files / "test.jsonl", "--json", files / "out.json"]):  # fmt: skip
        ended = without(packages, *more)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert ended.stderr == f"error: this model's encoder {message}\n"
    assert sorted(path.name for path in files.iterdir()) == ["test.jsonl", "train.jsonl"]


def test_a_model_served_by_onnx_needs_nothing_else():
    ended = without("torch,onnx,transformers,safetensors", "predict", FROZEN / "onnx", "--text", "word1", "-k", "1")
    assert (ended.returncode, ended.stderr) == (0, "")


def test_what_needs_no_encoder_needs_no_package():
    packages = "torch,tokenizers,onnx,onnxruntime,pyarrow"
    assert without(packages, "inspect", FROZEN / "onnx").returncode == 0
    assert without(packages, "verify", FROZEN / "xr-linear").returncode == 0


def test_verify_lets_an_encoder_read_so_it_needs_what_serves_it():
    ended = without("torch,onnxruntime", "verify", FROZEN / "onnx")
    assert ended.returncode == 1
    assert "pip install 'labelwood[onnx]'" in ended.stderr


def test_after_installing_the_extra_the_same_command_works(files):
    """F-D16: a run without torch left its workspace, and the next one was refused."""
    encoder = tiny.write(files / "encoder")
    given = ["train", files / "train.jsonl", "-m", files / "m", "--method", "xr-transformer", "--logs", files / "logs"]
    given += ["--set", f"encoder.model={encoder}", "--set", "finetune.steps=1", "--set", "encoder.max_tokens=16"]
    before = sorted(path.name for path in files.iterdir())
    for packages in ("torch", "tokenizers", "safetensors"):
        ended = without(packages, *given)
        assert (ended.returncode, ended.stdout) == (1, "")
        assert f"needs {packages}, which is not installed: pip install 'labelwood[neural" in ended.stderr
        assert sorted(path.name for path in files.iterdir()) == before
    assert without("pyarrow", *given).returncode == 0


def test_an_engine_whose_package_is_missing_leaves_nothing(files):
    """It is found once the encoder is opened: the run that was begun is taken back."""
    encoder = tiny.write(files / "encoder")
    given = ["train", files / "train.jsonl", "-m", files / "m", "--method", "xr-transformer"]
    given += ["--set", f"encoder.model={encoder}", "--set", "encoder.engine=transformers"]
    ended = without("transformers", *given)
    assert ended.returncode == 1
    assert "needs transformers, which is not installed: pip install 'labelwood[neural]'." in ended.stderr
    assert sorted(path.name for path in files.iterdir()) == ["encoder", "test.jsonl", "train.jsonl"]


def test_plan_asks_before_it_reads(files):
    ended = without("torch", "plan", files / "no such file", "--method", "xr-transformer")
    assert "xr-transformer needs torch, which is not installed" in ended.stderr


def test_parquet_names_its_extra_and_leaves_nothing(files):
    (files / "t.parquet").write_bytes(b"PAR1")
    more = ["--method", "xr-linear", "-m", files / "m", "--logs", files / "logs"]
    for data in (["t.parquet"], ["train.jsonl", "--valid", files / "t.parquet"]):
        given = ["train", files / data[0], *data[1:], *more]
        ended = without("pyarrow", *given)
        assert ended.returncode == 1
        assert "reading Parquet needs pyarrow" in ended.stderr
        assert "pip install 'labelwood[parquet]'." in ended.stderr
        assert sorted(path.name for path in files.iterdir()) == ["t.parquet", "test.jsonl", "train.jsonl"]
