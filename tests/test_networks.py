"""X-Transformer and LightXML as recipes: clusters, label representations, negatives, readings, ensembles."""

from __future__ import annotations

import dataclasses

import numpy as np
import pytest

import labelwood as lw
from cases import acting
from labelwood import limits
from labelwood.base.run import Keeping, Run
from labelwood.data import from_lists
from labelwood.parts.rank_average import EnsembleConfig
from labelwood.parts.tree import Tree, level_sizes
from labelwood.pipeline import blend
from labelwood.pipeline.blend import opened
from labelwood.pipeline.train import identity_of, train
from labelwood.recipes.encoder_settings import Reading
from labelwood.recipes.resolve import resolve
from small import LISTS, TEXTS

QUICK = {"finetune.epochs": 1}
X = "x-transformer"


def fit(method: str, settings=None, data=None, keeping=Keeping(), **run) -> lw.Predictor:
    recipe = resolve(method, settings=acting(QUICK, method, settings))
    return train(from_lists(TEXTS, LISTS) if data is None else data, recipe, Run(1, **run), keeping=keeping)


@pytest.mark.parametrize(
    ("labels", "clusters"), [(3956, 64), (30938, 512), (13330, 256), (501070, 8192), (323, 64), (100, 32), (12, 4)]
)
def test_one_level_of_clusters_by_the_papers_rule(labels, clusters):
    """Its Table 2; where 100 labels a cluster would give fewer than 64, clusters are smaller."""
    assert level_sizes(labels, resolve(X).coarse) == (clusters, labels)


def test_clusters_are_the_networks_and_labels_the_classifiers():
    (member,) = fit(X).members
    matcher, ranker = member.levels
    assert member.tree.sizes == (4, 12)
    assert (matcher.sparse_cols, matcher.dense_cols) == (0, 32)
    assert ranker.sparse_cols > 0
    assert member.gives_margins


@pytest.mark.parametrize("kind", ["pifa", "pifa-neural", "text-neural", "pifa+text"])
def test_every_label_representation_trains(kind):
    data = dataclasses.replace(from_lists(TEXTS, LISTS), label_texts=tuple(f"word{i} common" for i in range(12)))
    model = fit(X, {"labels.kind": kind, "search.beam": 4}, data)
    assert model.evaluate(TEXTS, LISTS, metrics=lw.MetricsConfig(bootstrap=0))["P@1"] > 90


def test_labels_are_clustered_by_an_embedding_that_classifiers_do_not_read():
    """F-S5: the first network's embeddings, although `encoder.features` leaves them out below the clusters."""
    (words,) = fit(X, {"labels.kind": "pifa-neural", "encoder.features": "words", "search.beam": 4}).members
    (both,) = fit(X, {"labels.kind": "pifa-neural", "search.beam": 4}).members
    assert words.levels[-1].dense_cols == 0
    assert both.levels[-1].dense_cols > 0
    assert words.tree.leaves.tolist() == both.tree.leaves.tolist()


def test_labels_of_one_text_are_one_cluster():
    """Whatever the encoder makes of the texts, the same text is the same vector."""
    data = from_lists(TEXTS, LISTS)
    texts = tuple("word1 word2 word3" if i % 2 else "filler1 a b c" for i in range(12))
    (member,) = fit(
        X, {"labels.kind": "text-neural", "coarse.levels": (2,)}, dataclasses.replace(data, label_texts=texts)
    ).members
    clusters = member.tree.labels_to_nodes(0, 12)
    assert len({int(c) for c in clusters[::2]}) == len({int(c) for c in clusters[1::2]}) == 1


def test_the_first_network_of_neural_features_is_trained_once(tmp_path):
    """Runs over label representations share it, and the plain one is it."""
    told = []
    kinds = ("pifa", "pifa-neural", "pifa-neural")
    model = fit(X, {"ensemble.runs": 3, "ensemble.labels": kinds}, work=tmp_path / "work", on_event=told.append)
    assert len(model.members) == 3
    assert sum(event.step == 1 for event in told) == 3
    assert identity_of(model)["recipe"]["ensemble"]["labels"] == list(kinds)


def test_runs_that_differ_in_nothing_else_have_seeds_of_their_own():
    """So the same member is the same bytes in every ensemble that has it."""
    config = EnsembleConfig(runs=5, labels=("pifa", "pifa-neural", "pifa", "pifa", "pifa-neural"))
    assert [config.seed(7, run) for run in range(5)] == [7, 7, 8, 9, 8]
    config = EnsembleConfig(runs=3, encoders=("a", "b", "a"))
    assert [config.seed(0, run) for run in range(3)] == [0, 0, 1]
    assert [EnsembleConfig(runs=2).seed(limits.MAX_SEED, run) for run in range(2)] == [limits.MAX_SEED, 0]


@pytest.mark.parametrize("source", ["teacher", "predicted", "union"])
def test_negatives_come_from_the_truth_the_matcher_or_both(source):
    model = fit(X, acting({"shortlist.source": source, "search.beam": 4, "shortlist.parents": 2}))
    assert model.evaluate(TEXTS, LISTS, metrics=lw.MetricsConfig(bootstrap=0))["P@1"] > 60


def test_lightxml_reads_the_last_layers_side_by_side():
    network, ranker = fit("lightxml").members
    assert network.embedder.readings == (Reading((1, 2), "cls", 0),)  # a tiny encoder has only two
    assert [level.dense_cols for level in network.levels] == [64]
    assert ranker.levels[0].dense_begin == 64


def test_groups_of_labels_have_a_bottleneck():
    recipe = resolve("lightxml", preset="groups", settings={**QUICK, "joint.maps": (0, 9), "ranker": "none"})
    (member,) = train(from_lists(TEXTS, LISTS), recipe, Run(1)).members
    assert [level.dense_cols for level in member.levels] == [64, 9]
    assert member.embedder.state["maps.1.weight"].shape == (9, 64)


def test_what_does_not_fit_is_refused():
    with pytest.raises(lw.ConfigError, match=r"2 kinds for ensemble\.runs = 3"):
        fit(X, {"ensemble.runs": 3, "ensemble.labels": ("pifa", "pifa")})
    with pytest.raises(lw.ConfigError, match="for the tree of a network"):
        lw.train(TEXTS, LISTS, settings={"labels.kind": "text-neural"})
    assert np.isfinite(fit(X).predict_arrays(TEXTS[:2])[1]).all()


def test_no_more_than_a_quarter_of_the_clusters_is_opened():
    """b ≤ K / 4, at prediction and among the negatives; of few clusters four."""
    tree = Tree((np.array([0, 64]), np.arange(65) * 2), np.arange(128, dtype=np.int32))
    assert [opened(tree, wanted) for wanted in (10, 16, 40)] == [10, 16, 16]
    few = Tree((np.array([0, 8]), np.arange(9) * 2), np.arange(16, dtype=np.int32))
    assert [opened(few, wanted) for wanted in (3, 10)] == [3, 4]
    (member,) = fit(X, {"search.beam": 10}).members
    assert member.searching.beam == (4, 1)


def test_classifiers_may_read_words_alone():
    (member,) = fit(X, {"encoder.features": "words", "search.beam": 4}).members
    assert member.levels[-1].sparse_cols > 0
    assert member.levels[-1].dense_cols == 0
    assert member.levels[0].dense_cols == 32
    with pytest.raises(lw.ConfigError, match="is for classifiers below"):
        fit("xr-transformer", {"encoder.features": "words"})


def test_weights_by_propensity_are_part_of_what_a_shared_stage_is(tmp_path):
    """The classifiers below a network are made again where their weights change, and only there."""
    scores = []
    for a in (0.55, 2.0):
        settings = {"linear.weighting": "pw", "tail.a": a, "tail.b": 0.1, "search.beam": 4}
        scores.append(fit(X, settings, work=tmp_path / "w", keeping=Keeping(shared=True)).predict_arrays(TEXTS)[1])
    assert not np.array_equal(*scores)


@pytest.mark.parametrize("kind", ["pifa-neural", "text-neural"])
def test_a_ranker_on_a_tree_of_its_own_clusters_by_words(kind):
    model = fit("cascadexml", {"labels.kind": kind, "ranker": "tree"})
    assert len(model.members) == 2


@pytest.fixture
def blended(monkeypatch):
    """What blending met: the encoded documents, and the rows that classifiers were trained on."""
    encoded, rows = [], []
    train_beside, best_share = blend.train_beside, blend._best_share

    def trained(job, given, some=None):
        rows.append(some)
        return train_beside(job, given, some)

    def chosen(job, given, *models):
        encoded.append(given.value)
        return best_share(job, given, *models)

    monkeypatch.setattr(blend, "train_beside", trained)
    monkeypatch.setattr(blend, "_best_share", chosen)
    return encoded, rows


def test_the_share_is_chosen_on_the_users_own_documents(blended):
    """And the classifiers, which never met them, are trained once."""
    encoded, rows = blended
    recipe = resolve("cascadexml", settings=QUICK)
    train(from_lists(TEXTS, LISTS), recipe, Run(1), valid=from_lists(TEXTS[:7], LISTS[:7]))
    x, truth = encoded[0].held_out
    assert x.rows == truth.rows == 7
    assert x.sparse_cols > 0
    assert rows == [None]


def test_the_share_is_chosen_by_classifiers_that_never_met_the_documents(blended):
    """Neither as positives nor as negatives."""
    encoded, rows = blended
    fit("cascadexml", {"finetune.valid": 2})
    held = encoded[0].network.held
    assert len(held) == 2
    assert rows[0] is None
    assert rows[1].tolist() == [i for i in range(len(TEXTS)) if i not in held]


def test_the_first_network_is_that_of_the_pifa_run_with_the_same_encoder(tmp_path):
    """Four members over two encoders train four networks."""
    import tiny

    other = str(tiny.write(tmp_path / "other", seed=1))
    told = []
    settings = {
        "finetune.steps": 1, "search.beam": 4, "ensemble.runs": 4,
        "ensemble.encoders": ("minilm", other, "minilm", other),
        "ensemble.labels": ("pifa", "pifa", "pifa-neural", "pifa-neural"),
    }  # fmt: skip
    fit(X, settings, on_event=told.append, work=tmp_path / "w")
    assert len(told) == 4
