"""Every command with a standard stream that is full, closed or left, in a C locale and on odd terminals (F-D15)."""

from __future__ import annotations

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

import labelwood as lw
from labelwood.base.progress import Terminal
from labelwood.cli import main
from toy import keyword_set

COMMANDS = {  # those that print a result, and what they print of it in any case
    "train": (["train", "data.jsonl", "-m", "made", "--overwrite"], "model: made"),
    "predict": (["predict", "m", "data.jsonl"], '"label": "l\u00e1bel3"'),
    "evaluate": (["evaluate", "m", "data.jsonl", "--bootstrap", "0"], "100.00"),
    "evaluate --json -": (["evaluate", "m", "data.jsonl", "--bootstrap", "0", "--json", "-"], '"P@1": 100.0'),
    "ensemble": (["ensemble", "m", "-m", "both", "--overwrite"], "model: both"),
    "inspect": (["inspect", "m"], "labels-"),
    "verify": (["verify", "m"], "m is sound"),
    "methods": (["methods", "dismec"], "linear.threshold"),
    "plan": (["plan", "data.jsonl"], "peak memory"),
    "--help": (["--help"], "quickstart"),
    "--version": (["--version"], lw.__version__),
}
SHELL = {  # 0 is the program with its arguments
    "stdout full": 'exec "$@" > /dev/full',
    "stdout closed": 'exec "$@" >&-',
    "stderr closed": 'exec "$@" 2>&-',
    "stderr full": 'exec "$@" 2> /dev/full',
    "all closed": 'exec "$@" <&- >&- 2>&-',
}
REFUSED = {
    "stdout full": "No space left on device. Free some space and run again.",
    "stdout closed": "it is closed; send it to a file or a program.",
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of labels that are not ASCII, and its data."""
    path = tmp_path_factory.mktemp("streams")
    texts, lists = keyword_set()
    lists = [[name.replace("a", "\u00e1") for name in row] for row in lists]
    rows = (json.dumps({"text": text, "labels": row}) for text, row in zip(texts, lists, strict=True))
    (path / "data.jsonl").write_text("\n".join(rows) + "\n")
    assert main(["train", str(path / "data.jsonl"), "-m", str(path / "m")]) == 0
    return path


def run(folder: Path, arguments: list[str], how: str = 'exec "$@"', **env: str) -> subprocess.CompletedProcess[bytes]:
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("LC_", "LANG", "PYTHONIO"))}
    command = ["sh", "-c", how, "sh", sys.executable, "-m", "labelwood", *arguments]
    return subprocess.run(command, cwd=folder, env={**clean, **env}, capture_output=True, check=False)


@pytest.mark.parametrize("how", ["stdout full", "stdout closed"])
@pytest.mark.parametrize("name", COMMANDS)
def test_a_result_that_cannot_be_written_is_one_line(folder, name, how):
    ended = run(folder, COMMANDS[name][0], SHELL[how])
    assert (ended.returncode, ended.stdout) == (1, b"")
    assert ended.stderr.decode() == f"error: cannot write to standard output: {REFUSED[how]}\n"


@pytest.mark.parametrize("how", ["stderr closed", "stderr full"])
@pytest.mark.parametrize("name", ["train", "evaluate"])
def test_a_command_needs_no_standard_error(folder, name, how):
    ended = run(folder, COMMANDS[name][0], SHELL[how])
    assert ended.returncode == 0
    assert COMMANDS[name][1] in ended.stdout.decode()


@pytest.mark.parametrize("how", ["stderr closed", "stderr full", "all closed"])
@pytest.mark.parametrize(("arguments", "code"), [(["verify", "nothing"], 1), (["nonsense"], 2)])
def test_an_error_without_standard_error_is_its_exit_code(folder, arguments, code, how):
    ended = run(folder, arguments, SHELL[how])
    assert (ended.returncode, ended.stdout) == (code, b"")


def test_a_result_in_a_file_needs_no_stream(folder, tmp_path):
    ended = run(folder, ["predict", "m", "data.jsonl", "-o", str(tmp_path / "out")], SHELL["all closed"])
    assert ended.returncode == 0
    assert (tmp_path / "out").read_text(encoding="utf-8").count("\n") == 72
    assert run(folder, ["verify", "m"]).returncode == 0  # no file of ours took a stream's number


def test_closed_standard_input_is_one_line(folder):
    ended = run(folder, ["predict", "m", "-"], 'exec "$@" <&-')
    assert ended.returncode == 1
    assert re.fullmatch(r"error: standard input: it is closed[^\n]*\n", ended.stderr.decode())


@pytest.mark.parametrize("name", ["train", "plan"])
def test_a_reader_that_leaves_ends_the_command_quietly(folder, name):
    command = [sys.executable, "-m", "labelwood", *COMMANDS[name][0]]
    with subprocess.Popen(command, cwd=folder, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        assert process.stdout is not None
        assert process.stderr is not None
        process.stdout.close()
        assert process.stderr.read() == b""
    assert process.returncode == 141


@pytest.mark.parametrize("utf8", ["0", "1"])
@pytest.mark.parametrize("name", ["predict", "evaluate", "methods"])
def test_a_locale_that_cannot_spell_a_label_is_no_failure(folder, name, utf8):
    ended = run(folder, COMMANDS[name][0], LC_ALL="C", PYTHONUTF8=utf8)
    assert (ended.returncode, ended.stderr) == (0, b"")
    assert COMMANDS[name][1] in ended.stdout.decode("utf-8")


@pytest.mark.parametrize("name", ["train", "evaluate", "inspect"])
def test_a_narrow_terminal_cuts_nothing(folder, name):
    def words(text: bytes) -> list[str]:
        return re.sub(r"\d+\.\d+ s|[\d.]+ MB", "", text.decode()).split()  # times, and memory

    narrow, wide = (run(folder, COMMANDS[name][0], COLUMNS=columns) for columns in ("20", "80"))
    assert (narrow.returncode, narrow.stderr) == (0, b"")
    assert words(narrow.stdout) == words(wide.stdout)


@pytest.mark.parametrize("name", ["train", "inspect"])
def test_a_dumb_terminal_gets_plain_text(folder, name):
    ours, theirs = pty.openpty()
    command = [sys.executable, "-m", "labelwood", *COMMANDS[name][0]]
    env = {**os.environ, "TERM": "dumb", "COLUMNS": "80"}
    with subprocess.Popen(command, cwd=folder, env=env, stdin=theirs, stdout=theirs, stderr=theirs) as process:
        os.close(theirs)
        shown = b"".join(_all_of(ours))
    os.close(ours)
    assert process.returncode == 0
    assert COMMANDS[name][1].encode() in shown
    assert b"\x1b" not in shown


def _all_of(fd: int) -> Iterator[bytes]:
    while True:
        try:
            data = os.read(fd, 65536)
        except OSError:  # the other end was closed
            return
        if not data:
            return
        yield data


def test_progress_on_a_stream_that_is_not_there(monkeypatch, tmp_path):
    closed = (tmp_path / "closed").open("w")
    closed.close()
    for stream in (None, closed):
        monkeypatch.setattr(sys, "stderr", stream)
        shown = Terminal(delay=0)
        with shown.stage("work", 2) as tick:
            tick(1, 2)
        assert list(shown.timings) == ["work"]
