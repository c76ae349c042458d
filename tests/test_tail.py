"""Weights by propensity and the second ranking, by hand."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labelwood as lw
import reference
from cases import cases
from labelwood import _core
from labelwood.arrays.sparse import Features, as_csr
from labelwood.metrics.ranking import inverse_propensity
from labelwood.parts.propensity import TailConfig, centroids, nearness, rerank, weights
from labelwood.storage import model_folder
from toy import contract_set, random_features

TEXTS, LISTS = contract_set(12)
Q = np.array([1.0, 2.0, 4.0, 16.0])


def test_weights_by_hand():
    """q = 1/p = 4: 2/p - 1 = 7 and p / (2 - p) = 1/7; a label as common as can be keeps 1."""
    assert [w.tolist() for w in weights("pw", Q[[0, 2]])] == [[1, 7], [1, 1]]
    positive, negative = weights("pw-cb", Q[[0, 2]])
    assert positive.tolist() == [1, 1]
    assert negative == pytest.approx([1, 1 / 7])
    assert [w.tolist() for w in weights("none", Q[:2])] == [[1, 1], [1, 1]]


def test_propensity_constants_are_those_of_the_metrics():
    counts = np.array([1, 10, 100])
    assert (TailConfig().inverse(counts, 1000) == inverse_propensity(counts, 1000)).all()
    named = TailConfig(propensity="Amazon-670K").inverse(counts, 1000)
    assert (named == inverse_propensity(counts, 1000, 0.6, 2.6)).all()
    assert (TailConfig(propensity="Amazon-670K", a=0.5).inverse(counts, 1000) != named).any()


def found(ids: list[list[int]], scores: list[list[float]]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(ids, np.int32), np.array(scores, np.float32)


def test_scores_times_inverse_propensity():
    ids, scores = rerank(
        found([[0, 1, 3, -1]], [[0.5, 0.25, 0.125, 0]]), Q, TailConfig(propensity_power=1), None, margins=False
    )
    assert ids.tolist() == [[3, 0, 1, -1]]  # 2, 0.5 and 0.5: equal scores by id
    assert scores.tolist() == [[2, 0.5, 0.5, 0]]


def test_margins_count_as_logarithms():
    ids, scores = rerank(found([[0, 2]], [[-0.5, -1.0]]), Q, TailConfig(propensity_power=0.5), None, margins=True)
    assert ids.tolist() == [[2, 0]]
    assert scores == pytest.approx(np.array([[-1 + np.log(2), -0.5]]))


def test_centroids_share_the_score():
    near = np.log(np.array([[0.01, 0.81]], np.float32))
    ids, scores = rerank(found([[0, 1]], [[0.64, 0.25]]), Q, TailConfig(classifier_share=0.5), near, margins=False)
    assert ids.tolist() == [[1, 0]]
    assert scores == pytest.approx(np.array([[0.45, 0.08]]))  # sqrt(.25 · .81), sqrt(.64 · .01)


def test_what_is_beyond_the_candidates_stays_behind_them():
    many = found([[0, 1, 3, 2]], [[0.5, 0.25, 0.2, 0.1]])
    ids, scores = rerank(many, Q, TailConfig(propensity_power=2, candidates=2), None, margins=False)
    assert ids.tolist() == [[1, 0, 3, 2]]
    assert scores == pytest.approx(np.array([[1, 0.5, 0.2, 0.1]]))


@pytest.mark.native
@cases(200)
@given(seed=st.integers(0, 2**32), sparse=st.integers(0, 5), dense=st.integers(0, 3), threads=st.integers(1, 3))
def test_distances_equal_the_twin(seed, sparse, dense, threads):
    rng = np.random.default_rng(seed)
    (x, x_all), (z, z_all) = (random_features(rng, rows, sparse or int(not dense), dense) for rows in (70, 4))
    ids = rng.integers(-1, 4, (70, 3)).astype(np.int32)
    parts = z.parts
    assert _core.pair_distances(*x.parts, *parts[:3], parts[4], ids, threads) == pytest.approx(
        reference.pair_distances(x_all, z_all, ids), abs=1e-4, rel=1e-4
    )


def test_nearness_by_hand():
    """x is the centroid of label 0 and at a right angle to that of label 1: |x - mu|² is 0 and 2."""
    x = Features(as_csr(np.array([[1.0, 0], [0, 3]])))
    mu = centroids(as_csr(np.eye(2)), x, TailConfig(), 1)
    t = np.exp(nearness(x.take(np.array([0])), mu, np.array([[0, 1]], np.int32), 30, 1))
    assert t == pytest.approx(np.array([[1 / (1 + np.exp(-15)), 1 / (1 + np.exp(15))]]), rel=1e-4)


SETTINGS: dict[str, dict[str, Any]] = {
    "pw": {"linear.weighting": "pw"},
    "pw-cb": {"linear.weighting": "pw-cb"},
    "rerank": {"tail.propensity_power": 1.0},
    "centroids": {"tail.classifier_share": 0.5, "tail.propensity_power": 0.5, "tail.candidates": 4},
    "newton": {"linear.solver": "newton", "linear.start": "mean-separating"},
    "proximal": {"linear.solver": "proximal"},
}


@pytest.mark.native
@pytest.mark.parametrize("name", SETTINGS)
def test_options_keep_the_promises(name, tmp_path):
    """Right answers, the same bits for any number of threads, one by one as in a batch, k a prefix, a round trip."""
    deep = {"tree.leaf": 2, "tree.branch": 2, **SETTINGS[name]}
    one, many = (lw.train(TEXTS, LISTS, settings=deep, run=lw.Run(threads)) for threads in (1, 5))
    ids, scores = one.predict_arrays(TEXTS, k=6)
    for row, truth in zip(one.predict(TEXTS, k=2), LISTS, strict=True):
        assert {label for label, _ in row[: len(truth)]} == set(truth)
    assert (np.diff(scores, axis=1) <= 0)[ids[:, 1:] >= 0].all()
    one.save(tmp_path / "m")
    for other in (many, lw.load(tmp_path / "m")):
        assert all(
            a.tobytes() == b.tobytes() for a, b in zip((ids, scores), other.predict_arrays(TEXTS, k=6), strict=True)
        )
    assert (one.predict_arrays(TEXTS, k=3)[0] == ids[:, :3]).all()
    assert (one.predict_arrays(TEXTS[5:6], k=6)[1] == scores[5:6]).all()


@pytest.mark.native
def test_a_forged_centroids_part_is_refused(tmp_path):
    lw.train(TEXTS, LISTS, settings=SETTINGS["centroids"], run=lw.Run(1)).save(tmp_path / "m")
    stored = model_folder.load(tmp_path / "m")
    sound = stored.parts["centroids"]
    for broken in (
        None,
        {**sound, "more": sound["data"]},
        {**sound, "data": sound["data"].astype(np.float64)},
        {**sound, "indptr": sound["indptr"][:-1]},
        {**sound, "indices": sound["indices"] + np.int32(10_000)},
        {**sound, "data": np.full_like(sound["data"], np.nan)},
    ):
        parts = {name: part for name, part in stored.parts.items() if name != "centroids"}
        model_folder.save(tmp_path / "forged", stored.meta, parts if broken is None else {**parts, "centroids": broken})
        with pytest.raises(lw.ModelFileError):
            lw.load(tmp_path / "forged")
