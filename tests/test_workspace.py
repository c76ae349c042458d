"""The workspace: a killed run goes on where it was and ends in the same bits; the wrong run is refused (R1, R5, R6)."""

from __future__ import annotations

import shutil
import subprocess
import sys
import textwrap
import warnings
from pathlib import Path

import numpy as np
import pytest

from faults.everystep import FaultyIo, every_step, installed
from labelwood import ConfigError, StorageError
from labelwood.storage import model_folder, stage_cache
from labelwood.storage.run_folder import work_folder
from labelwood.storage.stage_cache import Workspace, digest_arrays

RUN = {"recipe": {"name": "toy", "seed": 1, "linear": {"cost": 1.0, "threshold": 0.1}}, "data": "d" * 64}


def train(folder: Path, made: list[str], *, resume: bool = False, overwrite: bool = False, run=RUN) -> None:
    """Three stages that build on each other, then the model, then the workspace is gone."""
    with Workspace(work_folder(folder)) as work:
        work.begin(run, resume=resume, overwrite=overwrite)

        def features():
            made.append("features")
            return {"x": np.arange(12, dtype=np.float32).reshape(3, 4), "n": np.array(3)}

        def tree():
            made.append("tree")
            return {"sum": first.tensors["x"].sum(0)}, {"depth": 2, "widths": (1, 4)}

        def level():
            made.append("level")
            return {"w": np.asfortranarray(first.tensors["x"] * second.tensors["sum"])}

        first = work.stage("features", {"data": run["data"]}, features)
        second = work.stage("tree", {"features": first.key, "seed": run["recipe"]["seed"]}, tree)
        third = work.stage("level-1", {"features": first.key, "tree": second.key, **run["recipe"]["linear"]}, level)
        model_folder.save(folder, second.meta, {"tree": second.tensors, "level": third.tensors})
        work.remove()


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def wanted(tmp_path) -> dict[str, bytes]:
    """The model of an uninterrupted run."""
    train(tmp_path / "wanted", [])
    assert not (tmp_path / "wanted.work").exists()
    return content(tmp_path / "wanted")


@pytest.fixture
def killed(tmp_path) -> Path:
    """A model folder whose training ended after the second stage."""
    folder = tmp_path / "model"
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(model_folder, "save", _save_twice(model_folder.save))
        with pytest.raises(StorageError, match="full"):
            train(folder, [])
    return folder


def _save_twice(save):
    left = [2]

    def limited(*args):
        if left[0] == 0:
            raise StorageError("full")
        left[0] -= 1
        save(*args)

    return limited


def test_work_folder_is_a_sibling(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert work_folder(Path("m")) == work_folder(Path("./x/../m/")) == tmp_path / "m.work"
    assert work_folder(Path()) == tmp_path.with_name(tmp_path.name + ".work")


def test_resuming_goes_on_where_it_was(killed, wanted):
    made = []
    train(killed, made, resume=True)
    assert made == ["level"]
    assert content(killed) == wanted
    assert not work_folder(killed).exists()


def test_in_memory_gives_the_same(wanted, tmp_path, monkeypatch):
    monkeypatch.setitem(train.__globals__, "work_folder", lambda folder: None)
    train(tmp_path / "model", [])
    assert content(tmp_path / "model") == wanted
    assert {path.name for path in tmp_path.iterdir()} == {"wanted", "model"}


def test_a_fresh_and_a_reused_stage_look_the_same(tmp_path):
    stages = []
    for _ in range(2):
        with Workspace(tmp_path / "w") as work:
            work.begin(RUN, resume=True, overwrite=False)
            array = np.asfortranarray(np.arange(6, dtype=">i4").reshape(2, 3))
            stages.append(work.stage("s", {"a": 1}, lambda a=array: ({"x": a, "scalar": np.array(1.5)}, {"t": (1,)})))
    fresh, reused = stages
    assert (fresh.reused, reused.reused) == (False, True)
    assert fresh.key == reused.key
    assert fresh.meta == reused.meta == {"t": [1]}
    for name in ("x", "scalar"):
        one, two = fresh.tensors[name], reused.tensors[name]
        assert (one.dtype, one.shape, one.tobytes()) == (two.dtype, two.shape, two.tobytes())
        assert one.flags.c_contiguous
        assert not one.flags.writeable
        assert not two.flags.writeable


def test_a_key_depends_on_everything(monkeypatch):
    work = Workspace(None)
    keys = [work.stage(n, i, dict).key for n in ("a", "b") for i in ({}, {"x": 1}, {"x": 1.0}, {"x": "1"}, {"y": 1})]
    monkeypatch.setattr("labelwood.__version__", "9.9.9")
    keys.append(work.stage("a", {}, dict).key)
    assert len(set(keys)) == len(keys)
    assert work.stage("a", {"b": 1, "c": 2}, dict).key == work.stage("a", {"c": 2, "b": 1}, dict).key


@pytest.mark.filterwarnings("ignore:the workspace could not be removed")
def test_a_fault_at_every_step_then_resume(tmp_path, wanted):
    folder = tmp_path / "model"

    def prepare():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.rmtree(work_folder(folder), ignore_errors=True)

    def check(what, done):
        made = []
        if not done or not folder.exists():
            with installed(FaultyIo()):
                train(folder, made, resume=True, overwrite=True)
        assert content(folder) == wanted, what

    def operation():
        train(folder, [])

    tried = every_step(prepare, operation, check, kinds=("die before", "full"))
    assert tried > 350


@pytest.mark.parametrize("step", [25, 60, 100, 140])
def test_a_run_that_is_killed_and_resumed(tmp_path, wanted, step):
    script = f"""
        import os, sys
        from pathlib import Path
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from labelwood.storage import atomic_files as disk
        from faults.everystep import FaultyIo
        from test_workspace import train
        io = disk.system = FaultyIo("die before", {step})
        io.die = lambda: os.kill(os.getpid(), 9)
        train(Path({str(tmp_path / "model")!r}), [])
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.returncode == -9, done.stderr
    train(tmp_path / "model", [], resume=True)
    assert content(tmp_path / "model") == wanted


def test_a_damaged_stage_is_made_again_with_a_warning(killed, wanted, tmp_path):
    saved = tmp_path / "saved.work"
    shutil.copytree(work_folder(killed), saved)
    files = [path for path in sorted(saved.rglob("*")) if path.is_file() and path.parent != saved]
    assert len(files) == 4  # two stages, manifest and data
    for path in files:
        data = path.read_bytes()
        for bad in (b"", data[:-1], data + b" ", bytes([data[0] ^ 1]) + data[1:], data[:-1] + bytes([data[-1] ^ 64])):
            shutil.rmtree(work_folder(killed), ignore_errors=True)
            shutil.copytree(saved, work_folder(killed))
            (work_folder(killed) / path.relative_to(saved)).write_bytes(bad)
            made = []
            with installed(FaultyIo()), pytest.warns(UserWarning, match="cannot be reused and is made again"):
                train(killed, made, resume=True)
            assert made in (["features", "level"], ["tree", "level"])
            assert content(killed) == wanted


def test_a_stage_copied_under_another_key_is_not_trusted(tmp_path):
    with Workspace(tmp_path / "w") as work:
        work.begin(RUN, resume=False, overwrite=False)
        one = work.stage("s", {"a": 1}, lambda: {"x": np.zeros(1)})
        two = stage_cache.digest_plain(
            {"name": "s", "inputs": {"a": 2}, "release": stage_cache._release(), "schema": stage_cache.STAGE_SCHEMA}
        )
        shutil.copytree(tmp_path / "w" / f"s-{one.key[:16]}", tmp_path / "w" / f"s-{two[:16]}")
        with pytest.warns(UserWarning, match="made from other inputs"):
            found = work.stage("s", {"a": 2}, lambda: {"x": np.ones(1)})
        assert (found.key, found.tensors["x"].tolist()) == (two, [1.0])


def with_change(path: str, value):
    run = {**RUN, "recipe": {**RUN["recipe"], "linear": dict(RUN["recipe"]["linear"])}}
    *way, last = path.split(".")
    table = run
    for step in way:
        table = table[step]
    if value is None:
        table.pop(last)
    else:
        table[last] = value
    return run


@pytest.mark.parametrize(
    ("path", "value", "message"),
    [
        ("recipe.seed", 2, "recipe.seed was 1 but is 2 now"),
        ("recipe.name", "bonsai", "recipe.name was 'toy' but is 'bonsai' now"),
        ("recipe.linear.cost", 2.0, "recipe.linear.cost was 1.0 but is 2.0 now"),
        ("recipe.linear.cost", 1, "recipe.linear.cost was 1.0 but is 1 now"),
        ("recipe.linear.threshold", None, "recipe.linear.threshold was 0.1 but is absent now"),
        ("recipe.linear.more", 1, "recipe.linear.more was absent but is 1 now"),
        ("recipe.linear", 5, "recipe.linear was {'cost': 1.0"),
        ("data", "e" * 64, "the training data is not the same"),
    ],
)
def test_resuming_another_run_names_the_field(killed, path, value, message):
    before = sorted(work_folder(killed).rglob("*"))
    with pytest.raises(ConfigError) as caught:
        train(killed, [], resume=True, run=with_change(path, value))
    assert message in str(caught.value)
    assert "--overwrite" in str(caught.value)
    assert sorted(work_folder(killed).rglob("*")) == before
    train(killed, [], resume=True)  # the lock was let go


def test_another_release_is_another_run(killed, monkeypatch):
    monkeypatch.setattr("labelwood.__version__", "9.9.9")
    with pytest.raises(ConfigError, match=r"release was '.*' but is '9\.9\.9' now"):
        train(killed, [], resume=True)


def test_data_digests_see_a_changed_row_and_a_changed_order():
    x = np.arange(6, dtype=np.float32).reshape(3, 2)
    changed = x.copy()
    changed[2, 1] = np.nextafter(changed[2, 1], 9)
    assert len({digest_arrays(x), digest_arrays(changed), digest_arrays(x[::-1])}) == 3


def test_a_leftover_workspace_needs_a_word(killed, wanted):
    with pytest.raises(
        ConfigError, match=r"a run is kept in .* resume \(--resume\), or start over with overwrite \(--overwrite\)"
    ):
        train(killed, [])
    made = []
    train(killed, made, overwrite=True, run=RUN)
    assert made == ["features", "tree", "level"]
    assert content(killed) == wanted


def test_resuming_nothing_starts(tmp_path, wanted):
    made = []
    train(tmp_path / "model", made, resume=True)
    assert made == ["features", "tree", "level"]
    work_folder(tmp_path / "model").mkdir()
    (work_folder(tmp_path / "model") / ".tmp-0123456789abcdef").write_bytes(b"{")  # killed in the first write
    train(tmp_path / "model", [])
    assert content(tmp_path / "model") == wanted


@pytest.mark.parametrize("text", [b"", b"{", b"\xff", None])
def test_a_damaged_run_file_costs_nothing(killed, wanted, text):
    path = work_folder(killed) / "run.json"
    path.unlink() if text is None else path.write_bytes(text)
    made = []
    with pytest.warns(UserWarning, match=r"run\.json is missing or damaged"):
        train(killed, made, resume=True)
    assert made == ["level"]
    assert content(killed) == wanted


def test_two_runs_do_not_share_a_workspace(tmp_path):
    with Workspace(tmp_path / "w") as one, Workspace(tmp_path / "w") as two:
        one.begin(RUN, resume=False, overwrite=False)
        with pytest.raises(StorageError, match="another run is at work"):
            two.begin(RUN, resume=True, overwrite=False)
        with pytest.raises(ConfigError, match="has begun already"):
            one.begin(RUN, resume=True, overwrite=False)
        one.close()
        two.begin(RUN, resume=True, overwrite=False)


def test_the_lock_of_a_dead_process_is_taken_over(tmp_path):
    script = f"""
        import os
        from pathlib import Path
        from labelwood.storage.stage_cache import Workspace
        work = Workspace(Path({str(tmp_path / "w")!r}))
        work.begin({{}}, resume=False, overwrite=False)
        print("locked", flush=True)
        input()
    """
    other = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(script)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    with other:
        assert other.stdout.readline() == "locked\n"
        with Workspace(tmp_path / "w") as work:
            with pytest.raises(StorageError, match="another run is at work"):
                work.begin({}, resume=True, overwrite=False)
            other.kill()
            other.wait()
            assert (tmp_path / "w" / "lock").exists()
            work.begin({}, resume=True, overwrite=False)


def test_foreign_files_are_never_removed(tmp_path):
    (tmp_path / "w").mkdir()
    (tmp_path / "w" / "thesis.txt").write_text("mine")
    with Workspace(tmp_path / "w") as work:
        for resume, overwrite in [(False, False), (True, False), (False, True)]:
            with pytest.raises(ConfigError, match=r"'thesis\.txt', which is not ours"):
                work.begin(RUN, resume=resume, overwrite=overwrite)
        (tmp_path / "w" / "thesis.txt").unlink()
        work.begin(RUN, resume=False, overwrite=False)
        folder = tmp_path / "w" / f"s-{work.stage('s', {}, dict).key[:16]}"
        (folder / "thesis.txt").write_text("mine")
        (tmp_path / "w" / "plan.txt").write_text("mine")
        work.remove()
    assert sorted(path.name for path in (tmp_path / "w").rglob("*")) == sorted([folder.name, "plan.txt", "thesis.txt"])


def test_a_full_disk_keeps_the_finished_stages(tmp_path, wanted):
    folder, counting = tmp_path / "model", FaultyIo()
    with installed(counting):
        train(tmp_path / "count", [])
    writes = [i + 1 for i, name in enumerate(counting.log) if name == "write"]
    with installed(FaultyIo("full", writes[5], lasting=True)), pytest.raises(StorageError, match="No space left"):
        train(folder, [])
    made = []
    train(folder, made, resume=True)
    assert made in (["level"], ["tree", "level"])
    assert content(folder) == wanted


def test_a_workspace_that_cannot_be_removed_is_no_failure(tmp_path, wanted):
    folder, counting = tmp_path / "model", FaultyIo()
    with installed(counting):
        train(tmp_path / "count", [])
    saved = max(i for i, name in enumerate(counting.log) if name == "rename") + 6  # the model is complete
    with installed(FaultyIo("broken", saved, lasting=True)), pytest.warns(UserWarning, match="could not be removed"):
        train(folder, [])
    assert content(folder) == wanted


def test_misuse(tmp_path):
    work = Workspace(tmp_path / "w")
    with pytest.raises(ConfigError, match="begin"):
        work.stage("s", {}, dict)
    with pytest.raises(ConfigError, match="cannot name a stage"):
        Workspace(None).stage("../s", {}, dict)
    with pytest.raises(ConfigError, match=r"inputs\.x must be plain data"):
        Workspace(None).stage("s", {"x": np.zeros(1)}, dict)
    with pytest.raises(ConfigError, match=r"run\.x must be plain data"):
        work.begin({"x": object()}, resume=False, overwrite=False)
    with pytest.raises(ConfigError, match="type complex128"):
        Workspace(None).stage("s", {}, lambda: {"x": np.zeros(1, complex)})
    assert list(tmp_path.iterdir()) == []


def test_descriptors_return_to_baseline(tmp_path):
    def count():
        return len(list(Path("/proc/self/fd").iterdir()))

    before = count()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for i in range(8):
            train(tmp_path / f"m{i}", [])
            model_folder.load(tmp_path / f"m{i}")
    assert count() == before


def test_copies_put_aside_keep_what_was_there(tmp_path, monkeypatch):
    """On disk or in memory, of any shape; nothing is left behind."""
    monkeypatch.setattr(stage_cache, "ASIDE_BYTES", 100)
    with Workspace(tmp_path / "w") as space:
        space.begin({}, resume=False, overwrite=False)
        for rows, on_disk in ((40, True), (2, False)):
            state = {"a": np.arange(2 * rows, dtype=np.float32).reshape(rows, 2), "b": np.zeros(0, np.int64)}
            kept = space.keeper("tune", {}).aside({**state, "c": state["a"].T, "d": np.array([7], np.uint8)})
            before = state["a"].copy()
            state["a"][:] = -1
            assert np.array_equal(kept["a"], before)
            assert np.array_equal(kept["c"], before.T)
            assert (kept["b"].shape, kept["d"].tolist()) == ((0,), [7])
            assert kept["a"].flags.writeable is not on_disk
        assert sorted(p.name for p in (tmp_path / "w").iterdir()) == ["lock", "run.json"]
        assert (space.spool(99) is None, space.spool(100) is None) == (True, False)
    assert Workspace(None).keeper("tune", {}).aside({"a": np.ones(900)})["a"].sum() == 900


def test_what_is_found_done_tells_the_seconds_it_had_taken(tmp_path, monkeypatch):
    """An interrupted training counts, too: 5 s until its state was kept, then 2 s to the end."""
    now = [0.0]
    monkeypatch.setattr(stage_cache.time, "monotonic", lambda: now[0])

    def opened(told: list[float]) -> Workspace:
        space = Workspace(tmp_path / "w", reused=told.append)
        space.begin({}, resume=True, overwrite=False)
        return space

    def make(seconds: float, *, killed: bool):
        def train(keeper):
            keeper.load()
            now[0] += seconds
            if killed:
                keeper.save({"a": np.ones(1)}, {})
                now[0] += 100  # lost
                raise KeyboardInterrupt
            return {"a": np.ones(1)}

        return train

    first: list[float] = []
    with opened(first) as space, pytest.raises(KeyboardInterrupt):
        space.training("tune", {}, make(5, killed=True))
    second: list[float] = []
    with opened(second) as space:
        space.training("tune", {}, make(2, killed=False))
    third: list[float] = []
    with opened(third) as space:
        assert space.training("tune", {}, make(9, killed=False)).reused
    assert (first, second, third) == ([], [5.0], [7.0])
