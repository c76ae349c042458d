"""`labelwood train` killed at any moment, resumed with another number of threads: the very same model (R1, R4, R6, R7).

A small server process has the library loaded and forks a child for every run, so that a run costs its training only.
"""

from __future__ import annotations

import dataclasses
import hashlib
import json
import random
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

import labelwood as lw
from labelwood import cli
from labelwood.base.progress import Silent
from labelwood.cli.streams import Stopped
from labelwood.data import Dataset, from_lists, from_matrix
from labelwood.pipeline.training_set import prepare
from toy import keyword_set

# One JSON request per line: run main(args) in a child; once `when` (a glob) has a match and `after` seconds are over,
# send `signal`. Answers [exit code, seconds from the signal to the end]. The child is not reaped before it was
# signalled, so the signal can hit nobody else.
SERVER = """
import json, os, signal, sys, time
from glob import glob
from labelwood.cli import main

signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner in the background may have it ignored

for line in sys.stdin:
    ask = json.loads(line)
    pid = os.fork()
    if pid == 0:
        fd = os.open(ask["log"], os.O_WRONLY | os.O_CREAT | os.O_TRUNC)
        os.dup2(fd, 1), os.dup2(fd, 2)
        os._exit(main(ask["args"]))
    over = lambda: os.waitid(os.P_PID, pid, os.WEXITED | os.WNOWAIT | os.WNOHANG) is not None
    sent = None
    if ask["signal"]:
        while not glob(ask["when"]) and not over():
            time.sleep(0.0002)
        time.sleep(ask["after"])
        sent = time.monotonic()
        os.kill(pid, ask["signal"])
    _, status = os.waitpid(pid, 0)
    print(json.dumps([os.waitstatus_to_exitcode(status), sent and time.monotonic() - sent]), flush=True)
"""

SETTINGS = ["tree.branch=4", "tree.leaf=16", "shortlist.source=union", "linear.eps=0.000001", "linear.max_iter=60"]
KILLED = -signal.SIGKILL


class Runs:
    """Trains in one folder, over and over."""

    def __init__(self, folder: Path) -> None:
        self.folder, self.model, self.work = folder, folder / "model", folder / "model.work"
        self.data, self.log = folder / "train.jsonl", folder / "log"
        self.data.write_text(_lines(), encoding="utf-8")
        self._server = subprocess.Popen(
            [sys.executable, "-c", SERVER], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )

    def args(self, *more: str, threads: int = 2) -> list[str]:
        sets = [word for setting in SETTINGS for word in ("--set", setting)]
        return ["train", str(self.data), "--model", str(self.model), "--threads", str(threads), *sets, *more]

    def run(self, args: list[str], number: int = 0, *, when: Path | None = None, after: float = 0.0) -> int:
        """The exit code; negative if a signal ended the process."""
        return self.timed(args, number, when=when, after=after)[0]

    def timed(self, args: list[str], number: int, *, when: Path | None = None, after: float) -> tuple[int, float]:
        ask = {"args": args, "log": str(self.log), "signal": number, "when": str(when or self.folder), "after": after}
        assert self._server.stdin is not None
        assert self._server.stdout is not None
        self._server.stdin.write(json.dumps(ask) + "\n")
        self._server.stdin.flush()
        code, seconds = json.loads(self._server.stdout.readline())
        return code, seconds

    def said(self) -> str:
        return self.log.read_text(encoding="utf-8")

    def digests(self) -> dict[str, str]:
        return {p.name: hashlib.sha256(p.read_bytes()).hexdigest() for p in sorted(self.model.iterdir())}

    def clean(self) -> None:
        for folder in (self.model, self.work):
            shutil.rmtree(folder, ignore_errors=True)

    def close(self) -> None:
        assert self._server.stdin is not None
        self._server.stdin.close()
        self._server.wait()


def _lines() -> str:
    """Documents that say the words of their labels, and others: nothing can be separated in a few passes."""
    rng = random.Random(5)
    lines = []
    for _ in range(600):
        labels = rng.sample(range(150), 3)
        words = [f"w{label}v{rng.randrange(3)}" for label in labels] + [f"n{rng.randrange(400)}" for _ in range(25)]
        lines.append(json.dumps({"text": " ".join(words), "labels": [f"l{label}" for label in labels]}))
    return "\n".join(lines) + "\n"


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Runs]:
    made = Runs(tmp_path_factory.mktemp("runs"))
    yield made
    made.close()


@pytest.fixture(scope="module")
def whole(runs: Runs) -> tuple[dict[str, str], float]:
    """Digests of the files of a run that nobody disturbed, and how long it takes."""
    runs.clean()
    assert runs.run(runs.args()) == 0, runs.said()
    digests = runs.digests()
    assert not runs.work.exists()
    runs.clean()
    start = time.monotonic()
    assert runs.run(runs.args()) == 0
    return digests, time.monotonic() - start


@pytest.fixture(autouse=True)
def _clean(runs: Runs) -> None:
    runs.clean()


def _finish(runs: Runs, whole: tuple[dict[str, str], float], threads: int) -> None:
    assert runs.run(runs.args("--resume", threads=threads)) == 0, runs.said()
    assert runs.digests() == whole[0]
    assert not runs.work.exists()


POINTS = [
    "model.work/run.json",
    "model.work/features-*/.tmp-*",
    "model.work/features-*/labelwood.json",
    "model.work/tree-*/labelwood.json",
    "model.work/level-1-*/labelwood.json",
    "model.work/level-2-*/labelwood.json",
    "model.work/level-3-*/.tmp-*",
    "model.work/level-3-*/labelwood.json",
    "model/*.safetensors",
    "model/labelwood.json",
]


@pytest.mark.parametrize("point", POINTS)
def test_killed_when_a_file_appears(runs: Runs, whole: tuple[dict[str, str], float], point: str) -> None:
    code = runs.run(runs.args(threads=2), signal.SIGKILL, when=runs.folder / point)
    # What appears only for a moment, or at the very end, may be seen too late.
    late = ".tmp-" in point or point.startswith("model/")
    assert code == KILLED or (late and code == 0)
    _finish(runs, whole, threads=1)


@pytest.mark.parametrize("seed", range(14))
def test_killed_at_a_random_moment(runs: Runs, whole: tuple[dict[str, str], float], seed: int) -> None:
    moment = random.Random(seed).uniform(0, 0.95 * whole[1])
    code = runs.run(runs.args(threads=2), signal.SIGKILL, after=moment)
    assert code in {KILLED, 0}
    _finish(runs, whole, threads=1 + seed % 3)


@pytest.mark.parametrize("seed", range(3))
def test_killed_again_and_again(runs: Runs, whole: tuple[dict[str, str], float], seed: int) -> None:
    rng = random.Random(100 + seed)
    codes = []
    for kill in range(3):
        more = ["--resume"] if kill else []
        args = runs.args(*more, threads=rng.choice([1, 2, 3]))
        codes.append(runs.run(args, signal.SIGKILL, after=rng.uniform(0.1, 0.6) * whole[1]))
    assert KILLED in codes
    _finish(runs, whole, threads=2)


def test_most_random_kills_hit_the_training(whole: tuple[dict[str, str], float]) -> None:
    """If training were a blink, the tests above would show nothing."""
    assert whole[1] > 0.1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_ends_the_run_cleanly(runs: Runs, whole: tuple[dict[str, str], float], number: int, code: int) -> None:
    tree = runs.work / "tree-*" / "labelwood.json"
    assert runs.run(runs.args(), number, when=tree) == code
    assert not runs.model.exists()
    assert not list(runs.work.rglob(".tmp-*"))
    assert f"stopped: finished stages are kept in {runs.work}; the same command with --resume" in runs.said()
    assert "Traceback" not in runs.said()
    _finish(runs, whole, threads=3)


def test_stopped_before_a_stage_was_finished(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def stop(*args: object, **options: object) -> None:
        raise Stopped(signal.SIGINT)

    data = tmp_path / "t.jsonl"
    data.write_text(_lines(), encoding="utf-8")
    monkeypatch.setattr("labelwood.parts.tfidf.Tfidf.fit", stop)
    assert cli.main(["train", str(data), "--model", str(tmp_path / "m")]) == 130
    said = capsys.readouterr().err
    assert said.startswith(f"stopped: no stage was finished, but the run is kept in {tmp_path}/m.work;")


def test_the_api_resumes_and_starts_over(tmp_path: Path) -> None:
    work, (texts, labels) = tmp_path / "work", keyword_set()
    first = lw.train(texts, labels, run=lw.Run(work=work))
    with pytest.raises(
        lw.ConfigError, match=r"a run is kept in .*/work; continue or reuse it with resume \(--resume\)"
    ):
        lw.train(texts, labels, run=lw.Run(work=work))
    with pytest.raises(lw.ConfigError, match=r"recipe.seed was 0 but is 3 now; .* overwrite"):
        lw.train(texts, labels, run=lw.Run(work=work, resume=True), seed=3)
    again = Silent()
    assert lw.train(texts, labels, run=lw.Run(work=work, resume=True, progress=again)).labels == first.labels
    assert again.timings == {}  # every stage was there
    over = Silent()
    assert lw.train(texts, labels, run=lw.Run(work=work, overwrite=True, progress=over), seed=3).recipe.seed == 3
    assert "label tree" in over.timings
    for wrong in ({"resume": True}, {"overwrite": True}, {"work": work, "resume": True, "overwrite": True}):
        with pytest.raises(lw.ConfigError, match="one of the two, goes with work=FOLDER"):
            lw.train(texts, labels, run=lw.Run(**wrong))  # type: ignore[arg-type]


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_signal_is_heard_within_a_second_in_native_code(runs: Runs, number: int, code: int) -> None:
    endless = ["--set", "linear.eps=1e-30", "--set", "linear.max_iter=1000000"]
    found, seconds = runs.timed(runs.args(*endless), number, when=runs.work / "tree-*" / "labelwood.json", after=0.3)
    assert found == code, runs.said()
    assert seconds < 2


def test_resuming_a_finished_run_says_so(runs: Runs, whole: tuple[dict[str, str], float]) -> None:
    assert runs.run(runs.args("--resume")) == 0  # nothing there: starts afresh
    times = {p.name: p.stat().st_mtime_ns for p in runs.model.iterdir()}
    assert runs.run(runs.args("--resume")) == 0
    assert "already trained" in runs.said()
    assert {p.name: p.stat().st_mtime_ns for p in runs.model.iterdir()} == times
    assert runs.digests() == whole[0]


def test_resuming_a_finished_run_tidies_up(runs: Runs, whole: tuple[dict[str, str], float]) -> None:
    """Killed at the very end: before old files were removed, or when only the lock was left of the workspace."""
    assert runs.run(runs.args()) == 0
    runs.work.mkdir()
    (runs.work / "lock").touch()
    (runs.model / ".tmp-0123456789abcdef").touch()
    (runs.model / "tree-0123456789abcdef.safetensors").touch()
    _finish(runs, whole, threads=1)
    assert "already trained" in runs.said()


def _changed(runs: Runs, tmp_path: Path, old: str, new: str) -> Path:
    text = runs.data.read_text(encoding="utf-8")
    assert old in text
    path = tmp_path / "changed.jsonl"
    path.write_text(text.replace(old, new, 1), encoding="utf-8")
    return path


def _refused(args: list[str], capsys: pytest.CaptureFixture[str]) -> str:
    capsys.readouterr()
    assert cli.main([*args, "--resume"]) == 1
    return capsys.readouterr().err


def test_another_run_is_not_resumed(runs: Runs, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    tree = runs.work / "tree-*" / "labelwood.json"
    assert runs.run(runs.args(), signal.SIGKILL, when=tree) == KILLED
    before = sorted(runs.work.rglob("*"))
    cases = {
        ("--seed", "7"): "recipe.seed was 0 but is 7 now",
        ("--set", "linear.cp=2"): "recipe.linear.cp was 1.0 but is 2.0 now",
        ("--set", "tree.leaf=17"): "recipe.tree.leaf was 16 but is 17 now",
    }
    for more, message in cases.items():
        assert message in _refused(runs.args(*more), capsys)
    for old, new in (('l7"', 'l7x"'), ("w1v", "w1x")):
        args = runs.args()
        args[1] = str(_changed(runs, tmp_path, old, new))
        assert f"cannot resume {runs.work}: the training data is not the same;" in _refused(args, capsys)
    assert sorted(runs.work.rglob("*")) == before

    assert cli.main(runs.args()) == 1  # neither flag: nothing is thrown away
    assert f"a run is kept in {runs.work}; continue or reuse it with resume (--resume)" in capsys.readouterr().err
    assert cli.main(runs.args("--seed", "7", "--overwrite")) == 0
    assert not runs.work.exists()


def test_another_finished_model_is_not_resumed(runs: Runs, capsys: pytest.CaptureFixture[str]) -> None:
    assert cli.main(runs.args()) == 0
    before = runs.digests()
    error = _refused(runs.args("--seed", "7"), capsys)
    assert "is that of another run, recipe.seed was 0 but is 7 now" in error
    assert runs.digests() == before


def test_an_overwriting_run_resumes_over_the_old_model(runs: Runs, whole: tuple[dict[str, str], float]) -> None:
    assert runs.run(runs.args("--seed", "7")) == 0
    old = runs.digests()
    level = runs.work / "level-1-*" / "labelwood.json"
    assert runs.run(runs.args("--overwrite"), signal.SIGKILL, when=level) == KILLED
    assert runs.digests() == old
    _finish(runs, whole, threads=1)


def test_a_kept_workspace_is_resumed_from(runs: Runs, whole: tuple[dict[str, str], float]) -> None:
    assert runs.run(runs.args("--keep-work")) == 0
    stages = sorted(path.name.rsplit("-", 1)[0] for path in runs.work.iterdir() if path.is_dir())
    assert stages == ["features", "level-1", "level-2", "level-3", "tree"]
    shutil.rmtree(runs.model)
    _finish(runs, whole, threads=1)
    assert "label tree" not in runs.said()  # no stage ran again


def test_a_damaged_stage_is_made_again(runs: Runs, whole: tuple[dict[str, str], float]) -> None:
    assert runs.run(runs.args("--keep-work")) == 0
    shutil.rmtree(runs.model)
    [file] = runs.work.glob("level-2-*/tensors-*.safetensors")
    file.write_bytes(file.read_bytes()[:-1] + b"\xff")
    _finish(runs, whole, threads=1)
    assert "warning: a finished stage cannot be reused and is made again" in runs.said()


def _key(data: Dataset) -> str:
    return prepare(data).data_key


def test_the_key_of_the_data_covers_all_that_is_trained_on() -> None:
    texts = from_lists(["a b", "b c"], [["x"], ["y"]])
    keys = {_key(texts)}
    for values in ([[1.0], [2.0]], [[1.0], [3.0]]):
        features = from_matrix(np.array(values, np.float32), [["x"], ["y"]]).features
        keys.add(_key(dataclasses.replace(texts, features=features)))
        keys.add(_key(dataclasses.replace(texts, texts=None, features=features)))
    assert len(keys) == 5


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)])
def test_a_stopped_prediction_leaves_nothing(runs: Runs, tmp_path: Path, number: int, code: int) -> None:
    assert runs.run(runs.args()) == 0
    many, out = tmp_path / "many.jsonl", tmp_path / "out"
    many.write_text(runs.data.read_text(encoding="utf-8") * 100, encoding="utf-8")
    out.mkdir()
    args = ["predict", str(runs.model), str(many), "-o", str(out / "found.jsonl"), "--threads", "1"]
    assert runs.run(args, number, when=out / ".tmp-*") == code, runs.said()
    assert list(out.iterdir()) == []
    assert runs.said() == f"stopped: by {'Ctrl-C' if number == signal.SIGINT else 'SIGTERM'}\n"
