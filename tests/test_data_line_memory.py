"""Memory of reading one huge line, hostile or not: at most eight times its bytes, in every format and in sniffing."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

SIZE = 12_000_000
EMOJI = "😀".encode()  # makes Python hold a text at four bytes a character


def many(unit: bytes) -> bytes:
    return unit * (SIZE // len(unit))


# format, content: a huge text where it may stand, many labels, and what else a reader would make lists of
LINES: dict[str, tuple[str, bytes]] = {
    "jsonl text": ("jsonl", b'{"labels": ["a"], "text": "' + many(b"a, b ") + EMOJI + b'"}\n'),
    "jsonl labels": ("jsonl", b'{"text": "a", "labels": [' + many(b"1,") + b"1]}\n"),
    "jsonl names": ("jsonl", b'{"text": "a", "labels": [' + many(b'"ab",') + b'"a"]}\n'),
    "jsonl lists": ("jsonl", b'{"text": "a", "labels": [], "x": [' + many(b"[],") + b"1]}\n"),
    "csv text": ("csv", b'text,labels\n"' + many(b"a, b ") + EMOJI + b'",a\n'),
    "csv labels": ("csv", b"text,labels\na," + many(b"ab|") + b"a\n"),
    "csv list of labels": ("csv", b'text,labels\na,"[' + many(b'""ab"",') + b'1]"\n'),
    "csv cells": ("csv", b"text,labels\na," + many(b"ab,") + b"a\n"),
    "csv columns": ("csv", b"text,labels," + many(b"ab,") + b"a\na,b\n"),
    "csv lines": ("csv", b'text,labels\n"' + many(b"a\n") + b'",a\n'),
    "tsv text": ("tsv", b"text\tlabels\n" + many(b"word ") + EMOJI + b"\ta\n"),
    "fasttext text": ("fasttext", b"__label__a " + many(b"word ") + EMOJI + b"\n"),
    "fasttext labels": ("fasttext", many(b"__label__ab ") + b"\n"),
    "annif text": ("annif", many(b"word ") + EMOJI + b"\t<u>\n"),
    "annif labels": ("annif", b"a\t" + many(b"<ab> ") + b"\n"),
    "xmc labels": ("xmc", b"1 9 99\n" + many(b"11,") + b"1 1:1\n"),
    "xmc features": ("xmc", b"1 9 9\n1 " + many(b"1:1 ") + b"\n"),
    "sniffing subjects": ("auto", b"a\t" + many(b"<a> ") + b"x\n"),
    "sniffing spaces": ("auto", many(b" ") + b"\n"),
    "sniffing numbers": ("auto", many(b"1 ") + b"\n"),
    "sniffing quotes": ("auto", many(b'"') + b"\n"),
    "sniffing an array": ("auto", many(b"[") + b"\n"),
}

PROBE = """
import sys
from labelwood.data import ReadOptions, read
from labelwood.errors import LabelwoodError

def peak():  # ru_maxrss would count what the parent held when it started us
    return 1024 * int(open("/proc/self/status").read().split("VmHWM:")[1].split()[0])

def attempt(path, kind):
    try:
        return f"{len(read(path, ReadOptions(format=kind)))} rows"
    except LabelwoodError as error:
        return str(error)

attempt(sys.argv[2], "jsonl")
before = peak()
end = attempt(*sys.argv[1:4:2])
print(peak() - before, end)
"""
READ = [name for name in LINES if name.endswith("text")] + ["xmc features"]


@pytest.mark.parametrize("name", LINES)
def test_memory_of_one_line(tmp_path: Path, name: str) -> None:
    kind, content = LINES[name]
    (tmp_path / "small").write_bytes(b'{"text": "a", "labels": ["b"]}\n')
    (tmp_path / "huge").write_bytes(content)
    command = [sys.executable, "-c", PROBE, tmp_path / "huge", tmp_path / "small", kind]
    out = subprocess.run(command, capture_output=True, text=True, check=True).stdout
    (tmp_path / "huge").unlink()
    used, _, end = out.partition(" ")
    assert int(used) <= 8 * len(content), end
    assert (end == "1 rows\n") == (name in READ), end
