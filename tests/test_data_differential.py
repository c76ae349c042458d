"""The same documents in every format, dialect and compression: read back as they were, and as other readers read them.

The others are Python's csv and json, pyarrow's readers of CSV and Parquet, and the commands gzip and xz.
"""

from __future__ import annotations

import csv
import gzip
import io
import json
import lzma
import subprocess
from collections.abc import Callable
from itertools import product
from pathlib import Path

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet as pq
import pytest
import zstandard

import labelwood as lw
from labelwood.data import Dataset, ReadOptions, read, sniff

Documents = list[tuple[str, list[str]]]

PLAIN: Documents = [("a red apple", ["fruit", "red"]), ("the sky", ["blue"]), ("nothing", [])]
SETS: dict[str, Documents] = {
    "plain": PLAIN,
    "letters": [("naïve Æ 漢字 😀", ["é", "漢"]), ("e\u0301\u200b\ufeff", ["ß"])],
    "quotes": [('she said "no", twice', ["a b"]), ('""', ["c"]), ("'single'", ["d'e"]), ('5" disk; 3" disk', ["f"])],
    "lines": [("two\nlines", ["a"]), ("a\n\nparagraph\r\nand a tab\there", ["b"]), ("end\n", ["c"])],
    "odd": [("", ["a"]), (" blanks around ", ["b"]), ("#hash", ["c"]), ("1,5;2|3", ["1"]), ("null", ["nan"])],
    "long": [(f"word{i} " * 200, [f"label{i % 7}", "all"]) for i in range(300)],
}
IN_ONE_LINE = [name for name in SETS if name not in {"lines", "odd"}]  # what formats without quoting can hold


def rows(data: Dataset) -> Documents:
    assert data.texts is not None
    assert data.labels is not None
    labels = [sorted(data.names[column] for column in data.labels.row(i)[0]) for i in range(len(data))]
    return list(zip(data.texts, labels, strict=True))


def in_order(documents: Documents) -> Documents:
    return [(text, sorted(labels)) for text, labels in documents]


# Compressions, of one stream and of several, with padding where it is allowed.


def halves(content: bytes) -> tuple[bytes, bytes]:
    return content[: len(content) // 2], content[len(content) // 2 :]


def tool(*command: str) -> Callable[[bytes], bytes]:
    return lambda content: subprocess.run(command, input=content, capture_output=True, check=True).stdout


def zstd(content: bytes) -> bytes:
    return zstandard.ZstdCompressor().compress(content)


def in_two(pack: Callable[[bytes], bytes], between: bytes = b"", behind: bytes = b"") -> Callable[[bytes], bytes]:
    return lambda content: between.join(map(pack, halves(content))) + behind


PACKS: dict[str, Callable[[bytes], bytes]] = {
    "plain": bytes,
    "gz": gzip.compress,
    "gz of the command": tool("gzip", "-c9"),
    "gz of two members": in_two(gzip.compress),
    "gz with zeros behind": in_two(gzip.compress, behind=bytes(512)),
    "xz": lzma.compress,
    "xz of the command": tool("xz", "-c", "--block-size=1000"),
    "xz of two streams": in_two(lzma.compress),
    "xz with zeros": in_two(lzma.compress, between=bytes(4), behind=bytes(16)),
    "zst": zstd,
    "zst of two frames": in_two(zstd, between=b"\x50\x2a\x4d\x18\x00\x00\x00\x00"),
}


def unpacked(path: Path, pack: str) -> bytes:
    """The content by the command of its kind; zstd, which not every machine has, by its own library."""
    if pack == "plain":
        return path.read_bytes()
    if pack.startswith("zst"):
        with zstandard.ZstdDecompressor().stream_reader(path.open("rb"), read_across_frames=True) as stream:
            return stream.read()
    return tool({"gz": "gzip", "xz": "xz"}[pack[:2]], "-dc")(path.read_bytes())


# Dialects of tables: separator, line end, quoting, what stands before and behind.

Dialect = tuple[str, str, int, str, int]  # delimiter, line end, quoting, prefix, columns without a name
DIALECTS: dict[str, Dialect] = {
    "csv": (",", "\n", csv.QUOTE_MINIMAL, "", 0),
    "csv, all quoted": (",", "\r\n", csv.QUOTE_ALL, "", 0),
    "csv of Excel": (",", "\r\n", csv.QUOTE_MINIMAL, "\ufeff", 2),
    "csv of Excel with semicolons": (";", "\r\n", csv.QUOTE_MINIMAL, "\ufeff", 1),
    "csv of Excel with sep=": (";", "\r\n", csv.QUOTE_MINIMAL, "\ufeffsep=;\r\n", 0),
    "csv with sep=|": ("|", "\n", csv.QUOTE_ALL, "sep=|\n", 0),
    "tsv": ("\t", "\n", csv.QUOTE_MINIMAL, "", 0),
    "tsv with a mark": ("\t", "\r\n", csv.QUOTE_ALL, "\ufeff", 1),
}


def table(documents: Documents, dialect: Dialect) -> bytes:
    delimiter, end, quoting, prefix, unnamed = dialect
    file = io.StringIO(newline="")
    writer = csv.writer(file, delimiter=delimiter, lineterminator=end, quoting=quoting)  # type: ignore[arg-type]
    writer.writerow(["id", "text", "labels", *[""] * unnamed])
    for number, (text, labels) in enumerate(documents):
        writer.writerow([number, text, json.dumps(labels), *[""] * unnamed])
    return (prefix + file.getvalue()).encode()


def by_csv(content: bytes, dialect: Dialect) -> Documents:
    text = content.decode("utf-8-sig").removeprefix(dialect[3].strip("\ufeff"))
    records = list(csv.reader(io.StringIO(text, newline=""), delimiter=dialect[0], strict=True))
    return [(record[1], json.loads(record[2])) for record in records[1:]]


def by_pyarrow(content: bytes, dialect: Dialect) -> Documents:
    options = pa.csv.ReadOptions(skip_rows=int("sep=" in dialect[3]))
    parse = pa.csv.ParseOptions(delimiter=dialect[0], newlines_in_values=True)
    convert = pa.csv.ConvertOptions(
        column_types={"text": pa.string(), "labels": pa.string()}, include_columns=["text", "labels"]
    )
    found = pa.csv.read_csv(io.BytesIO(content), options, parse, convert)
    return list(zip(found["text"].to_pylist(), map(json.loads, found["labels"].to_pylist()), strict=True))


@pytest.mark.parametrize("name", DIALECTS)
def test_tables(tmp_path: Path, name: str) -> None:
    cases, path = 0, tmp_path / "data"
    for (kind, documents), pack in product(SETS.items(), PACKS):
        path.write_bytes(PACKS[pack](table(documents, DIALECTS[name])))
        assert sniff(path) == name[:3], (kind, pack)
        found = rows(read(path))
        assert found == in_order(documents), (kind, pack)
        content = unpacked(path, pack)
        assert found == in_order(by_csv(content, DIALECTS[name])), (kind, pack)
        assert found == in_order(by_pyarrow(content, DIALECTS[name])), (kind, pack)
        cases += 1
    assert cases == len(SETS) * len(PACKS) == 66


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("ascii_only", [True, False])
def test_json_lines(tmp_path: Path, ascii_only: bool, end: str) -> None:
    cases, path = 0, tmp_path / "data"
    for (kind, documents), pack, mark in product(SETS.items(), PACKS, ["", "\ufeff"]):
        lines = [json.dumps({"text": text, "labels": labels}, ensure_ascii=ascii_only) for text, labels in documents]
        path.write_bytes(PACKS[pack]((mark + end.join([*lines, ""])).encode()))
        others = [json.loads(line) for line in unpacked(path, pack).decode("utf-8-sig").split("\n") if line.strip()]
        found = rows(read(path))
        assert found == in_order(documents), (kind, pack)
        assert found == in_order([(other["text"], other["labels"]) for other in others]), (kind, pack)
        cases += 1
    assert cases == 2 * len(SETS) * len(PACKS) == 132


@pytest.mark.parametrize("compression", ["none", "snappy", "gzip", "zstd", "lz4"])
def test_parquet(tmp_path: Path, compression: str) -> None:
    path = tmp_path / "data"
    for documents, kind in product(
        SETS.values(), [pa.string(), pa.large_string(), pa.dictionary(pa.int32(), pa.string())]
    ):
        texts = pa.array([text for text, _ in documents], kind)
        labels = pa.array([labels for _, labels in documents], pa.list_(pa.string()))
        pq.write_table(pa.table({"text": texts, "labels": labels}), path, compression=compression, row_group_size=7)
        other = pq.read_table(path).to_pydict()
        assert rows(read(path)) == in_order(documents)
        assert rows(read(path)) == in_order(list(zip(other["text"], other["labels"], strict=True)))


LINES: dict[str, Callable[[str, list[str]], str]] = {
    "fasttext": lambda text, labels: " ".join([*(f"__label__{label}" for label in labels), text]),
    "annif": lambda text, labels: f"{text}\t{' '.join(f'<{label}>' for label in labels)}",
}


@pytest.mark.parametrize("name", LINES)
def test_formats_without_quoting(tmp_path: Path, name: str) -> None:
    cases, path = 0, tmp_path / "data"
    for kind, pack, end in product(IN_ONE_LINE, PACKS, ["\n", "\r\n"]):
        documents = [(text.strip(), [label.replace(" ", "_") for label in labels]) for text, labels in SETS[kind]]
        path.write_bytes(PACKS[pack]("".join(LINES[name](*document) + end for document in documents).encode()))
        found = rows(read(path, ReadOptions(format=name)))
        assert found == in_order(documents), (kind, pack)
        lines = unpacked(path, pack).decode().split(end)[:-1]
        assert [LINES[name](*document) for document in documents] == lines, (kind, pack)
        cases += 1
    assert cases == len(IN_ONE_LINE) * len(PACKS) * 2 == 88


def test_folders(tmp_path: Path) -> None:
    suffixes = {"plain": "", "gz of two members": ".gz", "xz with zeros": ".xz", "zst of two frames": ".zst"}
    for kind, (pack, suffix) in product(IN_ONE_LINE, suffixes.items()):
        documents = [(text.strip(), [label.replace(" ", "_") for label in labels]) for text, labels in SETS[kind]]
        folder = tmp_path / f"{kind}{suffix}"
        folder.mkdir()
        for part, lines in (
            ("texts", [text for text, _ in documents]),
            ("labels", [" ".join(x) for _, x in documents]),
        ):
            (folder / f"train_{part}.txt{suffix}").write_bytes(PACKS[pack]("\n".join([*lines, ""]).encode()))
        assert rows(read(folder)) == in_order(documents), (kind, pack)


@pytest.mark.parametrize("encoding", ["utf-16", "utf-16-le", "utf-16-be"])
@pytest.mark.parametrize("name", ["csv", "tsv"])
def test_utf_16_is_refused_with_advice(tmp_path: Path, name: str, encoding: str) -> None:
    mark = "" if encoding == "utf-16" else "\ufeff"
    (tmp_path / "data").write_bytes((mark + table(PLAIN, DIALECTS[name]).decode()).encode(encoding))
    with pytest.raises(lw.DataError, match=r"it looks like UTF-16; convert the file to UTF-8 \(iconv -f UTF-16"):
        read(tmp_path / "data")
