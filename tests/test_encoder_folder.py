"""Model folders with an encoder, from elsewhere (F-D4, F-D5, F-D6): refused at load; nothing of theirs ever runs."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labelwood as lw
from faults import mutants
from faults.mutate import Folder
from faults.mutate_encoder import MODEL, _encoded, _read, _spelled, _tensors
from frozen import FOLDER as FROZEN
from frozen import TEXTS
from labelwood.cli import main
from labelwood.neural.encoders import protobuf
from labelwood.neural.encoders.graph import Graph
from labelwood.neural.encoders.tokeniser_spec import KNOWN
from toy import contract_set

DATA, LISTS = contract_set()


def refused(folder: Folder, where: Path, message: str, capsys) -> None:
    """At load, with the part that is wrong, and by `labelwood verify`."""
    folder.repair()
    folder.write(where)
    with pytest.raises(lw.ModelFileError, match=message):
        lw.load(where)
    assert main(["verify", str(where)]) == 1
    assert "sound" not in capsys.readouterr().out


# --- graphs of schema 1 --------------------------------------------------------------------------


def graph_of(folder: Folder) -> list[Any]:
    return _read(memoryview(bytes(_tensors(folder.files["encoder"])["graph"])), MODEL)


def within(fields: list[Any], number: int) -> list[Any]:
    """The messages of one field."""
    return [value for field, _, value in fields if field == number]


def named(messages: list[Any], number: int, name: str) -> list[Any]:
    """The message with a name."""
    return next(m for m in messages if within(m, number) == [name.encode()])


def put(message: list[Any], number: int, value: object) -> None:
    """Another value of a field."""
    for field in message:
        if field[0] == number:
            field[2] = value


def external(graph: list[Any]) -> None:
    """F-D4: the tensor's values are those of a file beside the model."""
    words = named(within(graph, 5), 8, "words.weight")
    words[:] = [field for field in words if field[0] != 9]
    words += [[13, 2, [[1, 2, b"location"], [2, 2, b"bait.bin"]]], [14, 0, 1]]


def operator(kind: str, inputs: list[str], output: str, *attributes: Any) -> list[Any]:
    message = [[1, 2, name.encode()] for name in inputs]
    return [*message, [2, 2, output.encode()], [4, 2, kind.encode()], *([5, 2, list(a)] for a in attributes)]


def loop(graph: list[Any]) -> None:
    """F-D5: 2^62 trips of nothing."""
    body = [[1, 2, operator("Identity", ["c"], "d")], [2, 2, b"body"]]
    graph.append([5, 2, [[1, 0, 1], [2, 0, 7], [8, 2, b"trips"], [9, 2, (2**62).to_bytes(8, "little")]]])
    graph.append([1, 2, operator("Loop", ["trips", "", "h0"], "again", [[1, 2, b"body"], [6, 2, body], [20, 0, 5]])])


def ones(graph: list[Any]) -> None:
    """F-D5: two thousand million numbers from eight bytes."""
    graph.append([5, 2, [[1, 0, 1], [2, 0, 7], [8, 2, b"sides"], [9, 2, (2 * 10**9).to_bytes(8, "little")]]])
    graph.append([1, 2, operator("ConstantOfShape", ["sides"], "many")])


def doubled(graph: list[Any]) -> None:
    """Forty joinings of a row with itself, by an operator that encoders have."""
    before = "words"
    for i in range(40):
        graph.insert(
            0, [1, 2, operator("Concat", [before, before], f"twice{i}", [[1, 2, b"axis"], [3, 0, 0], [20, 0, 2]])]
        )
        before = f"twice{i}"


def side(graph: list[Any], field: int, value: int) -> None:
    """F-D6: the second side of the first input or output is declared as a number."""
    declared = within(graph, field)[0]
    shape = within(within(within(declared, 2)[0], 1)[0], 2)[0]
    within(shape, 1)[1][:] = [[1, 0, value]]


def as_int64(graph: list[Any]) -> None:
    for declared in within(graph, 11):
        put(within(within(declared, 2)[0], 1)[0], 1, 7)


def other_function(model: list[Any]) -> None:
    model.append([25, 2, [[1, 2, b"f"]]])


GRAPHS = {
    "external": (external, "a tensor has the field 13"),
    "loop": (loop, "the operator :Loop is not one that an encoder needs|'trips' is none that the encoder needs"),
    "ones": (ones, "ConstantOfShape is not one|'sides' is none that the encoder needs"),
    "doubled": (doubled, "it has more than [0-9]+ operators"),
    "renamed": (lambda graph: put(within(graph, 11)[0], 1, b"tokens"), "its inputs must be ids and mask, int32"),
    "int64": (as_int64, "its inputs must be ids and mask, int32"),
    "width": (lambda graph: side(graph, 12, 31), "embedding, float32, of the right width"),
    "dimension": (lambda graph: side(graph, 12, 2**40), "embedding, float32, of the right width"),
    "tensor": (lambda graph: put(named(within(graph, 5), 8, "places"), 1, 2**40), "'places' must be float32"),
    "short": (lambda graph: put(named(within(graph, 5), 8, "places"), 9, b"\0" * 12), "4096 values has 12 bytes"),
    "nan": (
        lambda graph: put(named(within(graph, 5), 8, "places"), 9, np.full(4096, np.nan, np.float32).tobytes()),
        "'places' holds numbers that are not finite",
    ),
    "swapped": (lambda graph: put(named(within(graph, 1), 3, "sum"), 4, b"Mul"), "not the graph of the encoder"),
    "missing": (lambda graph: graph.remove([5, 2, named(within(graph, 5), 8, "places")]), "'places' is missing"),
}


@pytest.mark.parametrize("harm", GRAPHS)
@pytest.mark.parametrize("name", ["onnx", "onnx-int8"])
def test_graphs_that_are_not_ours_are_refused(name, harm, tmp_path, capsys):
    """F-D4, F-D5, F-D6."""
    change, message = GRAPHS[harm]
    folder = Folder(FROZEN / name)
    model = graph_of(folder)
    change(within(model, 7)[0])
    folder.files["encoder"] = _encoded({"graph": np.frombuffer(_spelled(model), np.uint8)})
    refused(folder, tmp_path / "m", message, capsys)


@pytest.mark.parametrize(("change", "message"), [
    (other_function, "a file has the field 25"),
    (lambda model: put(within(model, 8)[0], 2, 18), "its opsets must be"),
    (lambda model: put(model, 1, 3), "its version is 3"),
    (lambda model: model.append([7, 2, []]), "two graphs"),
])  # fmt: skip
def test_files_around_a_graph_that_are_not_ours_are_refused(change, message, tmp_path, capsys):
    folder = Folder(FROZEN / "onnx")
    model = graph_of(folder)
    change(model)
    folder.files["encoder"] = _encoded({"graph": np.frombuffer(_spelled(model), np.uint8)})
    refused(folder, tmp_path / "m", message, capsys)


@pytest.mark.parametrize("name", ["onnx", "onnx-int8"])
def test_what_is_built_of_a_stored_graph_gives_its_bits(name):
    """The graph of the folder itself runs here, and nowhere else."""
    import onnxruntime

    embedder = lw.load(FROZEN / name).members[0].embedder
    stored = bytes(_tensors(Folder(FROZEN / name).files["encoder"])["graph"])
    tokens = embedder.tokens(TEXTS)
    longest = int(tokens.lengths.max())
    mask = np.arange(longest) < tokens.lengths[:, None]
    ids = np.zeros(mask.shape, np.int32)
    ids[mask] = tokens.ids
    found = []
    for graph in (stored, embedder._graph()):
        session = onnxruntime.InferenceSession(graph, providers=["CPUExecutionProvider"])
        found.append(session.run(None, {"ids": ids, "mask": mask.astype(np.int32)})[0])
    assert np.array_equal(*found)
    assert not embedder.has_weights
    with pytest.raises(lw.ConfigError, match="an export needs the encoder's weights"):
        embedder.check_has_weights("an export")


def test_the_int8_weights_are_those_of_the_quantiser_of_onnx_runtime():
    """What a release before this one stored, from the weights in its float32 graph."""
    folders = {name: lw.load(FROZEN / name).members[0].embedder for name in ("onnx", "onnx-int8")}
    made = {name: Graph.of(e.description, name) for name, e in folders.items()}
    tensors = {name: e._stored_tensors(made[name]) for name, e in folders.items()}
    state = {n: a.T if a.ndim == 2 and n != "words.weight" else a for n, a in tensors["onnx"].items()}
    state |= {"places.weight": tensors["onnx"]["places"], "types.weight": np.zeros((2, 32), np.float32)}
    ours = made["onnx-int8"].fill(state)
    assert ours.keys() == tensors["onnx-int8"].keys()
    for name, array in tensors["onnx-int8"].items():
        assert ours[name].dtype == array.dtype
        assert np.array_equal(ours[name], array), name


def test_a_small_message_by_hand():
    """Field 1 as 300, field 2 as text, field 3 as a float."""
    spelled = protobuf.number(1, 300) + protobuf.text(2, "ab") + protobuf.real(3, 1.0)
    assert spelled == b"\x08\xac\x02\x12\x02ab\x1d\x00\x00\x80?"
    found = [(n, kind, v if isinstance(v, int) else bytes(v)) for n, kind, v in protobuf.fields(memoryview(spelled))]
    assert found == [(1, 0, 300), (2, 2, b"ab"), (3, 5, b"\0\0\x80?")]
    assert protobuf.signed(next(protobuf.numbers(memoryview(protobuf.number(1, -1)[1:])))) == -1
    for cut in (b"\x08", b"\x12\x05ab", b"\x08" + b"\xff" * 11, b"\x0b"):
        with pytest.raises(lw.ModelFileError):
            list(protobuf.fields(memoryview(cut)))


# --- weights and descriptions --------------------------------------------------------------------


@pytest.fixture(scope="module")
def trained(tmp_path_factory) -> dict[str, Path]:
    """A small model for each way to serve an encoder."""
    folder = tmp_path_factory.mktemp("encoders")
    found = {}
    for runtime in ("torch", "onnx", "onnx-int8"):
        settings = {"encoder.model": "minilm", "encoder.runtime": runtime}
        lw.train(DATA, LISTS, method="dismec", settings=settings, run=lw.Run(1)).save(folder / runtime)
        found[runtime] = folder / runtime
    return found


def test_new_folders_hold_weights(trained):
    """Those that ONNX serves, too: float32, or float16 where int8 is made of them."""
    for runtime, folder in trained.items():
        tensors = _tensors(Folder(folder).files["encoder"])
        assert "graph" not in tensors
        kinds = {a.dtype.name for a in tensors.values() if a.ndim == 2}
        assert kinds == {"float16" if runtime == "onnx-int8" else "float32"}
        assert {a.dtype.name for a in tensors.values() if a.ndim == 1} == {"float32"}
        assert lw.load(folder).members[0].embedder.has_weights


def test_one_graph_for_one_set_of_weights(trained):
    """Equal weights are equal bytes, in whatever process."""
    one, two = (lw.load(trained["onnx-int8"]).members[0].embedder._graph() for _ in range(2))
    assert one == two


def weights(folder: Folder, name: str, change) -> None:
    tensors = _tensors(folder.files["encoder"])
    tensors[name] = change(np.array(tensors[name]))
    folder.files["encoder"] = _encoded(tensors)


def test_without_their_packages_models_ask_for_the_extra_that_has_them(trained, monkeypatch):
    """F-D17."""
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    for runtime, extra in (("torch", "neural"), ("onnx", "onnx"), ("onnx-int8", "onnx")):
        model = lw.load(trained[runtime])
        with pytest.raises(lw.MissingExtraError, match=rf"tokenizers, .* pip install 'labelwood\[{extra}\]'"):
            model.predict(["word1"])


def poisoned(array):
    array.reshape(-1)[3] = np.nan
    return array


WEIGHTS = {
    "finite": ("words.weight", poisoned, "'words.weight' holds numbers that are not finite"),
    "large": ("layers.1.qkv.bias", lambda a: a + np.float32(1e9), "holds 1e\\+09; at most 1e\\+06"),
    "shape": ("layers.0.up.weight", lambda a: a.T, r"'layers.0.up.weight' must be float32 or float16 \[64, 32\]"),
    "type": ("norm.bias", lambda a: a.astype(np.float64), "'norm.bias' must be float32 or float16"),
    "more": ("layers.9.up.weight", None, "must not have the weight 'layers.9.up.weight'"),
    "less": ("pooler.bias", None, "lacks the weight 'pooler.bias'"),
}


@pytest.mark.parametrize("runtime", ["torch", "onnx", "onnx-int8"])
@pytest.mark.parametrize("harm", WEIGHTS)
def test_weights_that_are_not_those_of_the_description_are_refused(runtime, harm, trained, tmp_path, capsys):
    name, change, message = WEIGHTS[harm]
    folder = Folder(trained[runtime])
    if change is not None:
        weights(folder, name, change)
    else:
        tensors = _tensors(folder.files["encoder"])
        tensors.pop(name) if harm == "less" else tensors.update({name: tensors["words.weight"]})
        folder.files["encoder"] = _encoded(tensors)
    refused(folder, tmp_path / "m", message, capsys)


ABOUT = {
    "raw": ({"raw": True}, "the encoder gives 64 columns but the model has 32"),
    "pooling": ({"readings": [[[2], "attention", 0]]}, "readings of labels that attend"),
    "layer": ({"readings": [[[3], "mean", 0]]}, "layers 3 to 3 of the model's encoder are read"),
    "map": ({"readings": [[[2], "mean", 7]]}, "lacks the weight 'maps.0.bias'"),
    "engine": ({"engine": []}, "names an engine"),
    "two": ({"readings": [[[1], "mean", 0], [[2], "mean", 0], [[0], "cls", 0]]}, None),
}
SIZES = {
    "hidden_size": (2**40, "hidden_size must be 1 to"),
    "num_hidden_layers": (10**9, "num_hidden_layers must be 1 to 1000"),
    "num_attention_heads": (5, "5 heads cannot share"),
    "vocab_size": (2**31 - 1, "'words.weight' must be"),
    "layer_norm_eps": (0, "layer_norm_eps must be"),
    "hidden_act": (["gelu"], "is not a BERT"),
    "max_position_embeddings": (64, "encoder.max_tokens is 128, but the model's encoder reads at most 64"),
    "type_vocab_size": (True, "type_vocab_size must be 1 to"),
    "intermediate_size": (63, "must be float32 or float16"),
}


@pytest.mark.parametrize("runtime", ["torch", "onnx"])
@pytest.mark.parametrize("harm", [*ABOUT, *SIZES])
def test_descriptions_that_are_not_those_of_the_weights_are_refused(runtime, harm, trained, tmp_path, capsys):
    """F-D6: `raw: true`, a wrong width."""
    folder = Folder(trained[runtime])
    about = folder.body["meta"]["encoder"]
    if harm in SIZES:
        about["architecture"][harm], message = SIZES[harm]
    else:
        change, message = ABOUT[harm]
        about |= change
    if message is None:  # a model that is read otherwise, and sound
        folder.write(tmp_path / "m")
        assert lw.load(tmp_path / "m").predict(["word1"])
        return
    refused(folder, tmp_path / "m", message, capsys)


def test_an_encoder_of_transformers_is_built_by_verify(tmp_path, capsys):
    """Nothing of it is built at load, which would take seconds; its config cannot ask for more than there is."""
    settings = {"encoder.model": "minilm", "encoder.engine": "transformers"}
    lw.train(DATA, LISTS, method="dismec", settings=settings, run=lw.Run(1)).save(tmp_path / "sound")
    for change, message in (
        ({"num_labels": 2**30}, "do not bear out"),
        ({"intermediate_size": 2**40}, "do not bear out"),
        ({"attn_implementation": "someone/attention"}, "by which code or weights are fetched"),
    ):
        folder = Folder(tmp_path / "sound")
        folder.body["meta"]["encoder"]["architecture"] |= change
        refused(folder, tmp_path / "m", message, capsys)
    folder = Folder(tmp_path / "sound")
    folder.body["meta"]["encoder"]["architecture"]["intermediate_size"] = 65
    folder.write(tmp_path / "m")
    loaded = lw.load(tmp_path / "m")
    for use in (loaded.verify, lambda: loaded.predict(["word1"])):
        with pytest.raises(lw.ModelFileError, match="do not fit its config"):
            use()


# --- tokenizer.json ------------------------------------------------------------------------------

SIX = [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 32}] * 6
WORD_LIST = {"type": "WordLevel", "vocab": {"a": 0}}
TOKENISERS: dict[str, tuple[dict[str, Any], str]] = {
    "six replacements": (
        {"normalizer": {"type": "Sequence", "normalizers": SIX}},
        "normalizer: it may make a text more",
    ),
    "a slow pattern": (
        {"normalizer": {"type": "Replace", "pattern": {"Regex": "(a*)*b"}, "content": ""}},
        "one character",
    ),
    "an empty pattern": ({"normalizer": {"type": "Replace", "pattern": {"String": ""}, "content": "x"}}, "is empty"),
    "a pattern of nothing": (
        {"normalizer": {"type": "Replace", "pattern": {"Regex": "a*"}, "content": "x"}},
        "nothing at all",
    ),
    "a slow split": (
        {"pre_tokenizer": {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}}},
        "pre_tokenizer: a pattern",
    ),
    "an unknown part": ({"pre_tokenizer": {"type": "Python"}}, "pre_tokenizer: its type must be one of"),
    "an unknown model": ({"model": {"type": "Lambda"}}, "model: its type must be one of"),
    "no unknown word": ({"model": {**WORD_LIST, "unk_token": "[UNK]"}}, "its unk_token must be a word of its vocab"),
    "no piece for what is unknown": (
        {"model": {"type": "Unigram", "vocab": [["a", 0.0]], "unk_id": None}},
        "its unk_id",
    ),
    "a large id": (
        {"model": {**WORD_LIST, "unk_token": "a", "vocab": {"a": 2**31 - 1}}},
        "the id of 'a' is 2147483647",
    ),
    "chance": ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": [], "dropout": 0.5}}, "it has a dropout"),
    "a sound model of nothing": ({"model": {"type": "BPE", "vocab": {"a": 0}, "merges": ["a b"]}}, "cannot be read"),
    "an added word": ({"added_tokens": [{"id": 126, "content": "x"}]}, "added_tokens: the id of 'x' is 126"),
    "a frame": (
        {"post_processor": {"type": "BertProcessing", "sep": ["a", 999], "cls": ["a", 0]}},
        "post_processor: the id of 'a special token' is 999",
    ),
    "a long frame": (
        {"post_processor": {"type": "TemplateProcessing", "single": [{}] * 99, "special_tokens": {}}},
        "at most 32 pieces",
    ),
    "a long word": (
        {"model": {"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "a", "max_input_chars_per_word": 2**62}},
        "max_input_chars_per_word must be 1 to 1000",
    ),
    "a map": ({"normalizer": {"type": "Precompiled", "precompiled_charsmap": "AAAA"}}, "map of Precompiled"),
    "nested": (
        {
            "normalizer": {
                "type": "Sequence",
                "normalizers": [json.loads('{"type":"Sequence","normalizers":[' * 9 + "]}" * 9)],
            }
        },
        "nested at most 4 times",
    ),
    "another key": ({"more": 1}, "the file: it must have"),
}


@pytest.mark.parametrize("harm", TOKENISERS)
def test_tokenisers_that_may_cost_too_much_or_fail_are_refused(harm, trained, tmp_path, capsys):
    """F-D5, F-D6: the part that is wrong is named."""
    change, message = TOKENISERS[harm]
    folder = Folder(trained["onnx"])
    spec = json.loads(bytes(_tensors(folder.files["tokeniser"])["spec"]))
    text = json.dumps(spec | change).encode()
    folder.files["tokeniser"] = _encoded({"spec": np.frombuffer(text, np.uint8)})
    refused(folder, tmp_path / "m", f"tokenizer.json.*{message}", capsys)


SOUND: dict[str, dict[str, Any]] = {
    "replace": {"normalizer": {"type": "Replace", "pattern": {"Regex": " {2,}"}, "content": " "}},
    "split": {
        "pre_tokenizer": {
            "type": "Split",
            "pattern": {"Regex": sorted(KNOWN)[0]},
            "behavior": "Isolated",
            "invert": False,
        }
    },
    "bytes": {
        "pre_tokenizer": {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True}
    },
    "pieces": {"model": {"type": "Unigram", "vocab": [["<unk>", 0.0], ["▁a", -1.5]], "unk_id": 0}},
    "blanks": {"pre_tokenizer": {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True}},
    "cut and padded": {
        "truncation": {"max_length": 4, "strategy": "LongestFirst", "stride": 0, "direction": "Right"},
        "decoder": {"type": "WordPiece", "prefix": "##", "cleanup": True},
    },
}


@pytest.mark.parametrize("name", SOUND)
def test_usual_tokenisers_are_read(name, trained, tmp_path):
    folder = Folder(trained["onnx"])
    spec = json.loads(bytes(_tensors(folder.files["tokeniser"])["spec"]))
    text = json.dumps(spec | SOUND[name]).encode()
    folder.files["tokeniser"] = _encoded({"spec": np.frombuffer(text, np.uint8)})
    folder.repair()
    folder.write(tmp_path / "m")
    model = lw.load(tmp_path / "m")
    model.verify()
    assert np.isfinite(model.predict_arrays(TEXTS)[1]).all()


# --- thousands -----------------------------------------------------------------------------------


@pytest.mark.parametrize("kind", ["linear", "encoders"])
def test_a_thousand_mutants(kind):
    """M3: refused, or finite answers; no crash, no hang, no memory, no other file. `make mutants` opens 220,000."""
    count = int(os.environ.get("MUTANTS", "1000"))
    tally = mutants.run(kind, count)
    assert not tally.failures, "\n".join(tally.failures[:5])
    assert tally.count == count
    assert tally.refused > count / 2  # they do reach the checks ...
    assert tally.answered > count / 50  # ... and what lies behind them
