"""The model folder: what is saved comes back to the bit, any damage is noticed, a save is all or nothing (M1-M7)."""

from __future__ import annotations

import hashlib
import json
import os
import random
import shutil
import subprocess
import sys
import textwrap
import threading
import time
from pathlib import Path

import numpy as np
import pytest

import labelwood as lw
from faults.everystep import FaultyIo, every_step, installed
from faults.mutate import Folder, bit_flips, mutate
from labelwood import ConfigError, LabelwoodError, ModelFileError, StorageError, limits
from labelwood.base import canonical_json
from labelwood.base.digests import digest_arrays, digest_blocks, digest_plain
from labelwood.models.model import APPLIED
from labelwood.storage import atomic_files, model_folder
from labelwood.storage.migrations import SECTIONS, to_schema_2

FROZEN = Path(__file__).parent / "files" / "v1"
META = {"recipe": {"name": "parabel", "seed": 3, "rate": 0.1}, "labels": ["é", "b"], "none": None, "yes": True}


def parts(seed: int = 0):
    rng = np.random.default_rng(seed)
    return {
        "tree": {"children": np.arange(5, dtype=np.int64), "flag": np.array([True, False])},
        "level-1": {"values": rng.random((16, 24), np.float32), "rows": rng.integers(0, 9, 40).astype(np.uint16)},
        "names": {"bytes": np.frombuffer(b"alpha\nbeta", np.uint8), "empty": np.zeros((0, 3), np.float16)},
    }


def content(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


@pytest.fixture
def model(tmp_path) -> Path:
    model_folder.save(tmp_path / "model", META, parts())
    return tmp_path / "model"


def test_what_is_saved_comes_back(model):
    found = model_folder.load(model)
    assert found.meta == META
    assert found.parts.keys() == parts().keys()
    for part, tensors in parts().items():
        assert found.part(part).keys() == tensors.keys()
        for name, array in tensors.items():
            got = found.parts[part][name]
            assert (got.dtype, got.shape, got.tobytes()) == (array.dtype, array.shape, array.tobytes())
            assert not got.flags.writeable
    with pytest.raises(ModelFileError, match="did you mean 'tree'"):
        found.part("trees")


def test_the_folder_by_hand(model):
    files = content(model)
    raw = files.pop("labelwood.json")
    body = json.loads(raw)
    assert raw == json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    digest = body.pop("digest")
    rest = json.dumps(body, sort_keys=True, separators=(",", ":"), ensure_ascii=False).encode() + b"\n"
    assert digest == hashlib.sha256(rest).hexdigest()
    assert (body["format"], body["schema"], body["meta"]) == ("labelwood", 2, META)
    assert files.keys() == {entry["name"] for entry in body["files"].values()}
    for part, entry in body["files"].items():
        data = files[entry["name"]]
        assert (entry["bytes"], entry["block"]) == (len(data), 2**16)
        assert entry["sha256"] == [hashlib.sha256(data).hexdigest()]
        assert entry["name"] == f"{part}-{hashlib.sha256(entry['sha256'][0].encode()).hexdigest()[:16]}.safetensors"


def test_saving_what_was_loaded_gives_the_same_bytes(model, tmp_path):
    found = model_folder.load(model)
    model_folder.save(tmp_path / "again", found.meta, found.parts)
    assert content(tmp_path / "again") == content(model)
    shuffled = {part: dict(reversed(tensors.items())) for part, tensors in reversed(found.parts.items())}
    model_folder.save(model, dict(reversed(META.items())), shuffled)  # in place, over the mapped files
    assert content(model) == content(tmp_path / "again")


def test_an_empty_model(tmp_path):
    model_folder.save(tmp_path / "m", {}, {})
    assert model_folder.load(tmp_path / "m").parts == {}
    model_folder.save(tmp_path / "m", {}, {"nothing": {}})
    assert model_folder.load(tmp_path / "m").parts == {"nothing": {}}


def test_describe_and_verify(model):
    manifest = model_folder.describe(model)
    assert manifest == model_folder.verify(model)
    assert manifest.meta == META
    assert manifest.bytes == sum(path.stat().st_size for path in model.glob("*.safetensors"))
    data = model / manifest.files["tree"].name
    data.write_bytes(b"x")
    assert model_folder.describe(model) == manifest  # the manifest only
    with pytest.raises(ModelFileError, match="has 1 bytes, but should have"):
        model_folder.verify(model)


def test_digests_in_blocks(tmp_path, monkeypatch):
    monkeypatch.setattr(limits, "DIGEST_BLOCK", 4096)
    model_folder.save(tmp_path / "m", {}, {"big": {"a": np.arange(5000, dtype=np.int64)}})
    monkeypatch.undo()  # a release with another block size reads it all the same
    entry = model_folder.load(tmp_path / "m").manifest.files["big"]
    data = (tmp_path / "m" / entry.name).read_bytes()
    assert entry.sha256 == tuple(hashlib.sha256(data[i : i + 4096]).hexdigest() for i in range(0, len(data), 4096))
    assert len(entry.sha256) == 10
    (tmp_path / "m" / entry.name).write_bytes(data[:9000] + bytes([data[9000] ^ 1]) + data[9001:])
    with pytest.raises(ModelFileError, match="bytes 8192 to 12288 have changed"):
        model_folder.load(tmp_path / "m")


# M1, M2: any change is noticed


def test_every_flipped_bit_is_noticed(model):
    for path, bit in bit_flips(model, 5000, seed=1):
        data = path.read_bytes()
        flipped = bytearray(data)
        flipped[bit // 8] ^= 1 << bit % 8
        path.write_bytes(flipped)
        with pytest.raises(ModelFileError):
            model_folder.load(model)
        path.write_bytes(data)
    assert model_folder.load(model).meta == META


def test_every_truncation_and_extension_is_noticed(model):
    for path in sorted(model.iterdir()):
        data = path.read_bytes()
        for size in range(len(data)):
            path.write_bytes(data[:size])
            with pytest.raises(ModelFileError):
                model_folder.load(model)
        for more in range(1, 65):
            for byte in (b"\0", b" ", b"\n"):
                path.write_bytes(data + byte * more)
                with pytest.raises(ModelFileError):
                    model_folder.load(model)
        path.write_bytes(data)


def test_a_missing_file_is_named(model):
    entry = model_folder.describe(model).files["tree"]
    (model / entry.name).unlink()
    with pytest.raises(ModelFileError, match=f"{entry.name} is missing; the model is damaged"):
        model_folder.load(model)


# M3: hostile folders with valid digests


def test_structure_aware_mutations_with_repaired_digests(model, tmp_path):
    refused = loaded = 0
    slowest = 0.0
    for seed in range(2000):
        rng = random.Random(seed)
        mutant = Folder(model)
        done = mutate(mutant, rng)
        mutant.write(tmp_path / "mutant")
        begin = time.perf_counter()
        try:
            found = model_folder.load(tmp_path / "mutant")
        except LabelwoodError:
            refused += 1
        else:
            loaded += 1
            arrays = [a for tensors in found.parts.values() for a in tensors.values()]
            assert all(a.flags.aligned and not a.flags.writeable for a in arrays), (seed, done)
            assert digest_arrays(*arrays)  # every byte can be touched
        slowest = max(slowest, time.perf_counter() - begin)
    assert refused > 1000  # the machine does reach the checks...
    assert loaded > 100  # ...and what lies behind them
    assert slowest < 1


def test_files_of_another_model_under_this_manifest(model, tmp_path):
    model_folder.save(tmp_path / "other", META, parts(seed=1))
    ours, theirs = (
        model_folder.describe(model).files["level-1"],
        model_folder.describe(tmp_path / "other").files["level-1"],
    )
    assert ours.bytes == theirs.bytes
    shutil.copy(tmp_path / "other" / theirs.name, model / ours.name)
    with pytest.raises(ModelFileError, match="have changed"):
        model_folder.load(model)


def edited(model: Path, change) -> None:
    """Change the manifest's body, then sign it again."""
    folder = Folder(model)
    change(folder.body)
    folder.write(model)


MANIFESTS = {
    "not the manifest of a labelwood model": lambda b: b.update(format="other"),
    "schema must be a whole number": lambda b: b.update(schema="1"),
    "schema must be a whole number ≥ 1, but is True": lambda b: b.update(schema=True),
    "schema 7, but this release reads schemas up to 2": lambda b: b.update(schema=7),
    "wrong keys": lambda b: b.update(more=1),
    "meta and files must be tables": lambda b: b.update(meta=[]),
    "cannot name a part": lambda b: b["files"].update({"../x": b["files"]["tree"]}),
    "must have exactly name": lambda b: b["files"]["tree"].pop("block"),
    "bytes must be ≥ 8": lambda b: b["files"]["tree"].update(bytes=7),
    "block between": lambda b: b["files"]["tree"].update(block=0),
    "list of digests": lambda b: b["files"]["tree"].update(sha256=["0"]),
    "need 1 digests, but 2": lambda b: b["files"]["tree"]["sha256"].append("0" * 64),
    "does not match the content": lambda b: b["files"]["tree"].update(name="../../x.safetensors"),
    "name 'names-": lambda b: b["files"]["tree"].update(name=b["files"]["names"]["name"]),
}


@pytest.mark.parametrize("message", MANIFESTS)
def test_each_rule_of_the_manifest_has_its_error(model, message):
    edited(model, MANIFESTS[message])
    with pytest.raises(ModelFileError) as caught:
        model_folder.load(model)
    assert message in str(caught.value)
    assert str(model / "labelwood.json") in str(caught.value)


def test_a_manifest_spelled_otherwise(model):
    body = json.loads((model / "labelwood.json").read_bytes())
    (model / "labelwood.json").write_text(json.dumps(body, sort_keys=True))
    with pytest.raises(ModelFileError, match="not spelled as labelwood writes it"):
        model_folder.load(model)
    body["digest"] = "0" * 64
    (model / "labelwood.json").write_bytes(canonical_json.dump(body))
    with pytest.raises(ModelFileError, match="does not match its own digest"):
        model_folder.load(model)


def test_the_manifest_limit(model, monkeypatch):
    size = (model / "labelwood.json").stat().st_size
    for most, fits in [(size - 1, False), (size, True), (size + 1, True)]:
        monkeypatch.setattr(limits, "MAX_MANIFEST_BYTES", most)
        if fits:
            assert model_folder.load(model).meta == META
            model_folder.save(model, META, parts())
        else:
            with pytest.raises(ModelFileError, match=f"at most {most} are allowed"):
                model_folder.load(model)
            with pytest.raises(ConfigError, match="Move large data"):
                model_folder.save(model, META, parts())


def test_a_long_key_over_many_values_is_read_in_linear_time(tmp_path):
    meta = {"k" * 4_000_000: [[0] * 500 for _ in range(200)]}
    begin = time.perf_counter()
    model_folder.save(tmp_path / "m", meta, {})
    assert model_folder.load(tmp_path / "m").meta == meta
    assert time.perf_counter() - begin < 3


def test_old_schemas_are_migrated_step_by_step(model, monkeypatch):
    monkeypatch.setattr(model_folder, "SCHEMA", 4)
    with pytest.raises(ModelFileError, match="no migration from schema 2 to 4"):
        model_folder.load(model)
    monkeypatch.setitem(model_folder.MIGRATIONS, 2, lambda body: {**body, "schema": 3, "meta": {"two": body["meta"]}})
    monkeypatch.setitem(model_folder.MIGRATIONS, 3, lambda body: {**body, "schema": 4, "meta": {"three": body["meta"]}})
    assert model_folder.load(model).meta == {"three": {"two": META}}


def test_schema_1_kept_token_numbers_among_the_dense_columns():
    """Of a network with classifiers: 128 tokens and the mean state stood before theirs, 32 wide."""
    network, ranker = model_folder.describe(FROZEN / "attentionxml").meta["members"]
    assert network["reads"] == [[0, 0, 0], [0, 0, 0]]
    assert ranker["reads"] == [[0, 0, 0], [ranker["sparse_cols"], 0, ranker["dense_cols"]]]
    about = {"config": {"x": 1}, "raw": True, "readings": [[[1], "attention", 0], [[1], "mean", 0]]}
    member = {"encoder": about, "dense_cols": 128 + 64, "reads": [[0, 0, 128], [9, 160, 32]]}
    meta = to_schema_2({"schema": 1, "meta": {"members": [member]}})["meta"]["members"][0]
    assert meta["reads"] == [[0, 0, 0], [9, 0, 32]]
    assert meta["dense_cols"] == 32
    assert meta["encoder"]["architecture"] == {"x": 1}


@pytest.mark.parametrize("broken", [{}, {"readings": 3, "raw": True}, {"readings": [[[1], "attention"]], "raw": 1}])
def test_a_broken_manifest_of_schema_1_is_left_to_the_checks(broken):
    body = {"schema": 1, "meta": {"encoder": broken, "reads": None}}
    assert to_schema_2(body)["schema"] == 2


@pytest.mark.parametrize("section", sorted(set(SECTIONS) - APPLIED))
def test_a_section_that_cannot_be_applied_is_refused(section, tmp_path):
    """A model must not answer as if its calibration, or its fields, were not there."""
    stored = model_folder.load(FROZEN / "xr-linear")
    model_folder.save(tmp_path / "m", {**stored.meta, section: {}}, stored.parts)
    with pytest.raises(ModelFileError, match=f"section '{section}', which this release cannot apply"):
        lw.load(tmp_path / "m")


def test_links_and_pipes_are_refused(model, tmp_path):
    data = model / model_folder.describe(model).files["tree"].name
    data.rename(tmp_path / "elsewhere")
    data.symlink_to(tmp_path / "elsewhere")
    with pytest.raises(ModelFileError, match="symbolic link"):
        model_folder.load(model)
    data.unlink()
    os.mkfifo(data)
    with pytest.raises(ModelFileError, match="not a regular file"):
        model_folder.load(model)
    data.unlink()
    data.mkdir()
    with pytest.raises(ModelFileError, match="not a regular file"):
        model_folder.load(model)


def test_unknown_files_are_never_read(model):
    os.mkfifo(model / "notes.txt")  # opening it would hang
    (model / "broken-0123456789abcdef.safetensors").write_bytes(b"junk")
    assert model_folder.load(model).meta == META


def test_no_model_there(tmp_path):
    with pytest.raises(ModelFileError, match="there is no such folder"):
        model_folder.load(tmp_path / "no" / "model")
    with pytest.raises(ModelFileError, match=r"it holds no labelwood\.json"):
        model_folder.load(tmp_path)
    (tmp_path / "file").write_text("x")
    with pytest.raises(ModelFileError, match="it is a file"):
        model_folder.load(tmp_path / "file")
    with pytest.raises(ConfigError, match="NUL"):
        model_folder.load("a\0b")


# M4: loading runs no code


def test_loading_runs_no_code_and_opens_no_socket(model):
    script = f"""
        import sys
        from labelwood.storage import model_folder as store
        seen = []
        sys.addaudithook(lambda event, args: seen.append(event))
        store.load({str(model)!r})
        seen = sorted(set(seen))
        print(seen)
        bad = ("exec", "compile", "import", "subprocess", "os.system", "os.exec", "os.fork", "os.posix_spawn",
               "socket", "pickle", "marshal", "ctypes", "code.", "cpython")
        assert "mmap.__new__" in seen, seen
        sys.exit(any(event.startswith(bad) for event in seen))
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


# M6, R5: a save is all or nothing


def same(found: model_folder.Stored, meta, wanted) -> bool:
    def bits(parts):
        return {p: {n: (a.dtype, a.shape, a.tobytes()) for n, a in t.items()} for p, t in parts.items()}

    return found.meta == meta and bits(found.parts) == bits(wanted)


def changed():
    """A second model that shares two of three parts with the first."""
    return {**parts(), "level-1": parts(seed=1)["level-1"]}


def test_a_fault_at_every_step_of_replacing_a_model(tmp_path):
    old, folder = tmp_path / "old", tmp_path / "model"
    model_folder.save(old, {"is": "old"}, parts())
    model_folder.save(tmp_path / "new", {"is": "new"}, changed())
    wanted = content(tmp_path / "new")

    def prepare():
        shutil.rmtree(folder, ignore_errors=True)
        shutil.copytree(old, folder)

    def check(what, done):
        found = model_folder.load(folder)
        is_new = same(found, {"is": "new"}, changed())
        assert is_new or same(found, {"is": "old"}, parts()), what
        assert is_new or not done, what
        with installed(FaultyIo()):
            model_folder.save(folder, {"is": "new"}, changed())
        assert content(folder) == wanted, what

    assert every_step(prepare, lambda: model_folder.save(folder, {"is": "new"}, changed()), check) > 350


def test_a_fault_at_every_step_of_a_first_save(tmp_path):
    top, folder = tmp_path / "a", tmp_path / "a" / "b"
    model_folder.save(tmp_path / "new", META, parts())
    wanted = content(tmp_path / "new")

    def check(what, done):
        assert done <= model_folder.exists(folder), what
        if model_folder.exists(folder):
            assert same(model_folder.load(folder), META, parts()), what
        with installed(FaultyIo()):
            model_folder.save(folder, META, parts())
        assert content(folder) == wanted, what

    def prepare():
        shutil.rmtree(top, ignore_errors=True)

    assert every_step(prepare, lambda: model_folder.save(folder, META, parts()), check) > 400


def test_a_fault_at_every_step_of_loading(model):
    def check(what, done):
        pass

    def load():
        assert same(model_folder.load(model), META, parts())

    assert every_step(lambda: None, load, check, kinds=("full", "broken", "interrupted")) > 40


@pytest.mark.parametrize("step", [3, 9, 15, 21, 27])
def test_a_process_that_really_dies(model, step):
    script = f"""
        import os, sys
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        from labelwood.storage import atomic_files as disk, model_folder as store
        from faults.everystep import FaultyIo
        from test_store import changed
        io = disk.system = FaultyIo("die before", {step})
        io.die = lambda: os._exit(9)
        store.save({str(model)!r}, {{"is": "new"}}, changed())
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=False)
    assert done.returncode == 9, done.stderr
    found = model_folder.load(model)
    assert same(found, META, parts()) or same(found, {"is": "new"}, changed())
    model_folder.save(model, META, parts())
    assert len(content(model)) == 4


@pytest.mark.parametrize(("kind", "words"), [("full", "No space left"), ("broken", "check it")])
def test_what_the_error_says(model, kind, words):
    counting = FaultyIo()
    with installed(counting):
        model_folder.save(model, META, parts(seed=1))
    model_folder.save(model, META, parts())
    step = counting.log.index("write") + 1
    with installed(FaultyIo(kind, step)), pytest.raises(StorageError) as caught:
        model_folder.save(model, META, parts(seed=1))
    size = model_folder.describe(model).files["level-1"].bytes
    for word in (str(model / "level-1-"), words, f"{size} bytes are needed", "are free", "earlier files are intact"):
        assert word in str(caught.value)


def test_a_full_disk_gets_its_space_back(tmp_path):
    counting = FaultyIo()
    with installed(counting):
        model_folder.save(tmp_path / "count", META, parts())
    last = max(i for i, name in enumerate(counting.log) if name == "rename")  # the manifest's
    data = [i for i, name in enumerate(counting.log) if name == "write" and i < last][-2]  # the third part's
    with installed(FaultyIo("full", data + 1)), pytest.raises(StorageError, match="No space left"):
        model_folder.save(tmp_path / "m", META, parts())
    assert content(tmp_path / "m") == {}


def test_a_file_size_limit(tmp_path):
    script = f"""
        import resource, sys
        import numpy as np
        from labelwood import StorageError
        from labelwood.storage import model_folder as store
        store.save({str(tmp_path / "m")!r}, {{}}, {{"a": {{"x": np.zeros(10)}}}})
        resource.setrlimit(resource.RLIMIT_FSIZE, (50_000, 50_000))
        try:
            store.save({str(tmp_path / "m")!r}, {{}}, {{"a": {{"x": np.zeros(10_000)}}}})
        except StorageError as error:
            print(error)
    """
    done = subprocess.run([sys.executable, "-c", textwrap.dedent(script)], capture_output=True, text=True, check=True)
    assert "File too large; 80" in done.stdout
    assert model_folder.load(tmp_path / "m").parts["a"]["x"].shape == (10,)
    assert len(content(tmp_path / "m")) == 2


def test_the_order_of_system_calls(tmp_path):
    io = FaultyIo()
    with installed(io):
        atomic_files.publish(tmp_path / "file", [b"some ", memoryview(b"bytes")])
    assert (tmp_path / "file").read_bytes() == b"some bytes"
    assert io.log == ["open", "write", "write", "fsync", "close", "rename", "open", "fsync", "close"]


def test_overwriting_must_be_allowed(model):
    before = content(model)
    with pytest.raises(ConfigError, match="choose another folder, or allow overwriting"):
        model_folder.save(model, META, parts(seed=1), overwrite=False)
    assert content(model) == before
    model_folder.save(model, META, parts(seed=1))
    assert content(model) != before


def test_a_folder_of_somebody_else_is_refused(tmp_path, model):
    (tmp_path / "notes.txt").write_text("mine")
    with pytest.raises(ConfigError, match="'model'"):
        model_folder.save(tmp_path, META, parts())
    (tmp_path / "empty").mkdir()
    model_folder.save(tmp_path / "empty", META, parts())
    (model / "README.md").write_text("a model card")  # beside a manifest it is welcome, and stays
    (model / ".tmp-mine").write_text("x")
    model_folder.save(model, META, parts(seed=1))
    assert (model / "README.md").read_text() == "a model card"
    assert (model / ".tmp-mine").exists()


def test_leftovers_are_swept_by_the_next_save(model):
    (model / ".tmp-0123456789abcdef").write_bytes(b"half")
    (model / "old-0123456789abcdef.safetensors").write_bytes(b"stale")
    model_folder.save(model, META, parts())
    assert content(model).keys() == {"labelwood.json", *(e.name for e in model_folder.describe(model).files.values())}


def test_damaged_files_are_written_again(model):
    good = content(model)
    for name in good:
        (model / name).write_bytes(b"junk")
    model_folder.save(model, META, parts())
    assert content(model) == good


def test_paths_that_cannot_be_folders(tmp_path):
    (tmp_path / "file").write_text("x")
    for path in (tmp_path / "file", tmp_path / "file" / "model"):
        with pytest.raises(StorageError, match="A file stands where a folder is needed"):
            model_folder.save(path, META, parts())
    with pytest.raises(StorageError, match="File name too long"):
        model_folder.save(tmp_path / ("x" * 300), META, parts())
    model_folder.save(tmp_path / "new" / "deep" / "model", META, parts())
    assert model_folder.load(tmp_path / "new" / "deep" / "model").meta == META


@pytest.mark.parametrize(
    ("meta", "message"),
    [
        ({"a": np.float32(1)}, "meta.a must be plain data"),
        ({"a": [0, {"b": float("nan")}]}, r"meta.a\[1\].b must be plain data"),
        ({1: 2}, "keys must be text"),
        ({"a": "\ud800"}, "meta.a is not valid Unicode"),
        ({"\ud800": 1}, "not valid Unicode"),
        ({"a": {1, 2}}, "but is set"),
    ],
)
def test_meta_that_is_not_plain(tmp_path, meta, message):
    with pytest.raises(ConfigError, match=message):
        model_folder.save(tmp_path / "m", meta, {})
    assert not (tmp_path / "m").exists()


def test_nesting_limit(tmp_path):
    def nested(depth):
        return {} if depth == 0 else {"a": nested(depth - 1)}

    most = limits.MAX_NESTING - 2  # meta stands one table deep
    for depth in (most - 1, most):
        model_folder.save(tmp_path / "m", nested(depth), {})
        assert model_folder.load(tmp_path / "m").meta == nested(depth)
    for depth in (most + 1, 5000 if sys.version_info < (3, 12) else 900):
        deep: dict = {}
        for _ in range(depth):
            deep = {"a": deep}
        with pytest.raises(ConfigError, match="nested more than"):
            model_folder.save(tmp_path / "m", deep, {})


@pytest.mark.parametrize("part", ["", "A", "a.b", "../a", "a/b", "-a", "x" * 65])
def test_part_names(tmp_path, part):
    with pytest.raises(ConfigError, match="cannot name a part"):
        model_folder.save(tmp_path / "m", {}, {part: {}})


def test_two_savers_take_turns(model):
    busy = "busy"
    with (
        atomic_files.locked(model, os.O_RDONLY | os.O_DIRECTORY, busy),
        pytest.raises(StorageError, match="another process is saving"),
    ):
        model_folder.save(model, META, parts())
    model_folder.save(model, META, parts())


def test_reading_while_the_model_is_replaced(model):
    models = [({"is": i}, parts(seed=i)) for i in range(4)]
    model_folder.save(model, *models[0])
    stop, errors, loads = threading.Event(), [], []

    def read():
        while not stop.is_set():
            try:
                found = model_folder.load(model)
                i = found.meta["is"]
                loads.append(same(found, *models[i]))
            except Exception as error:
                errors.append(error)

    readers = [threading.Thread(target=read) for _ in range(2)]
    for reader in readers:
        reader.start()
    try:
        with installed(FaultyIo()):
            for i in range(150):
                model_folder.save(model, *models[i % 4])
    finally:
        stop.set()
        for reader in readers:
            reader.join()
    assert errors == []
    assert len(loads) > 20
    assert all(loads)


def test_a_loaded_model_outlives_its_files(model):
    found = model_folder.load(model)
    shutil.rmtree(model)
    assert same(found, META, parts())


def test_erase_leaves_other_files(model):
    (model / "README.md").write_text("x")
    model_folder.erase(model)
    assert list(content(model)) == ["README.md"]
    (model / "README.md").unlink()
    model_folder.erase(model)
    assert not model.exists()
    model_folder.erase(model)


# digests


def test_blocks_do_not_depend_on_chunks():
    data = np.random.default_rng(0).bytes(100_000)
    wanted = tuple(hashlib.sha256(data[i : i + 777]).hexdigest() for i in range(0, len(data), 777))
    cuts = sorted(random.Random(0).choices(range(len(data)), k=300))
    chunks = [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]
    assert digest_blocks(chunks, 777) == digest_blocks([data], 777) == wanted
    assert digest_blocks([], 777) == digest_blocks([b""], 777) == ()


def test_array_digests_see_content_type_and_shape_only():
    a = np.arange(6, dtype=np.int32).reshape(2, 3)
    one = digest_arrays(a)
    assert digest_arrays(np.asfortranarray(a)) == digest_arrays(a.astype(">i4")) == one
    others = [a.reshape(3, 2), a.astype(np.int64), a.astype(np.uint32), a + 1, a.reshape(1, 2, 3)]
    found = [one, *(digest_arrays(other) for other in others), digest_arrays(a, a), digest_arrays()]
    assert len(set(found)) == len(found)
    with pytest.raises(ConfigError, match="no content digest"):
        digest_arrays(np.array([object()]))


def test_plain_digests():
    assert digest_plain({"b": 1, "a": [1, (2,)]}) == digest_plain({"a": (1, [2]), "b": 1})
    assert digest_plain({}) == hashlib.sha256(b"{}\n").hexdigest()
    assert len({digest_plain(x) for x in (1, 1.0, True, "1", [1], None)}) == 6


@pytest.mark.parametrize("rows", [0, 5])
def test_fewer_documents_than_a_label_has_are_refused_at_load(rows, tmp_path):
    """A model of the tail preset with `rows` 0 opened, and failed when it was asked."""
    stored = model_folder.load(FROZEN / "tail")
    model_folder.save(tmp_path / "m", {**stored.meta, "rows": rows}, stored.parts)
    with pytest.raises(ModelFileError, match=f"'rows' is {rows}, fewer than the documents of a label"):
        lw.load(tmp_path / "m")
