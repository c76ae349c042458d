"""What `labelwood predict` writes: JSON lines, CSV, TSV, Annif's corpora (F-N6)."""

from __future__ import annotations

import csv
import errno
import io
import json
from pathlib import Path

import pytest

import labelwood as lw
from labelwood.cli import main, show
from labelwood.cli.predictions import format_for
from labelwood.data import read
from labelwood.storage.atomic_files import refused
from toy import keyword_set

URI = "http://example.org/"


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Labels are URIs, one of them with a comma and a quote."""
    texts, labels = keyword_set()
    folder = tmp_path_factory.mktemp("output") / "m"
    lw.train(texts, [[name.replace("label", URI).replace("/3", '/3,"x') for name in row] for row in labels]).save(
        folder
    )
    return folder


@pytest.fixture
def source(tmp_path: Path) -> Path:
    rows = [{"id": f"doc {i}", "text": f"word{i}\ta\nline\tor two"} for i in range(5)]
    path = tmp_path / "in.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.mark.parametrize(("name", "delimiter"), [("out.csv", ","), ("OUT.TSV", "\t")])
def test_the_name_of_the_file_says_how_it_is_written(model, source, tmp_path, name, delimiter):
    out = tmp_path / name
    assert main(["predict", str(model), str(source), "-k", "2", "-o", str(out)]) == 0
    header, *rows = csv.reader(io.StringIO(out.read_text(encoding="utf-8")), delimiter=delimiter)
    assert header == ["id", "rank", "label", "score"]
    texts = [json.loads(line)["text"] for line in source.read_text(encoding="utf-8").splitlines()]
    expected = [
        [f"doc {i}", str(rank), label, str(score)]
        for i, labels in enumerate(lw.load(model).predict(texts, k=2))
        for rank, (label, score) in enumerate(labels, 1)
    ]
    assert rows == expected
    assert any('"' in row[2] for row in rows)


def test_texts_of_labels_are_a_column(tmp_path, capsys):
    texts, labels = keyword_set()
    lw.train(texts, labels, label_texts={"label3": "three, really"}).save(tmp_path / "m")
    assert main(["predict", str(tmp_path / "m"), "--text", "word3", "-k", "1", "--output-format", "csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == "id,rank,label,text,score"
    assert main(["predict", str(tmp_path / "m"), "--text", "word3", "-k", "1", "--output-format", "csv"]) == 0
    assert '0,1,label3,"three, really",' in capsys.readouterr().out


def test_annif_is_written_as_it_is_read(tmp_path):
    texts, labels = keyword_set()
    lw.train(texts, [[name.replace("label", URI) for name in row] for row in labels]).save(tmp_path / "m")
    out = tmp_path / "out"
    source = tmp_path / "in.csv"
    source.write_text('id,text\n1,"word1 a\ttab\nand a line"\n2,word7\n', encoding="utf-8")
    given = ["predict", str(tmp_path / "m"), str(source), "-k", "2", "--output-format", "annif", "-o", str(out)]
    assert main(given) == 0
    found = read(out)
    assert list(found.texts) == ["word1 a tab and a line", "word7"]
    expected = lw.load(tmp_path / "m").predict(["word1 a\ttab\nand a line", "word7"], k=2)
    told = [{found.names[j] for j in found.labels.row(i)[0]} for i in range(2)]
    assert told == [{label for label, _ in row} for row in expected]


def test_what_annif_cannot_hold_is_told(tmp_path, capsys):
    lw.train(["aa bb", "cc dd"] * 4, [["two words"], ["one"]] * 4).save(tmp_path / "m")
    given = ["predict", str(tmp_path / "m"), "--text", "aa bb", "--output-format", "annif", "-o", str(tmp_path / "out")]
    assert main(given) == 1
    assert "'two words' cannot stand in Annif's format, which holds URIs" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()
    x = [[1.0, 0.0], [0.0, 1.0]] * 4
    lw.train(X=x, labels=[["a"], ["b"]] * 4).save(tmp_path / "x")
    matrix = tmp_path / "x.txt"
    matrix.write_text("1 2 1\n0 0:1.0\n", encoding="utf-8")
    assert main(["predict", str(tmp_path / "x"), str(matrix), "--output-format", "annif"]) == 1
    assert "was trained on features; write jsonl or csv" in capsys.readouterr().err


def test_the_format_is_that_asked_for_or_the_suffix():
    for output, wanted, kind in (
        (None, None, "jsonl"), ("-", None, "jsonl"), ("a.csv", None, "csv"), ("a.CSV", None, "csv"),
        ("a.csv", "jsonl", "jsonl"), ("a.json", None, "jsonl"), ("csv", None, "jsonl"), ("a.tsv", "annif", "annif"),
    ):  # fmt: skip
        assert format_for(output, wanted) == kind, output


def test_an_unknown_format_is_wrong_usage(model, capsys):
    assert main(["predict", str(model), "--text", "a", "--output-format", "xml"]) == 2
    assert "it must be jsonl, csv, tsv or annif, but is 'xml'" in " ".join(capsys.readouterr().err.split())


# DEL, C1, the marks and embeddings of direction, the line and paragraph separators, the byte order mark
STEERING = "\x7f\x80\x9b\x9f\u061c\u200e\u200f\u2028\u2029\u202a\u202e\u2066\u2069\ufeff"


def test_characters_that_steer_a_terminal_are_escaped_in_json(tmp_path, capsys):
    """And come back as they were; letters, joiners and emoji stay as they are (F-D22)."""
    name = f"a{STEERING}b é 中 \u200d 👍"
    lw.train(["aa bb", "cc dd"] * 4, [[name], ["y"]] * 4, label_texts={name: f"t{STEERING}"}).save(tmp_path / "m")
    assert main(["predict", str(tmp_path / "m"), "--text", "aa bb", "-k", "1"]) == 0
    shown = capsys.readouterr().out
    assert not set(STEERING) & set(shown)
    assert "a\\u007f\\u0080\\u009b\\u009f\\u061c" in shown
    assert "b é 中 \u200d 👍" in shown
    [found] = json.loads(shown)["labels"]
    assert (found["label"], found["text"]) == (name, f"t{STEERING}")


def test_characters_that_steer_a_terminal_are_seen_in_tables(capsys):
    show.table([("x", f"a{STEERING}b\u200dc")], ("name", "value"))
    show.say(f"a{STEERING}b")
    found = capsys.readouterr().out
    assert not set(STEERING) & set(found)
    assert found.count("\N{REPLACEMENT CHARACTER}") == 2 * (len(STEERING) - 2)  # two are blanks, and become blanks
    assert "b\u200dc" in found


@pytest.mark.parametrize(
    ("value", "seen"), [("-1", "-1"), ("-0.5", "-0.5"), ('"1"', "a string"), ("1" * 400, "a whole number")]
)
def test_a_relevance_that_cannot_be_is_shown(tmp_path, value, seen):
    path = tmp_path / "t.jsonl"
    path.write_text(f'{{"text": "a", "labels": ["x"], "w": [{value}]}}\n')
    with pytest.raises(lw.DataError, match=rf"a relevance must be a number from 0 to .*, but is {seen}\.$"):
        read(path, lw.ReadOptions(relevance="w"))


def test_what_cannot_be_read_is_not_advised_to_be_written(tmp_path):
    error = PermissionError(errno.EACCES, "Permission denied")
    told = {verb: str(refused(tmp_path / "f", error, verb=verb)) for verb in ("read", "write")}
    assert told["read"] == f"cannot read {tmp_path}/f: Permission denied. Ask its owner for the right to read it."
    assert "Choose a folder you may write to; earlier files are intact." in told["write"]
