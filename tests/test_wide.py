"""Features with far more columns than entries: the columns that occur are numbered, and nothing else differs."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest

import labelwood as lw
from labelwood import _core
from labelwood.arrays.sparse import Csr, Features
from labelwood.parts.kmeans import Cutter
from labelwood.parts.label_features import sums

pytestmark = pytest.mark.native

WIDE = 2**28
ROWS, COLS, LABELS = 240, 60, 24


def sample(seed, rows=ROWS):
    """Sparse features, those of a label's documents alike; a few rows are empty."""
    rng = np.random.default_rng(seed)
    dense = rng.random((rows, COLS), np.float32) * (rng.random((rows, COLS)) < 0.1)
    dense[np.arange(rows), np.arange(rows) % LABELS] = 1
    dense[::50] = 0
    row, column = np.nonzero(dense)
    pointers = np.concatenate([[0], np.cumsum(np.bincount(row, minlength=rows))])
    return Csr(pointers, column.astype(np.int32), dense[row, column], COLS)


PLACES = np.sort(np.random.default_rng(7).choice(WIDE, COLS, replace=False)).astype(np.int32)
PLACES[-1] = WIDE - 1


def spread(x):
    """The same entries among 2^28 columns, in the same order."""
    return Csr(x.indptr, PLACES[x.indices], x.data, WIDE)


def labels():
    return Csr(np.arange(ROWS + 1), (np.arange(ROWS) % LABELS).astype(np.int32), np.ones(ROWS, np.float32), LABELS)


@pytest.mark.parametrize("top", [0, 5])
def test_label_features(top):
    x, groups = sample(0), labels().transpose()
    narrow, wide = sums(groups, Features(x), 2, top).sparse, sums(groups, Features(spread(x)), 2, top).sparse
    assert wide.cols == WIDE
    assert wide.indptr.tolist() == narrow.indptr.tolist()
    assert wide.indices.tolist() == PLACES[narrow.indices].tolist()
    assert wide.data.tobytes() == narrow.data.tobytes()


@pytest.mark.parametrize("way", ["bisect", "kway", "uneven"])
def test_clusters(way):
    x = sample(1)
    found = []
    for z in (x, spread(x)):
        cutter = Cutter(Features(z), 3, 0, 0, 20, 100, 2)
        start = np.arange(ROWS, dtype=np.int32)
        order, ptr = cutter.cut(start, np.array([0, 100, ROWS]), np.array([4, 6], np.int32), way, 0)
        found.append((order.tolist(), ptr.tolist()))
    assert found[0] == found[1]


def test_distances():
    x, z = sample(2), sample(3, LABELS)
    ids = np.random.default_rng(0).integers(-1, LABELS, (ROWS, 5)).astype(np.int32)
    near, far = (
        _core.pair_distances(*Features(a).parts, *b.parts[:3], np.zeros((LABELS, 0), np.float32), ids, 2)
        for a, b in ((x, z), (spread(x), spread(z)))
    )
    assert near.tobytes() == far.tobytes()
    assert near.any()


@pytest.mark.parametrize(
    ("method", "settings"),
    [
        ("xr-linear", {"tree.leaf": 4}),
        ("parabel", {"tree.leaf": 4}),
        ("bonsai", {"tree.leaf": 4, "tree.branch": 4}),
        ("dismec", {}),
        ("xr-linear", {"tree.leaf": 4, "tail.classifier_share": 0.5}),
    ],
)
def test_models_are_those_of_the_columns_that_occur(method, settings, tmp_path):
    x, new = sample(4), sample(5)
    run = lw.Run(threads=2)
    narrow = lw.train(X=x, labels=labels(), method=method, settings=settings, run=run)
    wide = lw.train(X=spread(x), labels=labels(), method=method, settings=settings, run=run)
    expected = narrow.predict_arrays(X=new, k=5)
    wide.save(tmp_path / "wide")
    for model in (wide, lw.load(tmp_path / "wide")):
        for found, known in zip(model.predict_arrays(X=spread(new), k=5), expected, strict=True):
            assert found.tobytes() == known.tobytes()


def test_columns_without_a_document_in_training_say_nothing():
    x = sample(6)
    settings = {"features.norm": "none", "tree.leaf": 4}
    model = lw.train(X=spread(x), labels=labels(), settings=settings, run=lw.Run(threads=1))
    columns = [5, PLACES[3], PLACES[3] + 1, WIDE - 2]
    other = Csr(np.array([0, 4]), np.array(columns, np.int32), np.ones(4, np.float32), WIDE)
    plain = Csr(np.array([0, 1]), PLACES[3:4], np.ones(1, np.float32), WIDE)
    assert model.predict(X=other, k=5) == model.predict(X=plain, k=5)


MEASURED = f"""
import numpy as np
import labelwood as lw
from labelwood.arrays.sparse import Csr

def held():
    return int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0]) // 1024

columns = np.sort(np.random.default_rng(0).integers(0, {WIDE}, (200, 5)), axis=1).astype(np.int32)
x = Csr(np.arange(0, 1001, 5), columns.ravel(), np.ones(1000, np.float32), {WIDE})
y = Csr(np.arange(201), np.arange(200, dtype=np.int32) % 40, np.ones(200, np.float32), 40)
before = held()
model = lw.train(X=x, labels=y, settings={{"tree.leaf": 4}}, run=lw.Run(threads=2, memory="1GB"))
model.predict(X=x, k=3, threads=2)
print(held() - before)
"""


def test_memory_is_that_of_the_entries():
    """A thousand entries among 2^28 columns: 2.1 GB with a place for each column."""
    done = subprocess.run([sys.executable, "-c", MEASURED], capture_output=True, text=True, check=True)
    assert int(done.stdout) < 100  # MB
