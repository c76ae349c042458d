"""Every limit of limits.py at one below, at, and one above: the first two pass, the third is a LabelwoodError.

What would take gigabytes is probed with the limit itself lowered.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse

import labelwood as lw
from labelwood import limits
from labelwood.arrays.sparse import Features, as_csr, as_dense, empty
from labelwood.base import canonical_json
from labelwood.base.config import read_toml
from labelwood.base.run import Run
from labelwood.data import ReadOptions, Texts, from_lists, from_records, read
from labelwood.data.dataset import check_label
from labelwood.data.parsing import source
from labelwood.parts.tfidf import Tfidf, TfidfConfig, _check
from labelwood.parts.tree import TreeConfig, build
from labelwood.recipes.resolve import resolve
from labelwood.storage import model_folder, safetensors_file
from toy import keyword_set

TOKENISER = b'{"version":"1.0","model":{"type":"WordLevel","unk_token":"a","vocab":{"a":0}}}'
LOWERED = {
    "MAX_LINE_BYTES": 100,
    "MAX_ROW_VALUES": 300,
    "MAX_MANIFEST_BYTES": 2000,
    "MAX_JSON_ITEMS": 100,
    "MAX_HEADER_BYTES": 300,
    "MAX_TOKENISER_BYTES": 200,
    "MAX_TOKENISER_ITEMS": 50,
}


def grow(labels: int, levels: tuple[int, ...]) -> None:
    z = Features(empty(labels, 1))
    build(z, np.arange(labels, dtype=np.int32), TreeConfig(levels=levels), 0, threads=1)


def next_float(value: int) -> float:
    """The limit itself, or the float32 next to it: whole numbers beside 10^15 are no float32."""
    step = {-1: 0.0, 0: None, 1: np.inf}[value - limits.MAX_VALUE]
    most = np.float32(limits.MAX_VALUE)
    return float(most if step is None else np.nextafter(most, np.float32(step)))


def value_in_a_matrix(value: int) -> None:
    for sign in (1, -1):
        as_dense(np.array([[sign * next_float(value)]]))
        as_csr(sparse.csr_matrix([[sign * next_float(value)]]))


def term(size: int) -> None:
    state = {"term_bytes": np.full(size, 97, np.uint8), "term_offsets": np.array([0, size]), "idf": np.ones(1, "f4")}
    Tfidf.from_tensors(TfidfConfig(), state)


def text(size: int) -> None:
    _check(Texts(np.zeros(size, np.uint8), np.array([0, size])), 1)


def line(size: int, tmp: Path) -> None:
    path = tmp / "data.txt"
    path.write_text("__label__a " + "x" * (size - 12) + "\n")
    read(path)


def record(size: int, tmp: Path) -> None:
    """A cell of that many lines, then a record of that many cells."""
    path = tmp / "data.csv"
    path.write_text('text,labels\n"' + "\n" * (size - 1) + '",x\n')
    read(path)
    path.write_text("text,labels," + ",".join(f"c{i}" for i in range(size - 2)) + "\nt,x" + "," * (size - 2) + "\n")
    read(path)


def config_file(size: int, tmp: Path) -> None:
    path = tmp / "c.toml"
    path.write_bytes(b"#" * size)
    read_toml(path)


def manifest(size: int, tmp: Path) -> None:
    """A folder whose manifest has exactly `size` bytes."""
    model_folder.save(tmp / "probe", {"x": ""}, {"part": {"a": np.zeros(1)}})
    short = len((tmp / "probe" / model_folder.MANIFEST).read_bytes())
    model_folder.save(tmp / "m", {"x": "y" * (size - short)}, {"part": {"a": np.zeros(1)}})
    assert len((tmp / "m" / model_folder.MANIFEST).read_bytes()) == size
    model_folder.load(tmp / "m")


def header(size: int) -> None:
    """A tensor file whose header has exactly `size` bytes, a multiple of eight."""
    short = len(bytes(safetensors_file.encode({"a": np.zeros(1)})[0])) - 8
    name = "a" * (1 + size - short)
    safetensors_file.decode(
        memoryview(b"".join(bytes(c) for c in safetensors_file.encode({name: np.zeros(1)}))), "here"
    )


def nested(depth: int) -> None:
    value: Any = 1
    for _ in range(depth):
        value = [value]
    canonical_json.dump(value)


def dimensions(count: int) -> None:
    safetensors_file.decode(
        memoryview(b"".join(bytes(c) for c in safetensors_file.encode({"a": np.zeros((1,) * count)}))), "here"
    )


def tokeniser(padding: str, words: int = 0):
    """A word list with so many words more, or with blanks behind it."""
    from labelwood.neural.encoders import tokeniser_spec

    more = "".join(f',"w{i}":0' for i in range(words)).encode()
    tokeniser_spec.checked(TOKENISER.replace(b'"a":0', b'"a":0' + more) + padding.encode(), 5)


def fields(named: tuple[str, ...]) -> None:
    record = {name.partition(":")[0]: "text" for name in named}
    from_records([record], options=ReadOptions(text=named, labels=None))


PROBES: dict[str, Callable[[int, Path], object]] = {
    "MAX_INDEX": lambda n, _: as_csr(sparse.csr_matrix((1, n))),
    "MAX_K": lambda n, _: lw.train(*keyword_set(), run=lw.Run(1)).predict(["word1"], k=n),
    "MAX_BEAM": lambda n, _: resolve(settings={"search.beam": n}),
    "MAX_VALUE": lambda n, _: value_in_a_matrix(n),
    "MAX_THREADS": lambda n, _: Run(threads=n),
    "MAX_LEVELS": lambda n, _: grow(n + 5, tuple(range(1, n))),
    "MAX_CHILDREN": lambda n, _: grow(n, (1,)),
    "MAX_TREES": lambda n, _: resolve(settings={"ensemble.trees": n}),
    "MAX_MANIFEST_BYTES": manifest,
    "MAX_CONFIG_BYTES": config_file,
    "MAX_LABEL_BYTES": lambda n, _: check_label("ü" * (n // 2) + "x" * (n % 2)),
    "MAX_LINE_BYTES": line,
    "MAX_ROW_LABELS": lambda n, _: from_lists(["t"], [["x"] * n]),
    "MAX_ROW_VALUES": record,
    "MAX_TEXT_BYTES": lambda n, _: text(n),
    "MAX_TEXT_FIELDS": lambda n, _: fields(tuple(f"f{i}" for i in range(n))),
    "MAX_FIELD_WEIGHT": lambda n, _: fields((f"f:{n}",)),
    "MAX_WORD_GRAM": lambda n, _: resolve(settings={"tfidf.words": (1, n)}),
    "MAX_CHAR_GRAM": lambda n, _: resolve(settings={"tfidf.chars": (1, n)}),
    "MAX_TERM_BYTES": lambda n, _: term(n),
    "MAX_SEED": lambda n, _: resolve(seed=n),
    "MAX_DIMENSIONS": lambda n, _: dimensions(n),
    "MAX_NESTING": lambda n, _: nested(n),
    "MAX_JSON_ITEMS": lambda n, _: canonical_json.parse(
        canonical_json.dump([0] * (n + 1)), "here"
    ),  # counted by commas
    "MAX_TOKENISER_BYTES": lambda n, _: tokeniser(" " * (n - len(TOKENISER))),
    "MAX_TOKENISER_ITEMS": lambda n, _: tokeniser("", n - TOKENISER.count(b",") - TOKENISER.count(b"{")),
}


def test_every_limit_has_a_probe():
    assert {name for name in vars(limits) if name.startswith("MAX_")} == {*PROBES, "MAX_HEADER_BYTES"}


@pytest.mark.parametrize("name", PROBES)
def test_one_below_at_and_one_above(name, tmp_path, monkeypatch):
    if name in LOWERED:
        monkeypatch.setattr(limits, name, LOWERED[name])
        monkeypatch.setattr(source, "_LIMIT", limits.MAX_LINE_BYTES + 1)
    limit = getattr(limits, name)
    PROBES[name](limit - 1, tmp_path)
    PROBES[name](limit, tmp_path)
    with pytest.raises(lw.LabelwoodError):
        PROBES[name](limit + 1, tmp_path)


def test_headers_of_tensor_files(monkeypatch):
    """Their length is padded to eight bytes, so the border is met in steps of eight."""
    monkeypatch.setattr(limits, "MAX_HEADER_BYTES", LOWERED["MAX_HEADER_BYTES"] // 8 * 8)
    header(limits.MAX_HEADER_BYTES - 8)
    header(limits.MAX_HEADER_BYTES)
    with pytest.raises(lw.LabelwoodError):
        header(limits.MAX_HEADER_BYTES + 8)


@pytest.mark.parametrize("size", [255, 256, 257])
def test_words_of_more_than_256_bytes_are_dropped(size):
    texts = Texts.from_strings(["word " + "x" * size] * 2)
    terms = Tfidf.fit(texts, threads=1)[0].terms()
    assert ("x" * size in terms) == (size <= 256)
