"""CascadeXML on a tiny encoder: shortlists and weights by hand, prediction against a slow twin, kills, switches."""

from __future__ import annotations

import dataclasses
from itertools import pairwise

import numpy as np
import pytest
import torch

import labelwood as lw
from cases import acting
from labelwood.arrays.sparse import Csr
from labelwood.base.progress import QUIET
from labelwood.base.run import Keeping, Run
from labelwood.data import from_lists
from labelwood.neural.finetune.base import TuningData
from labelwood.neural.finetune.joint import Cascade, placed
from labelwood.neural.training.candidates import Candidates
from labelwood.neural.training.trainer import DynamicShortlist, Schedule, ScoredTask
from labelwood.parts.tree import Tree
from labelwood.pipeline.train import train, train_into
from labelwood.recipes.encoder_settings import Reading
from labelwood.recipes.resolve import resolve
from labelwood.storage.keyed import Keyed
from small import LISTS, TEXTS, Stop
from toy import noisy_set

# What lets a network of random weights learn the toy set by heart.
LEARN: dict[str, object] = {
    "finetune.epochs": 30, "optimiser.lr": 2e-3, "optimiser.head_lr": 2e-2, "finetune.dropout": 0.0,
    "finetune.head_dropout": 0.0, "coarse.levels": (4,), "encoder.pooling": "mean", "finetune.valid": 0,
}  # fmt: skip
QUICK: dict[str, object] = {"finetune.epochs": 2, "coarse.levels": (2, 6), "finetune.parents": (1, 2, 6)}


def fit(settings=None, data=None, keeping=Keeping(), **run) -> lw.Predictor:
    recipe = resolve("cascadexml", settings=acting(QUICK, "cascadexml", settings))
    return train(from_lists(TEXTS, LISTS) if data is None else data, recipe, Run(1, **run), keeping=keeping)


@pytest.mark.parametrize(
    ("levels", "depth", "expected"),
    [
        (4, 12, [(5, 6), (8,), (10,), (12,)]),  # the paper's Table 9
        (3, 12, [(7, 8), (10,), (12,)]),
        (2, 6, [(4, 5), (6,)]),
        (4, 24, [(11, 12), (16,), (20,), (24,)]),
        (3, 2, [(1,), (1,), (2,)]),
        (1, 12, [(12,)]),
    ],
)
def test_levels_are_placed_on_layers(levels, depth, expected):
    assert placed(levels, depth) == expected


def test_losses_are_weighted_by_nominal_shortlists():
    """The paper's largest tree: 2^10, 2^13, 2^16 clusters with 128, 256 and 512 kept: weights 1, 1, 2, 4."""
    sizes = [1, 2**10, 2**13, 2**16, 2**19]
    ptrs = tuple(np.arange(a + 1) * (b // a) for a, b in pairwise(sizes))
    tree = Tree(ptrs, np.arange(2**19, dtype=np.int32))
    recipe = resolve("cascadexml", settings={"finetune.parents": (1, 128, 256, 512)})
    data = TuningData(*[Keyed(None, "")] * 3, Keyed(tree, ""))
    cascade = Cascade(recipe, Run(), None, None, data)
    assert cascade.weights == (1, 1, 2, 4)
    given = dataclasses.replace(recipe, finetune=dataclasses.replace(recipe.finetune, parents=None))
    assert [Cascade(given, Run(), None, None, data).width(t) for t in (1, 2, 3)] == [128, 256, 512]


CHILDREN = np.array([0, 2, 5, 6])  # three clusters: nodes 0 1, 2 3 4, 5


def opened(truth: str, keep: int, y: list[list[int]]) -> list[list[int]]:
    """Candidates of two documents whose clusters score (3, 1, 2) and (0, 5, 1)."""
    logits = torch.tensor([3.0, 1.0, 2.0, 0.0, 5.0, 1.0])
    rows = Csr(
        np.array([0, len(y[0]), len(y[0]) + len(y[1])]), np.array([*y[0], *y[1]], np.int32), np.ones(3, np.float32), 6
    )
    parents = [{int(np.searchsorted(CHILDREN, node, "right")) - 1 for node in row} for row in y]
    true = np.array([parent in row for row in parents for parent in range(3)])
    scored = ScoredTask(Candidates.every(2, 3), true, logits)
    return lists(DynamicShortlist(keep, truth).below(scored, CHILDREN, rows))


def lists(candidates: Candidates) -> list[list[int]]:
    """Candidates of each document."""
    return [nodes.tolist() for nodes in np.split(candidates.nodes, candidates.ptr[1:-1])]


def test_the_best_clusters_open_and_the_truth_is_added():
    """Eq. 2-3: the children of the best cluster, and the true nodes themselves, without their siblings."""
    assert opened("union", 1, [[3], [2, 5]]) == [[0, 1, 3], [2, 3, 4, 5]]
    assert opened("union", 2, [[0], [2, 5]]) == [[0, 1, 5], [2, 3, 4, 5]]


def test_true_clusters_replace_the_worst():
    """As the reference code: a fixed number of clusters, the true ones first, with all their children."""
    assert opened("replace", 1, [[3], [2, 3]]) == [[2, 3, 4], [2, 3, 4]]
    assert opened("replace", 2, [[3], [0, 1]]) == [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]


def test_a_cluster_that_was_not_a_candidate_is_never_opened():
    found = Candidates(np.array([0, 1, 4]), np.array([0, 0, 1, 2]))
    none = Csr(np.array([0, 0, 0]), np.zeros(0, np.int32), np.zeros(0, np.float32), 6)
    scored = ScoredTask(found, np.zeros(4, np.bool_), torch.tensor([0.0, 0.0, 1.0, 2.0]))
    assert lists(DynamicShortlist(2).below(scored, CHILDREN, none)) == [[0, 1], [2, 3, 4, 5]]


def test_rates_rise_stay_and_fall_as_cosines():
    schedule = Schedule(100, 32, 100, 1.0, 0.1, 0.0, 0.0, None, 1, shape="cosine", fall=0.2)
    rates = [schedule.rate(step) for step in range(100)]
    assert rates[0] == pytest.approx(0.1 + 0.9 * (1 - np.cos(np.pi * 0.1)) / 2)
    assert all(rate == 1 for rate in rates[9:80])
    assert rates[4] == pytest.approx(0.55)
    assert rates[89] == pytest.approx(0.001 + 0.999 * 0.5)
    assert rates[99] == pytest.approx(0.001)


@pytest.mark.parametrize("readout", ["label", "parent", "path"])
def test_a_network_predicts_what_its_heads_say(readout):
    """Against a slow twin: every level scored by its own reading, the best clusters opened, scores multiplied."""
    rates = {"optimiser.lr": 1e-3, "optimiser.head_lr": 1e-2, "finetune.parents": (1, 2, 3)}
    model = fit({"ranker": "none", "joint.score": readout, **rates})
    (member,) = model.members
    tree, k = member.tree, 5
    assert tree.sizes == (2, 6, 12)
    x = member.features(lw.data.Texts.from_strings(TEXTS[:30]), None, 1, QUIET)
    ids, scores = model.predict_arrays(TEXTS[:30], k=k)
    widths = [level.dense_cols for level in member.levels]
    assert [level.dense_begin for level in member.levels] == [0, widths[0], widths[0] + widths[1]]
    for row, (found, given) in enumerate(zip(ids, scores, strict=True)):
        open_, path = np.array([0]), np.array([0.0])
        for t, level in enumerate(member.levels):
            dense = x.dense[row, level.dense_begin : level.dense_begin + level.dense_cols].astype(np.float64)
            nodes, value, above = [], [], []
            for parent, score in zip(open_, path, strict=True):
                *_, bias, block = level.native.decode(int(parent))
                margins = dense @ block.reshape(len(dense), -1).astype(np.float64) + bias
                nodes += list(range(tree.child_ptrs[t][parent], tree.child_ptrs[t][parent + 1]))
                value += margins.tolist()
                above += [score] * len(bias)
            nodes, value, above = np.array(nodes), np.array(value), np.array(above)
            log = -np.log1p(np.exp(-value))
            counts = {"label": t == 2, "parent": t >= 1, "path": True}[readout]
            total = above + log if counts else value
            order = np.argsort(-total, kind="stable")[: (2, 3, k)[t]]
            open_, path = nodes[order], (total[order] if counts else np.zeros(len(order)))
        assert tree.leaves[open_].tolist() == found[found >= 0].tolist()
        assert np.allclose(np.exp(path), given[found >= 0], rtol=1e-3, atol=1e-5)


def test_a_network_alone_learns_the_toy_set():
    model = fit({**LEARN, "finetune.parents": None, "ranker": "none", "joint.score": "label"})
    assert model.evaluate(TEXTS, LISTS, metrics=lw.MetricsConfig(bootstrap=0))["P@1"] > 95


@pytest.mark.parametrize(
    "changes",
    [
        {"ranker": "tree"}, {"ranker": "none"}, {"joint.truth": "replace"}, {"network_share": 0.25},
        {"encoder.runtime": "onnx"}, {"encoder.features": "embedding"}, {"optimiser.average_from": 0.0},
        {"optimiser.average_from": 0.5, "finetune.valid": 0}, {"finetune.shard_tokens": 60},
        {"optimiser.head_moments": "row"}, {"joint.layers": ("1+2", "2", "1")}, {"optimiser.schedule": "linear"},
        {"coarse.kind": "flat"}, {"encoder.engine": "transformers"},
        {"joint.level_weights": (1.0, 0.0, 2.0)}, {"finetune.loss": "squared-hinge"}, {"ensemble.runs": 2},
        {"finetune.frozen_layers": 1}, {"joint.maps": (0, 7, 5)}, {"joint.layers": ("last5",)},
        {"finetune.steps": 3}, {"linear.relevance": "induce"},
    ],
)  # fmt: skip
def test_every_switch_trains_a_sound_model(changes, tmp_path):
    model = fit(changes)
    model.save(tmp_path / "m")
    loaded = lw.load(tmp_path / "m")
    a, b = (m.predict_arrays(TEXTS, k=4) for m in (model, loaded))
    assert all(np.array_equal(one, other) for one, other in zip(a, b, strict=True))
    assert ((a[0] >= 0).sum(axis=1) >= 1).all()
    if changes.get("ranker") != "none":
        assert model.evaluate(TEXTS, LISTS, metrics=lw.MetricsConfig(bootstrap=0))["P@1"] > 85
        if "ranker" not in changes and changes.get("coarse.kind") != "flat" and "ensemble.runs" not in changes:
            assert loaded._common == 2  # network and classifiers search the upper levels once


def test_a_network_may_end_above_the_labels():
    """Its clusters are found by it, labels ranked by the classifiers alone, as X-Transformer does."""
    settings = {"finetune.levels": 2, "search.score": "label", "finetune.parents": (1, 2)}
    for source in ("teacher", "predicted", "union"):
        (member,) = fit({**settings, **acting({"shortlist.source": source, "shortlist.parents": 6})}).members
        assert [level.sparse_cols > 0 for level in member.levels] == [False, False, True]
        assert member.gives_margins
    with pytest.raises(lw.ConfigError, match="only one level below"):
        fit({"finetune.levels": 1, "search.score": "label"})
    with pytest.raises(lw.ConfigError, match="ranker must be 'network'"):
        fit({**settings, "ranker": "none"})


def test_classifiers_stand_below_the_networks_clusters():
    network, ranker = fit().members
    assert all(a is b for a, b in zip(network.levels[:-1], ranker.levels[:-1], strict=True))
    assert ranker.levels[-1].sparse_cols > 0 == network.levels[-1].sparse_cols
    assert ranker.levels[-1].dense_begin == sum(level.dense_cols for level in network.levels)
    assert (network.gives_margins, ranker.gives_margins) == (False, True)


@pytest.mark.parametrize(("width", "opened"), [(1, 3), (4, 4), (50, 6)])
def test_classifiers_know_more_clusters_than_the_network_opens(width, opened):
    """As many as `shortlist.parents`, of those there are; never fewer than the network."""
    settings = {"finetune.parents": (1, 2, 3), "shortlist.parents": width, "finetune.epochs": 0.5}
    network, ranker = fit(settings).members
    assert network.searching.beam == (2, 3, 1)
    assert ranker.searching.beam == (2, opened, 1)


def test_several_layers_go_through_a_map_of_their_own():
    (member,) = fit({"ranker": "none", "joint.layers": ("1+2", "2", "2"), "encoder.pooling": "cls"}).members
    assert member.embedder.readings == (Reading((1, 2), "cls", 32), Reading((2,), "cls"), Reading((2,), "cls"))
    assert member.embedder.state["maps.0.weight"].shape == (32, 64)
    assert [level.dense_cols for level in member.levels] == [32, 32, 32]


def test_a_run_that_is_killed_at_any_step_ends_in_the_same_bytes(tmp_path):
    data = from_lists(*noisy_set(5, docs=64))
    settings = {**QUICK, "finetune.steps": 6, "finetune.batch": 16, "finetune.checks": 3, "finetune.valid": 8}
    recipe = resolve("cascadexml", settings=acting(settings, "cascadexml", {"optimiser.average_from": 0.3}))
    train_into(tmp_path / "whole", data, recipe, Run(2, work=tmp_path / "whole.work"))
    for kill in (1, 3, 5, 6):
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
        assert (folder / "labelwood.json").read_bytes() == (tmp_path / "whole" / "labelwood.json").read_bytes()


def test_means_of_weights_are_what_is_measured():
    """With a check at every step from the first on, the end is the mean of all states."""
    settings = {"ranker": "none", "finetune.steps": 4, "finetune.checks": 4, "finetune.valid": 0}
    ends = [fit({**settings, "optimiser.average_from": begin}).members[0].embedder.state for begin in (None, 1.0, 0.0)]
    key = "layers.1.up.weight"
    assert np.array_equal(ends[0][key], ends[1][key])  # the mean of the last state alone
    assert not np.array_equal(ends[0][key], ends[2][key])


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"joint.layers": ("1", "2")}, "joint.layers gives 2 values"),
        ({"joint.layers": ("1", "2", "x")}, 'like "8", "5\\+6" or "last5"'),
        ({"joint.layers": ("1", "2", "9")}, "layer 9 is to be read"),
        ({"joint.level_weights": (1.0, 2.0)}, "2 weights for 3 levels"),
        ({"ensemble.trees": 2}, "use ensemble.runs"),
        ({"coarse.levels": (1, 4)}, "one cluster tells nothing"),
    ],
)
def test_what_does_not_fit_is_refused(settings, message):
    with pytest.raises(lw.ConfigError, match=message):
        fit(settings)


def test_a_recipe_without_a_network_cannot_leave_the_classifiers_out():
    with pytest.raises(lw.ConfigError, match="predicts by itself"):
        lw.train(TEXTS, LISTS, settings={"ranker": "none"})


def test_classifiers_may_start_from_the_networks_head():
    """After no pass they are the head for an embedding of another length; after many the start is forgotten."""
    newton = {"linear.solver": "newton", "network_share": 0.5, "linear.threshold": 0.0, "linear.weights": "float32"}
    other = {**newton, "linear.start": "network"}
    few, many = {"linear.eps": 1e6}, {"linear.eps": 1e-4, "linear.max_iter": 1000}
    network, ranker = fit({**other, **few}).members
    head, own = network.levels[-1], ranker.levels[-1]
    for parent in range(len(head.child_ptr) - 1):
        *_, bias, block = head.native.decode(parent)
        _, _, _, _, own_bias, own_block = own.native.decode(parent)
        ratio = own_block / np.where(block == 0, 1, block)
        assert np.allclose(own_bias, bias, atol=1e-3)
        assert np.allclose(ratio[np.abs(block) > 1e-3], np.median(ratio), rtol=1e-2)
    a, b = (fit({**start, **many}).members[1].predict_arrays(TEXTS) for start in (newton, other))
    assert np.allclose(a[1], b[1], atol=1e-2)
    for changes, said in (
        ({"linear.start": "network"}, "is for linear.solver = 'newton'"),
        ({**other, "ranker": "tree"}, "beside a network that reaches the labels"),
        ({**other, "finetune.levels": 2, "finetune.parents": (1, 2)}, "beside a network that reaches the labels"),
    ):
        with pytest.raises(lw.ConfigError, match=said):
            fit(changes)


def test_states_put_aside_on_disk_change_nothing(tmp_path, monkeypatch):
    """Large heads: the best state, and the levels it is measured by, are files; the model is the same."""
    expected = fit({"finetune.epochs": 2, "finetune.checks": 3}).predict_arrays(TEXTS)
    monkeypatch.setattr("labelwood.storage.stage_cache.ASIDE_BYTES", 1)
    found = fit({"finetune.epochs": 2, "finetune.checks": 3}, work=tmp_path / "w").predict_arrays(TEXTS)
    assert all(np.array_equal(a, b) for a, b in zip(expected, found, strict=True))
