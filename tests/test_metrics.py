"""The metrics: cases computed by hand, published propensities, and the slow twin on random cases (goal C3)."""

from __future__ import annotations

import json
from math import log, log2

import numpy as np
import pytest

import labelwood as lw
import reference_metrics
from labelwood.arrays.sparse import Csr
from labelwood.metrics import intervals
from labelwood.metrics.intervals import RowScores
from labelwood.metrics.ranking import (
    Evaluation,
    MetricsConfig,
    by_row,
    compare,
    evaluate,
    inverse_propensity,
    propensity_constants,
)


def from_lists(lists, cols):
    """A 0/1 matrix from sorted column lists."""
    indptr = np.cumsum([0, *map(len, lists)], dtype=np.int64)
    flat = np.array([column for row in lists for column in row], np.int32)
    return Csr(indptr, flat, np.ones(len(flat), np.float32), cols)


# Four documents, four labels in training (counts below, 50 rows), label 4 never seen.
PREDICTED = np.array([[0, 1, 2], [1, 0, -1], [3, 2, 1], [2, 3, 0]], np.int32)
TRUTH = from_lists([[0, 2], [3], [], [2, 4]], 5)
COUNTS = np.array([25, 10, 1, 5])


def run(predicted=PREDICTED, truth=TRUTH, counts=COUNTS, n_train=50, **changes) -> Evaluation:
    return evaluate(predicted, truth, counts, n_train, MetricsConfig(**{"ks": (1, 3), "bootstrap": 0, **changes}))


def test_published_propensities():
    q = inverse_propensity(np.array([1, 25]), 50, 0.55, 1.5)
    assert (1 / q).tolist() == pytest.approx([0.25562221863533147, 0.5571545100089221], rel=1e-15)


def test_propensity_stays_a_probability_for_one_or_two_training_rows():
    assert inverse_propensity(np.array([0, 1, 2]), 2).tolist() == [1.0, 1.0, 1.0]
    assert (inverse_propensity(np.array([0, 1, 3]), 3) > 1).all()


def test_constants_by_data_set():
    for name in (
        "Wikipedia-500K",
        "wiki-500k",
        "Wiki500K",
        "WikiLSHTC-325K",
        "LF-WikiTitles-500K",
        "LF-Wikipedia-500K",
    ):
        assert propensity_constants(name) == (0.5, 0.4), name
    for name in ("Amazon-670K", "amazon-3m", "LF-AmazonTitles-131K", "lf_amazon_131k"):
        assert propensity_constants(name) == (0.6, 2.6), name
    for name in ("AmazonCat-13K", "Wiki10-31K", "Eurlex-4K", "my data"):
        assert propensity_constants(name) == (0.55, 1.5), name


def test_hand_computed_means():
    """Hits in the top 3: ranks 1 and 3 of row 0, none of rows 1 and 2, rank 1 of row 3. Row 2 has no label: 0."""
    values = run().values
    assert values["P@1"] == 50.0
    assert values["P@3"] == 25.0  # (2 + 0 + 0 + 1) / (4 · 3)
    assert values["R@1"] == 25.0  # (1/2 + 1/2) / 4
    assert values["R@3"] == 37.5  # (1 + 1/2) / 4
    assert values["nDCG@1"] == 50.0
    third, two = 1 / log2(4), 1 + 1 / log2(3)
    assert values["nDCG@3"] == pytest.approx(100 * ((1 + third) / two + 1 / two) / 4, rel=1e-15)


def test_hand_computed_propensity_scores():
    """q(unseen) is the formula at n = 0; the best attainable takes each row's largest q, the sums are divided last."""
    c = (log(50) - 1) * 2.5**0.55
    q0, q2, q3, q4 = (1 + c * (n + 1.5) ** -0.55 for n in (25, 1, 5, 0))
    values, second = run().values, 1 / log2(3)
    assert values["PSP@1"] == pytest.approx(100 * (q0 + q2) / (q2 + q3 + q4), rel=1e-14)
    assert values["PSP@3"] == pytest.approx(100 * (q0 + q2 + q2) / ((q2 + q0) + q3 + (q4 + q2)), rel=1e-14)
    two, top = 1 + second, [q0 + q2 / 2, q2]
    best = [q2 + q0 * second, q3, q4 + q2 * second]
    xclib = 100 * (top[0] / two + top[1] / two) / (best[0] / two + best[1] + best[2] / two)
    assert values["PSnDCG@3"] == pytest.approx(xclib, rel=1e-14)
    attention = run(psndcg="attentionxml").values["PSnDCG@3"]
    assert attention == pytest.approx(100 * sum(top) / sum(best), rel=1e-14)
    assert attention != pytest.approx(xclib, rel=1e-3)
    assert values["PSnDCG@1"] == values["PSP@1"]


def test_hand_computed_label_averages():
    """Labels 0, 2, 3, 4 are in the truth. Top 3: 0 is right once of three, 2 twice of three, 3 and 4 never."""
    values = run().values
    assert values["coverage@1"] == 50.0
    assert values["coverage@3"] == 50.0
    f0, f2 = 2 * 1 / (1 + 3), 2 * 2 / (2 + 3)
    assert values["macro-F1@3"] == pytest.approx(100 * (f0 + f2) / 4, rel=1e-15)
    assert values["macro-F1@1"] == pytest.approx(100 * (2 * 1 / (1 + 1) + 2 * 1 / (2 + 1)) / 4, rel=1e-15)


def test_dropping_unseen_labels():
    """Label 4 leaves the truth of row 3; row 2, left without a label, leaves every average."""
    found = run(unseen="drop")
    assert found.unseen == "drop"
    assert found.values["P@1"] == pytest.approx(100 * 2 / 3)
    assert found.values["R@1"] == pytest.approx(100 * (1 / 2 + 1) / 3)
    assert found.values["coverage@3"] == pytest.approx(100 * 2 / 3)
    # row 2 predicted 2 and 3 as well, but its predictions are no longer counted
    assert found.values["macro-F1@3"] == pytest.approx(100 * (2 / 4 + 4 / 4 + 0) / 3)


def test_what_is_counted():
    counted = {
        "rows": 4,
        "rows_evaluated": 4,
        "rows_dropped": 0,
        "rows_without_labels": 1,
        "rows_only_unseen": 0,
        "label_occurrences": 5,
        "unseen_occurrences": 1,
        "unseen_labels": 1,
        "labels_in_truth": 4,
        "labels_in_training": 4,
    }
    assert run().counts == counted
    dropped = {"rows_evaluated": 3, "rows_dropped": 1, "labels_in_truth": 3}
    assert run(unseen="drop").counts == counted | dropped


def test_rows_with_only_unseen_labels():
    truth = from_lists([[0], [1, 2]], 3)
    predicted = np.array([[0], [0]])
    counted = run(predicted, truth, np.array([4]), ks=(1,))
    assert counted.values["P@1"] == 50.0
    assert counted.counts["rows_only_unseen"] == 1
    assert (
        "Never seen in training: 2 labels (2 occurrences), counted as misses; no other label in 1 of 2 rows."
        in counted.note()
    )
    dropped = run(predicted, truth, np.array([4]), ks=(1,), unseen="drop")
    assert dropped.values["P@1"] == 100.0
    assert dropped.counts["rows_dropped"] == 1
    assert "dropped together with 1 of 2 rows left without a label." in dropped.note()


def test_a_known_label_without_training_positives_is_unseen():
    truth = from_lists([[0], [1]], 2)
    found = run(np.array([[0], [0]]), truth, np.array([3, 0]), ks=(1,), unseen="drop")
    assert found.counts["unseen_labels"] == 1
    assert found.values["P@1"] == 100.0


def test_missing_columns_count_as_misses():
    wide = run(np.array([[0, -1, -1, -1], [1, 3, -1, -1], [-1] * 4, [2, -1, -1, -1]]), ks=(1, 3))
    narrow = run(np.array([[0, -1], [1, 3], [-1, -1], [2, -1]]), ks=(1, 3))
    assert wide.values == narrow.values
    assert narrow.values["P@3"] == 25.0


def test_no_predictions_at_all():
    assert set(run(np.zeros((4, 0), np.int32)).values.values()) == {0.0}


def test_perfect_predictions():
    truth = from_lists([[0, 1], [2], [1, 3]], 4)
    values = run(np.array([[1, 0], [2, 0], [3, 1]]), truth, np.array([9, 3, 2, 1]), ks=(1, 2)).values
    for name in ("P@1", "nDCG@1", "nDCG@2", "R@2", "PSP@1", "PSP@2", "PSnDCG@2", "coverage@2"):
        assert values[name] == (pytest.approx(100, rel=1e-15) if "PS" in name else 100.0), name


def test_stored_zeros_are_no_labels():
    truth = Csr(np.array([0, 2]), np.array([0, 1], np.int32), np.array([0, 2.5], np.float32), 2)
    values = run(np.array([[0, 1]]), truth, np.array([5, 5]), ks=(1, 2)).values
    assert values["P@1"] == 0.0
    assert values["R@2"] == 100.0


def random_case(seed):
    """Small enough that empty rows, unseen labels, short rankings and gaps in them all turn up often."""
    rng = np.random.default_rng(seed)
    labels, unseen, rows = rng.integers(1, 9), rng.integers(0, 4), rng.integers(1, 8)
    width = rng.integers(0, labels + 1)
    predicted = np.array([rng.permutation(labels)[:width] for _ in range(rows)], np.int32).reshape(rows, width)
    predicted[rng.random(predicted.shape) < rng.choice([0.0, 0.3])] = -1
    dense = rng.random((rows, labels + unseen)) < rng.choice([0.05, 0.3, 0.8])
    truth = [np.flatnonzero(row).tolist() for row in dense]
    a, b = rng.choice([(0.55, 1.5), (0.6, 2.6), (0.5, 0.4)]).tolist()
    config = MetricsConfig(
        unseen=str(rng.choice(["count", "drop"])),
        a=a,
        b=b,
        psndcg=str(rng.choice(["xclib", "attentionxml"])),
        bootstrap=0,
    )
    n_train = int(rng.choice([1, 2, 3, 50, 10**6]))
    return predicted, from_lists(truth, labels + unseen), rng.integers(0, rng.choice([2, 100]), labels), n_train, config


@pytest.mark.parametrize("part", range(5))
def test_equals_the_slow_twin(part):
    refused = 0
    for seed in range(2000 * part, 2000 * (part + 1)):
        predicted, truth, counts, n_train, config = random_case(seed)
        sets = [set(truth.row(i)[0].tolist()) for i in range(truth.rows)]
        slow = reference_metrics.metrics(predicted.tolist(), sets, counts.tolist(), n_train, config)
        try:
            fast = evaluate(predicted, truth, counts, n_train, config)
        except lw.DataError:  # every row dropped: nothing to measure
            assert (config.unseen, set(slow.values())) == ("drop", {0.0}), seed
            refused += 1
            continue
        assert fast.values == pytest.approx(slow, rel=1e-12, abs=1e-12), seed
    assert refused < 400


def many(rows=400, seed=0):
    rng = np.random.default_rng(seed)
    truth = from_lists([sorted(rng.choice(20, 3, replace=False).tolist()) for _ in range(rows)], 20)
    predicted = np.array([rng.permutation(20)[:5] for _ in range(rows)])
    return predicted, truth, rng.integers(1, 90, 20), rows


def test_intervals_hold_the_value_and_follow_the_seed():
    one, again = (evaluate(*many(), MetricsConfig(ks=(1, 5), bootstrap=200, seed=3)) for _ in range(2))
    other = evaluate(*many(), MetricsConfig(ks=(1, 5), bootstrap=200, seed=4))
    assert set(one.intervals) == {f"{m}@{k}" for m in ("P", "R", "nDCG", "PSP", "PSnDCG") for k in (1, 5)}
    assert all(low < one.values[name] < high for name, (low, high) in one.intervals.items())
    assert one.intervals == again.intervals
    assert one.intervals != other.intervals
    assert one.values == other.values


def test_the_interval_has_the_width_of_a_proportion():
    """P@1 is a proportion p of n rows: its 95% interval is ± 1.96 √(p(1−p)/n), up to resampling noise."""
    found = evaluate(*many(2000), MetricsConfig(ks=(1,), bootstrap=2000))
    p = found.values["P@1"] / 100
    low, high = found.intervals["P@1"]
    assert (high - low) / 2 == pytest.approx(196 * (p * (1 - p) / 2000) ** 0.5, rel=0.1)
    wider = evaluate(*many(2000), MetricsConfig(ks=(1,), bootstrap=2000, level=99.0)).intervals["P@1"]
    assert wider[0] < low < high < wider[1]


def test_resamples_divide_resampled_sums():
    """Rows of bottom 0 (left out) never matter: a constant ratio has an interval of no width."""
    rows = RowScores(np.array([1.0, 2.0, 0.0, 3.0]), np.array([2.0, 4.0, 0.0, 6.0]))
    found = compare(rows, np.zeros(4), resamples=50)
    assert (found.difference, found.high) == (50.0, 50.0)


def test_resampling_in_blocks_changes_nothing(monkeypatch):
    values = np.random.default_rng(5).random(100)
    whole = compare(values, values[::-1] ** 2, resamples=50)
    monkeypatch.setattr(intervals, "_BLOCK", 700)  # seven resamples at a time
    assert compare(values, values[::-1] ** 2, resamples=50) == whole


def test_paired_comparison_sees_what_two_intervals_cannot():
    rng = np.random.default_rng(1)
    base = (rng.random(500) < 0.5).astype(float)
    better = base.copy()
    better[np.flatnonzero(base == 0)[:15]] = 1.0
    found = compare(better, base)
    assert found.difference == pytest.approx(3.0)
    assert 0 < found.low < 3.0 < found.high < 6.0
    assert found.clear
    assert found.level == 95.0
    assert not compare(base, base).clear
    back = compare(base, better)
    assert (back.low, back.high) == (pytest.approx(-found.high), pytest.approx(-found.low))


def test_rows_for_comparison_agree_with_the_evaluation():
    rows = by_row(PREDICTED, TRUTH, COUNTS, 50, MetricsConfig(ks=(1, 3), unseen="drop"))
    found = run(unseen="drop")
    assert {name: score.value for name, score in rows.items()}.items() <= found.values.items()
    assert rows["P@3"].top.tolist() == [2, 0, 0, 1]
    assert rows["P@3"].bottom.tolist() == [3, 3, 0, 3]


def test_output_is_plain_and_says_its_conventions():
    found = evaluate(PREDICTED, TRUTH, COUNTS, 50, MetricsConfig(ks=(3, 1), bootstrap=20))
    plain = json.loads(json.dumps(found.to_json()))
    assert plain["P@1"] == 50.0
    assert plain["unseen"] == "count"
    assert (plain["a"], plain["b"], plain["psndcg"]) == (0.55, 1.5, "xclib")
    assert plain["counts"]["unseen_labels"] == 1
    assert plain["intervals"]["P@1"] == list(found.intervals["P@1"])
    table = found.table()
    assert table[0] == ("metric", "@1", "@3")
    assert [row[0] for row in table[1:]] == ["P", "R", "nDCG", "PSP", "PSnDCG", "coverage", "macro-F1"]
    assert table[1][1].startswith("50.00 [")
    assert table[6] == ("coverage", "50.00", "50.00")


@pytest.mark.parametrize(
    ("predicted", "place"),
    [
        (np.array([[0], [1], [4], [0]]), "row 2: label id 4"),
        (np.array([[0], [-2], [0], [0]]), "row 1: label id -2"),
        (np.array([[0, 1], [0, 2], [0, 3], [2, 2]]), "row 3: label id 2 .*twice"),
        (np.array([[0], [1]]), "2 rows"),
        (np.array([0, 1, 2, 3]), "shape"),
        (np.array([[0.5]] * 4), "float64"),
    ],
)
def test_wrong_predictions_are_refused_with_their_place(predicted, place):
    with pytest.raises(lw.DataError, match=place):
        run(predicted)


def test_wrong_counts_and_settings_are_refused():
    with pytest.raises(lw.DataError, match="label 1 has -3"):
        run(counts=np.array([1, -3, 1, 1]))
    with pytest.raises(lw.DataError, match="a column per label"):
        run(counts=np.ones(6))
    with pytest.raises(lw.DataError, match="nothing to measure"):
        run(truth=from_lists([[4], [], [], []], 5), unseen="drop")
    with pytest.raises(lw.DataError, match="same documents"):
        compare(np.ones(3), np.ones(4))
    with pytest.raises(lw.DataError, match="finite"):
        compare(np.array([1.0, np.nan]), np.ones(2))
    with pytest.raises(lw.DataError, match="1 bottoms"):
        compare(RowScores(np.ones(2), np.ones(1)), np.ones(2))
    with pytest.raises(lw.DataError, match="not an array"):
        run([[1], [1, 2]])
    with pytest.raises(lw.ConfigError, match="n_train"):
        run(n_train=0)
    with pytest.raises(lw.ConfigError, match="nan"):
        inverse_propensity(np.ones(2), 50, float("nan"))
    for wrong in ({"resamples": 0}, {"seed": -1}, {"level": 100.0}):
        with pytest.raises(lw.ConfigError, match="allowed are"):
            compare(np.ones(3), np.ones(3), **wrong)
    for wrong in ({"unseen": "skip"}, {"ks": (0,)}, {"ks": ()}, {"b": 0.0}, {"level": 100.0}, {"bootstrap": -1}):
        with pytest.raises(lw.ConfigError, match=f"metrics.{next(iter(wrong))}"):
            run(**wrong)
