"""A model goes through pickle as the files of its folder, and comes back through the checks of `load` (F-D18)."""

from __future__ import annotations

import copy
import io
import multiprocessing
import pickle
import warnings
from pathlib import Path

import numpy as np
import pytest

import labelwood as lw
from labelwood import limits
from labelwood.arrays.names import Names
from labelwood.models.ensemble import unpacked
from toy import keyword_set

FILES = Path(__file__).parent / "files" / "v1"
TEXTS, LISTS = keyword_set()


@pytest.fixture(scope="module")
def models() -> dict[str, lw.Predictor]:
    """One tree with texts of its labels, and two that share their words."""
    tree = lw.train(TEXTS, LISTS, label_texts={"label1": "eins"}, settings={"tree.leaf": 2, "tree.branch": 2})
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {"tree": tree, "ensemble": lw.Ensemble([tree, lw.train(TEXTS, LISTS, method="dismec")])}


def same(one: lw.Predictor, other: lw.Predictor) -> bool:
    ids, scores = one.predict_arrays(TEXTS)
    other_ids, other_scores = other.predict_arrays(TEXTS)
    return np.array_equal(ids, other_ids) and np.array_equal(scores, other_scores)


@pytest.mark.parametrize("protocol", range(2, pickle.HIGHEST_PROTOCOL + 1))
@pytest.mark.parametrize("name", ["tree", "ensemble"])
def test_a_pickled_model_predicts_the_same(models, name, protocol):
    found = pickle.loads(pickle.dumps(models[name], protocol=protocol))
    assert type(found) is type(models[name])
    assert same(found, models[name])
    assert found.label_texts == models[name].label_texts
    assert pickle.dumps(found) == pickle.dumps(models[name])


def test_it_holds_the_very_bytes_of_the_folder(models, tmp_path):
    models["tree"].save(tmp_path / "m")
    _, (files,) = models["tree"].__reduce__()
    assert files == {path.name: path.read_bytes() for path in (tmp_path / "m").iterdir()}


def test_a_large_model_that_is_verified_later_pickles_too(models, tmp_path, monkeypatch):
    models["tree"].save(tmp_path / "m")
    monkeypatch.setattr(limits, "VERIFIED_AT_ONCE", 0)
    assert same(pickle.loads(pickle.dumps(lw.load(tmp_path / "m"))), models["tree"])


def test_a_copy_is_the_model_itself(models):
    """It never changes, so one is enough, as of a tuple."""
    for model in models.values():
        assert copy.deepcopy({"model": model})["model"] is model
        assert copy.copy(model) is model


@pytest.mark.parametrize("name", sorted(path.name for path in FILES.iterdir() if path.is_dir()))
def test_every_kind_of_model_pickles(name):
    """Also those with an encoder, whose weights are in the folder."""
    model = lw.load(FILES / name)
    found = pickle.loads(pickle.dumps(model))
    assert found.__reduce__()[1] == model.__reduce__()[1]


def ask(model: lw.Predictor) -> list[list[tuple[str, float]]]:
    """What another process predicts."""
    return model.predict(TEXTS[:3], k=2)


def test_workers_that_are_started_anew_get_the_model(models):
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        for model in models.values():
            assert pool.apply(ask, (model,)) == model.predict(TEXTS[:3], k=2)


def test_what_was_changed_is_refused(models):
    """The same checks as of a folder: digests, names, kinds."""
    _, (files,) = models["tree"].__reduce__()
    level = next(name for name in files if name.startswith("level-1"))
    changed = bytearray(files[level])
    changed[-1] ^= 1
    wrong = [
        ({**files, level: bytes(changed)}, "have changed"),
        ({**files, level: files[level][:-1]}, "bytes, but should have"),
        ({name: content for name, content in files.items() if name != level}, f"{level} is missing"),
        ({**files, "labelwood.json": files["labelwood.json"].replace(b"xr-linear", b"xr-lineal")}, "digest"),
        ({}, "holds no labelwood.json"),
        ({**files, level: "text"}, "files by name, as bytes"),
        (None, "files by name, as bytes"),
    ]
    for given, message in wrong:
        with pytest.raises(lw.ModelFileError, match=message):
            unpacked(given)


def test_a_pickle_names_no_code_but_ours(models):
    """Its one global is the function that checks and opens the files."""
    names = []

    class Listing(pickle.Unpickler):
        def find_class(self, module: str, name: str) -> object:
            names.append((module, name))
            return super().find_class(module, name)

    for model in models.values():
        Listing(io.BytesIO(pickle.dumps(model))).load()
    assert set(names) == {("labelwood.models.ensemble", "unpacked")}


def test_names_and_data_sets_pickle(models):
    names = models["tree"].labels
    assert pickle.loads(pickle.dumps(names)) == names == copy.deepcopy(names)
    assert isinstance(copy.deepcopy(names), Names)
    data = lw.data.from_lists(TEXTS, LISTS)
    found = pickle.loads(pickle.dumps(data))
    assert (list(found.texts), found.names) == (TEXTS, data.names)
    assert np.array_equal(found.labels.indices, data.labels.indices)


def test_a_data_set_shows_itself_in_a_line(tmp_path):
    assert repr(lw.data.from_lists(TEXTS * 100, LISTS * 100)) == (
        "<labelwood.Dataset: 7,200 documents, 12 labels; text>"
    )
    assert repr(lw.data.from_matrix(lw.arrays.sparse.as_features([[1.0, 0.0]]), None)) == (
        "<labelwood.Dataset: 1 document; features>"
    )


def test_the_counts_of_a_model_cannot_be_changed(models, tmp_path):
    models["tree"].save(tmp_path / "m")
    for model in (*models.values(), lw.load(tmp_path / "m"), pickle.loads(pickle.dumps(models["tree"]))):
        with pytest.raises(ValueError, match="read-only"):
            model.counts[0] = 7
        assert model.counts.sum() == 72
