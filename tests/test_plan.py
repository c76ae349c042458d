"""Plans and memory budgets: spelling, refusals, the guard, and the figures against what a run really took."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import textwrap

import numpy as np
import pytest

import labelwood as lw
from labelwood.base import memory_budget
from labelwood.base.memory_budget import Guard, parse, show
from labelwood.base.progress import Silent
from labelwood.base.run import Run
from labelwood.cli import main
from labelwood.pipeline import levels
from labelwood.pipeline.costs import Sizes
from labelwood.planning import estimate as plan
from labelwood.planning.trial import extended
from labelwood.recipes.resolve import resolve
from test_workspace import content
from toy import contract_set, keyword_set

SIZES = Sizes(
    held=0, rows=1000, x=50_000, cols=2000, dense=0, y=3000, z=20_000, labels=100, levels=(10, 100),
    listed=(2500, 3000), model=40_000, shares=(0.2, 0.8), text=False, copied=False, spills=True, maps=False,
)  # fmt: skip


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("8GB", 8 * 10**9),
        ("8 GiB", 8 * 2**30),
        ("1.5g", 1_500_000_000),
        ("512kib", 512 * 1024),
        ("7", 7),
        (7, 7),
        (None, None),
    ],
)
def test_sizes_are_read(text, size):
    assert parse(text) == size


@pytest.mark.parametrize("text", ["", "GB", "8 XB", "-1GB", "0", "1e3GB", "8GB8", True, "9" * 90 + "TB", "inf"])
def test_what_is_no_size_is_refused(text):
    with pytest.raises(lw.ConfigError, match=r"memory"):
        parse(text)


@pytest.mark.parametrize("size", [1000, 999_000, 12_000_000, 7_500_000_000])
def test_what_is_shown_can_be_read(size):
    assert parse(show(size)) == size


def test_memory_that_is_held_is_seen():
    before = memory_budget.held()
    block = np.ones(8 * 2**20)  # 64 MB
    assert 60 * 2**20 < memory_budget.held() - before < 70 * 2**20
    del block


def test_the_guard_stops_a_stage_that_passes_the_budget():
    guard = Guard(Silent(), memory_budget.held() + 50 * 2**20)
    with guard.stage("small") as tick:
        tick(0, 1)
    with guard.stage("large") as tick:
        block = np.ones(8 * 2**20)
        with pytest.raises(lw.BudgetError, match=r"stage 'large'.*resume"):
            tick(0, 1)
        del block
    assert list(guard.timings) == ["small", "large"]


def test_a_stage_that_ends_above_the_budget_is_stopped_too():
    with pytest.raises(lw.BudgetError), Guard(Silent(), memory_budget.held() + 50 * 2**20).stage("quiet"):
        block = np.ones(8 * 2**20)
    del block


def test_a_budget_that_is_too_small_is_refused_before_anything_is_written(tmp_path):
    with pytest.raises(lw.BudgetError, match=r"needs about [\d.]+[KMG]B.*budget is 1MB"):
        lw.train(*keyword_set(), run=lw.Run(memory="1MB", work=tmp_path / "work"))
    assert not (tmp_path / "work").exists()
    with pytest.raises(lw.BudgetError, match="work=FOLDER"):
        lw.train(*keyword_set(), run=lw.Run(memory="1MB"))


@pytest.mark.parametrize("norm", ["none", "l2"])
def test_a_budget_changes_no_byte(tmp_path, norm):
    rng = np.random.default_rng(0)
    x, y = rng.random((60, 8)).astype(np.float32), (rng.random((60, 6)) < 0.3).astype(np.float32)
    y[:6] = np.eye(6)
    given = {"X": x, "labels": y, "settings": {"features.norm": norm, "tree.levels": (2,)}}
    lw.train(**given).save(tmp_path / "plain")
    lw.train(**given, run=lw.Run(memory="4GB", work=tmp_path / "work")).save(tmp_path / "bounded")
    assert content(tmp_path / "plain") == content(tmp_path / "bounded")


def test_a_run_stopped_by_its_budget_can_be_resumed(tmp_path, monkeypatch):
    texts, labels = contract_set()
    settings, work = {"tree.levels": (2, 6)}, tmp_path / "work"
    lw.train(texts, labels, settings=settings).save(tmp_path / "wanted")
    progress = Silent()
    monkeypatch.setattr(memory_budget, "held", lambda: 2**50 if "level 2 of 3" in progress.timings else 0)
    with pytest.raises(lw.BudgetError, match="level 2 of 3"):
        lw.train(texts, labels, settings=settings, run=lw.Run(memory="1GB", progress=progress, work=work))
    monkeypatch.undo()
    kept = sorted(path.name.rsplit("-", 1)[0] for path in (tmp_path / "work").iterdir())
    assert kept == ["features", "level-1", "lock", "run.json", "tree"]
    resumed = lw.train(texts, labels, settings=settings, run=lw.Run(memory="4GB", work=work, resume=True))
    resumed.save(tmp_path / "resumed")
    assert content(tmp_path / "wanted") == content(tmp_path / "resumed")


def test_fewer_threads_where_they_make_it_fit(monkeypatch):
    sizes = dataclasses.replace(SIZES, cols=10**7)
    monkeypatch.setattr(plan, "_measured", lambda *_: plan.Measured(sizes))
    needs = [plan._planned(plan.Measured(sizes), resolve(), threads).memory for threads in (1, 2, 3)]
    assert needs == sorted(set(needs))
    run = Run(threads=3, memory=needs[1])
    assert plan.within(None, resolve(), run).threads == 2
    with pytest.raises(lw.BudgetError, match=show(needs[0])):
        plan.within(None, resolve(), dataclasses.replace(run, memory=needs[0] - 1))


def test_a_refusal_names_the_bound_that_would_fit(monkeypatch):
    sizes = dataclasses.replace(SIZES, z=10**8)
    monkeypatch.setattr(plan, "_measured", lambda *_: plan.Measured(sizes))
    with pytest.raises(lw.BudgetError, match=r"labels\.top = (\d+)") as caught:
        plan.within(None, resolve(), Run(threads=1, memory=10**8))
    top = int(str(caught.value).split("labels.top = ")[1].split()[0])
    bounded = plan.Measured(dataclasses.replace(sizes, z=100 * top))
    assert plan._planned(bounded, resolve(), 1).memory <= 10**8


def test_memory_by_hand():
    """Level 1 of SIZES with one thread, term by term."""
    matrices = 16 * (2500 + 1000 + 1000)
    cluster = 1000 * (8 * 50 + 24) + 4 * 2000
    solver = 64 * (2000 + 1000) + 5 * 2000 + 4 * 1000
    weights = 4 * 40_000 * 0.2
    assert levels.costs(SIZES)[0].memory == matrices + cluster + solver + weights
    parts = {part.name: part for part in plan._planned(plan.Measured(SIZES), resolve(), 1).parts}
    assert parts["level 1"].memory == int(1.1 * (matrices + cluster + solver + weights) + 8 * 2**20)


def test_time_is_found_by_the_name_of_the_stage_not_by_its_title():
    """Level 1 has the work of 1,000 documents × 10 clusters, level 2 that of 2,500 × 100 / 10."""
    measured = plan.Measured(SIZES, {"tree": 3.0, "label-features": 5.0, "level": 7.0})
    parts = {part.name: part.cpu_seconds for part in plan._planned(measured, resolve(), 1).parts}
    assert parts["label tree"] == 3
    assert parts["label features"] == 5
    assert parts["level 1"] == pytest.approx(7 * 10_000 / 35_000)
    assert parts["level 2"] == pytest.approx(7 * 25_000 / 35_000)


@pytest.mark.parametrize(
    ("values", "rows", "wanted"),
    [((1, 2, 100, 200), 800, 8), ((1, 9, 100, 200), 400, 9 * 2**1.4), ((0, 0, 1, 2), 9, 0), ((1, 2, 5, 10), 10, 2)],
)
def test_drawing_out(values, rows, wanted):
    assert extended(*values, rows) == pytest.approx(wanted)


def test_the_command_line(tmp_path, capsys):
    lines = [f'{{"text": "{text}", "labels": ["{label[0]}"]}}' for text, label in zip(*keyword_set(), strict=True)]
    (tmp_path / "train.jsonl").write_text("\n".join(lines))
    assert main(["plan", str(tmp_path / "train.jsonl"), "--memory", "4GB", "--set", "tree.levels=2"]) == 0
    said = capsys.readouterr().out
    assert "level 2" in said
    assert "peak memory: " in said
    assert "budget: 4.0 GB, enough" in said
    command = ["train", str(tmp_path / "train.jsonl"), "--model", str(tmp_path / "m")]
    assert main([*command, "--memory", "1MB"]) == 1
    assert "the budget of 1MB" in capsys.readouterr().err
    assert sorted(path.name for path in tmp_path.iterdir()) == ["train.jsonl"]
    assert main([*command, "--memory", "4GB"]) == 0


PEAK = """
    import sys, threading, time
    import numpy as np, scipy.sparse as sp
    import labelwood as lw
    from labelwood.base import memory_budget as budget

    rows, cols, labels, words = map(int, sys.argv[1:])
    rng = np.random.default_rng(0)
    topic = rng.integers(labels, size=(rows, 3))
    column = np.where(rng.random((rows, words)) < 0.5, topic[:, :1] * 7 + rng.integers(20, size=(rows, words)),
                      rng.integers(cols, size=(rows, words))) % cols
    x = sp.csr_matrix((np.ones(rows * words, "f4"), column.ravel(), np.arange(rows + 1) * words), (rows, cols))
    y = sp.csr_matrix((np.ones(rows * 3, "f4"), topic.ravel(), np.arange(rows + 1) * 3), (rows, labels))
    x.sum_duplicates(), y.sum_duplicates()
    found = lw.plan(X=x, labels=y, run=lw.Run(2))
    top, done = [0], threading.Event()

    def watch():
        while not done.wait(0.003):
            top[0] = max(top[0], budget.held())

    watcher = threading.Thread(target=watch)
    watcher.start()
    lw.train(X=x, labels=y, run=lw.Run(2))
    done.set(), watcher.join()
    print(found.memory, top[0])
"""


@pytest.mark.parametrize("shape", [(20_000, 20_000, 2000, 100), (30_000, 5000, 8000, 20)])
def test_the_plan_is_near_the_peak(shape):
    """Never more than 10 % below it, nor more than 40 % above."""
    ran = subprocess.run(
        [sys.executable, "-c", textwrap.dedent(PEAK), *map(str, shape)], capture_output=True, text=True, check=True
    )
    planned, peak = map(int, ran.stdout.split())
    assert 0.9 * peak <= planned <= 1.4 * peak


@pytest.mark.parametrize(
    "settings",
    [
        {"tree.leaf": 8, "tree.branch": 4, "linear.threshold": "0.1,0.2,0.3,0.4"},
        {"tree.levels": "8-64-128"},
        {"tree.levels": 64},
    ],
)
def test_settings_by_level_are_those_of_all_labels_not_of_the_sample(settings):
    """A sample has fewer labels, so its tree may have fewer levels."""
    texts, labels = keyword_set(labels=400, docs=4)
    found = lw.plan(texts, labels, settings=settings)
    model = lw.train(texts, labels, settings=settings, run=lw.Run(memory="64GB"))
    assert sum(part.name.startswith("level ") for part in found.parts) == model.members[0].tree.depth


def test_lists_that_do_not_fit_the_tree_of_all_labels_are_refused():
    with pytest.raises(lw.ConfigError, match=r"gives 2 values .* but the tree has 4 levels"):
        lw.plan(*keyword_set(400, 4), settings={"tree.leaf": 8, "tree.branch": 4, "linear.threshold": "0.1,0.2"})


def test_a_plan_knows_taxonomies_and_label_texts(tmp_path, capsys):
    texts, labels = keyword_set()
    data, parents = tmp_path / "data.txt", tmp_path / "parents.tsv"
    data.write_text("".join(f"__label__{y[0]} {t}\n" for t, y in zip(texts, labels, strict=True)))
    parents.write_text("".join(f"label{i}\tgroup{i % 3}\n" for i in range(12)))
    options = ["--taxonomy", str(parents), "--label-texts", str(parents), "--set", "labels.kind=pifa+text"]
    assert main(["plan", str(data), *options]) == 0
    out = capsys.readouterr().out
    assert "a taxonomy of 15 nodes, 12 of 12 labels in it" in out
    assert "level 2" in out
    by_hand = {f"label{i}": f"group{i % 3}" for i in range(12)}
    found = lw.plan(texts, labels, taxonomy=by_hand, label_texts=by_hand, settings={"labels.kind": "text"})
    assert "level 2" in [part.name for part in found.parts]
