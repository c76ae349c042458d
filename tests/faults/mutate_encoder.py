"""Damages model folders with an encoder by structure, with every digest repaired.

What is changed is the graph, tokenizer.json, the weights, the description, or as of any model its manifest and files.

A mutant may name files that lie beside it as bait (BAIT): whoever reads one was led astray.
"""

from __future__ import annotations

import json
import random
from typing import Any

import numpy as np

from faults.mutate import HOSTILE, Folder, _change, mutate
from labelwood.neural.encoders import protobuf
from labelwood.storage import safetensors_file

BAIT = "bait.bin"
Field = list[Any]  # field, type, value: a number, bytes, or the fields of a message

# Which fields of a message are messages: the file, its graph, an operator, an attribute, a tensor …
OPSET: dict[int, Any] = {}
TENSOR: dict[int, Any] = {}
ATTRIBUTE: dict[int, Any] = {}
NODE = {5: ATTRIBUTE}
DECLARED = {2: {1: {2: {1: {}}}}}
GRAPH = {1: NODE, 5: TENSOR, 11: DECLARED, 12: DECLARED}
MODEL = {7: GRAPH, 8: OPSET}

NAMES = [b"ids", b"mask", b"embedding", b"words.weight", b"h0", b"", b"\xff", b"x" * 300]
KINDS = [
    b"Loop",
    b"If",
    b"Scan",
    b"ConstantOfShape",
    b"Expand",
    b"Tile",
    b"Range",
    b"Add",
    b"MatMul",
    b"Gather",
    b"Concat",
]
NUMBERS = [0, 1, 2, 3, 6, 7, 9, 17, 2**31 - 1, 2**31, 2**40, 2**62, 2**63, 2**64 - 1]
PARTS: list[Any] = [
    {"type": "Sequence", "normalizers": [{"type": "Replace", "pattern": {"String": "a"}, "content": "a" * 60}] * 6},
    {"type": "Replace", "pattern": {"Regex": "(a*)*b"}, "content": ""},
    {"type": "Replace", "pattern": {"String": ""}, "content": "x"},
    {"type": "Split", "pattern": {"Regex": "(x+x+)+y"}, "behavior": "Isolated", "invert": False},
    {"type": "Split", "pattern": {"String": " "}, "behavior": "Removed", "invert": True},
    {"type": "Precompiled", "precompiled_charsmap": "AAAAAA=="},
    {"type": "Precompiled", "precompiled_charsmap": "BAAAAP////94AA=="},
    {"type": "Prepend", "prepend": "a" * 10_000},
    {"type": "Metaspace", "replacement": "▁", "prepend_scheme": "always", "split": True},
    {"type": "ByteLevel", "add_prefix_space": True, "trim_offsets": True, "use_regex": True},
    {"type": "WhitespaceSplit"},
    {"type": "NFKD"},
    {"type": "WordLevel", "vocab": {"a": 0}, "unk_token": "[UNK]"},
    {"type": "Unigram", "vocab": [["a", -1.0], ["b", -1e308]], "unk_id": None},
    {"type": "Unigram", "vocab": [["a", -1.0], ["b", -2.0]], "unk_id": 1},
    {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"], "unk_token": None},
    {"type": "BPE", "vocab": {"a": 0}, "merges": [["a", "b"]], "unk_token": "zz"},
    {"type": "WordPiece", "vocab": {"a": 0}, "unk_token": "a", "max_input_chars_per_word": 2**62},
]


def mutate_encoder(model: Folder, rng: random.Random) -> str:
    """One structural change with all digests repaired; returns what was done."""
    held = _tensors(model.files["encoder"])
    kinds = ["graph"] * 5 if "graph" in held else ["weights"] * 3
    kind = rng.choice([*kinds, "tokeniser", "tokeniser", "tokeniser", "description", "description", "any"])
    if kind == "any":
        return mutate(model, rng)
    if kind == "description":
        meta = model.body["meta"]
        own = rng.choice(meta["members"]) if "members" in meta else meta
        about = rng.choice([own["encoder"], own["encoder"], own["recipe"]["encoder"], own])
        done = _change(about, rng)
    elif kind == "tokeniser":
        spec, done = _spec(bytes(_tensors(model.files["tokeniser"])["spec"]), rng)
        model.files["tokeniser"] = _encoded({"spec": np.frombuffer(spec, np.uint8)})
    elif kind == "graph":
        data, done = _graph(bytes(held["graph"]), rng)
        model.files["encoder"] = _encoded({**held, "graph": np.frombuffer(data, np.uint8)})
    else:
        done = _weights(held, rng)
        model.files["encoder"] = _encoded(held)
    model.repair()
    return f"{kind} {done}"


def _tensors(data: bytes) -> dict[str, Any]:
    return dict(safetensors_file.decode(memoryview(data), "here"))


def _encoded(tensors: dict[str, Any]) -> bytes:
    return b"".join(bytes(chunk) for chunk in safetensors_file.encode(tensors))


def _spec(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A tokenizer.json with a part in another's place, or with any value changed."""
    spec = json.loads(data)
    done = ""
    for _ in range(rng.choice([1, 1, 2])):
        if rng.random() < 0.4:
            key = rng.choice(["normalizer", "pre_tokenizer", "post_processor", "model", "decoder"])
            spec[key] = rng.choice(PARTS)
            done += f"{key} {str(spec[key])[:60]} "
        elif rng.random() < 0.3:
            words = spec["model"].get("vocab") if isinstance(spec.get("model"), dict) else None
            if isinstance(words, dict) and words:
                words[rng.choice(sorted(words))] = rng.choice([2**31 - 1, 2**32, -1, 126, 0.5, "a", None, 2**64])
            done += "vocab "
        else:
            done += _change(spec, rng)
    return json.dumps(spec).encode("utf-8", "surrogatepass"), done


def _weights(held: dict[str, Any], rng: random.Random) -> str:
    """One weight of another value, shape, type or name, or none."""
    name = rng.choice(sorted(held))
    array = np.array(held[name])
    kind = rng.choice(["nan", "huge", "shape", "type", "name", "less", "remove", "add", "zero", "bytes"])
    if kind in {"nan", "huge", "zero"} and array.size and array.dtype.kind == "f":
        value = {"nan": np.nan, "huge": np.finfo(array.dtype).max, "zero": 0}[kind]
        if rng.random() < 0.5:
            array[...] = value
        else:
            array.reshape(-1)[rng.randrange(array.size)] = value
        held[name] = array
    elif kind == "shape":
        held[name] = array.reshape(rng.choice([array.T.shape, (-1,), (1, *array.shape)]))
    elif kind == "type":
        with np.errstate(all="ignore"):
            held[name] = array.astype(rng.choice([np.float16, np.float64, np.int8, np.int64, np.uint8, np.bool_]))
    elif kind == "name":
        held[rng.choice([f"{name}x", f"9.{name}", f"maps.{name}", "graph"])] = held.pop(name)
    elif kind == "less":
        held[name] = array[: rng.randrange(len(array) + 1)] if array.ndim else array
    elif kind == "remove":
        del held[name]
    elif kind == "bytes" and array.size:
        flat = array.reshape(-1).view(np.uint8)
        flat[rng.randrange(len(flat)) :][: rng.randrange(1, 9)] = rng.randrange(256)
        held[name] = array
    else:
        held[f"{name}.more"] = array
    return f"{kind} {name}"


def _graph(data: bytes, rng: random.Random) -> tuple[bytes, str]:
    """A graph with fields changed, added, doubled or gone."""
    fields = _read(memoryview(data), MODEL)
    done = " ".join(_edit(fields, MODEL, rng) for _ in range(rng.choice([1, 1, 1, 2, 3])))
    return _spelled(fields), done


def _edit(fields: list[Field], inner: dict[int, Any], rng: random.Random, path: str = "") -> str:
    """One change somewhere in a message."""
    if not fields:
        return path
    place = rng.randrange(len(fields))
    field, kind, value = fields[place]
    if isinstance(value, list) and rng.random() < 0.85:
        return _edit(value, inner.get(field, {}), rng, f"{path}.{field}")
    act = rng.choice(["remove", "copy", "move", "value", "value", "value", "add", "field"])
    if act == "remove":
        del fields[place]
    elif act == "copy":
        fields.insert(rng.randrange(len(fields) + 1), json_free(fields[place]))
    elif act == "move":
        fields.insert(rng.randrange(len(fields)), fields.pop(place))
    elif act == "field":
        fields[place][0] = rng.randrange(1, 27)
    elif act == "add":
        fields.append(_extra(rng))
    elif isinstance(value, int):
        fields[place][2] = rng.choice([*NUMBERS, value + 1, max(0, value - 1)])
    elif kind == protobuf.BYTES:
        fields[place][2] = _other_bytes(b"" if isinstance(value, list) else value, rng)
    else:
        fields[place][2] = rng.randbytes(len(value))
    return f"{path}.{field} {act}"


def json_free(field: Field) -> Field:
    """A copy of a field, down to its last message."""
    number, kind, value = field
    return [number, kind, [json_free(one) for one in value] if isinstance(value, list) else value]


def _other_bytes(value: bytes, rng: random.Random) -> bytes:
    if len(value) > 64 and rng.random() < 0.7:
        at = rng.randrange(len(value))
        return rng.choice([value[:at], value + b"\0" * 4, value[:at] + rng.randbytes(4) + value[at + 4 :], b""])
    return rng.choice([*NAMES, *KINDS, rng.randbytes(rng.randrange(9))])


def _extra(rng: random.Random) -> Field:
    """A field that has no place in a graph of ours: another file's data, a subgraph, a function, training."""
    place = [[1, 2, b"location"], [2, 2, rng.choice([BAIT, f"../{BAIT}", "/etc/passwd"]).encode()]]
    loop = [[1, 2, b"h0"], [2, 2, b"embedding"], [4, 2, rng.choice(KINDS)], [5, 2, [[1, 2, b"body"], [6, 2, b""]]]]
    return rng.choice(
        [
            [13, 2, place], [14, 0, 1], [1, 2, loop], [25, 2, b"f"], [20, 2, b""], [15, 2, b""], [14, 2, b""],
            [5, 2, [[8, 2, b"words.weight"], [1, 0, 2**40], [2, 0, 1], [13, 2, place], [14, 0, 1]]],
            [11, 2, [[1, 2, b"more"]]], [rng.randrange(1, 30), 0, rng.choice(NUMBERS)],
            [rng.randrange(1, 30), 2, json.dumps(rng.choice(HOSTILE[:9])).encode()],
        ]
    )  # fmt: skip


def _read(data: memoryview, inner: dict[int, Any]) -> list[Field]:
    return [
        [field, kind, _read(value, inner[field]) if field in inner and kind == protobuf.BYTES else _plain(value)]
        for field, kind, value in protobuf.fields(data)
    ]


def _plain(value: int | memoryview) -> int | bytes:
    return value if isinstance(value, int) else bytes(value)


def _spelled(fields: list[Field]) -> bytes:
    """The message again, whatever its fields hold by now."""
    found = b""
    for field, kind, value in fields:
        if isinstance(value, int):
            found += protobuf.number(field, value)
        elif kind == protobuf.BYTES:
            whole = _spelled(value) if isinstance(value, list) else value
            found += b"".join(protobuf.message(field, [whole]))
        else:
            found += protobuf.real(field, 0.0)[:-4] + bytes(value)
    return found
