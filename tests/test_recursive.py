"""XR-Transformer's fine-tuning on a tiny encoder: switches, held-back documents, kills, shared stages."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import labelwood as lw
from cases import acting
from labelwood.base.config import with_settings
from labelwood.base.run import Keeping, Run
from labelwood.data import from_lists
from labelwood.neural.encoders import encoder as encoders
from labelwood.neural.finetune import matcher
from labelwood.neural.training.trainer import Trainer
from labelwood.parts.linear import LinearConfig
from labelwood.parts.tree import Tree
from labelwood.pipeline.train import train, train_into
from labelwood.recipes.resolve import resolve
from labelwood.storage.stage_cache import Workspace
from small import LISTS, READ, SMALL, TEXTS, Stop, fit, source
from toy import noisy_set

SHARED = Keeping(shared=True)


def test_fine_tuning_lowers_the_loss_and_moves_the_encoder():
    told = []
    model = fit({"finetune.epochs": 20, "optimiser.lr": 1e-3, "optimiser.head_lr": 1e-2}, on_event=told.append)
    first = [e.loss for e in told if "level 1" in e.stage]
    assert np.mean(first[-5:]) < 0.3 * np.mean(first[:5])
    state, pretrained_state = model.embedder.state, encoders.load(source(), READ).state()
    assert np.abs(state["layers.0.up.weight"] - pretrained_state["layers.0.up.weight"]).max() > 1e-3
    assert {e.stage for e in told} == {"fine-tuning level 1 of 2", "fine-tuning level 2 of 2"}


@pytest.mark.parametrize(
    "changes",
    [
        {"levelwise.bootstrap": "linear"}, {"levelwise.bootstrap": "inherit"}, {"levelwise.bootstrap": "none"},
        {"levelwise.source": "teacher"}, {"levelwise.source": "predicted"}, {"levelwise.source": "union,teacher"},
        {"levelwise.matcher": "transformer"}, {"levelwise.matcher": "average"},
        {"finetune.loss": "logistic"}, {"finetune.loss": "hinge"},
        {"finetune.relevance_norm": "none"}, {"finetune.relevance": "off"},
        {"levelwise.refine": False}, {"finetune.on": False}, {"finetune.levels": 1},
        {"encoder.features": "embedding", "finetune.epochs": 30, "optimiser.lr": 1e-3},
        {"encoder.pooling": "cls"}, {"encoder.pooling": "pooler"}, {"encoder.layer": 1}, {"encoder.max_tokens": 4},
        {"finetune.frozen_layers": 1}, {"finetune.frozen_layers": 2}, {"finetune.valid": 0}, {"finetune.valid": 9},
        {"finetune.attention_dropout": 0.1}, {"finetune.shard_tokens": 40}, {"optimiser.clip": None},
        {"finetune.lam": 0.01}, {"finetune.steps": 0}, {"levelwise.max_clusters": 4}, {"coarse.kind": "flat"},
        {"linear.relevance": "off"}, {"optimiser.head_moments": "row"},
    ],
)  # fmt: skip
def test_every_switch_trains_a_sound_model(changes):
    model = fit(changes)
    quick = lw.MetricsConfig(bootstrap=0)
    assert model.evaluate(TEXTS, LISTS, metrics=quick)["P@1"] > 90


def test_shards_add_up_to_the_batch():
    """Cut into shards or not, a step is the same to rounding."""
    ends = []
    for tokens in (16384, 40):
        model = fit({"finetune.shard_tokens": tokens, "finetune.dropout": 0.0, "finetune.head_dropout": 0.0})
        ends.append(model.embedder.state["layers.1.up.weight"])
    start = encoders.load(source(), READ).state()["layers.1.up.weight"]
    assert np.abs(ends[0] - ends[1]).mean() < 0.02 * np.abs(ends[0] - start).mean()


def test_frozen_layers_do_not_move():
    before = encoders.load(source(), READ).state()
    after = fit({"finetune.frozen_layers": 1}).embedder.state
    moved = {name for name in before if not np.array_equal(before[name], after[name])}
    assert moved
    assert all(name.startswith("layers.1.") for name in moved)


def test_held_back_documents_teach_nothing():
    """Documents that are held back swap their labels, and the encoder that comes out is the same."""
    data = from_lists(*noisy_set(3, docs=80))
    settings = {"finetune.valid": 10, "finetune.checks": 1, "coarse.kind": "flat", "finetune.levels": 1}
    recipe = resolve("xr-transformer", settings=acting(SMALL, "xr-transformer", settings))
    held = np.sort(np.random.Generator(np.random.Philox(key=[0, 7])).permutation(80)[:10])
    rows = np.arange(80)
    rows[held] = np.roll(held, 1)
    assert data.labels is not None
    swapped = dataclasses.replace(data, labels=data.labels.take(rows))
    a, b, other = (train(d, recipe, Run(2)).embedder.state for d in (data, swapped, data.take(rows[::-1])))
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert not all(np.array_equal(a[name], other[name]) for name in a)


def test_a_set_of_one_label_is_not_fine_tuned():
    with pytest.warns(UserWarning, match="no level of the tree"):
        model = lw.train(["word1 common", "word1 common", "word2"], [["a"], ["a"], ["a"]], method="xr-transformer")
    assert model.predict(["word1"])[0][0][0] == "a"


def test_empty_texts_are_refused():
    with pytest.raises(lw.LabelwoodError, match="empty"):
        lw.train(["", " ", "\n"], [["a"], ["b"], ["a"]], method="xr-transformer")


def test_lists_of_the_wrong_length_are_refused_before_training():
    with pytest.raises(lw.ConfigError, match=r"optimiser\.lr gives 3 values"):
        fit({"optimiser.lr": (1e-4, 1e-4, 1e-4)})


def test_a_run_that_is_killed_at_any_step_ends_in_the_same_bytes(tmp_path):
    data = from_lists(*noisy_set(5, docs=64))
    settings = {"finetune.steps": 6, "finetune.batch": 16, "finetune.checks": 3, "finetune.valid": 8}
    recipe = resolve("xr-transformer", settings=acting(SMALL, "xr-transformer", settings))
    whole = tmp_path / "whole"
    train_into(whole, data, recipe, Run(2, work=tmp_path / "whole.work"))
    for kill in (1, 3, 6, 7, 9, 12):
        seen = 0

        def tell(event, kill=kill):
            nonlocal seen
            seen += 1
            if seen == kill:
                raise Stop

        work, folder = tmp_path / f"{kill}.work", tmp_path / f"{kill}"
        with pytest.raises(Stop):
            train_into(folder, data, recipe, Run(2, work=work, on_event=tell), keeping=Keeping(every=0.0))
        train_into(folder, data, recipe, Run(2, work=work, resume=True), keeping=Keeping(every=0.0))
        assert sorted(p.name for p in folder.iterdir()) == sorted(p.name for p in whole.iterdir())
        assert (folder / "labelwood.json").read_bytes() == (whole / "labelwood.json").read_bytes()
        assert not work.exists()


def test_a_state_is_used_and_not_made_again(tmp_path):
    data = from_lists(*noisy_set(5, docs=64))
    recipe = resolve(
        "xr-transformer", settings=acting(SMALL, "xr-transformer", {"finetune.steps": 6, "finetune.batch": 16})
    )
    steps: list[int] = []

    def tell(event):
        steps.append(event.step)
        if len(steps) == 4:
            raise Stop

    run, keeping = Run(2, work=tmp_path / "work", on_event=tell), Keeping(every=0.0)
    with pytest.raises(Stop):
        train(data, recipe, run, keeping=keeping)
    steps.clear()
    again = dataclasses.replace(run, resume=True, on_event=lambda e: steps.append(e.step))
    train(data, recipe, again, keeping=keeping)
    assert steps == [4, 5, 6, 1, 2, 3, 4, 5, 6]  # the state of step 3 was kept before step 4 was told


def test_runs_that_share_a_workspace_share_their_stages(tmp_path):
    """The same fine-tuning under other classifiers is not done again, unless their costs are others."""
    data, told = from_lists(TEXTS, LISTS), []
    for changes, expected in (
        ({}, 4), ({"encoder.features": "embedding"}, 0), ({"linear.threshold": 0.05}, 0),
        ({"linear.relevance": "off"}, 2), ({"finetune.levels": 1}, 0), ({"optimiser.lr": (1e-4, 2e-4)}, 2),
        ({"finetune.loss": "logistic"}, 4),
        ({"levelwise.bootstrap": "none"}, 2), ({"levelwise.source": "teacher"}, 2), ({"optimiser.head_lr": 1e-3}, 2),
    ):  # fmt: skip
        told.clear()
        recipe = resolve(
            "xr-transformer",
            settings=acting(SMALL, "xr-transformer", {"finetune.steps": 2, "optimiser.lr": 1e-4, **changes}),
        )
        train(data, recipe, Run(1, work=tmp_path / "work", on_event=told.append), keeping=SHARED)
        assert len(told) == expected, changes


def test_given_held_out_data_chooses_and_teaches_nothing():
    """Its labels may be swapped: with one check, the encoder is the same; and all training documents are trained on."""
    data, held = from_lists(TEXTS, LISTS), from_lists(TEXTS[:20], LISTS[:20])
    swapped = from_lists(TEXTS[:20], [[*row, "never seen"] for row in LISTS[1:21]])
    recipe = resolve("xr-transformer", settings={**SMALL, "finetune.checks": 1})
    told: list[object] = []
    models = [train(data, recipe, Run(1, on_event=told.append), v) for v in (held, swapped, None)]
    a, b, c = (model.embedder.state for model in models)
    assert all(np.array_equal(a[name], b[name]) for name in a)
    assert not all(np.array_equal(a[name], c[name]) for name in a)
    assert len({model.data_key for model in models}) == 3
    assert all(len(model.labels) == 12 for model in models)
    linear = [train(data, resolve("xr-linear"), Run(1), v).data_key for v in (held, None)]
    assert linear[0] == linear[1]  # a recipe without a network does not look at it


def test_held_out_data_without_labels_is_refused():
    held = dataclasses.replace(from_lists(TEXTS[:3], LISTS[:3]), labels=None)
    with pytest.raises(lw.DataError, match="held-out"):
        train(from_lists(TEXTS, LISTS), resolve("xr-transformer"), Run(1), held)


def test_settings_that_matter_are_in_the_keys_of_stages(tmp_path):
    """With the first tree kept, other embeddings are other classifiers; more parents are other candidates."""
    data = from_lists(*noisy_set(2, docs=80))
    base = {
        **SMALL,
        "finetune.steps": 2,
        "levelwise.refine": False,
        "finetune.parents": 1,
        "levelwise.source": "predicted",
    }
    ends = []
    for changes in ({}, {"optimiser.lr": 1e-2}, {"finetune.parents": 4}, {"encoder.scale": 3.0}):
        recipe = resolve("xr-transformer", settings=acting({**base, **changes}, "xr-transformer"))
        ends.append(train(data, recipe, Run(1, work=tmp_path / "work"), keeping=SHARED))
        alone = train(data, recipe, Run(1))
        assert np.array_equal(alone.predict_arrays(data.texts)[1], ends[-1].predict_arrays(data.texts)[1]), changes


def test_a_first_level_of_one_cluster_is_refused():
    with pytest.raises(lw.ConfigError, match="one cluster"):
        fit({"coarse.levels": (1, 4)})


def test_few_labelled_documents_are_not_all_held_back():
    texts = [*TEXTS[:10], *["common filler1"] * 200]
    model = lw.train(texts, [*LISTS[:10], *[[]] * 200], method="xr-transformer", settings={"finetune.steps": 1})
    assert len(model.labels) == 2


def test_a_loss_that_is_not_finite_ends_the_run(monkeypatch):
    monkeypatch.setattr(Trainer, "_step", lambda self: (float("nan") if self.step == 2 else 0.5, 9.0))
    with pytest.raises(lw.TrainingError, match=r"nan at step 3; .* Lower optimiser\.lr"):
        fit()


def test_the_largest_seed():
    fit({"seed": 2**63 - 1, "finetune.steps": 1})


def test_a_heads_ranking_counts_the_path():
    """Two clusters with log scores -1 and -3, a child of each with the same logit: the first cluster's comes first."""
    tree = Tree((np.array([0, 2]), np.array([0, 1, 2])), np.array([0, 1], np.int32))
    above = matcher.Matched("", np.array([[0, 1]], np.int32), np.array([[-1.0, -3.0]], np.float32))
    level = matcher.MatchedLevel(tree, 1, above, 2, 1)
    weights = np.zeros((2, 4), np.float32), np.zeros(2, np.float32)
    nodes, scores = matcher.by_head(level, weights, np.ones((1, 4), np.float32))
    assert nodes.tolist() == [[0, 1]]
    assert scores[0].tolist() == pytest.approx([-1 - np.log(2), -3 - np.log(2)])
    both, means = matcher.averaged(
        (nodes, scores), (np.array([[1, -1]], np.int32), np.zeros((1, 2), np.float32)), level
    )
    assert both.tolist() == [[1, 0]]
    assert np.exp(means[0]).tolist() == pytest.approx([(1 + np.exp(-3) / 2) / 2, np.exp(-1) / 4], abs=1e-6)


def test_a_folder_does_not_choose_checkpoints(tmp_path):
    with pytest.raises(lw.ConfigError, match="is a folder"):
        lw.train(TEXTS, LISTS, method="xr-transformer", valid=tmp_path)


@pytest.mark.parametrize(
    ("settings", "costs"),
    [
        ({"linear.cp": 4.0, "linear.cn": 0.5}, [(4, 0.5), (4, 0.5), (4, 0.5)]),
        ({"linear.alpha": 0.25, "linear.lam": 0.5}, [(2, 0.5), (2, 0.5), (2, 0.5)]),
        ({"linear.cp": (1.0, 2.0, 3.0, 9.0)}, [(1, 1), (2, 1), (3, 1)]),
        ({"linear.cp": (1.0, 9.0)}, [(1, 1), (1, 1), (1, 1)]),
        ({"linear.cp": (5.0,), "linear.cn": (6.0,)}, [(5, 6), (5, 6), (5, 6)]),
    ],
)
def test_the_matcher_has_the_costs_of_the_classifiers(settings, costs):
    """F-S12. Of a list by level the last value is that of the labels, which no matcher ranks."""
    linear = with_settings(LinearConfig(), {name.removeprefix("linear."): v for name, v in settings.items()})
    found = [matcher.with_costs_of(linear, t) for t in range(3)]
    assert [(config.cp, config.cn) for config in found] == costs


@pytest.mark.parametrize("kind", ["off", "induce"])
def test_the_matcher_is_trained_with_the_recipes_costs(kind, monkeypatch):
    """F-S12: its costs and the relevances of its positives, in the solver's own hands."""
    met, solve = [], matcher.train_level

    def spy(x, costs, m, child_ptr, config, **rest):
        met.append((config.cp, config.cn, costs))
        return solve(x, costs, m, child_ptr, config, **rest)

    monkeypatch.setattr(matcher, "train_level", spy)
    texts, lists = noisy_set(3)
    costs = {"linear.cp": 3.0, "linear.cn": 0.5, "linear.relevance": kind, "linear.relevance_norm": "none"}
    settings = acting({**SMALL, "finetune.steps": 1, **costs}, "xr-transformer")
    lw.train(texts, lists, method="xr-transformer", settings=settings)
    ((cp, cn, costs),) = met
    assert (cp, cn) == (3.0, 0.5)
    assert (costs.data.max() > 1) == (kind == "induce")  # a cluster that holds several labels of a document


def test_matching_with_other_costs_is_another_stage(monkeypatch):
    """F-S12: what was matched with other costs is never taken from a workspace."""
    named, stage = [], Workspace.stage

    def spy(self, name, inputs, *rest, **more):
        named.extend([str(inputs["costs"])] if name == "match" else [])
        return stage(self, name, inputs, *rest, **more)

    monkeypatch.setattr(Workspace, "stage", spy)
    for settings in ({}, {"linear.cp": 2.0}, {"linear.relevance": "off"}, {"linear.threshold": 0.05}):
        fit({"finetune.steps": 1, **settings})
    assert len(named) == 4
    assert len(set(named)) == 3  # what is dropped of the classifiers does not matter
