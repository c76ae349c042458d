"""Damages model folders: single bits, lengths, and structure with every digest repaired, as an attacker would."""

from __future__ import annotations

import hashlib
import json
import random
from collections.abc import Iterator
from copy import deepcopy
from pathlib import Path

from labelwood import limits
from labelwood.base import canonical_json
from labelwood.storage import model_folder

HOSTILE = [
    None,
    True,
    False,
    0,
    1,
    -1,
    2**31,
    2**63,
    2**64 - 1,
    10**400,
    0.5,
    "",
    "a",
    "../../etc/passwd",
    "/etc/passwd",
    "\0",
    "é" * 300,
    [],
    [0],
    [-1],
    [2**62, 2**62, 0],
    [1] * 40,
    [True],
    [[]],
    {},
    {"a": {}},
]
TEXTS = [
    b"",
    b"{",
    b"[" * 100_000,
    b'{"a":' * 50_000,
    b'{"a":NaN}',
    b'{"a":1e999}',
    b'{"a":1,"a":2}',
    b'{"a":"\\ud800"}',
    b"\xff\xfe",
    b"\xef\xbb\xbf{}",
    b"null",
    b"{}" + b" " * 50,
    b'{"a":' + b"9" * 5000 + b"}",
]


def bit_flips(folder: Path, count: int, seed: int) -> Iterator[tuple[Path, int]]:
    """`count` different bits of the folder's files, each file's share by its size; (file, bit)."""
    files = sorted(folder.iterdir())
    bits = [(path, bit) for path in files for bit in range(8 * path.stat().st_size)]
    yield from random.Random(seed).sample(bits, min(count, len(bits)))


class Folder:
    """A model in memory: change `body` and `files`, then write it with digests that match."""

    def __init__(self, folder: Path) -> None:
        self.body = json.loads((folder / model_folder.MANIFEST).read_bytes())
        self.files = {part: (folder / entry["name"]).read_bytes() for part, entry in self.body["files"].items()}

    def repair(self) -> None:
        """Give every file the size, digests and name of its present content."""
        for part, data in self.files.items():
            blocks = [data[i : i + limits.DIGEST_BLOCK] for i in range(0, len(data), limits.DIGEST_BLOCK)]
            digests = [hashlib.sha256(block).hexdigest() for block in blocks]
            name = f"{part}-{hashlib.sha256(''.join(digests).encode()).hexdigest()[:16]}.safetensors"
            entry = {"name": name, "bytes": len(data), "block": limits.DIGEST_BLOCK, "sha256": digests}
            self.body["files"][part] = entry

    def write(self, folder: Path) -> None:
        folder.mkdir(exist_ok=True)
        for path in folder.iterdir():
            path.unlink()
        entries = self.body.get("files")
        for part, data in self.files.items():
            entry = entries.get(part) if isinstance(entries, dict) else None
            name = entry.get("name") if isinstance(entry, dict) else None
            if isinstance(name, str) and model_folder.DATA_FILE.fullmatch(name):
                (folder / name).write_bytes(data)
        self.body.pop("digest", None)
        digest = hashlib.sha256(canonical_json.line(self.body)).hexdigest()
        text = canonical_json.line({**self.body, "digest": digest})
        (folder / model_folder.MANIFEST).write_bytes(text)


def mutate(model: Folder, rng: random.Random) -> str:
    """One structural change with all digests repaired; returns what was done."""
    kind = rng.choice(["header", "header", "header", "length", "text", "data", "manifest", "manifest", "entry"])
    if kind in {"manifest", "entry"}:
        model.repair()
        target = model.body if kind == "manifest" else model.body["files"]
        return f"{kind} {_change(target, rng)}"
    part = rng.choice(sorted(model.files))
    data = model.files[part]
    size = int.from_bytes(data[:8], "little")
    text, rest, what = data[8 : 8 + size], data[8 + size :], ""
    if kind == "header":
        header = json.loads(text)
        for _ in range(rng.choice([1, 1, 2, 3])):
            what += _change(header, rng) + " "
        text = json.dumps(header).encode()
        text += b" " * rng.randrange(3)
    elif kind == "text":
        text = rng.choice(TEXTS)
    elif kind == "data":
        at = rng.randrange(len(rest) + 1)
        rest = rest[:at] + rng.randbytes(rng.randrange(9)) + rest[at + rng.randrange(9) :]
    length = len(text)
    if kind == "length":
        length = rng.choice([0, 1, size - 1, size + 1, size + len(rest), 2**32, 2**63, 2**64 - 1])
    model.files[part] = length.to_bytes(8, "little") + text + rest
    model.repair()
    return f"{kind} of {part} {what}"


def _change(value, rng: random.Random) -> str:
    """Walk to a random place in plain data and replace, remove, add, copy or nudge something there."""
    path = ""
    while True:
        keys = sorted(value) if isinstance(value, dict) else list(range(len(value)))
        if not keys:
            _put(value, deepcopy(rng.choice(HOSTILE)))
            return path + " filled"
        key = rng.choice(keys)
        path += f".{key}"
        inner = value[key]
        if isinstance(inner, dict | list) and rng.random() < 0.8:
            value = inner
            continue
        act = rng.choice(["replace", "remove", "add", "copy", "nudge", "nudge"])
        if act == "remove":
            del value[key]
        elif act == "add":
            _put(value, deepcopy(rng.choice(HOSTILE)))
        elif act == "copy":
            value[key] = json.loads(json.dumps(value[rng.choice(keys)]))
        elif act == "nudge" and type(inner) is int:
            value[key] = inner + rng.choice([-8, -4, -1, 1, 4, 8])
        else:
            value[key] = deepcopy(rng.choice(HOSTILE))
        return f"{path} {act}"


def _put(value, item) -> None:
    if isinstance(value, dict):
        value["extra"] = item
    else:
        value.append(item)
