"""The training loop's own rules: what it warns of and what it leaves behind."""

from __future__ import annotations

import warnings

import pytest

import labelwood as lw
from toy import keyword_set

TEXTS, LABELS = keyword_set()


@pytest.mark.parametrize(
    "settings", [{"linear.threshold": (0.1,) * 9}, {"tree.levels": (16, 8)}, {"tfidf.min_df": 10_000}]
)
def test_a_run_that_cannot_be_trained_leaves_no_workspace(tmp_path, settings):
    """Else the corrected command would be told to resume a run that can never go on."""
    with pytest.raises(lw.LabelwoodError):
        lw.train(TEXTS, LABELS, settings=settings, work=tmp_path / "work")
    assert not (tmp_path / "work").exists()
    lw.train(TEXTS, LABELS, work=tmp_path / "work")


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
