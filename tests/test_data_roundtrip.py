"""What is written in a format is read back as it was, for any documents (Hypothesis)."""

from __future__ import annotations

import csv
import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from labelwood.data import ReadOptions, from_lists, read, stream

text = st.text(st.characters(exclude_categories=["Cs"]), max_size=30)
label = st.text(st.characters(exclude_categories=["Cs", "Cc", "Zs", "Zl", "Zp"]), min_size=1, max_size=8).filter(
    str.strip
)
documents = st.lists(st.tuples(text, st.lists(label, max_size=4)), min_size=1, max_size=6)
many = settings(max_examples=300, deadline=None)


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    return tmp_path_factory.mktemp("data") / "file"


def check(path, kind, docs, **options):
    expected = [(words, sorted(set(labels))) for words, labels in docs]
    chosen = ReadOptions(format=kind, **options)
    for found in [[read(path, chosen)], list(stream(path, chosen, block=2))]:
        got = []
        for part in found:
            y = part.labels
            got += [(t, [part.names[c] for c in y.row(i)[0]]) for i, t in enumerate(part.texts)]
        assert [(t, sorted(names)) for t, names in got] == expected


@many
@given(docs=documents, ascii_only=st.booleans(), end=st.sampled_from(["\n", "\r\n", "\n\n"]))
def test_jsonl(place, docs, ascii_only, end):
    lines = [json.dumps({"labels": labels, "text": words}, ensure_ascii=ascii_only) for words, labels in docs]
    place.write_bytes("".join(line + end for line in lines).encode())
    check(place, "jsonl", docs)


@many
@given(docs=documents, as_json=st.booleans(), kind=st.sampled_from(["csv", "tsv"]))
def test_csv_and_tsv(place, docs, as_json, kind):
    if not as_json:
        docs = [(words, [x for x in labels if "|" not in x and not x.startswith("[")]) for words, labels in docs]
    with place.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, delimiter="," if kind == "csv" else "\t")
        writer.writerow(["text", "labels"])
        for words, labels in docs:
            writer.writerow([words, json.dumps(labels) if as_json else "|".join(labels)])
    check(place, kind, docs)


def one_line(words):
    """fastText has no escapes: a text has no line feed, no space before or after, no label in it."""
    return "\n" not in words and words == words.strip() and "__label__" not in words


@many
@given(docs=st.lists(st.tuples(text.filter(one_line), st.lists(label, min_size=1, max_size=4)), min_size=1, max_size=6))
def test_fasttext(place, docs):
    lines = [" ".join([*(f"__label__{x}" for x in labels), words]) for words, labels in docs]
    place.write_bytes("".join(line + "\n" for line in lines).encode())
    check(place, "fasttext", docs)


values = st.floats(-1e6, 1e6, width=32)
bags = st.lists(
    st.tuples(st.lists(st.integers(0, 30), max_size=4), st.lists(st.tuples(st.integers(0, 9), values), max_size=8)),
    min_size=1,
    max_size=6,
)


def dense(bags):
    x = np.zeros((len(bags), 10))
    for row, (_, features) in enumerate(bags):
        for column, value in features:
            x[row, column] += value
    return x.astype(np.float32)


def same(found, bags):
    """Repeats are summed in an order of their own: the last bit may differ."""
    np.testing.assert_allclose(found.features.sparse.to_scipy().toarray(), dense(bags), rtol=2e-7, atol=1e-9)


def label_rows(found):
    return [sorted(int(found.names[c]) for c in found.labels.row(i)[0]) for i in range(len(found))]


def pairs(entries):
    return " ".join(f"{column}:{value!r}" for column, value in entries)


@many
@given(bags=bags)
def test_xmc(place, bags):
    lines = [f"{','.join(map(str, labels))} {pairs(features)}" for labels, features in bags]
    place.write_text("\n".join([f"{len(bags)} 10 31", *lines]) + "\n")
    found = read(place)
    assert label_rows(found) == [sorted(set(labels)) for labels, _ in bags]
    same(found, bags)


@many
@given(bags=bags)
def test_xmc_pair(tmp_path_factory, bags):
    folder = tmp_path_factory.getbasetemp()
    lines = [pairs(features) for _, features in bags]
    (folder / "trn_X_Xf.txt").write_text("\n".join([f"{len(bags)} 10", *lines]) + "\n")
    lines = [pairs((x, 1.0) for x in labels) for labels, _ in bags]
    (folder / "trn_X_Y.txt").write_text("\n".join([f"{len(bags)} 31", *lines]) + "\n")
    found = read(folder / "trn_X_Xf.txt")
    assert label_rows(found) == [sorted(set(labels)) for labels, _ in bags]
    assert found.labels.data.sum() == sum(len(labels) for labels, _ in bags)
    same(found, bags)


@many
@given(docs=documents)
def test_lists(docs):
    found = from_lists([words for words, _ in docs], [labels for _, labels in docs])
    assert list(found.texts) == [words for words, _ in docs]
    got = [[found.names[c] for c in found.labels.row(i)[0]] for i in range(len(docs))]
    assert got == [sorted(set(labels)) for _, labels in docs]
    assert found.report.duplicate_labels == sum(len(labels) - len(set(labels)) for _, labels in docs)
