"""Ensembles: what each average makes of two lists by hand, the numpy twin, members of every kind, one folder."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labelwood as lw
import reference
from contract import LISTS, TEXTS, digest, matrices, orderly, same
from labelwood import limits
from labelwood.base.progress import Silent
from labelwood.parts.rank_average import AVERAGES, EnsembleConfig, Ranking, merge
from labelwood.storage import model_folder
from toy import noisy_set

pytestmark = pytest.mark.native
DEEP: dict[str, object] = {"tree.leaf": 2, "tree.branch": 2}


def ranking(ids: list[list[int]], scores: list[list[float]], margins: bool = False) -> Ranking:
    return Ranking(np.array(ids, np.int32), np.array(scores, np.float32), margins)


def merged(found: list[Ranking], k: int = 4, **config: Any) -> list[tuple[int, float]]:
    """The first row's labels and scores."""
    ids, scores = merge(found, EnsembleConfig(trees=len(found), **config), k, threads=1)
    return [(int(i), round(float(s), 4)) for i, s in zip(ids[0], scores[0], strict=True) if i >= 0]


# --- the averages, by hand -----------------------------------------------------------------------

ONE, TWO = ranking([[7, 3, 5]], [[0.8, 0.6, 0.2]]), ranking([[3, 9, -1]], [[0.4, 0.3, 0.0]])
LN3 = float(np.log(3))


def test_mean_counts_what_is_missing_as_zero():
    assert merged([ONE, TWO]) == [(3, 0.5), (7, 0.4), (9, 0.15), (5, 0.1)]
    assert merged([ONE, TWO], k=2) == [(3, 0.5), (7, 0.4)]
    assert merged([ONE, TWO], weights=(3, 1)) == [(7, 0.6), (3, 0.55), (5, 0.15), (9, 0.075)]
    assert merged([ONE, TWO], weights=(0, 2)) == [(3, 0.4), (9, 0.3), (5, 0.0), (7, 0.0)]


def test_mean_of_margins_counts_what_is_missing_as_the_last_one():
    a, b = ranking([[1, 2]], [[1.0, -3.0]], True), ranking([[2, 3]], [[-1.0, -2.0]], True)
    assert merged([a, b]) == [(1, -0.5), (2, -2.0), (3, -2.5)]


def test_softmax_is_over_each_list():
    a, b = ranking([[1, 2]], [[LN3, 0.0]]), ranking([[2, -1]], [[-5.0, 0.0]])
    assert merged([a, b], average="softmax") == [(2, 0.625), (1, 0.375)]


def test_sigmoid_is_of_margins_only():
    a, b = ranking([[1, 2]], [[LN3, 0.0]], True), ranking([[1, 2]], [[0.25, 0.1]])
    assert merged([a, b], average="sigmoid") == [(1, 0.5), (2, 0.3)]


def test_rank_falls_evenly_over_the_list():
    assert merged([ONE, TWO], average="rank", candidates=4) == [(3, 0.875), (7, 0.5), (9, 0.375), (5, 0.25)]


def test_round_robin_takes_turns():
    assert [i for i, _ in merged([ONE, TWO], average="round-robin")] == [7, 3, 9, 5]
    assert [i for i, _ in merged([ONE, TWO], average="round-robin", weights=(1, 2))] == [3, 7, 9, 5]
    assert merged([ONE, TWO], average="round-robin", candidates=4)[:2] == [(7, 1.0), (3, 0.875)]


@pytest.mark.parametrize("average", AVERAGES)
def test_ties_go_by_id_and_nothing_stays_nothing(average):
    twins = ranking([[9, 4], [-1, -1]], [[0.5, 0.5], [0.0, 0.0]])
    other = ranking([[4, 9], [-1, -1]], [[0.5, 0.5], [0.0, 0.0]])
    ids, scores = merge([twins, other], EnsembleConfig(trees=2, average=average), 3, threads=1)
    assert ids.tolist() == [[9, 4, -1] if average == "round-robin" else [4, 9, -1], [-1, -1, -1]]
    assert scores[1].tolist() == [0, 0, 0]


@settings(max_examples=100, deadline=None)
@given(
    seed=st.integers(0, 2**32),
    rows=st.sampled_from([0, 1, 3, 70]),
    members=st.integers(1, 4),
    average=st.sampled_from(AVERAGES),
    margins=st.booleans(),
    keep=st.integers(1, 30),
)
def test_the_twin(seed, rows, members, average, margins, keep):
    rng = np.random.default_rng(seed)
    found = []
    for _ in range(members):
        width = int(rng.integers(1, 12))
        ids = np.array([rng.permutation(15)[:width] for _ in range(rows)], np.int32).reshape(rows, width)
        scores = np.round(rng.normal(size=(rows, width)) if margins else rng.random((rows, width)), 1)
        scores = -np.sort(-scores, axis=1).astype(np.float32)
        ids[np.arange(width) >= rng.integers(0, width + 1, size=(rows, 1))] = -1
        found.append(Ranking(ids, np.where(ids < 0, np.float32(0), scores), margins))
    config = EnsembleConfig(trees=members, average=average, candidates=12, weights=tuple(range(members, 0, -1)))
    got = merge(found, config, keep, threads=3)
    assert same(got, merge(found, config, keep, threads=1))
    lists = [(f.ids, f.scores, np.float32(w), margins) for f, w in zip(found, config.shares(), strict=True)]
    wanted = reference.merge(lists, average, max(keep, 12), keep)
    for ids, scores, row in zip(*got, wanted, strict=True):
        kept = ids[ids >= 0]
        assert len(kept) == len(row)
        assert np.allclose(scores[: len(kept)], [s for _, s in row], atol=1e-6)  # exp of numpy and of C may differ
        by_id = dict(row)
        assert all(abs(float(by_id.get(int(i), s)) - float(s)) < 1e-6 for i, s in zip(kept, scores, strict=False))
        pairs = list(zip(-scores[: len(kept)], kept, strict=True))
        assert pairs == sorted(pairs)


# --- trees of one recipe -------------------------------------------------------------------------


@pytest.fixture(scope="module")
def three() -> lw.Predictor:
    return lw.train(*noisy_set(1), settings={**DEEP, "ensemble.trees": 3}, run=lw.Run(1))


def test_the_first_tree_is_the_model_of_one_tree(three):
    one = lw.train(*noisy_set(1), settings=DEEP, run=lw.Run(1))
    texts = noisy_set(2)[0]
    assert isinstance(three, lw.Ensemble)
    assert same(three.members[0].predict_arrays(texts), one.predict_arrays(texts))
    assert len({m.tree.leaves.tobytes() for m in three.members}) == 3


def test_the_score_is_the_mean_over_the_trees(three):
    texts = noisy_set(2)[0]
    scores = np.zeros((len(texts), len(three.labels)))
    for member in three.members:
        ids, found = member.predict_arrays(texts, k=len(three.labels))
        for row, (i, s) in enumerate(zip(ids, found, strict=True)):
            scores[row, i[i >= 0]] += s[i >= 0] / 3
    ids, found = three.predict_arrays(texts, k=5)
    assert np.allclose(np.take_along_axis(scores, ids, axis=1), found, atol=1e-6)
    assert np.allclose(found, -np.sort(-scores, axis=1)[:, :5], atol=1e-6)


def test_levels_with_the_same_clusters_are_trained_and_stored_once(tmp_path):
    progress = Silent()
    changes = {**DEEP, "tree.shared": 2, "ensemble.trees": 3}
    model = lw.train(*noisy_set(1), settings=changes, run=lw.Run(1, progress=progress))
    first = model.members[0]
    for member in model.members[1:]:
        pairs = zip(first.levels, member.levels, strict=True)
        assert [a is b for a, b in pairs] == [True, True, False, False, False]
    levels = {n: [name for name in progress.timings if name.startswith(f"tree {n} of 3, ")] for n in (1, 2, 3)}
    assert levels[1] == [f"tree 1 of 3, level {t} of 5" for t in (1, 2, 3, 4, 5)]
    assert levels[3] == [f"tree 3 of 3, level {t} of 5" for t in (3, 4, 5)]
    model.save(tmp_path / "m")
    parts = set(model_folder.describe(tmp_path / "m").files)
    upper = {part for part in parts if part.startswith(("labels", "tfidf", "level-1", "level-2"))}
    assert upper == {"labels", "tfidf", "level-1", "level-2"}
    assert {"tree", "tree_2", "tree_3", "level-3", "level-3_2", "level-3_3"} < parts


@pytest.mark.parametrize("combiner", ["l3-hinge", "sigmoid", "noop"])
def test_levels_in_common_are_searched_once(combiner, monkeypatch):
    """The beam of the shared levels is carried on: the same answers as each tree searched from its root."""
    texts, lists = noisy_set(1)
    changes = {**DEEP, "tree.shared": 2, "ensemble.trees": 3, "search.combiner": combiner}
    model = lw.train(texts, lists, settings=changes, run=lw.Run(1))
    found = model.predict_arrays(texts[:20], k=6)
    assert model._common == 2
    monkeypatch.setattr(type(model), "_common", 0)
    model.__dict__.pop("_common")
    apart = model.predict_arrays(texts[:20], k=6)
    assert (found[0] == apart[0]).all()
    assert (found[1] == apart[1]).all()


def test_every_tree_is_a_stage_that_is_resumed(tmp_path):
    data, changes = noisy_set(1), {**DEEP, "ensemble.trees": 2}
    whole = lw.train(*data, settings=changes, run=lw.Run(1, work=tmp_path / "w"))
    stages = sorted(path.name.rpartition("-")[0] for path in (tmp_path / "w").iterdir() if path.is_dir())
    assert stages == sorted(["features", *["tree", *(f"level-{t}" for t in range(1, 6))] * 2])
    progress = Silent()
    again = lw.train(*data, settings=changes, run=lw.Run(1, work=tmp_path / "w", resume=True, progress=progress))
    assert not progress.timings
    whole.save(tmp_path / "a")
    again.save(tmp_path / "b")
    assert digest(tmp_path / "a") == digest(tmp_path / "b")


def test_weights_must_fit_the_trees():
    for trees, weights in ((3, (1, 2)), (2, (0, 0)), (1, (1, 1))):
        with pytest.raises(lw.ConfigError, match=f"ensemble.weights gives {len(weights)} values .* for {trees} trees"):
            lw.train(TEXTS, LISTS, settings={"ensemble.trees": trees, "ensemble.weights": weights})


# --- any models together -------------------------------------------------------------------------


def model(names: dict[str, str] | None = None, rows: slice = slice(None), **options: Any) -> lw.Predictor:
    lists = [[(names or {}).get(name, name) for name in row] for row in LISTS[rows]]
    return lw.train(TEXTS[rows], lists, run=lw.Run(1), **options)


def test_labels_are_aligned_by_name():
    plain, other = model(), model({"label3": "new", "label5": "also new"}, label_texts={"new": "N", "label1": "one"})
    both = lw.Ensemble([plain, other])
    assert both.labels == tuple(sorted({*plain.labels, "new", "also new"}))
    assert dict(zip(both.labels, both.label_texts, strict=True))["label1"] == "one"
    assert dict(zip(both.labels, both.counts.tolist(), strict=True))["new"] == 12
    found = dict(both.predict(["word3 word3 common"], k=2)[0])
    alone = [m.predict(["word3 word3 common"], k=1)[0][0][1] for m in (plain, other)]
    assert found == pytest.approx({"label3": alone[0] / 2, "new": alone[1] / 2})
    orderly(*both.predict_arrays(TEXTS, k=20), len(both.labels))


def test_different_recipes_and_different_words():
    members = [model(method="xr-linear"), model(method="dismec", settings={"tfidf.min_df": 1, "tfidf.chars": (2, 3)})]
    both = lw.Ensemble(members, lw.EnsembleConfig(average="sigmoid"))
    assert both.method == "xr-linear + dismec"
    assert [m.gives_margins for m in both.members] == [False, True]
    assert both.evaluate(TEXTS, LISTS, metrics=lw.MetricsConfig(ks=(1,)))["P@1"] == 100
    assert repr(both).startswith("<labelwood.Ensemble xr-linear + dismec: 12 labels, ")


def test_words_are_read_once():
    seen: list[str] = []

    class Watch(Silent):
        def stage(self, name: str, total: int = 0, unit: str = "") -> Any:
            seen.append(name)
            return super().stage(name, total, unit)

    one, copy, other = model(), model(seed=3), model(settings={"tfidf.min_df": 3})
    lw.Ensemble([one, copy, other]).predict_arrays(TEXTS, progress=Watch())
    assert seen == ["reading words", "reading words", "predicting"]
    assert one.members[0].reading == copy.members[0].reading
    assert one.members[0].reading != other.members[0].reading


def test_features_and_text_together():
    x, _, y = matrices()
    text, own = model(), lw.train(X=x, labels=[[f"label{i}" for i in np.flatnonzero(row)] for row in y], run=lw.Run(1))
    both = lw.Ensemble([text, own])
    assert [row[0][0] for row in both.predict(TEXTS[:3], X=x[:3], k=1)] == ["label0"] * 3
    with pytest.raises(lw.ConfigError, match="give both, texts and X"):
        both.predict(TEXTS)
    with pytest.raises(lw.DataError, match="108 texts but 3 rows"):
        both.predict(TEXTS, X=x[:3])
    with pytest.raises(lw.ConfigError, match="trained on text"):
        lw.Ensemble([text]).predict(X=x)


def test_an_ensemble_among_the_members_is_opened():
    trees, flat = model(settings={**DEEP, "ensemble.trees": 3}), model(method="dismec")
    both = lw.Ensemble([trees, flat], lw.EnsembleConfig(average="sigmoid", weights=(3, 1)))
    assert both.members == (*trees.members, *flat.members)
    assert both.config.trees == 4
    assert both.config.weights == pytest.approx((0.25, 0.25, 0.25, 0.25))
    assert lw.Ensemble([trees, flat]).config.weights == pytest.approx((1 / 6, 1 / 6, 1 / 6, 1 / 2))
    assert same(lw.Ensemble([trees]).predict_arrays(TEXTS), trees.predict_arrays(TEXTS))


@pytest.mark.parametrize(
    ("members", "config", "message"),
    [
        ([], {}, "needs from 1 to 256 models, but 0 are given"),
        (["model"], {}, "must be a list of trained models"),
        (None, {}, "must be a list of trained models"),
        ("one", {"weights": (1, 2)}, "gives 2 values"),
        ("one", {"weights": (-1,)}, "ensemble.weights must be"),
        ("one", {"average": "median"}, "ensemble.average must be mean or softmax"),
        ("one", {"candidates": 0}, "ensemble.candidates must be"),
        ("many", {}, f"but {limits.MAX_TREES + 1} are given"),
    ],
)
def test_what_is_no_ensemble(members, config, message):
    given = {"one": lambda: [model()], "many": lambda: [model()] * (limits.MAX_TREES + 1)}
    with pytest.raises(lw.ConfigError, match=message):
        lw.Ensemble(given[members]() if isinstance(members, str) else members, EnsembleConfig(**config))


# --- one folder ----------------------------------------------------------------------------------


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    members = [model(settings={**DEEP, "ensemble.trees": 2}), model({"label3": "new"}, method="dismec")]
    path = tmp_path_factory.mktemp("ensemble") / "m"
    lw.Ensemble(members, lw.EnsembleConfig(average="sigmoid")).save(path)
    return path


def test_a_mixed_ensemble_comes_back(folder, tmp_path):
    loaded = lw.load(folder)
    assert isinstance(loaded, lw.Ensemble)
    assert [m.recipe.method for m in loaded.members] == ["xr-linear", "xr-linear", "dismec"]
    assert loaded.members[0].tfidf is loaded.members[1].tfidf
    loaded.save(tmp_path / "again")
    assert digest(tmp_path / "again") == digest(folder)
    assert loaded.evaluate(TEXTS, LISTS, metrics=lw.MetricsConfig(ks=(1,), bootstrap=0))["P@1"] > 60


def change(where: list[Any], value: Any) -> Any:
    """A change of a manifest's meta: the value at a path, or nothing there any more."""

    def apply(meta: Any) -> None:
        for key in where[:-1]:
            meta = meta[key]
        if value is None:
            del meta[where[-1]]
        else:
            meta[where[-1]] = value

    return apply


@pytest.mark.parametrize(
    ("where", "value", "message"),
    [
        (["members", 0], None, "lists 2 members, but should list 3"),
        (["members"], [], "lists 0 members"),
        (["members"], {"0": 1}, "must have exactly ensemble and members"),
        (["more"], 1, "must have exactly ensemble and members"),
        (["members", 1], "tree", "must be a table"),
        (["members", 1, "parts"], None, "with a table 'parts'"),
        (["members", 1, "parts"], ["tree"], "with a table 'parts'"),
        (["members", 1, "parts", "tree"], 3, "with a table 'parts'"),
        (["members", 1, "parts", "tree"], "../tree", "uses the part '../tree', which is not there"),
        (["members", 1, "parts", "tree"], None, "tree"),
        (["members", 1, "parts", "tree"], "labels", "tree lacks"),
        (["members", 1, "parts", "level-1"], "tfidf", "level"),
        (["members", 2, "parts", "labels"], "labels", "no member uses the part 'labels_3'"),
        (["members", 1, "parts", "tree"], "tree", "no member uses the part 'tree_2'"),
        (["members", 1, "more"], 1, "meta must have exactly"),
        (["members", 1, "rows"], -1, "rows"),
        (["members", 1, "recipe", "seed"], "x", "seed"),
        (["ensemble"], None, "must have exactly ensemble and members"),
        (["ensemble", "average"], "median", "ensemble.average must be"),
        (["ensemble", "weights"], [1, 1], "gives 2 values"),
        (["ensemble", "trees"], 2, "lists 3 members"),
        (["ensemble", "colour"], 2, "no setting 'ensemble.colour'"),
    ],
)
def test_a_forged_manifest_is_refused(folder, tmp_path, where, value, message):
    found = model_folder.load(folder)
    meta = json.loads(json.dumps(found.meta))
    change(where, value)(meta)
    model_folder.save(tmp_path / "forged", meta, found.parts)
    with pytest.raises(lw.ModelFileError, match=message):
        lw.load(tmp_path / "forged")


def test_a_member_is_a_model_of_its_own(folder, tmp_path):
    member = lw.load(folder).members[2]
    member.save(tmp_path / "m")
    alone = lw.load(tmp_path / "m")
    assert isinstance(alone, lw.Model)
    assert same(alone.predict_arrays(TEXTS), member.predict_arrays(TEXTS))
    assert dataclasses.replace(member).labels == alone.labels


def test_a_config_of_another_kind_is_refused():
    texts, labels = ["a red apple", "the blue sky"] * 2, [["fruit"], ["weather"]] * 2
    model = lw.train(texts, labels)
    with pytest.raises(lw.ConfigError, match="ensemble must be a EnsembleConfig, but is a dict"):
        lw.Ensemble([model], {"average": "mean"})
    with pytest.raises(lw.ConfigError, match="metrics must be a MetricsConfig, but is None"):
        model.evaluate(texts, labels, metrics=None)


def test_the_average_is_given_by_name():
    """F-N7: no config is needed for what everybody sets."""
    one, other = model(), model(method="dismec")
    made = lw.Ensemble([one, other], average="rank", weights=(3, 1), candidates=7)
    assert made.config == lw.Ensemble([one, other], EnsembleConfig(average="rank", weights=(3, 1), candidates=7)).config
    assert made.config.average == "rank"
    with pytest.raises(lw.ConfigError, match=r"ensemble\.average must be mean or softmax"):
        lw.Ensemble([one], average="median")
    with pytest.raises(lw.ConfigError, match="average and a config say the same twice"):
        lw.Ensemble([one], EnsembleConfig(), average="rank")
    with pytest.raises(lw.ConfigError, match=r"ensemble\.weights gives 2 values"):
        lw.Ensemble([one], weights=(1, 2))


def test_members_of_very_different_sizes_are_told(tmp_path, recwarn):
    """F-N7: a small new model may spoil a large one. Told when it is made, not each time it is opened."""
    large, small = model(), model(rows=slice(0, 2))
    assert large.rows > 10 * small.rows
    with pytest.warns(UserWarning, match=rf"trained on 2 to {large.rows} documents and weigh the same"):
        lw.Ensemble([large, small]).save(tmp_path / "m")
    with pytest.warns(UserWarning, match="weigh the same"):
        lw.Ensemble([lw.Ensemble([large, large]), small])
    recwarn.clear()
    lw.load(tmp_path / "m")
    lw.Ensemble([large, small], weights=(9, 1))
    lw.Ensemble([large, model()])
    assert not [w for w in recwarn if "weigh the same" in str(w.message)]
