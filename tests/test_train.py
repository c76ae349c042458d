"""The training loop's own rules: what it warns of and what it leaves behind."""

from __future__ import annotations

import dataclasses
import subprocess
import sys
import warnings

import numpy as np
import pytest

import labelwood as lw
from labelwood.arrays.sparse import Csr, Features
from labelwood.base.progress import Silent
from labelwood.data import from_matrix
from toy import keyword_set

TEXTS, LABELS = keyword_set()


@pytest.mark.parametrize(
    "settings", [{"linear.threshold": (0.1,) * 9}, {"tree.levels": (16, 8)}, {"tfidf.min_df": 10_000}]
)
def test_a_run_that_cannot_be_trained_leaves_no_workspace(tmp_path, settings):
    """Else the corrected command would be told to resume a run that can never go on."""
    with pytest.raises(lw.LabelwoodError):
        lw.train(TEXTS, LABELS, settings=settings, run=lw.Run(work=tmp_path / "work"))
    assert not (tmp_path / "work").exists()
    lw.train(TEXTS, LABELS, run=lw.Run(work=tmp_path / "work"))


def test_relevances_are_never_ignored_in_silence():
    relevance = [[2.0] for _ in TEXTS]
    with pytest.warns(UserWarning, match="use them with linear.relevance = 'given'"):
        lw.train(TEXTS, LABELS, relevance=relevance)
    with pytest.warns(UserWarning, match="every relevance is 1"):
        lw.train(TEXTS, LABELS, settings={"linear.relevance": "given"})
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.train(TEXTS, LABELS, relevance=relevance, settings={"linear.relevance": "given"})
        lw.train(TEXTS, LABELS)


def by_hand(**changes):
    """A Dataset made without the readers."""
    whole = from_matrix(np.eye(6), [["a"], ["b"]] * 3)
    return dataclasses.replace(whole, **changes)


@pytest.mark.parametrize(
    "wrong",
    [
        {"features": Features(dense=np.ones((3, 6), np.float32))},
        {"features": Features(Csr(np.arange(7), np.full(6, 2**30, np.int32), np.ones(6, np.float32), 6))},
        {"labels": Csr(np.arange(7), np.full(6, 9, np.int32), np.ones(6, np.float32), 2)},
        {"names": ("a",)},
    ],
)
def test_a_dataset_made_by_hand_is_checked_too(wrong):
    with pytest.raises(lw.DataError):
        lw.train(by_hand(**wrong))
    lw.train(by_hand())


def test_a_daemon_thread_at_exit_does_not_abort():
    code = (
        "import threading, time, numpy as np, labelwood as lw\n"
        "x, y = np.random.rand(3000, 200), [[str(i % 500)] for i in range(3000)]\n"
        "work = lambda: lw.train(X=x, labels=y, settings={'linear.eps': 1e-9, 'linear.max_iter': 1000000})\n"
        "threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.5)\n"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False, timeout=60).returncode == 0


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        (
            "dismec",
            {"search.kind": "exact"},
            r"'noop' \(margins\); set search\.combiner to sigmoid",
        ),
        ("xr-linear", {"linear.loss": "squared-hinge,logistic", "linear.solver": "newton"}, "the loss is 'logistic'"),
        ("xr-linear", {"linear.alpha": "1,1", "linear.lam": "1,1e-9"}, r"mean cp = 1e\+09"),
    ],
)
def test_settings_that_do_not_fit_are_refused_before_a_level_is_trained(method, settings, message):
    progress = Silent()
    with pytest.raises(lw.ConfigError, match=message):
        lw.train(TEXTS, LABELS, method=method, settings={"tree.leaf": 3, **settings}, run=lw.Run(progress=progress))
    assert not any(name.startswith("level") for name in progress.timings)


def test_trees_that_cannot_differ_are_told():
    parents = {name: f"group{i % 3}" for i, name in enumerate(sorted({y for row in LABELS for y in row}))}
    with pytest.warns(UserWarning, match="'taxonomy' has nothing random in it, so the 3 trees are the same"):
        three = lw.train(TEXTS, LABELS, method="parabel", taxonomy=parents)
    one = lw.train(TEXTS, LABELS, method="parabel", preset="one-tree", taxonomy=parents)
    assert three.predict(TEXTS, k=3) == one.predict(TEXTS, k=3)
    with pytest.warns(UserWarning, match="'flat' has nothing random in it, so the 2 trees"):
        lw.train(TEXTS, LABELS, method="dismec", settings={"ensemble.trees": 2})


def test_label_texts_without_a_known_word_are_told():
    with pytest.warns(UserWarning, match="no text of a label holds a word .* 'pifa'"):
        lw.train(TEXTS, LABELS, label_texts={LABELS[0][0]: "qqqq"}, settings={"labels.kind": "text", "tree.leaf": 3})
