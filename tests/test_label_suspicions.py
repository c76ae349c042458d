"""Labels that look like something else are warned of, at every door and in every format; good names are not."""

from __future__ import annotations

import json
import random
import warnings
from collections import Counter
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import labelwood as lw
from labelwood.data import ReadOptions, from_lists, from_matrix, from_records, read, stream
from labelwood.data.label_suspicions import Suspicion, suspicions
from labelwood.quickstart import quickstart_path

Rows = list[list[str]]


def found(rows: Sequence[Sequence[str]]) -> tuple[Suspicion, ...]:
    """What is suspicious in rows of labels."""
    counts = Counter(name for row in rows for name in set(row))
    repeated = sum(len(row) - len(set(row)) for row in rows)
    documents = sum(bool(row) for row in rows)
    return suspicions(list(counts), list(counts.values()), documents=documents, repeated=repeated)


def seen(rows: Sequence[Sequence[str]]) -> list[tuple[str, str]]:
    return [(suspicion.kind, suspicion.separator) for suspicion in found(rows)]


def heard(call: Callable[[], object]) -> list[str]:
    """The warnings of a call."""
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        call()
    return [str(warning.message) for warning in caught]


# Names with separators in them, as libraries, shops and taggers have them.
HEADINGS = [
    *(
        "Law",
        "Law, International",
        "Law, Commercial",
        "Trade, International",
        "Insurance",
        "Insurance, Health",
        "Health",
    ),
    *("Information retrieval", "Information science", "Science", "Data retrieval", "Retrieval of health information"),
    *("TCP/IP", "C/C++", "Client/server computing", "Relations, International", "Water", "Water quality", "Quality"),
    *("Smith, John", "Smith, Mary", "Miller, John", "Paris, France", "Lyon, France", "France", "AT&T; its history"),
]
PATHS = ["Arts", "Arts/Music", "Arts/Music/Bands", "Arts/Film", "Science", "Science/Physics", "Science/Physics/Optics"]
TRADES = [
    f"{verb} of {kind} {thing}"
    for verb in ("manufacture", "repair", "sale", "rental")
    for kind in ("wooden", "metal", "electric", "plastic", "other")
    for thing in ("goods", "tools", "vehicles", "furniture")
]


@pytest.mark.parametrize("most", [1, 5])
@pytest.mark.parametrize("names", [HEADINGS, PATHS * 5], ids=["headings", "paths"])
def test_good_names_are_silent(names: list[str], most: int) -> None:
    draw = random.Random(0)
    rows = [draw.sample(names, draw.randint(1, most)) for _ in range(400)]
    assert seen([sorted(set(row)) for row in rows]) == []


def test_names_of_many_words_are_silent_beside_others() -> None:
    draw = random.Random(0)
    assert seen([draw.sample(TRADES, 3) for _ in range(400)]) == []


def test_the_sample_data_are_silent() -> None:
    for part in ("train", "test"):
        assert heard(lambda part=part: read(quickstart_path(part))) == []


def test_a_lone_name_with_a_separator_hides_nothing() -> None:
    rows = [["a;b"]] * 1000 + [["C|C++"]]
    (suspicion,) = found(rows)
    assert suspicion == Suspicion("joined", ";", 1000, 1000 / 1001, ("a;b",))
    assert seen([["C|C++"]] + [["x"], ["y"]] * 20) == []


def test_one_string_in_two_fifths_of_the_cells() -> None:
    (suspicion,) = found([["a;b"]] * 40 + [["c"]] * 60)
    assert (suspicion.separator, suspicion.count, suspicion.share) == (";", 40, 0.4)


def test_a_separator_at_an_end_joins_nothing() -> None:
    assert seen([["|"], ["a;"], [";b "], ["x"]]) == []


def test_the_space_behind_a_comma_is_not_told_apart_from_it() -> None:
    rows = [["a, b"], ["b, c"], ["a"], ["b"], ["c"]] * 10
    assert seen(rows) == [("joined", ",")]


def test_two_separators_are_both_named() -> None:
    rows = [["a;b"], ["b;c"], ["c,a"], ["b,a"], ["a"], ["b"], ["c"]] * 10
    assert seen(rows) == [("joined", ";"), ("joined", ",")]


@pytest.mark.parametrize(
    "text", ["['a', 'b']", '["a","b"]', "['a']", "[]", "('a', 'b')", "{'a'}", "[1, 2]", "[1 0 0]", "['a' 'b']"]
)
def test_lists_as_text(text: str) -> None:
    (suspicion,) = found([[text]] + [["x"], ["y"]] * 5)
    assert (suspicion.kind, suspicion.count, suspicion.examples) == ("list", 1, (text,))
    assert "ast.literal_eval" in suspicion.message()


@pytest.mark.parametrize("text", ["[deleted]", "f(x)", "a[1]", "(2)", "{a}", "C [language]", "rock 'n' roll", "]"])
def test_brackets_in_good_names(text: str) -> None:
    assert seen([[text]] + [["x"], ["y"]] * 5) == []


def test_rows_of_an_indicator_matrix() -> None:
    assert seen([["1", "0", "0"], ["0", "1", "1"]]) == [("indicators", "")]
    assert seen([["1", "0"], ["0", "1"]]) == [("indicators", "")]
    assert seen([["1"], ["0"], ["1"]]) == []  # two classes
    assert seen([["1", "0", "2"], ["0", "1", "1"]]) == []
    assert seen([]) == seen([[]]) == []


def test_many_long_names_take_no_time_of_note() -> None:
    names = [" ".join(f"{i}w{j}" for j in range(300)) for i in range(3000)]
    assert seen([[name] for name in names]) == []


# The matrix: a share of the rows holds all labels in one string, the others are as they should be.

LABELS = ["red", "blue", "fruit", "sky", "sea", "tree", "bird", "fish"]
SHARES = (0.0, 0.05, 0.2, 0.4, 0.6, 0.8, 1.0)
SEPARATORS = (";", ",", ", ", "|", "/", "\t", " ")


def rows_with(share: float, separator: str) -> Rows:
    draw = random.Random(1)
    rows = [draw.sample(LABELS, draw.randint(2, 5)) for _ in range(200)]
    joined = round(share * len(rows))
    return [[separator.join(row)] for row in rows[:joined]] + rows[joined:]


def quoted(cell: str) -> str:
    return '"' + cell.replace('"', '""') + '"'


def table(rows: Rows, comma: str) -> bytes:
    lines = [f"text{comma}labels", *(f"a{comma}{quoted('|'.join(row))}" for row in rows)]
    return "\n".join(lines).encode()


def parquet(path: Path, rows: Rows) -> None:
    pq.write_table(pa.table({"text": ["a"] * len(rows), "labels": rows}), path)


def put(content: Callable[[Rows], bytes]) -> Callable[[Path, Rows], None]:
    return lambda path, rows: path.write_bytes(content(rows)) and None


WRITERS: dict[str, Callable[[Path, Rows], None]] = {
    "jsonl": put(lambda rows: "\n".join(json.dumps({"text": "a", "labels": row}) for row in rows).encode()),
    "csv": put(lambda rows: table(rows, ",")),
    "tsv": put(lambda rows: table(rows, "\t")),
    "parquet": parquet,
    "fasttext": put(lambda rows: "\n".join(" ".join(f"__label__{x}" for x in row) + " a" for row in rows).encode()),
    "annif": put(lambda rows: "\n".join("a\t" + " ".join(f"<{x}>" for x in row) for row in rows).encode()),
}
SPACED = {"fasttext", "annif"}  # formats whose labels hold no space
DOORS = [(kind, door) for kind in [*WRITERS, "lists"] for door in ("train", "evaluate")]


@pytest.mark.parametrize(("kind", "door"), DOORS)
def test_every_share_and_separator_in_every_format(tmp_path: Path, kind: str, door: str) -> None:
    cells = 0
    for separator in SEPARATORS:
        if kind in SPACED and any(map(str.isspace, separator)):
            continue
        for share in SHARES:
            rows, path = rows_with(share, separator), tmp_path / "data"
            if kind == "lists":
                messages = heard(lambda rows=rows: from_lists(["a"] * len(rows), rows))
            else:
                WRITERS[kind](path, rows)
                options = ReadOptions(format=kind)
                call = {
                    "train": lambda path=path, options=options: read(path, options),
                    "evaluate": lambda path=path, options=options: list(
                        stream(path, options, need_labels=True, block=7)
                    ),
                }
                messages = heard(call[door])
            split = kind in {"csv", "tsv"} and separator == "|"  # the reader's own
            expected = share > 0 and not split
            assert len(messages) == expected, (separator, share, messages)
            assert not expected or f"joined by {separator.strip(' ') or ' '!r}" in messages[0]
            cells += 1
    assert cells == (4 if kind in SPACED else 7) * len(SHARES)


def test_the_way_out_is_that_of_the_format(tmp_path: Path) -> None:
    path = tmp_path / "d"
    path.write_text("text,labels\na,x;y\n")
    (message,) = heard(lambda: read(path))
    assert message == (
        f"{path}, field labels: 100.0 % of the labels (1) look like several in one, joined by ';', such as 'x;y', and "
        "each was read as one label. If ';' separates labels, say so: --separator ';' or ReadOptions(separator=';')."
    )
    assert read(path, ReadOptions(separator=";")).names == ("x", "y")
    path.write_text('{"text": "a", "labels": ["x;y"]}\n')
    (message,) = heard(lambda: read(path))
    assert message.endswith("If ';' separates labels, write lists (in Python: text.split(';')).")


def test_python_is_warned_too() -> None:
    texts, records = ["a", "b"], [{"text": "a", "labels": "x|y"}, {"text": "b", "labels": "z"}]
    assert "joined by '|', such as 'x|y'" in heard(lambda: from_lists(texts, ["x|y", "z"]))[0]
    assert "joined by '|', such as 'x|y'" in heard(lambda: from_matrix(np.eye(2), ["x|y", "z"]))[0]
    assert "joined by '|', such as 'x|y'" in heard(lambda: from_records(records))[0]
    assert "joined by ';', such as 'x;y'" in heard(lambda: from_records(records, ["x;y", "z"]))[0]
    assert "lists written as text" in heard(lambda: from_lists(texts, ["['x', 'y']", "z"]))[0]
    assert "all labels are 0 or 1" in heard(lambda: from_lists(texts, [[1, 0, 0], [0, 1, 1]]))[0]
    assert heard(lambda: from_lists(texts, np.array([[1, 0, 0], [0, 1, 1]]))) == []
    assert heard(lambda: from_lists(texts, np.eye(2), names=["x|y", "z"])) == []


def test_training_and_evaluation_warn() -> None:
    texts = ["a red apple", "the blue sky"] * 10
    (message,) = heard(lambda: lw.train(texts, ["fruit|red", "sky"] * 10))
    assert message.startswith("labels: 50.0 % of the labels (10) look like several in one, joined by '|'")
    model = lw.train(texts, [["fruit", "red"], ["sky"]] * 10)
    assert "joined by '|'" in heard(lambda: model.evaluate(texts, ["fruit|red", "sky"] * 10))[0]
