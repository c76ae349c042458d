"""JSON lines read natively: the same rows, counts and messages as line by line, for good, odd and broken lines.

MUTATED_LINES=200000 in the environment asks for more of them than there are on each commit.
"""

from __future__ import annotations

import dataclasses
import itertools
import json
import os
import random
import sys

import numpy as np
import pytest

import labelwood as lw
from labelwood._core import JsonLines
from labelwood.arrays.texts import TextField
from labelwood.data import ReadOptions, read, stream
from labelwood.data.formats import jsonl
from labelwood.data.parsing import json_blocks
from labelwood.data.parsing.fields import Reading

pytestmark = pytest.mark.native

LINES = int(os.environ.get("MUTATED_LINES", "4000"))  # in all, eight to a file


def facts(dataset):
    """All there is to a data set of texts, as plain values."""
    texts, y = dataset.texts, dataset.labels
    arrays = [texts.arena, texts.offsets, *([] if texts.cuts is None else [texts.cuts])]
    arrays += [] if y is None else [y.indptr, y.indices, y.data]
    return [a.tolist() for a in arrays], texts.fields, dataset.names, dataset.ids, dataset.report, y is None


def outcome(path, options, block=None, fields=None):
    """What comes of reading a file: its blocks, and the error that ends them."""
    found = []
    try:
        if block is None:
            found.append(facts(read(path, options, fields=fields)))
        else:
            lines = blank = 0
            for part in stream(path, options, block=block, fields=fields):
                lines, blank = lines + part.report.lines, blank + part.report.blank  # by window, so that sums are equal
                report = dataclasses.replace(part.report, lines=0, blank=0)
                found.append(facts(dataclasses.replace(part, report=report)))
            found.append((lines, blank))
    except lw.LabelwoodError as error:
        found.append((type(error), str(error)))
    return found


@pytest.fixture
def both(monkeypatch):
    """The outcome, made sure to be the same in both ways."""

    def run(*args, **kwargs):
        monkeypatch.setattr(jsonl, "NATIVE", False)
        expected = outcome(*args, **kwargs)
        monkeypatch.setattr(jsonl, "NATIVE", True)
        assert outcome(*args, **kwargs) == expected
        return expected

    return run


@pytest.fixture
def small_blocks(monkeypatch):
    """Blocks so small that their borders fall everywhere."""

    def choose(rng):
        monkeypatch.setattr(json_blocks, "_BLOCK", rng.choice([60, 200, 2000, 2**22]))
        monkeypatch.setattr(json_blocks, "_FIRST", rng.choice([1, 100, 2**16]))
        monkeypatch.setattr(json_blocks, "_MANY", rng.choice([0, 2, 8]))

    return choose


def native_lines(data, threads=1):
    """(rows, places of odd lines) of records {"text", "labels"}, the only ones it is told of."""
    lines = JsonLines(fields=1, need_labels=True, label_bytes=8)
    assert lines.learn(["text", "labels"], [0], 1, -1, refused=False)
    columns, odd, count, end = lines.read(data, 0, len(data) or 1, ids=False, threads=threads)
    text, ends, _, counts, duplicates, labels, shapes, ids = columns
    assert (count, end, ids) == (data.count(b"\n") + (not data.endswith(b"\n") and data != b""), len(data), None)
    assert (shapes == 0).all()
    names = lines.names(0)
    rows, at = [], 0
    for i, kept in enumerate(counts.tolist()):
        held = [names[label] for label in labels[at : at + kept]]
        rows.append((text[ends[i] : ends[i + 1]].tobytes().decode(), held, int(duplicates[i])))
        at += kept
    return rows, odd


def test_plain_lines_become_rows():
    rows, odd = native_lines(
        b'{"text": "a", "labels": ["x", 7, "x"]}\n\n  \r\n'
        + '{ "text":null,"labels":"é" }\r\n{"text":"","labels":[]}'.encode()
    )
    assert rows == [("a", ["x", "7"], 1), ("", ["é"], 0), ("", [], 0)]
    assert odd == []


def test_odd_lines_are_named_with_their_place():
    data = b'{"text": "a", "labels": []}\n\n{"text": 1, "labels": []}\n{"labels": []}\n{"text": "b", "labels": []}\n'
    rows, odd = native_lines(data)
    assert [row[0] for row in rows] == ["a", "b"]
    assert [(row, line, data[begin:end], fresh) for row, line, begin, end, fresh in odd] == [
        (1, 3, b'{"text": 1, "labels": []}\n', False),
        (1, 4, b'{"labels": []}\n', True),
    ]


ESCAPES = [r"\"", r"\\", r"\/", r"\b", r"\f", r"\n", r"\r", r"\t", r"\u0000", r"\u00e9", r"\u20AC", r"\ud83d\ude00"]


@pytest.mark.parametrize("escape", ESCAPES)
def test_escapes_are_read_natively(escape):
    rows, odd = native_lines(f'{{"text": "{escape}x{escape}", "labels": ["{escape}y"]}}'.encode())
    one = json.loads(f'"{escape}"')
    assert rows == [(f"{one}x{one}", [f"{one}y"], 0)]
    assert odd == []


def is_plain(text):
    rows, _ = native_lines(b'{"text": "t", "labels": [' + text + b"]}")
    return len(rows) == 1


def test_which_labels_are_empty_is_as_in_python():
    """Every character, alone and behind a space."""
    for code in range(sys.maxunicode + 1):
        name = chr(code)
        if 0xD800 <= code < 0xE000 or code < 0x20 or name in '"\\':
            continue
        if code < 0x3100 or code % 97 == 0:
            assert is_plain(f'" {name}"'.encode()) == bool(name.strip()), hex(code)


def test_bad_utf8_is_never_a_row():
    """Every pair of bytes from 0x80 on, alone and behind others that make it longer."""
    for first, second in itertools.product(range(0x80, 0x100), repeat=2):
        for tail in (b"", b"\x80", b"\x80\x80"):
            raw = bytes([first, second]) + tail
            try:
                raw.decode()
                good = True
            except UnicodeDecodeError:
                good = False
            rows, odd = native_lines(b'{"text": "' + raw + b'", "labels": []}')
            assert (len(rows), len(odd)) == ((1, 0) if good else (0, 1)), raw


INSIDE = ["1", "-0", "1.5e-3", "1E5", "true", "null", "[]", "{}", '[1, {"a": [], "b": {"a": "\\ud800"}}, "\\\\"]']
INSIDE += ["1e999", "[[[[]]]]", " [ 1 , 2 ] ", '{"a": {"x": 1}, "b": {"x": 1}}', "9" * 500, '"\\u00e9\\/"']
BROKEN = ["01", "1.", ".5", "+1", "1e", "--1", "NaN", "Infinity", "-Infinity", "nul", "tru", "[1,]", "[,]", "[1 2]"]
BROKEN += ['{"a"}', '{"a":}', '{"a":1,}', '{"a" 1}', "{1:2}", "]", "}", "[", "{", "[}", '{"a": 1, "a": 2}', '"\\x"']
BROKEN += ['"\\u12g4"', '"', '"\t"', "'a'", "\x0b1", "1\x0c", "", "1 1", "[1]]", '{"a": [{"b": 1, "b": 2}]}', '"\\u1"']


def line_with(value):
    return f'{{"text": "t", "other": {value}, "labels": ["x"]}}\n'


@pytest.mark.parametrize("value", INSIDE)
def test_what_an_unread_field_may_hold(tmp_path, both, value):
    """It is read natively, as the learned shape shows: a line that is no row would be odd."""
    path = tmp_path / "d"
    path.write_text(line_with("0") + line_with(value) * 20)
    [(_, _, names, _, report, _)] = both(path, ReadOptions())
    assert (names, report.rows, report.left) == (("x",), 21, ("other",))
    lines = JsonLines(fields=1, need_labels=True, label_bytes=8)
    lines.learn(["text", "other", "labels"], [0], 2, -1, refused=False)
    assert lines.read(line_with(value).encode(), 0, 9, ids=False, threads=1)[1] == []


@pytest.mark.parametrize("value", BROKEN)
def test_what_no_field_may_hold(tmp_path, both, value):
    path = tmp_path / "d"
    path.write_text(line_with("0") * 20 + line_with(value))
    [(kind, message)] = both(path, ReadOptions())
    assert kind is lw.DataError
    assert "line 21" in message
    assert both(path, ReadOptions(on_bad="skip"))[0][4].skipped == 1


@pytest.mark.parametrize("depth", [60, 64, 65, 200])
@pytest.mark.parametrize(("opened", "closed"), [("[", "]"), ('{"a":', "}")])
def test_nesting(tmp_path, both, depth, opened, closed):
    """What is deep is left to Python, which takes it as long as its own stack lasts."""
    path = tmp_path / "d"
    path.write_text(line_with("0") + line_with(opened * depth + "1" + closed * depth) * 9)
    assert both(path, ReadOptions())[0][4].rows == 10
    path.write_text(line_with("0") + line_with(opened * 100_000))
    assert "nested too deeply" in both(path, ReadOptions())[0][1]


def test_many_fields_and_long_names(tmp_path, both):
    path = tmp_path / "d"
    wide = {f"f{i}": i for i in range(1100)}
    inner = {f"f{i}": i for i in range(100)}
    records = [{"text": "t", "labels": [], **wide}, {"text": "t", "labels": [], "o": inner}, {"n" * 9000: 1}]
    path.write_text("".join(json.dumps({"text": "u", "labels": ["x"], **record}) + "\n" for record in records * 4))
    assert both(path, ReadOptions())[0][4].rows == 12


@pytest.mark.parametrize(("labels", "length"), [(2**16, 0), (2**16 + 1, 0), (1, 2**20 - 40), (1, 2**20)])
def test_what_is_huge_is_left_to_python(tmp_path, both, labels, length):
    line = f'{{"text": "{"x" * length}", "labels": [{",".join("7" * labels)}]}}\n'.encode()
    _, odd = native_lines(line)
    assert len(odd) == (labels > 2**16 or len(line) > 2**20)
    path = tmp_path / "d"
    path.write_bytes(line * 2)
    assert both(path, ReadOptions())[0][4].duplicate_labels == 2 * (labels - 1)


def test_numbers_as_labels_and_ids(tmp_path, both):
    path = tmp_path / "d"
    numbers = ["0", "-0", "-7", "123456789012345678", "1234567890123456789", "9" * 4000]
    path.write_text("".join(f'{{"id": {n}, "text": "t", "labels": [{n}, "{n}"]}}\n' for n in numbers))
    [(_, _, names, ids, report, _)] = both(path, ReadOptions())
    assert names[:2] == ("-0", "-7")
    assert ids == tuple(str(int(n)) for n in numbers)
    assert report.duplicate_labels == 5


def test_more_kinds_of_records_than_are_remembered(tmp_path, both):
    path = tmp_path / "d"
    with path.open("w") as file:
        for i in range(2600):
            file.write(json.dumps({"text": "t", "labels": [i % 7], f"f{i}": i}) + "\n")
            file.write(json.dumps({"text": "t", "labels": [i % 7]}) + "\n")
            file.write(json.dumps({"labels": [i % 7], f"f{i}": i}) + "\n")
    report = both(path, ReadOptions(on_bad="skip"))[0][4]
    assert (report.rows, report.skipped) == (5200, 2600)


def test_many_threads_and_many_lines(tmp_path, both, monkeypatch):
    monkeypatch.setattr(json_blocks, "available", lambda: 4)
    path, rng = tmp_path / "d", random.Random(1)
    with path.open("w") as file:
        for i in range(20_000):
            record = {"id": str(i), "title": "w" * rng.randrange(60), "labels": [rng.randrange(900) for _ in range(9)]}
            file.write(json.dumps(record if i % 100 else {**record, "labels": [1.5]}) + "\n")
    [(_, _, names, ids, report, _)] = both(path, ReadOptions(on_bad="skip"))
    assert (report.rows, report.skipped, len(names), len(ids)) == (19_800, 200, 900, 19_800)
    assert report.duplicate_labels > 100
    assert sum(len(part[3]) for part in both(path, ReadOptions(on_bad="skip"), block=777) if len(part) > 2) == 19_800


def test_the_last_block_of_a_stream_knows_its_fields(tmp_path, both):
    path = tmp_path / "d"
    path.write_text('{"title": "a", "text": "b", "labels": []}\n' * 3)
    first, last, _ = both(path, ReadOptions(), block=2)
    assert [read.records for read in first[4].fields if read.records] == [2, 2]
    assert [read.records for read in last[4].fields if read.records] == [1, 1]
    assert [field.name for field in last[1]] == ["title", "text"]


WORDS = [
    "",
    "a",
    "word",
    "two words",
    "é",
    "数据",
    "😀",
    "a\nb",
    '"q"',
    "back\\slash",
    "\x00",
    "\u3000",
    "x" * 70,
    "\t",
]
NAMES = ["text", "title", "Title", "labels", "id", "uid", "body", "other", "TEXT", "tags"]
SPLICES = [
    b'"',
    b"\\",
    b"{",
    b"}",
    b"[",
    b"]",
    b":",
    b",",
    b"\n",
    b"\r\n",
    b" ",
    b"\xff",
    b"\xc3",
    b"\xed\xa0\x80",
    b"\0",
]
SPLICES += [
    b"\\ud800",
    b"\\udc00",
    b"\\u00e9",
    b"null",
    b"true",
    b"NaN",
    b"1e5",
    b"-",
    b"0",
    b"7",
    b'"text":',
    b"\xc2\x85",
]
SPLICES += [
    b'"labels": ["a"], ',
    b'"": 1, ',
    b'{"a": 1, "a": 2}',
    b"[[",
    b"\xf0\x9f\x98\x80",
    b"1.0",
    b"\t",
    b'""',
    b'" "',
]


def value(rng, depth=0):
    """Any JSON value."""
    kind = rng.randrange(9 if depth < 3 else 7)
    if kind < 3:
        return rng.choice(WORDS)
    if kind < 7:
        return [rng.randrange(-3, 99), rng.random(), None, rng.random() < 0.5][kind - 3]
    if kind == 7:
        return [value(rng, depth + 1) for _ in range(rng.randrange(4))]
    return {rng.choice(NAMES): value(rng, depth + 1) for _ in range(rng.randrange(3))}


def labels(rng):
    if rng.random() < 0.1:
        return value(rng)
    found = [rng.choice(["a", "b", "c", 7, "7", "é", "d" * 30]) for _ in range(rng.randrange(4))]
    return found if rng.random() < 0.9 else rng.choice(["one", 5, None, *found])


def record(rng):
    """A record: mostly of one kind, sometimes of another, sometimes with values of any kind."""
    names = ["id", "title", "text", "labels"] if rng.random() < 0.7 else rng.sample(NAMES, rng.randrange(1, 6))
    made = {}
    for name in names:
        if name == "labels":
            made[name] = labels(rng)
        elif rng.random() < 0.05:
            made[name] = value(rng)
        else:
            made[name] = rng.choice(WORDS)
    return made


def line(rng):
    """One line: a record as JSON, or what is left of it after some mutations."""
    apart = rng.choice([(", ", ": "), (",", ":"), (" ,\t", " :  ")])
    raw = json.dumps(record(rng), ensure_ascii=rng.random() < 0.3, separators=apart).encode()
    for _ in range(rng.choice([0, 0, 0, 1, 1, 2, 4])):
        at = rng.randrange(len(raw) + 1)
        cut = rng.choice([0, 0, 1, 1, 2, 8])
        raw = raw[:at] + (rng.choice(SPLICES) if rng.random() < 0.7 else b"") + raw[at + cut :]
    return raw + rng.choice([b"\n", b"\n", b"\n", b"\r\n", b"\n\n", b" \n"])


def options(rng):
    """How a file is read: options, rows to a block, and the fields of a model."""
    chosen = ReadOptions(
        format="jsonl",
        text=rng.choice([None, None, None, ("text",), ("title", "text"), ("text:2", "title")]),
        labels=rng.choice(["labels", "labels", "labels", "tags", None]),
        id=rng.choice([None, None, "id", "uid", "text"]),
        on_bad=rng.choice(["error", "skip", "skip", "replace"]),
    )
    known = Reading((TextField("title", 2), TextField("text"), TextField("body")))
    fields = rng.choice([None, None, None, known, Reading(alone=True), Reading((TextField("text"),))])
    return chosen, rng.choice([None, None, 1, 2, 3, 4096]), fields


@pytest.mark.parametrize("seed", range(max(1, LINES // 800)))
def test_mutated_lines_are_read_alike(tmp_path, both, small_blocks, seed):
    rng = random.Random(seed)
    path = tmp_path / "d"
    rows = 0
    for _ in range(100):
        small_blocks(rng)
        lines = [line(rng) for _ in range(8)]
        lines[0] = rng.choice(
            [lines[0], json.dumps(dict.fromkeys(["id", "title", "text", "labels"], "x")).encode() + b"\n"]
        )
        path.write_bytes(b"".join(lines).removesuffix(rng.choice([b"\n", b""])))
        chosen, block, fields = options(rng)
        rows += sum(len(found[0][1]) - 1 for found in both(path, chosen, block=block, fields=fields) if len(found) > 2)
    assert rows > 50


def test_an_archive_that_is_cut_off_ends_at_the_same_line(tmp_path, both):
    import gzip
    import lzma

    rng = random.Random(3)
    lines = "".join(
        json.dumps({"text": str(rng.random()), "labels": [str(rng.random())]}) + "\n" for _ in range(20_000)
    )
    for pack in (gzip.compress, lzma.compress):
        path = tmp_path / "d"
        packed = pack(lines.encode())
        path.write_bytes(packed[: len(packed) // 2])
        [(kind, message)] = both(path, ReadOptions())
        assert kind is lw.DataError
        assert "cut off" in message
        assert len(both(path, ReadOptions(), block=1000)) > 5


def test_what_no_caller_may_ask_for():
    lines = JsonLines(fields=2, need_labels=False, label_bytes=8)
    for places in ([0], [0, 2], [0, -2]):
        with pytest.raises(ValueError, match="no such field"):
            lines.learn(["a", "b"], places, -1, -1, refused=False)
    for begin, size in ((-1, 1), (4, 1), (0, 0)):
        with pytest.raises(ValueError, match="no such bytes"):
            lines.read(b"abc", begin, size, ids=True, threads=1)
    assert lines.read(b"", 0, 1, ids=True, threads=1)[2:] == (0, 0)
    with pytest.raises(ValueError, match="a field"):
        JsonLines(fields=0, need_labels=False, label_bytes=8)
    assert np.asarray(lines.names(5)).size == 0
