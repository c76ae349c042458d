"""`doctor`: each planted fault is found, a clean set draws no finding, and what is written is strict and the same."""

from __future__ import annotations

import dataclasses
import json
import os
import re
import subprocess
import sys
from collections.abc import Iterator
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import labelwood as lw
import planted
from labelwood import cli
from labelwood.planning.rough import Extent, rough
from labelwood.quickstart import quickstart_path
from labelwood.reports import html
from labelwood.reports.checkup_page import duration, memory, percent
from labelwood.reports.doctor import Checkup, Histogram

BAD = b'{"text": "no end\n{"text": "caf\xe9", "labels": ["bread"]}\n'
EXPECTED = {  # (severity, name, set): count
    ("error", "bad-lines", "train"): 2,
    ("error", "labels-list", "train"): 1,
    ("warning", "empty-texts", "train"): 2,
    ("warning", "duplicate-texts", "train"): 2,
    ("warning", "same-text-other-labels", "train"): 1,
    ("warning", "replaced-characters", "train"): 1,
    ("warning", "encoded-twice", "train"): 1,
    ("warning", "control-characters", "train"): 1,
    ("warning", "label-variants", "both"): 1,
    ("warning", "repeated-ids", "train"): 1,
    ("warning", "test-texts-in-train", "both"): 1,
    ("warning", "labels-only-in-test", "test"): 1,
    ("note", "short-texts", "train"): 1,
    ("note", "near-duplicates", "train"): 1,
    ("note", "markup", "train"): 1,
    ("note", "labels-seen-once", "train"): 3,
    ("note", "documents-without-labels", "train"): 1,
    ("note", "repeated-labels", "train"): 1,
    ("note", "missing-field", "train"): 63,  # one without a text, the others without an abstract
    ("note", "missing-field", "test"): 43,  # none has an abstract, which the training set has
    ("note", "several-languages", "train"): 4,
    ("note", "cut-texts", "train"): 4,
    ("note", "test-texts-nearly-in-train", "both"): 1,
}


@pytest.fixture(scope="module", autouse=True)
def _no_encoder() -> Iterator[None]:
    """Pieces are estimated, wherever the tests run; test_tokens.py has the tokenizer's own."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr("labelwood.reports.pieces._measured", lambda texts: None)
        yield


@pytest.fixture(scope="module")
def faulty(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    folder = tmp_path_factory.mktemp("doctor")
    train, test = planted.planted()
    return planted.write(folder / "train.jsonl", train, BAD), planted.write(folder / "test.jsonl", test)


@pytest.fixture(scope="module")
def checkup(faulty: tuple[Path, Path]) -> Checkup:
    return lw.doctor(*faulty)


def found_in(checkup: Checkup) -> dict[tuple[str, str, str], int]:
    counts: dict[tuple[str, str, str], int] = {}
    for found in checkup.findings:
        key = (found.severity, found.name, found.set)
        counts[key] = counts.get(key, 0) + found.count
    return counts


def test_every_planted_fault_is_found(checkup):
    found = found_in(checkup)
    assert found == EXPECTED
    for finding in checkup.findings:
        assert finding.what.endswith(".")
        assert finding.way_out.endswith(".")


def test_a_clean_set_draws_no_finding(tmp_path):
    train, test = (planted.write(tmp_path / f"{seed}.jsonl", planted.clean(seed)) for seed in (1, 2))
    assert lw.doctor(train, test).findings == ()


def test_the_worst_comes_first(checkup):
    severities = [found.severity for found in checkup.findings]
    assert severities == sorted(severities, key=["error", "warning", "note"].index)


def one(checkup: Checkup, name: str) -> lw.Finding:
    return next(found for found in checkup.findings if found.name == name)


def test_examples_name_the_place(checkup):
    assert one(checkup, "duplicate-texts").examples[0].startswith("p43: ")
    assert " ⟷ d1-0: " in one(checkup, "duplicate-texts").examples[0]
    assert "naÃ¯ve" in one(checkup, "encoded-twice").examples[0]
    assert one(checkup, "label-variants").examples == ("'Stars ' / 'stars'",)
    assert one(checkup, "labels-only-in-test").examples == ("only here",)
    assert one(checkup, "test-texts-in-train").examples[0].startswith("p40: ")
    assert "line 64" in one(checkup, "bad-lines").examples[0]


def test_what_was_read_is_told(checkup, faulty):
    train = checkup.train
    assert (train.name, train.format, train.documents, train.skipped) == (str(faulty[0]), "jsonl", 63, 2)
    assert [tuple(field) for field in train.fields] == [("text", 1, 62), ("abstract", 1, 1)]
    assert checkup.test is not None
    assert checkup.test.documents == 43
    assert train.labels_per_document is not None
    assert sum(bar.count for bar in train.labels_per_document.bars) == 63


@pytest.mark.parametrize(
    ("labels", "name"),
    [([["a;b"], ["b;c"], ["a;c"]], "labels-joined"), ([["0", "1"], ["1", "0"], ["0", "1"]], "labels-indicators"),
     ([["['a']"], ["['b']"], ["a"]], "labels-list")],
)  # fmt: skip
def test_names_that_are_none(labels, name):
    texts = ["one two three", "four five six", "seven eight nine"]
    assert one(lw.doctor(texts, labels=labels), name).severity == "error"


def test_the_wrong_language_for_the_default_encoder():
    texts = [f"Das {word} ist in der Stadt und nicht auf dem Land zu sehen" for word in ("Haus", "Rad", "Boot", "Dach")]
    found = one(lw.doctor(texts, labels=[["x"], ["x"], ["y"], ["y"]]), "not-english")
    assert found.count == 4
    assert "German" in found.what


def test_labels_that_nearly_all_have():
    texts = [planted.clean(3)[i]["text"] for i in range(40)]
    found = one(lw.doctor(texts, labels=[["all", f"l{i % 4}"] for i in range(40)]), "labels-nearly-everywhere")
    assert found.examples == ("all",)


def test_features_without_texts():
    found = lw.doctor(lw.data.from_matrix(np.eye(4, dtype=np.float32), [["a"], ["a"], ["b"], ["b"]]))
    assert found.findings == ()
    assert found.pieces is None
    assert [method.method for method in found.methods] == ["xr-linear", "parabel", "dismec"]
    assert "There are no texts." in found.html()


def test_texts_without_labels_and_labels_without_documents():
    found = lw.doctor(["one two three", "four five six"])
    assert [finding.name for finding in found.findings] == ["no-labels"]
    assert found.methods == ()
    assert lw.doctor([], labels=[]).train.documents == 0


def test_texts_without_a_word():
    found = lw.doctor(["!", "?"], labels=[["a"], ["a"]])
    assert [finding.name for finding in found.findings] == ["empty-texts"]
    found.html()


# -- what is written


def test_the_json_is_strict_and_whole(checkup):
    text = json.dumps(checkup.to_json(), allow_nan=False)
    plain = json.loads(text)
    assert list(plain) == ["schema", "train", "test", "findings", "pieces", "cuts", "methods"]
    assert {found["name"] for found in plain["findings"]} == {name for _, name, _ in EXPECTED}
    assert plain["train"]["fields"][0] == {"name": "text", "weight": 1, "records": 62}


def test_the_schema_page_names_every_key(checkup):
    page = (Path(__file__).parents[1] / "docs/reference/checkup.md").read_text(encoding="utf-8")

    def keys(value: Any) -> set[str]:
        if isinstance(value, dict):
            own = set() if "en" in value else set(value)
            return own.union(*map(keys, value.values()))
        return set().union(*map(keys, value)) if isinstance(value, list) else set()

    for key in keys(checkup.to_json()):
        assert f"`{key}`" in page, key
    for name in {name for _, name, _ in EXPECTED} | {"no-labels", "labels-joined", "labels-indicators", "not-english",
                                                     "labels-nearly-everywhere", "replaced-bytes"}:  # fmt: skip
        assert f"`{name}`" in page, name


def test_the_same_data_give_the_same_bytes(faulty, tmp_path):
    """Also in another process, whose hashes of strings differ, and with another number of threads."""
    outputs = []
    for seed, threads in (("1", "1"), ("2", "3")):
        out = [tmp_path / f"{seed}.json", tmp_path / f"{seed}.html"]
        args = ["doctor", *map(str, faulty), "--json", str(out[0]), "--html", str(out[1]), "--threads", threads]
        done = subprocess.run(
            [sys.executable, "-m", "labelwood", *args], env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True, check=True,
        )  # fmt: skip
        outputs.append((done.stdout, *(path.read_bytes() for path in out)))
    assert outputs[0] == outputs[1]


class Outline(HTMLParser):
    """Tags that are open, headings in order, and what a reader by ear needs."""

    VOID = {"meta", "rect", "br"}

    def __init__(self) -> None:
        super().__init__()
        self.open: list[str] = []
        self.headings: list[int] = []
        self.images: list[dict[str, str | None]] = []
        self.addresses: list[str] = []
        self.bare_headers = self.scripts = 0

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.look(tag, dict(attrs))

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.look(tag, dict(attrs))
        if tag not in self.VOID:
            self.open.append(tag)

    def look(self, tag: str, attrs: dict[str, str | None]) -> None:
        if re.fullmatch("h[1-6]", tag):
            self.headings.append(int(tag[1]))
        if tag in {"svg", "img"}:
            self.images.append(attrs)
        self.bare_headers += tag == "th" and "scope" not in attrs
        self.scripts += tag in {"script", "link", "iframe", "object"}
        self.addresses += [str(attrs[name]) for name in ("src", "href", "srcset", "action") if name in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag


def test_the_page_stands_alone_and_reads_by_ear(checkup):
    page = checkup.html()
    outline = Outline()
    outline.feed(page)
    assert outline.open == []
    assert outline.addresses == []
    assert outline.scripts == 0
    assert not re.search(r"url\(|@import|https?:|javascript:|<[^>]*\son\w+=", page)
    assert outline.headings[0] == 1
    assert outline.headings.count(1) == 1
    assert all(b - a <= 1 for a, b in zip(outline.headings, outline.headings[1:], strict=False))
    assert outline.images
    assert all(image.get("role") == "img" and image.get("aria-label") for image in outline.images)
    assert outline.bare_headers == 0
    assert '<html lang="en">' in page
    assert "prefers-color-scheme:dark" in page
    assert "@media print" in page
    assert "default-src 'none'" in page


def test_words_of_the_data_are_escaped():
    text = '<script>alert("1")</script> & \x00\x1b[31m \u202e " \''
    labels = [["<img src=x onerror=y>", "A"], ["a", "</title>"]]
    page = lw.doctor([text, f"{text} {text}"], labels=labels).html()
    assert "<script" not in page
    assert "<img" not in page
    assert "\x00" not in page
    assert "\x1b" not in page
    assert "&lt;img src=x onerror=y&gt;" in page
    assert html.text("\x07") == "\ufffd"


@pytest.mark.parametrize("target", ["--json", "--html"])
def test_a_dash_prints_that_alone(faulty, capsys, target):
    assert cli.main(["doctor", str(faulty[0]), target, "-"]) == 0
    out = capsys.readouterr().out
    if target == "--json":
        assert json.loads(out)["test"] is None
    else:
        assert out.startswith("<!DOCTYPE html>")


def test_the_terminal_shows_all(faulty, checkup, capsys):
    assert cli.main(["doctor", *map(str, faulty)]) == 0
    out = capsys.readouterr().out
    for finding in checkup.findings:
        assert f"{finding.severity} in {finding.set}: " in out
        assert f"  → {finding.way_out}" in out
    for part in ("Labels per document", "Documents per label", "Words per document", "Languages", "xr-linear"):
        assert part in out
    assert "\x00" not in out


def test_two_dashes_are_wrong_usage(faulty, capsys):
    assert cli.main(["doctor", str(faulty[0]), "--json", "-", "--html", "-"]) == 2
    assert "only one" in capsys.readouterr().err


def test_a_file_that_cannot_be_written_is_told_before_the_work(faulty, tmp_path, capsys):
    assert cli.main(["doctor", str(faulty[0]), "--html", str(tmp_path / "no" / "page.html")]) == 1
    assert capsys.readouterr().out == ""


# -- figures


def test_histograms_double_their_bars():
    found = Histogram.of(np.array([0, 1, 1, 2, 3, 4, 5, 8, 9]))
    assert [(bar.low, bar.high, bar.count) for bar in found.bars] == [
        (0, 0, 1), (1, 1, 2), (2, 2, 1), (3, 4, 2), (5, 8, 2), (9, 16, 1),
    ]  # fmt: skip
    assert (found.median, found.most) == (3.0, 9)
    assert Histogram.of(np.zeros(0)).bars == ()


def test_what_an_encoder_cuts_without_its_tokenizer():
    texts = ["the of and in for that with is are this " * 20] * 2 + ["the of and in for that with is are this"]
    found = lw.doctor(texts, labels=[["a"]] * 3)
    assert found.pieces is not None
    assert (found.pieces.per_word, found.pieces.measured) == (1.45, False)
    cut = next(cut for cut in found.cuts if cut.pieces == 128)
    room = 126 / 1.45
    assert cut.documents == pytest.approx(2 / 3, abs=1e-4)
    assert cut.words == pytest.approx(2 * (200 - room) / 410, abs=1e-4)


def test_rough_figures_grow_with_the_data():
    small = Extent(1000, 100, 3000, 50.0, 5000, 100.0, 10**6)
    large = dataclasses.replace(small, documents=10_000, occurrences=30_000)
    for name in ("xr-linear", "dismec", "cascadexml"):
        assert rough(name, large, "").cpu_seconds > rough(name, small, "").cpu_seconds
    assert rough("cascadexml", small, "").memory > 2e9


def test_rough_figures_are_within_a_factor_of_four_of_what_was_measured():
    """CPU seconds on two cores: sample data, debian-deps, tib-gnd-en and eurlex57k, and their trees."""
    sets = [
        (Extent(2885, 323, 17302, 38.1, 6364, 90.0, 10**6), {"xr-linear": 0.07, "parabel": 0.22, "dismec": 0.14}),
        (Extent(42992, 17619, 219832, 43.2, 35128, 90.0, 10**7), {"xr-linear": 2.2, "parabel": 8.7, "bonsai": 24.2}),
        (Extent(41333, 22625, 113458, 98.5, 76702, 110.0, 10**8), {"xr-linear": 3.8, "parabel": 14.0, "bonsai": 28.8}),
        (Extent(45000, 4108, 228322, 233.7, 80320, 128.0, 10**8), {"xr-linear": 9.4, "parabel": 35.7, "bonsai": 62.5}),
    ]
    for extent, measured in sets:
        for name, seconds in measured.items():
            assert seconds / 4 <= rough(name, extent, "").cpu_seconds <= 4 * seconds, name


def test_figures_for_people():
    assert [duration(s) for s in (0.1, 12.0, 150.0, 9000.0, 400_000.0)] == [
        "0.1 s",
        "12 s",
        "2.5 min",
        "2.5 h",
        "4.6 days",
    ]
    assert [memory(n) for n in (460_000_000, 2_700_000_000)] == ["460 MB", "2.7 GB"]
    assert [percent(s) for s in (0.0, 0.0001, 0.123)] == ["0.0 %", "< 0.1 %", "12.3 %"]


def test_the_sample_data_is_sound_but_for_its_kind():
    found = lw.doctor(quickstart_path("train"), quickstart_path("test"))
    assert not [finding.name for finding in found.findings if finding.severity == "error"]
    assert found.train.languages["en"] > 0.98
