"""Every line of a file is accounted for, in every format; what an open quote swallows is refused or warned of."""

from __future__ import annotations

import json
import random
import warnings
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import labelwood as lw
from labelwood.data import Dataset, ReadOptions, ReadReport, read, stream
from labelwood.data.label_files.label_texts import read_label_texts

Lines = list[str]


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def table(draw: random.Random, comma: str) -> Lines:
    """Records with quoted cells of several lines, blank lines, and records that are not right."""
    records = [*draw.choice([[f"sep={comma}"], []]), f"text{comma}labels{comma}{comma}"]
    records.append(f"a{comma}x")
    for number in range(draw.randint(1, 30)):
        text = draw.choice(["plain", 'a "word"', "two\nlines", "three\n\nlines", f"a{comma}b"])
        good = f"{quoted(text)}{comma}x{number % 3}{comma}{comma}"
        few, open_quote = "only text", f'"a" b{comma}x'
        records.append(draw.choice([good, good, good, "", "  ", few, open_quote]))
    return [line for record in records for line in record.split("\n")]


def jsonl(draw: random.Random) -> Lines:
    good = json.dumps({"text": "a", "labels": ["x"]})
    return [good, *(draw.choice([good, good, "", " \t", "{", '{"text": 1, "labels": []}']) for _ in range(30))]


def fasttext(draw: random.Random) -> Lines:
    return ["__label__a t", *(draw.choice(["__label__a t", "no label", "", "__label__ t"]) for _ in range(30))]


def annif(draw: random.Random) -> Lines:
    return ["a\t<u>", *(draw.choice(["a\t<u>", "a\t", "", "no tab", "a\tu"]) for _ in range(30))]


def xmc(draw: random.Random) -> Lines:
    rows = ["0 1:1", *(draw.choice(["0 1:1", "", "9 1:1", "0 x:1"]) for _ in range(draw.randint(1, 30)))]
    return [f"{len(rows)} 3 3", *rows, *[""] * draw.randint(0, 2)]


FILES: dict[str, Callable[[random.Random], Lines]] = {
    "jsonl": jsonl,
    "csv": lambda draw: table(draw, ","),
    "csv ;": lambda draw: table(draw, ";"),
    "tsv": lambda draw: table(draw, "\t"),
    "fasttext": fasttext,
    "annif": annif,
    "xmc": xmc,
}


def in_blocks(path: Path, options: ReadOptions) -> ReadReport:
    report = ReadReport()
    for block in stream(path, options, block=3, need_labels=True):
        report += block.report
    return report


def accounted(report: ReadReport) -> int:
    return report.rows + report.skipped + report.header + report.blank + report.inner


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("name", FILES)
def test_lines_are_rows_or_skipped_or_blank_or_within_a_record(tmp_path: Path, name: str) -> None:
    for seed in range(60):
        lines = FILES[name](random.Random(seed))
        end = random.Random(seed).choice(["\n", "\r\n"]) if name != "xmc" else "\n"
        (tmp_path / "data").write_bytes(end.join([*lines, ""]).encode())
        options = ReadOptions(format=name.removesuffix(" ;"), on_bad="skip")
        whole = read(tmp_path / "data", options).report
        assert whole.lines == len(lines)
        assert accounted(whole) == whole.lines
        assert in_blocks(tmp_path / "data", options) == whole


def test_the_counts_by_hand(tmp_path: Path) -> None:
    (tmp_path / "d").write_bytes(b'\nsep=,\r\n\ntext,labels\n"a\n\nb",x\n\nonly\nc,y\n')
    report = read(tmp_path / "d", ReadOptions(format="csv", on_bad="skip")).report
    assert (report.lines, report.rows, report.skipped) == (10, 2, 1)
    assert (report.header, report.blank, report.inner) == (2, 3, 2)


def test_folders_and_parquet(tmp_path: Path) -> None:
    (tmp_path / "train_texts.txt").write_bytes(b"a\n\nb\xff\n")
    (tmp_path / "train_labels.txt").write_bytes(b"x\ny\nz\n")
    (tmp_path / "trn_X_Xf.txt").write_bytes(b"2 2\n0:1\nx\n\n")
    (tmp_path / "trn_X_Y.txt").write_bytes(b"2 2\n0:1\n0:1\n")
    (tmp_path / "X.trn.txt").write_bytes(b"a\nb\xff\n")
    sparse.save_npz(tmp_path / "Y.trn.npz", sparse.csr_matrix(np.eye(2)))
    pq.write_table(pa.table({"text": ["a", "b"], "labels": [["x"], None]}), tmp_path / "table")
    expected = {"attentionxml": (3, 2, 1), "xmc-pair": (4, 1, 1), "pecos": (2, 1, 1)}
    for kind, counts in expected.items():
        report = read(tmp_path, ReadOptions(format=kind, on_bad="skip")).report
        assert (report.lines, report.rows, report.skipped) == counts
        assert accounted(report) == report.lines
    report = read(tmp_path / "table", ReadOptions(on_bad="skip")).report
    assert (report.lines, report.rows, report.skipped) == (2, 1, 1)


# Quotes without their partners.


def heard(path: Path, **options: str) -> tuple[Dataset, list[str]]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        found = read(path, ReadOptions(**options))
    return found, [str(warning.message) for warning in caught]


SWALLOWED = ['"Light verse,poems', "Of stars,stars", 'A screen of 15",screens']


@pytest.mark.parametrize("first", ["text", "labels"])
def test_an_open_quote_of_a_tsv_is_refused(tmp_path: Path, first: str) -> None:
    turned = [line if first == "text" else ",".join(reversed(line.split(","))) for line in SWALLOWED]
    header = "text\tlabels" if first == "text" else "labels\ttext"
    lines = [header, "a\tpoems", *(line.replace(",", "\t") for line in turned), "b\tstars"]
    path = tmp_path / "d"
    path.write_text("\n".join(lines))
    with pytest.raises(
        lw.DataError, match=r"line 3, column \d: each line from here to line 5 is a record by itself"
    ) as e:
        read(path)
    assert e.value.column == (1 if first == "text" else 7)
    found, _ = heard(path, on_bad="skip")
    assert (len(found), found.report.skipped) == (2, 3)


def test_an_open_quote_of_a_csv_is_warned_of(tmp_path: Path) -> None:
    path = tmp_path / "d"
    path.write_text("\n".join(["text,labels", *SWALLOWED, "d,e"]))
    found, (message,) = heard(path)
    assert len(found) == 2
    assert message == (
        f"{path}: 1 record over several lines may be several records, which a quote without its partner joins; the "
        'first is lines 2 to 4. If so, quote the cell, and write "" for a quote in it.'
    )


def test_an_open_quote_among_good_ones_is_told_by_the_labels(tmp_path: Path) -> None:
    path, good = tmp_path / "d", ['"A poem\nof two lines",poems', '"Stars\nand more",stars'] * 5
    path.write_text("\n".join(["text,labels", *good, *SWALLOWED]))
    _, (message,) = heard(path)
    assert "the first is lines 22 to 24" in message
    path.write_text("\n".join(["text,labels", *good, '"First, we look\nThen, we see, and so on",poems']))
    assert heard(path)[1] == []


@pytest.mark.parametrize("comma", [",", "\t"])
def test_cells_of_several_lines_are_silent(tmp_path: Path, comma: str) -> None:
    texts = ["two\nlines", "a, b\nc\nd", "- one\n- two\n\n- three", 'she said: "no"\nhe, "yes"']
    path = tmp_path / "d"
    path.write_text(f"text{comma}labels\n" + "".join(f"{quoted(text)}{comma}x\n" for text in texts))
    found, messages = heard(path)
    assert found.texts is not None
    assert (list(found.texts), messages) == (texts, [])


def test_an_open_quote_in_texts_of_labels_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "labels"
    path.write_text('1\t"one\n2\ttwo"\n3\tthree\n')
    with pytest.raises(lw.DataError, match="line 1, column 3: each line from here to line 2"):
        read_label_texts(path)
    path.write_text('1\t"one\nand more"\n2\ttwo\n')
    assert read_label_texts(path) == {"1": "one\nand more", "2": "two"}
