"""Chunk records: what goes in comes out, every way of looking rows up agrees, and no damage gets past the check."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cases import cases
from chunks import chunk_of
from labelwood import _core
from labelwood.arrays.sparse import Csr, Features, as_csr
from labelwood.parts.linear_level import WEIGHTS, LinearLevel
from labelwood.parts.search import Search, SearchConfig, search

pytestmark = pytest.mark.native


def level_of(record: np.ndarray, width: int, sparse: int, dense: int) -> LinearLevel:
    places = np.array([[0, len(record)]], np.int64)
    return LinearLevel.from_tensors(np.array([0, width]), {"records": record, "places": places}, sparse, dense)


def matrix_of(level: LinearLevel, sparse: int, dense: int) -> np.ndarray:
    rows, end, cols, vals, bias, block = level.native.decode(0)
    w = np.zeros((sparse + dense + 1, len(bias)), np.float32)
    w[np.repeat(rows, np.diff(end, prepend=0)), cols] = vals
    w[sparse:-1] = block.reshape(dense, len(bias))
    w[-1] = bias
    return w


def stored(w: np.ndarray, weights: str) -> np.ndarray:
    """The twin: weights as they are after rounding; the bias stays as it is."""
    if weights == "float16":
        return np.vstack([np.clip(w[:-1], -65504, 65504).astype(np.float16).astype(np.float32), w[-1:]])
    if weights == "int8":
        most = np.abs(w[:-1]).max(axis=0, initial=0)
        scale = np.where(most > 0, most / np.float32(127), np.float32(1)).astype(np.float32)
        return np.vstack([np.rint(w[:-1] / scale) * scale, w[-1:]]).astype(np.float32)
    return w


def random_weights(rng, sparse, dense, width, density):
    w = rng.normal(size=(sparse + dense + 1, width)).astype(np.float32)
    w[:sparse] *= rng.random((sparse, width)) < density
    return w


@cases(1000)
@given(
    seed=st.integers(0, 2**32),
    sparse=st.integers(0, 300),
    dense=st.integers(0, 3),
    width=st.sampled_from([1, 2, 7, 8, 9, 16, 100, 256, 257, 300]),
    density=st.sampled_from([0.0, 0.02, 0.3, 1.0]),
    weights=st.sampled_from(WEIGHTS),
)
def test_a_record_holds_what_went_in(seed, sparse, dense, width, density, weights):
    w = random_weights(np.random.default_rng(seed), sparse, dense, width, density)
    level = level_of(chunk_of(w, sparse, dense, weights), width, sparse, dense)
    assert (matrix_of(level, sparse, dense) == stored(w, weights)).all()
    assert level.nonzeros == np.count_nonzero(stored(w, weights)[:-1])


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize(
    ("features", "width"), [(300, 12), (5000, 300), (40_000, 20), (3_000_000, 3), (2**31 - 1, 2), (300, 70_000)]
)
def test_margins_are_products_however_queries_are_grouped(features, width, weights):
    """Buckets of 64 and 256 features, of 2^16 and more; columns of one, two and four bytes; one query and many."""
    rng = np.random.default_rng(features + width)
    used = np.unique(np.concatenate([rng.integers(0, features, 200), [0, features - 1]])).astype(np.int32)
    w = random_weights(rng, len(used), 0, width, 0.2 if width < 1000 else 0.002)
    w[3] = rng.normal(size=width)  # a row kept whole
    rows = [np.flatnonzero(w[f]) for f in range(len(used))]
    keep = [f for f in range(len(used)) if len(rows[f])]
    record = _core.encode_chunk(
        used[keep],
        np.cumsum([len(rows[f]) for f in keep]),
        np.concatenate([rows[f] for f in keep]).astype(np.uint32),
        np.concatenate([w[f, rows[f]] for f in keep]),
        w[-1].copy(),
        np.zeros(0, np.float32),
        features,
        0,
        WEIGHTS.index(weights),
    )
    level = level_of(record, width, features, 0)
    count = 200 if width < 1000 else 20
    x = (rng.normal(size=(count, len(used))) * (rng.random((count, len(used))) < 0.3)).astype(np.float32)
    local = as_csr(x)
    whole = Features(Csr(local.indptr, used[local.indices], local.data, features))
    what = Search(SearchConfig(combiner="noop"), 1, width)
    ids, scores = search(whole, [level], what, threads=1)
    margins = np.take_along_axis(x @ stored(w, weights)[:-1] + w[-1], ids, axis=1)
    assert np.abs(scores - margins).max() < 2e-4
    for i in range(min(count, 5)):
        alone = search(whole.take(np.array([i])), [level], what, threads=1)
        assert (alone[0][0] == ids[i]).all()
        assert (alone[1][0] == scores[i]).all()


@cases(300)
@given(
    seed=st.integers(0, 2**32),
    weights=st.sampled_from(WEIGHTS),
    width=st.sampled_from([1, 5, 40, 300]),
    dense=st.integers(0, 1),
)
def test_damage_is_refused_or_harmless(seed, weights, width, dense):
    """A record with changed bytes is refused, or is still a sound record: the search then reads inside its bounds."""
    rng = np.random.default_rng(seed)
    record = chunk_of(random_weights(rng, 70, dense, width, 0.1), 70, dense, weights).copy()
    at = rng.integers(0, len(record), int(rng.integers(1, 4)))
    record[at] = rng.integers(0, 256, len(at))
    places = np.array([[0, len(record)]], np.int64)
    native = _core.Level(np.array([0, width]), record, places, 70, dense, None, None)
    if native.fault(0):
        return
    sound = Features(as_csr(rng.random((3, 70))), rng.random((3, dense)).astype(np.float32) if dense else None)
    level = LinearLevel(np.array([0, width]), record, places, 70, dense)
    ids, _ = search(sound, [level], Search(SearchConfig(), 1, 3), threads=1)
    assert ids.max() < width


def test_every_rule_of_a_record_is_checked():
    w = random_weights(np.random.default_rng(1), 70, 1, 5, 0.5)
    record = chunk_of(w, 70, 1, "int8")

    def fault(change):
        broken = record.copy()
        change(broken)
        return _core.Level(np.array([0, 5]), broken, np.array([[0, len(broken)]]), 70, 1, None, None).fault(0)

    def put(at, value, kind):
        return lambda r: r[at : at + np.dtype(kind).itemsize].view(kind).__setitem__(0, value)

    directory = 16 + 4 * 5 * 2 + 8  # head, bias and scale, one dense row of five bytes padded to eight
    assert fault(lambda r: None) == ""
    assert "head" in fault(put(12, 3, np.uint8))
    assert "head" in fault(put(4, 99, np.uint32))
    assert "finite" in fault(put(16, np.nan, np.float32))
    assert "begin" in fault(put(directory, 1, np.uint32))
    assert "order" in fault(put(directory + 4, 2**31, np.uint32))
    assert "padding" in fault(put(len(record) - 1, 1, np.uint8))
    assert "add up" in fault(put(0, 1, np.uint32))
    start = directory + 4 * 3
    assert "row" in fault(put(start + 1, 255, np.uint8))  # a low part beyond the bucket
    assert "row" in fault(put(start, 200, np.uint8))  # more rows than the bucket has bytes
    short = record[:-8].copy()
    assert _core.Level(np.array([0, 5]), short, np.array([[0, len(short)]]), 70, 1, None, None).fault(0)


def test_weights_too_large_for_float16_become_its_largest():
    w = np.array([[1e30, -1e30, 65520, 65519, 6e-8, 2e-8, 1 + 2**-11, 1 + 3 * 2**-11], [0] * 8], np.float32)
    level = level_of(chunk_of(w, 1, 0, "float16"), 8, 1, 0)
    expected = np.clip(w[0], -65504, 65504).astype(np.float16).astype(np.float32)
    assert (matrix_of(level, 1, 0)[0] == expected).all()


def test_weights_that_rounding_makes_zero_are_gone():
    """-1e-9 is -0 in float16, a sign but no weight; in int8 what is too small for a scale of its own."""
    for weights, tiny in (("float16", -1e-9), ("int8", 190 * 2.0**-149), ("int8", -1e-37)):
        w = np.array([[tiny, 0], [0, 1], [0, 0]], np.float32)
        rows, end, cols, vals, _, _ = level_of(chunk_of(w, 2, 0, weights), 2, 2, 0).native.decode(0)
        assert (rows.tolist(), end.tolist(), cols.tolist()) == ([1], [1], [1])
        assert vals == pytest.approx([1])


def test_columns_of_a_row_must_ascend_and_fit():
    def encode(columns):
        rows, end = np.array([4, 9], np.int32), np.array([2, 3])
        parts = np.array(columns, np.uint32), np.ones(3, np.float32), np.zeros(3, np.float32), np.zeros(0, np.float32)
        return _core.encode_chunk(rows, end, *parts, 10, 0, 0)

    for sound in ([1, 2, 0], [0, 1, 1]):  # the third opens the second row
        assert len(encode(sound))
    for broken in ([1, 0, 2], [1, 1, 2], [0, 1, 3]):
        with pytest.raises(ValueError, match="do not fit"):
            encode(broken)
