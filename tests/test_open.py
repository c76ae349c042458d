"""Opening a large model: records are verified on first use, and damage is never read as weights."""

from __future__ import annotations

import gc
import random
import weakref
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
import pytest

import labelwood as lw
from faults.mutate import Folder
from labelwood import limits
from labelwood.base import digests
from labelwood.errors import ModelFileError
from labelwood.storage import model_folder, safetensors_file
from labelwood.storage.safetensors_file import OnDemand
from toy import noisy_set

TEXTS, LABELS = noisy_set(0, docs=400, words=300, labels=120)
SETTINGS = {"tree.branch": 4, "tree.leaf": 4, "search.beam": 2, "linear.threshold": 0.0, "linear.weights": "float32"}
Answers = list[list[tuple[str, float]]]


@pytest.fixture(scope="module")
def trained() -> lw.Predictor:
    return lw.train(TEXTS, LABELS, settings=SETTINGS)


@pytest.fixture
def model(trained, tmp_path, monkeypatch) -> Path:
    """A saved model that is opened as a large one would be: every record lies in a few blocks of 4096 bytes."""
    monkeypatch.setattr(limits, "VERIFIED_AT_ONCE", 0)
    monkeypatch.setattr(limits, "DIGEST_BLOCK", 4096)
    trained.save(tmp_path / "model")
    return tmp_path / "model"


def level_file(model: Path, level: int) -> Path:
    return model / model_folder.describe(model).files[f"level-{level}"].name


def flipped(path: Path, bit: int) -> None:
    data = bytearray(path.read_bytes())
    data[bit // 8] ^= 1 << bit % 8
    path.unlink()  # the old bytes may still be mapped
    path.write_bytes(data)


def hashed(monkeypatch) -> list[int]:
    """Counts the bytes that are hashed from now on."""
    counts: list[int] = []
    real = digests.digest_blocks

    def counting(chunks, block):
        counts.append(sum(len(chunk) for chunk in chunks))
        return real(chunks, block)

    monkeypatch.setattr(model_folder, "digest_blocks", counting)
    return counts


def test_it_predicts_what_the_trained_model_predicts(model, trained):
    loaded = lw.load(model)
    assert all(level.source is not None for member in loaded.members for level in member.levels)
    assert loaded.predict(TEXTS, k=7) == trained.predict(TEXTS, k=7)
    assert [loaded.predict([text], k=7)[0] for text in TEXTS] == trained.predict(TEXTS, k=7)
    assert loaded.members[0].levels[0].nonzeros == trained.members[0].levels[0].nonzeros


def test_small_models_are_verified_whole(trained, tmp_path):
    trained.save(tmp_path / "m")
    assert all(level.source is None for level in lw.load(tmp_path / "m").members[0].levels)
    size = model_folder.describe(tmp_path / "m").bytes
    with pytest.MonkeyPatch.context() as patch:
        for most, later in ((size, False), (size - 1, True)):
            patch.setattr(limits, "VERIFIED_AT_ONCE", most)
            found = model_folder.load(tmp_path / "m", later={"records"}).part("level-1")["records"]
            assert isinstance(found, OnDemand) == later


def test_opening_reads_no_record_and_a_query_only_its_own(model, monkeypatch):
    counts = hashed(monkeypatch)
    loaded = lw.load(model)
    last = level_file(model, loaded.members[0].tree.depth)
    total, at_load = model_folder.describe(model).bytes, sum(counts)
    loaded.predict(["word7 word7"], k=1)
    one = sum(counts) - at_load
    assert 0 < one < last.stat().st_size / 2
    loaded.predict(["word7 word7"], k=1)
    assert sum(counts) == at_load + one  # each block once
    loaded.verify()
    assert total <= sum(counts) <= total + 4096
    loaded.verify()
    loaded.predict(TEXTS)
    assert sum(counts) <= total + 4096


def test_every_flip_is_unread_or_an_error(model, trained):
    right = trained.predict(TEXTS, k=3)
    files = [path for path in sorted(model.iterdir()) if path.name.startswith("level-")]
    rng, raised, unread = random.Random(0), 0, 0
    for _ in range(60):
        path = rng.choice(files)
        bit, data, i = rng.randrange(8 * path.stat().st_size), path.read_bytes(), rng.randrange(len(TEXTS))
        flipped(path, bit)
        try:
            loaded = lw.load(model)
        except ModelFileError as error:
            assert "have changed" in str(error)  # noqa: PT017 — header, places
        else:
            try:
                assert loaded.predict([TEXTS[i]], k=3)[0] == right[i]
                unread += 1
            except ModelFileError as error:
                assert path.name in str(error)  # noqa: PT017
                raised += 1
                with pytest.raises(ModelFileError, match="have changed"):
                    loaded.predict([TEXTS[i]], k=3)  # again, at every use
            with pytest.raises(ModelFileError, match=rf"{path.name}: bytes \d+ to \d+ have changed"):
                loaded.predict(TEXTS, k=3, threads=2)
            for use in (loaded.verify, lambda new=loaded: new.save(model.parent / "copy")):
                with pytest.raises(ModelFileError, match="have changed"):
                    use()
            assert not model_folder.exists(model.parent / "copy")
        path.unlink()
        path.write_bytes(data)
    assert raised > 5
    assert unread > 5


def test_an_unsound_record_with_right_digests(model):
    folder = Folder(model)
    manifest, depth = model_folder.describe(model), lw.load(model).members[0].tree.depth
    part = f"level-{depth}"
    records = model_folder.load(model, later={"records"}).part(part)["records"]
    data = bytearray(folder.files[part])
    for begin, _ in model_folder.load(model).part(part)["places"].tolist():
        data[records.start + begin + 12] = 9  # no such kind of weights
    folder.files[part] = bytes(data)
    folder.repair()
    folder.write(model)
    assert model_folder.describe(model) != manifest
    loaded = lw.load(model)
    for use in (loaded.verify, lambda: loaded.predict(["word1"]), lambda: loaded.predict(["word1"])):
        with pytest.raises(ModelFileError, match="unsound chunk"):
            use()
    with pytest.raises(ModelFileError, match=rf"{part}-.*: bytes \d+ to \d+ hold an unsound chunk"):
        loaded.predict(["word1"])


def test_first_use_by_many_threads_at_once(model, trained):
    right = trained.predict(TEXTS, k=3)
    for _ in range(5):
        loaded = lw.load(model)
        with ThreadPoolExecutor(8) as pool:
            one_by_one = list(pool.map(lambda text, by=loaded: by.predict([text], k=3, threads=1)[0], TEXTS))
        assert one_by_one == right
    assert lw.load(model).predict(TEXTS * 20, k=3, threads=8) == right * 20


def test_it_is_saved_as_it_was(model, tmp_path):
    lw.load(model).save(tmp_path / "again")
    for path in sorted(model.iterdir()):
        assert (tmp_path / "again" / path.name).read_bytes() == path.read_bytes()


def test_nothing_keeps_a_closed_model_mapped(model):
    loaded = lw.load(model)
    loaded.predict(["word1"])
    level = loaded.members[0].levels[0]
    source = weakref.ref(level.source)
    del loaded, level
    gc.collect()
    assert source() is None


def test_a_shortened_file_is_refused_at_load(model):
    path = level_file(model, 1)
    path.write_bytes(path.read_bytes()[:-1])
    with pytest.raises(ModelFileError, match="bytes, but should have"):
        lw.load(model)


def test_a_large_file_has_larger_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "DIGEST_BLOCK", 4096)
    monkeypatch.setattr(limits, "DIGESTS", 4)
    for size, block, count in ((4 * 4096, 4096, 4), (4 * 4096 + 1, 8192, 3), (33000, 16384, 3)):
        header = len(safetensors_file.encode({"a": np.zeros(9999, np.uint8)})[0])
        model_folder.save(tmp_path / "m", {}, {"part": {"a": np.zeros(size - header, np.uint8)}})
        entry = model_folder.load(tmp_path / "m").manifest.files["part"]
        assert (entry.bytes, entry.block, len(entry.sha256)) == (size, block, count)
