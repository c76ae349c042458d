"""Presets of the paper, ensembles over seeds and encoders, readouts."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import labelwood as lw
import tiny
from labelwood.base.run import Run
from labelwood.data import from_lists
from labelwood.parts.tree import level_sizes
from labelwood.pipeline.train import identity_of, train, train_into
from labelwood.planning import timing
from labelwood.recipes.checks import Facts, check
from labelwood.recipes.resolve import resolve
from small import LISTS, SMALL, TEXTS, Stop, fit, stop_at_once
from toy import noisy_set


def test_runs_of_an_ensemble_differ_in_seed_and_encoder(tmp_path):
    other = str(tiny.write(tmp_path / "other", seed=1))
    settings = {**SMALL, "ensemble.runs": 2, "ensemble.encoders": ("minilm", other), "ensemble.average": "softmax"}
    model = lw.train(TEXTS, LISTS, method="xr-transformer", settings=settings)
    assert len(model.members) == 2
    a, b = (member.embedder.state["words.weight"] for member in model.members)
    assert np.abs(a - b).max() > 0.1
    model.save(tmp_path / "m")
    again = lw.load(tmp_path / "m")
    assert np.array_equal(again.predict_arrays(TEXTS)[1], model.predict_arrays(TEXTS)[1])
    assert identity_of(again) == identity_of(model) != {}
    assert model.evaluate(TEXTS, LISTS, metrics=lw.MetricsConfig(bootstrap=0))["P@1"] == 100


def test_linear_runs_are_seeds():
    texts, lists = noisy_set(1)
    model = lw.train(texts, lists, settings={"ensemble.runs": 3, "tree.leaf": 3})
    alone = [lw.train(texts, lists, seed=s, settings={"tree.leaf": 3}) for s in range(3)]
    for member, single in zip(model.members, alone, strict=True):
        assert np.array_equal(member.tree.leaves, single.tree.leaves)


def test_encoders_must_fit_the_runs():
    with pytest.raises(lw.ConfigError, match="2 encoders"):
        fit({"ensemble.runs": 3, "ensemble.encoders": ("a", "b")})


@pytest.mark.parametrize(
    ("preset", "labels", "coarse", "refined"),
    [
        ("eurlex-4k", 3956, (16, 256, 3956), (4, 32, 256, 3956)),
        ("wiki10-31k", 30938, (128, 2048, 30938), (8, 128, 2048, 30938)),
        ("amazoncat-13k", 13330, (128, 1024, 13330), (128, 1024, 13330)),
        ("wiki-500k", 501070, (64, 512, 4096, 32768, 501070), (8, 256, 8192, 501070)),
        ("amazon-670k", 670091, (128, 2048, 32768, 670091), (8, 256, 8192, 670091)),
        ("amazon-3m", 2812281, (128, 2048, 32768, 2812281), (32, 1024, 32768, 2812281)),
    ],
)
def test_published_presets_have_the_trees_of_table_7(preset, labels, coarse, refined):
    """But for Amazon-3M's refined tree, whose printed sizes its own rule (32-way, leaves of 100) does not give."""
    recipe = resolve("xr-transformer", preset=preset)
    assert level_sizes(labels, recipe.coarse) == coarse
    assert level_sizes(labels, recipe.tree) == refined
    tuned = timing.tuned_levels(labels, recipe)
    assert len(recipe.finetune.steps) == len(tuned)
    assert tuned == tuple(size for size in coarse if size <= 32768)
    check(recipe, Facts(labels=labels))  # beams, negatives and costs by level fit the tree


@pytest.mark.parametrize(
    ("preset", "labels"),
    [("wiki10-31k", 30938), ("amazoncat-13k", 13330), ("wiki-500k", 501070), ("amazon-670k", 670091)],
)
def test_the_rule_for_cascades_gives_the_trees_of_table_9(preset, labels):
    given = resolve("cascadexml", preset=preset).coarse
    assert level_sizes(labels, given) == (*given.levels, labels)
    assert level_sizes(labels, resolve("cascadexml").coarse) == (*given.levels, labels)


def test_a_score_by_the_label_is_the_margin_of_the_leaf():
    flat = lw.train(TEXTS, LISTS, settings={"tree.kind": "flat", "search.combiner": "noop"})
    deep = {"tree.leaf": 2, "tree.branch": 2, "search.beam": 100}
    path, leaf = (lw.train(TEXTS, LISTS, settings={**deep, "search.score": r}) for r in ("path", "label"))
    assert leaf.members[0].gives_margins
    assert not path.members[0].gives_margins
    assert flat.members[0].gives_margins
    scores = leaf.predict_arrays(TEXTS, k=12)[1]
    assert scores.min() < 0
    with pytest.raises(lw.ConfigError, match=r"score is 'label'"):
        lw.train(TEXTS, LISTS, settings={"search.kind": "exact", "search.score": "label"})


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"search.beam": (4, 4, 4, 4)}, "4 values"),
        ({"linear.cp": (1.0, 1.0, 1.0, 1.0)}, "4 values"),
        ({"tree.levels": (50,)}, "sizes must grow"),
    ],
)
def test_settings_that_do_not_fit_the_refined_tree_are_told_before_training(settings, message):
    told = []
    with pytest.raises(lw.ConfigError, match=message):
        fit(settings, on_event=told.append)
    assert not told


def test_a_refused_run_keeps_what_it_would_continue(tmp_path):
    """A device or an encoder that is not there today must not cost the hours of yesterday."""
    recipe = resolve("xr-transformer", settings=SMALL)
    data, run = from_lists(TEXTS, LISTS), Run(1, work=tmp_path / "m.work")
    with pytest.raises(Stop):
        train_into(tmp_path / "m", data, recipe, dataclasses.replace(run, on_event=stop_at_once))
    before = sorted(p.name for p in run.work.iterdir())
    with pytest.raises(lw.ConfigError, match="is not there"):
        train_into(tmp_path / "m", data, recipe, dataclasses.replace(run, resume=True, device="cuda"))
    assert sorted(p.name for p in run.work.iterdir()) == before
    train_into(tmp_path / "m", data, recipe, dataclasses.replace(run, resume=True))
    with pytest.raises(lw.ConfigError, match="is not there"):  # begun afresh: nothing is left behind
        train_into(tmp_path / "n", data, recipe, Run(1, work=tmp_path / "n.work", device="cuda"))
    assert not (tmp_path / "n.work").exists()


def test_held_out_documents_with_nothing_known_are_refused():
    with pytest.raises(lw.DataError, match="no label of the 2 held-out documents"):
        train(
            from_lists(TEXTS, LISTS), resolve("xr-transformer", settings=SMALL), Run(1),
            valid=from_lists(TEXTS[:2], [["new"], ["other"]]),
        )  # fmt: skip


def test_ensembles_of_encoders_need_one():
    for method, encoders_ in (("xr-linear", ("minilm", "minilm")), ("xr-transformer", ("minilm", "none"))):
        settings = {"ensemble.runs": 2, "ensemble.encoders": encoders_}
        with pytest.raises(lw.ConfigError, match="encoder"):
            lw.train(TEXTS, LISTS, method=method, settings=settings)
