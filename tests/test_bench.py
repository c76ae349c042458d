"""What is cheap to check of bench/: the generator's counts and determinism, the scoreboard's sums and time limit."""

from __future__ import annotations

import os
import sys
import time
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest
from scipy import sparse

import labelwood as lw

BENCH = Path(__file__).resolve().parents[1] / "bench"
if not BENCH.is_dir():
    pytest.skip("the source archive comes without bench/", allow_module_level=True)
sys.path.append(str(BENCH))

import cells  # noqa: E402
import report  # noqa: E402
import synthetic  # noqa: E402

TINY = synthetic.SHAPES["670k"].scaled(Fraction(1, 1024))


@pytest.fixture(scope="module")
def tiny():
    return synthetic.generate(TINY, seed=3)


def test_sizes_of_a_synthetic_set(tiny):
    assert (TINY.documents, TINY.labels, TINY.features) == (479, 654, 4247)
    assert tiny["X.trn"].shape == (479, 4247)
    assert tiny["Y.trn"].shape == (479, 654)
    assert tiny["X.tst"].shape == (100, 4247)
    assert tiny["Y.tst"].shape == (100, 654)
    for name in ("X.trn", "X.tst"):
        assert np.allclose(tiny[name].multiply(tiny[name]).sum(axis=1), 1, atol=1e-5)
    for matrix in tiny.values():
        assert matrix.has_canonical_format
        assert np.diff(matrix.indptr).min() >= 1  # every document has words and labels


def test_averages_and_tail_of_a_synthetic_set(tiny):
    y, x = tiny["Y.trn"], tiny["X.trn"]
    assert y.nnz / y.shape[0] == pytest.approx(5.45, rel=0.05)
    assert x.nnz / x.shape[0] == pytest.approx(75, rel=0.05)
    assert set(y.data) == {1.0}
    counts = synthetic.label_counts(TINY)
    assert counts.mean() == pytest.approx(479 * 5.45 / 654, rel=0.05)
    assert (np.diff(counts) <= 0).all()
    assert counts.min() == 1
    assert 1 <= np.median(counts) <= 5


def test_a_synthetic_set_follows_from_its_seed(tiny):
    again, other = synthetic.generate(TINY, seed=3), synthetic.generate(TINY, seed=4)
    for name, matrix in tiny.items():
        assert (matrix != again[name]).nnz == 0
    assert (tiny["X.trn"] != other["X.trn"]).nnz > 0


def test_blocks_do_not_change_a_synthetic_set(tiny, monkeypatch):
    monkeypatch.setattr(synthetic, "BLOCK", 37)
    again = synthetic.generate(TINY, seed=3)
    assert all((matrix != again[name]).nnz == 0 for name, matrix in tiny.items())


def test_the_planted_topics_can_be_learnt(tiny, tmp_path):
    synthetic.write(tmp_path / "set", "670k", Fraction(1, 512), 0)
    data = lw.read_data(tmp_path / "set")
    seen = np.unique(sparse.load_npz(tmp_path / "set" / "Y.trn.npz").indices)
    assert (len(data), data.features.sparse_cols, data.labels.cols) == (958, 6006, len(seen))
    model = lw.train(X=tiny["X.trn"], labels=tiny["Y.trn"], run=lw.Run(1))
    ids, _ = model.predict_arrays(X=tiny["X.tst"], k=1)
    truth = tiny["Y.tst"].tocsr()
    right = np.mean([truth[i, int(model.labels[ids[i, 0]])] for i in range(100)])
    most = np.asarray(truth.sum(axis=0)).max() / 100  # what naming the most frequent label gives
    assert most + 0.1 < right < 0.9


def test_the_setting_that_clears_most_bars_stands_against_a_peer():
    peer = {"train s": 8.0, "docs/s": 10.0, "one ms": 3.0, "text ms": 10.0, "model MB": 4.0, "peak MB": 50, "P@5": 60.0}
    good = {"train s": 2.0, "docs/s": 40.0, "one ms": 1.0, "text ms": 1.0, "model MB": 2.0, "peak MB": 50, "P@5": 59.91}
    big = {**good, "model MB": 3.0, "peak MB": 51}
    lower = {**good, "P@5": 59.8}
    lines = report.ratios({"a": big, "b": good, "c": lower, "peer": peer}, ["a", "b", "c"]).splitlines()
    assert lines[2:] == ["| peer | b | -0.09 | 4.0× ✓ | 4.0× ✓ | 3.0× ✓ | 10.0× ✓ | 2.0× ✓ | 50 of 50 MB ✓ |"]
    lines = report.ratios({"a": big, "c": lower, "peer": peer}, ["a", "c"]).splitlines()
    assert lines[2].startswith("| peer | a | -0.09 | 4.0× ✓ |")
    assert lines[2].endswith(" 1.3× ✗ | 51 of 50 MB ✗ |")
    assert "none reaches P@5 59.90" in report.ratios({"c": lower, "peer": peer}, ["c"])


def test_medians_and_a_row_that_ran_out_of_time():
    assert report.median([{"x": 3, "row": "r"}, {"x": 1}, {"x": 2}]) == {"x": 2}
    late = report.median([{"train s": 1.0, "model MB": 2.0, "over": "15 min"}, {"train s": 2.0}])
    line = report.table({"slow": late, "never": {"over": "1 min"}, "bad": {"error": "no"}}).splitlines()[2:]
    assert line[0].startswith("| slow | 1.0 | > 15 min | – | 2.0 | – |")
    assert line[1].startswith("| never | > 1 min | – |")
    assert line[2].startswith("| bad | failed | – |")


def test_a_run_over_its_limit_is_killed_with_its_children(tmp_path):
    file = tmp_path / "child"
    code = f"""
import subprocess, sys, time
child = subprocess.Popen([sys.executable, "-c", "import time; time.sleep(60)"])
open({str(file)!r}, "w").write(str(child.pid))
time.sleep(60)
"""
    start = time.monotonic()
    found = cells.limited([sys.executable, "-c", code], cells.Limits(minutes=0.05), dict(os.environ))
    assert found == (None, "0.05 min")
    assert time.monotonic() - start < 30
    child = Path(f"/proc/{file.read_text()}/stat")
    for _ in range(100):
        if not child.exists() or child.read_text().rpartition(")")[2].split()[0] == "Z":
            break
        time.sleep(0.05)
    else:
        pytest.fail("the child is still there")


def test_what_a_run_says_and_how_it_ends():
    code = "print('so'); raise SystemExit(3)"
    assert cells.limited([sys.executable, "-c", code], cells.Limits(), dict(os.environ)) == (3, "so\n")


def test_a_run_that_takes_too_much_memory_is_killed():
    code = "import time; x = bytearray(300_000_000); time.sleep(60)"
    found = cells.limited([sys.executable, "-c", code], cells.Limits(gb=0.2), dict(os.environ))
    assert found == (None, "0.2 GB")


def test_a_label_named_twice_counts_once():
    assert cells.distinct([[4, 4, 2], [1, 2, 1], [0, -1, -1]]).tolist() == [[4, -1, 2], [1, 2, -1], [0, -1, -1]]


def test_one_run_at_a_time(tmp_path):
    with cells.alone(tmp_path), pytest.raises(SystemExit, match="another run is at work"), cells.alone(tmp_path):
        pass
    with cells.alone(tmp_path):
        pass
