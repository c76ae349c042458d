"""The logger: silent until asked, then what a run did; and the version, which stands in one place."""

from __future__ import annotations

import importlib.metadata
import logging
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import labelwood as lw
from labelwood.base.progress import QUIET, Silent
from toy import keyword_set

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.parametrize(
    "begin", ["", "import logging; logging.basicConfig(level='DEBUG', format='%(name)s %(message)s')"]
)
def test_the_library_is_quiet_until_it_is_asked(begin, tmp_path):
    code = f"""
{begin}
import labelwood as lw
model = lw.train(["ab cd", "ab ef"] * 4, [["x"], ["y"]] * 4, run=lw.Run(1))
model.save({str(tmp_path / "m")!r})
lw.load({str(tmp_path / "m")!r}).predict(["ab cd"])
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == ""
    if not begin:
        assert done.stderr == ""
        return
    ours = [line.removeprefix("labelwood ") for line in done.stderr.splitlines() if line.startswith("labelwood ")]
    assert ours[0] == "training xr-linear on 8 documents with 2 labels"
    assert any(re.fullmatch(r"stage label tree: \d+\.\d\d s", line) for line in ours)
    assert any(re.fullmatch(r"trained xr-linear on 8 documents in \d+\.\d s", line) for line in ours)
    assert any(line.startswith("saved <labelwood.Model xr-linear") for line in ours)
    assert any(line.startswith("opening the model in") for line in ours)


def test_the_logger_has_a_handler_that_says_nothing():
    """So that Python's handler of last resort never speaks for it."""
    handlers = logging.getLogger("labelwood").handlers
    assert [type(handler) for handler in handlers] == [logging.NullHandler]


def test_no_text_of_a_user_is_logged(caplog, tmp_path):
    caplog.set_level(logging.DEBUG, logger="labelwood")
    texts, labels = keyword_set()
    model = lw.train([f"secret {text}" for text in texts], labels, run=lw.Run(1, progress=Silent()))
    model.predict(["secret word1"])
    told = "\n".join(record.getMessage() for record in caplog.records)
    assert "stage predicting" in told
    assert "secret" not in told
    assert not [name for row in labels for name in row if name in told]


def test_lines_left_out_are_logged(caplog, tmp_path):
    caplog.set_level(logging.INFO, logger="labelwood")
    path = tmp_path / "d.jsonl"
    path.write_text('{"text": "a", "labels": ["b"]}\n{"text": 3}\n', encoding="utf-8")
    lw.read_data(path, lw.ReadOptions(on_bad="skip"))
    assert [record.getMessage() for record in caplog.records] == [
        f"read {path} as jsonl",
        f"{path}: 1 lines skipped, 0 with replaced bytes",
    ]


def test_quiet_progress_logs_only_when_someone_listens(caplog):
    caplog.set_level(logging.INFO, logger="labelwood")
    assert QUIET.stage("a") is QUIET.stage("b")
    caplog.set_level(logging.DEBUG, logger="labelwood")
    with QUIET.stage("slow"):
        pass
    assert [record.getMessage().partition(":")[0] for record in caplog.records] == ["stage slow"]


def test_the_version_stands_in_one_place():
    """pyproject.toml reads it from the package; what was installed, and how to cite it, say the same."""
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    assert project["project"]["dynamic"] == ["version"]
    assert "version" not in project["project"]
    assert importlib.metadata.version("labelwood") == lw.__version__, "run: touch pyproject.toml && make"
    cited = re.search(r"^version: (\S+)$", (ROOT / "CITATION.cff").read_text(encoding="utf-8"), re.MULTILINE)
    assert cited is not None
    assert cited[1] == lw.__version__
