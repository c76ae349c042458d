"""Opening: every compression, standard input, files that are missing, empty, cut off or of no known format."""

from __future__ import annotations

import gzip
import io
import lzma
import os
import sys
import threading

import pytest
import zstandard

import labelwood as lw
from labelwood.base.config import from_dict, to_dict
from labelwood.data import ReadOptions, read, sniff, stream
from labelwood.data.parsing.source import Source

LINES = b"".join(b'{"text": "line %d", "labels": ["a"]}\n' % i for i in range(1000))
TEXTS = [f"line {i}" for i in range(1000)]


def zstd(content):
    return zstandard.ZstdCompressor(level=1).compress(content)


def zstd_without_size(content):
    out = zstandard.ZstdCompressor().compressobj()
    return out.compress(content) + out.flush()


PACKERS = {"plain": bytes, "gz": gzip.compress, "xz": lzma.compress, "zst": zstd, "zst stream": zstd_without_size}


@pytest.mark.parametrize("kind", PACKERS)
def test_every_compression_told_by_content(tmp_path, kind):
    path = tmp_path / "data.txt"  # the name says nothing
    path.write_bytes(PACKERS[kind](LINES))
    assert sniff(path) == "jsonl"
    assert list(read(path).texts) == TEXTS
    assert [len(block) for block in stream(path, block=600)] == [600, 400]


@pytest.mark.parametrize("kind", PACKERS)
def test_parts_written_one_after_the_other(tmp_path, kind):
    pack, half = PACKERS[kind], LINES.index(b"\n") + 10
    path = tmp_path / "data"
    path.write_bytes(pack(LINES[:half]) + pack(b"") + pack(LINES[half:]))
    assert list(read(path).texts) == TEXTS


@pytest.mark.parametrize("kind", [kind for kind in PACKERS if kind != "plain"])
def test_a_cut_archive_is_an_error_at_every_length(tmp_path, kind):
    whole = PACKERS[kind](LINES[:2000])
    path = tmp_path / "data"
    for cut in [*range(6, len(whole), 5), len(whole) - 1]:
        path.write_bytes(whole[:cut])
        with pytest.raises(lw.DataError, match=r"data, line \d+: the compressed data is cut off or damaged"):
            read(path)


@pytest.mark.parametrize("kind", ["gz", "xz", "zst"])
def test_a_damaged_archive_is_an_error_of_ours(tmp_path, kind):
    whole = bytearray(PACKERS[kind](LINES))
    path = tmp_path / "data"
    failures = 0
    for at in range(6, len(whole), 7):
        damaged = whole.copy()
        damaged[at] ^= 0xFF
        path.write_bytes(damaged)
        try:
            read(path)
        except lw.DataError:
            failures += 1
    assert failures > 10


@pytest.mark.parametrize("kind", PACKERS)
@pytest.mark.parametrize("has_peek", [True, False])
def test_standard_input(monkeypatch, kind, has_peek):
    raw = io.BytesIO(PACKERS[kind](LINES))

    class Stdin:
        buffer = io.BufferedReader(raw) if has_peek else raw

    monkeypatch.setattr(sys, "stdin", Stdin)
    assert list(read("-").texts) == TEXTS
    assert not raw.closed
    Stdin.buffer = io.BytesIO(b"{")
    with pytest.raises(lw.DataError, match="standard input, line 1, column 2: not valid JSON"):
        read("-")
    monkeypatch.setattr(sys, "stdin", io.StringIO("{"))
    with pytest.raises(lw.DataError, match="bytes are needed"):
        read("-")


def test_a_pipe_has_no_size_but_can_be_read(tmp_path):
    fifo = tmp_path / "pipe"
    os.mkfifo(fifo)
    writer = threading.Thread(target=lambda: fifo.write_bytes(LINES * 3))
    writer.start()
    seen = []
    assert len(read(fifo, progress=lambda *counts: seen.append(counts))) == 3000
    writer.join()
    assert set(seen) == {(0, 0)}


def test_bom_crlf_and_a_last_line_without_end(tmp_path):
    path = tmp_path / "d"
    cases = [
        b'{"text": "t", "labels": ["a"]}',
        b"text,labels\r\nt,a",
        b"__label__a t",
        b"t\t<a>",
        b"labels\ttext\r\na\tt",
    ]
    for content in cases:
        for end in (b"", b"\n", b"\r\n", b"\r\n\r\n"):
            path.write_bytes(b"\xef\xbb\xbf" + content + end)
            found = read(path)
            assert (list(found.texts), found.names) == (["t"], ("a",)), (content, end)
    path.write_bytes(b"\xef\xbb\xbf1 3 3\r\n1 2:1\r\n")
    assert read(path).features.sparse.indices.tolist() == [2]


@pytest.mark.parametrize("kind", ["auto", "jsonl", "csv", "tsv", "fasttext", "xmc", "xmc-pair", "annif"])
@pytest.mark.parametrize(
    ("content", "message"),
    [(b"", "the file is empty"), (b"\n \n\r\n", "only blank lines"), (b"\xef\xbb\xbf\n", "only blank lines")],
)
def test_nothing_in_the_file(tmp_path, kind, content, message):
    path = tmp_path / "d"
    path.write_bytes(content)
    with pytest.raises(lw.DataError, match=f"d: the file .*{message}|d: {message}"):
        read(path, ReadOptions(format=kind))
    with pytest.raises(lw.DataError, match=message):
        next(stream(path, ReadOptions(format=kind)))


@pytest.mark.parametrize("pack", [gzip.compress, lzma.compress, zstd])
def test_nothing_in_the_archive(tmp_path, pack):
    path = tmp_path / "d"
    path.write_bytes(pack(b""))
    with pytest.raises(lw.DataError, match="only blank lines"):
        read(path)


def test_a_header_alone_is_no_data(tmp_path):
    path = tmp_path / "d"
    path.write_bytes(b"text,labels\n")
    with pytest.raises(lw.DataError, match="not a single document"):
        read(path)
    path.write_bytes(b"0 5 5\n")
    with pytest.raises(lw.DataError, match="not a single document"):
        read(path)


def test_what_cannot_be_opened(tmp_path):
    with pytest.raises(lw.DataError, match="there is no such file"):
        read(tmp_path / "nothing")
    with pytest.raises(lw.DataError, match="this is a folder; this format is one file"):
        read(tmp_path, ReadOptions(format="jsonl"))
    with pytest.raises(lw.DataError, match=r"the folder is of no known format \(pecos: X.trn.txt"):
        read(tmp_path)
    with pytest.raises(lw.DataError, match="there is no such folder; the pecos format is one"):
        read(tmp_path / "nothing", ReadOptions(format="pecos"))
    for path in ("a\x00b", "a" * 5000):
        with pytest.raises(lw.DataError, match="cannot be opened"):
            read(path)
    with pytest.raises(lw.ConfigError, match="must be a path"):
        read(7)
    with pytest.raises(lw.DataError, match=r"no train_raw_texts.txt or train_texts.txt"):
        read(tmp_path, ReadOptions(format="attentionxml"))


@pytest.mark.skipif(os.geteuid() == 0, reason="root may read everything")
def test_no_permission(tmp_path):
    path = tmp_path / "d"
    path.write_bytes(LINES)
    path.chmod(0)
    with pytest.raises(lw.DataError, match="Permission denied"):
        read(path)


def test_a_folder_part_may_be_compressed(tmp_path):
    (tmp_path / "train_texts.txt.gz").write_bytes(gzip.compress(b"t\n"))
    (tmp_path / "train_labels.txt.zst").write_bytes(zstd(b"a\n"))
    assert read(tmp_path).names == ("a",)


def test_parquet_needs_a_file(tmp_path, monkeypatch):
    class Stdin:
        buffer = io.BytesIO(b"PAR1....")

    monkeypatch.setattr(sys, "stdin", Stdin)
    with pytest.raises(lw.DataError, match="needs a file"):
        read("-")
    path = tmp_path / "d"
    path.write_bytes(b"PAR1....")
    with pytest.raises(lw.DataError, match="not a Parquet file"):
        read(path)
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    with pytest.raises(lw.MissingExtraError, match=r"pip install 'labelwood\[parquet\]'"):
        read(path)


@pytest.mark.parametrize("content", [b"plain words\n", b"\x89PNG\r\n", b"12\n"])
def test_unknown_formats_say_what_there_is(tmp_path, content):
    path = tmp_path / "d"
    path.write_bytes(content)
    with pytest.raises(
        lw.DataError, match=r"not known from the first line .*--format or ReadOptions\(format=\.\.\.\): jsonl, csv"
    ):
        sniff(path)


@pytest.mark.parametrize(
    ("first", "kind"),
    [
        (' {"a": 1}', "jsonl"),
        ("12 30 7", "xmc"),
        ("12 30", "xmc-pair"),
        ("__label__a, b", "fasttext"),
        ("a, b\tc\t<u>", "csv"),
        ("a, b\t<u> <v>", "annif"),
        ("text\tlabels,", "tsv"),
        ("text,a\tb", "csv"),
        ("text;labels", "csv"),
        ("text", "csv"),
        ('"title"', "csv"),
    ],
)
def test_sniffing(tmp_path, first, kind):
    path = tmp_path / "d"
    path.write_text(f"\n\n{first}\nmore\n")
    assert sniff(path) == kind


def test_a_json_array_is_told_apart(tmp_path):
    path = tmp_path / "d"
    for content in ('[{"text": "a"}]', '[{"text": "a", "labels": ["b"]},\n{}]', "[\n", '["a", "b"]'):
        path.write_text(content)
        with pytest.raises(lw.DataError, match="JSON array; write one JSON object per line"):
            read(path)
    path.write_text("[Title] a text\t<u>\n")
    assert sniff(path) == "annif"


@pytest.mark.parametrize("head", [b"\x7fELF\x02\x01\x01\x00,", b"PK\x03\x04\x14\x00,", b"\x93NUMPY\x01\x00v\x00{,\n"])
def test_a_binary_file_is_told_apart(tmp_path, head):
    path = tmp_path / "d"
    path.write_bytes(head + b"\x00" * 100)
    with pytest.raises(lw.DataError, match="this is not a text file; save the data as JSON lines or CSV"):
        read(path)
    path.write_text("text,labels\n", encoding="utf-16")
    with pytest.raises(lw.DataError, match="it looks like UTF-16; convert the file to UTF-8"):
        read(path)


def test_a_line_longer_than_the_limit(tmp_path, monkeypatch):
    monkeypatch.setattr("labelwood.data.parsing.source._LIMIT", 101)
    path = tmp_path / "d"
    path.write_bytes(b"x" * 99 + b"\n" + b"y" * 99 + b"\n")
    with Source(path) as source:
        assert [len(line) for line in source.lines()] == [100, 100]
    path.write_bytes(b"x\n" + b"y" * 100 + b"\n")
    with Source(path) as source, pytest.raises(lw.DataError, match="line 2: the line is longer than"):
        list(source.lines())


def test_options_are_checked():
    with pytest.raises(lw.ConfigError, match="did you mean 'jsonl'"):
        ReadOptions(format="jsonk")
    with pytest.raises(lw.ConfigError, match="Allowed: error, replace, skip"):
        ReadOptions(on_bad="ignore")
    with pytest.raises(lw.ConfigError, match="split"):
        ReadOptions(split="dev")
    with pytest.raises(lw.ConfigError, match="separator"):
        ReadOptions(separator="")
    with pytest.raises(lw.ConfigError, match="field's name"):
        ReadOptions(labels=3)
    with pytest.raises(lw.ConfigError, match="block must be at least 1"):
        next(stream("-", block=0))
    with pytest.raises(lw.ConfigError, match="text must be the name of a field"):
        ReadOptions(text=5)
    assert ReadOptions(text=["title"]).text == ("title",)
    assert ReadOptions(text="title").text == ("title",)
    assert from_dict(ReadOptions, to_dict(ReadOptions())) == ReadOptions()
