"""Every format by a small file whose Dataset is known in full."""

from __future__ import annotations

import json

import numpy as np
import pytest
from scipy import sparse

import labelwood as lw
from labelwood.data import ReadOptions, read, sniff, stream


def facts(dataset):
    """(texts, label names of each row, ids): all there is to a text dataset."""
    texts = None if dataset.texts is None else list(dataset.texts)
    y = dataset.labels
    labels = None if y is None else [[dataset.names[c] for c in y.row(i)[0]] for i in range(y.rows)]
    return texts, labels, dataset.ids


def put(path, content):
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


# One document "Zoë eats\tpie"-like corpus written in every text format: (format, content, options).
TEXT_FILES = {
    "jsonl": ('{"id": 1, "text": "red apple", "labels": ["b", "a"]}\n\n{"id": "x", "text": "é", "labels": [7]}\n', {}),
    "csv": ("id,text,labels\n1,red apple,b|a\nx,é,7\n", {}),
    "csv ;": ("id;text;labels\n1;red apple;b|a\nx;é;7\n", {"format": "csv"}),
    "csv json": ('id,text,labels\n1,red apple,"[""b"", ""a""]"\nx,é,[7]\n', {"format": "csv"}),
    "tsv": ("labels\ttext\tid\nb;a\tred apple\t1\n7;\té\tx\n", {"separator": ";"}),
}


@pytest.mark.parametrize("name", TEXT_FILES)
def test_the_same_documents_in_every_table_format(tmp_path, name):
    content, options = TEXT_FILES[name]
    path = put(tmp_path / "data", content)
    assert sniff(path) == name.split()[0]
    expected = (["red apple", "é"], [["a", "b"], ["7"]], ("1", "x"))
    assert facts(read(path, ReadOptions(**options))) == expected
    assert facts(read(path, ReadOptions(**{**options, "format": name.split()[0]}))) == expected


def test_names_are_numbered_in_sorted_order(tmp_path):
    path = put(tmp_path / "d", '{"text": "t", "labels": ["é", "z", "10", "2"]}\n')
    found = read(path)
    assert found.names == ("10", "2", "z", "é")
    assert found.labels.row(0)[0].tolist() == [0, 1, 2, 3]


def test_repository_json_lines_through_field_options(tmp_path):
    line = {"uid": "B07", "title": "Lamp", "content": "A lamp.", "target_ind": [3, 1], "target_rel": [1.0, 0.5]}
    path = put(tmp_path / "trn.json", json.dumps(line) + "\n")
    found = read(path, ReadOptions(labels="target_ind", relevance="target_rel"))
    assert facts(found) == (["Lamp\nA lamp."], [["1", "3"]], ("B07",))
    assert found.labels.row(0)[1].tolist() == [0.5, 1.0]
    chosen = read(path, ReadOptions(text=("content", "title"), labels="target_ind", id="title"))
    assert facts(chosen) == (["A lamp.\nLamp"], [["1", "3"]], ("Lamp",))


def test_title_and_text_are_joined(tmp_path):
    path = put(tmp_path / "d", '{"title": "T", "text": "x", "labels": []}\n')
    assert list(read(path).texts) == ["T\nx"]
    assert list(read(path, ReadOptions(text="title")).texts) == ["T"]


@pytest.mark.parametrize(
    ("value", "labels"), [('"one label"', ["one label"]), ("5", ["5"]), ("[]", []), ('["a", "a"]', ["a"])]
)
def test_what_a_labels_field_may_hold(tmp_path, value, labels):
    found = read(put(tmp_path / "d", f'{{"text": "t", "labels": {value}}}\n'))
    assert facts(found)[1] == [labels]
    assert found.report.no_labels == (not labels)
    assert found.report.duplicate_labels == (value == '["a", "a"]')


def test_a_label_of_relevance_zero_is_left_out_and_repeats_are_summed(tmp_path):
    path = put(tmp_path / "d", '{"text": "t", "labels": ["a", "b", "a"], "r": [1, 0, 0.5]}\n')
    found = read(path, ReadOptions(relevance="r"))
    assert found.names == ("a",)
    assert found.labels.data.tolist() == [1.5]
    table = put(tmp_path / "c", "text,labels,r\nt,a|b|a,1|0|0.5\n")
    assert read(table, ReadOptions(relevance="r")).labels.data.tolist() == [1.5]


def test_a_field_may_be_text_and_id(tmp_path):
    path = put(tmp_path / "c", "name,labels\né,a\n")
    assert facts(read(path, ReadOptions(text="name", id="name"))) == (["é"], [["a"]], ("é",))


def test_csv_fields_with_quotes_line_feeds_and_more_than_128_kb(tmp_path):
    long = "w " * 100_000
    path = put(tmp_path / "d.csv", f'text,labels\r\n"a ""b"",\r\nc",x\r\n{long},y\r\n')
    assert facts(read(path))[:2] == (['a "b",\r\nc', long], [["x"], ["y"]])


def test_null_text_is_empty(tmp_path):
    path = put(tmp_path / "d", '{"title": "a", "content": null, "labels": ["x"]}\n')
    assert list(read(path).texts) == ["a"]


@pytest.mark.parametrize("labels", ["list", "large", "dictionary", "ints"])
def test_parquet(tmp_path, labels):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    kinds = {
        "list": (pa.array([["b", "a"], ["a"]]), [["a", "b"], ["a"]]),
        "large": (pa.array([["b", "a"], []], pa.large_list(pa.large_string())), [["a", "b"], []]),
        "dictionary": (pa.array(["b", "a"]).dictionary_encode(), [["b"], ["a"]]),
        "ints": (pa.array([[2, 1], [1]]), [["1", "2"], ["1"]]),
    }
    column, expected = kinds[labels]
    table = pa.table({"text": ["é", None], "labels": column, "id": [1, 2], "other": [1.0, 2.0]})
    pq.write_table(table, tmp_path / "d")
    assert sniff(tmp_path / "d") == "parquet"
    assert facts(read(tmp_path / "d")) == (["é", ""], expected, ("1", "2"))
    assert [len(part) for part in stream(tmp_path / "d", block=1)] == [1, 1]


def test_bad_bytes_in_parquet_have_their_row(tmp_path):
    pa, pq = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    text = pa.array([b"a", b"b\xff"], pa.binary()).view(pa.string())
    pq.write_table(pa.table({"text": text, "labels": [["x"], ["y"]]}), tmp_path / "d")
    with pytest.raises(lw.DataError, match="row 1, field text: byte 0xff"):
        read(tmp_path / "d")
    assert list(read(tmp_path / "d", ReadOptions(on_bad="replace")).texts) == ["a", "b\ufffd"]
    found = read(tmp_path / "d", ReadOptions(on_bad="skip"))
    assert (found.names, found.report.skipped) == (("x",), 1)
    pq.write_table(pa.table({"text": ["a"], "labels": text[1:]}), tmp_path / "d")
    with pytest.raises(lw.DataError, match="can't decode byte 0xff"):
        read(tmp_path / "d")


def test_fasttext_labels_may_stand_anywhere(tmp_path):
    lines = "__label__b __label__a red apple\n\nred __label__c apple x__label__d\r\nno label\n__label__é\n"
    path = put(tmp_path / "d", lines)
    assert sniff(path) == "fasttext"
    texts = ["red apple", "red apple x__label__d", "no label", ""]
    assert facts(read(path)) == (texts, [["a", "b"], ["c"], [], ["é"]], None)
    assert read(path).report.no_labels == 1


def test_annif(tmp_path):
    path = put(tmp_path / "d", "A text, with words\t<http://x/1> <http://x/2>\nno subject\t\n")
    assert sniff(path) == "annif"
    assert facts(read(path))[:2] == (["A text, with words", "no subject"], [["http://x/1", "http://x/2"], []])
    plain = put(tmp_path / "e", "only a text\n")
    (block,) = stream(plain, ReadOptions(format="annif"))
    assert facts(block) == (["only a text"], None, None)


XMC = "4 5 12\n11,2 4:1 0:0.5\n 3:2\n\n1,1 2:1 0:1e-1 2:.5\n"


def test_xmc_joint_format(tmp_path):
    path = put(tmp_path / "d", XMC)
    assert sniff(path) == "xmc"
    found = read(path)
    assert facts(found) == (None, [["2", "11"], [], [], ["1"]], None)
    dense = [[0.5, 0, 0, 0, 1], [0, 0, 0, 2, 0], [0] * 5, [0.1, 0, 1.5, 0, 0]]  # sorted, repeats summed
    assert found.features.sparse.to_scipy().toarray() == pytest.approx(np.array(dense))
    assert (found.report.no_labels, found.report.duplicate_labels) == (2, 1)
    assert [part.features.sparse.shape for part in stream(path, block=3)] == [(3, 5), (1, 5)]


def test_xmc_line_without_labels_and_without_the_space(tmp_path):
    assert facts(read(put(tmp_path / "d", "1 5 5\n3:2\n")))[1] == [[]]


@pytest.mark.parametrize("end", ["", "trn_X_Xf.txt", "auto"])
def test_xmc_pair(tmp_path, end):
    put(tmp_path / "trn_X_Xf.txt", "3 4\n3:0.5 0:1\n\n1:2\n")
    put(tmp_path / "trn_X_Y.txt", "3 9\n8:1.0 2:0.5\n1:1.0\n4:0\n")
    path = tmp_path / ("trn_X_Xf.txt" if end else "")
    assert sniff(path) == "xmc-pair"
    found = read(path, ReadOptions(format="auto" if end == "auto" else "xmc-pair"))
    assert facts(found)[1] == [["2", "8"], ["1"], []]
    assert found.labels.row(0)[1].tolist() == [0.5, 1.0]
    assert found.features.sparse.to_scipy().toarray().tolist() == [[1, 0, 0, 0.5], [0] * 4, [0, 2, 0, 0]]


def test_xmc_pair_without_labels_is_for_prediction_only(tmp_path):
    put(tmp_path / "tst_X_Xf.txt", "1 4\n3:0.5\n")
    options = ReadOptions(split="test")
    (block,) = stream(tmp_path, options)
    assert (block.labels, block.features.rows) == (None, 1)
    with pytest.raises(lw.DataError, match=r"no tst_X_Y\.txt"):
        read(tmp_path, options)
    with pytest.raises(lw.DataError, match=r"expected tst_X_Y\.txt beside it"):
        read(tmp_path / "tst_X_Xf.txt")


def test_attentionxml(tmp_path):
    put(tmp_path / "train_raw_texts.txt", "Title /SEP/ the body\n\nlast")
    put(tmp_path / "train_texts.txt", "never\n")
    put(tmp_path / "train_labels.txt", "b a\n\nc\n")
    put(tmp_path / "test_texts.txt", "t/SEP/u\n")
    assert sniff(tmp_path) == "attentionxml"
    assert facts(read(tmp_path))[:2] == (["Title\nthe body", "", "last"], [["a", "b"], [], ["c"]])
    (block,) = stream(tmp_path, ReadOptions(split="test"))
    assert facts(block) == (["t\nu"], None, None)


def pecos(folder, y, *, names="zero\none\ntwo\n", texts="first\nsecond\n"):
    put(folder / "X.trn.txt", texts)
    sparse.save_npz(folder / "Y.trn.npz", y)
    if names is not None:
        put(folder / "output-items.txt", names)
    return folder


Y = sparse.csr_matrix(np.array([[1, 0, 0.5], [0, 0, 0]], np.float32))


def test_pecos_keeps_every_named_label(tmp_path):
    found = read(pecos(tmp_path, Y))
    assert sniff(tmp_path) == "pecos"
    assert facts(found)[:2] == (["first", "second"], [["two", "zero"], []])
    assert found.names == ("one", "two", "zero")
    assert found.labels.row(0)[1].tolist() == [0.5, 1.0]


def test_pecos_without_names_and_with_features(tmp_path):
    pecos(tmp_path, Y, names=None)
    (tmp_path / "X.trn.txt").unlink()
    sparse.save_npz(tmp_path / "X.trn.npz", sparse.csr_matrix(np.array([[0, 3.0], [1, 0]])))
    found = read(tmp_path)
    assert found.features.sparse.to_scipy().toarray().tolist() == [[0, 3], [1, 0]]
    assert facts(found)[:2] == (None, [["0", "2"], []])


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"names": "a\nb\n"}, "2 names, but the labels have 3 columns"),
        ({"names": "a\nb\na\n"}, "line 3: the name 'a' stood at line 1"),
        ({"names": "a\n\nc\n"}, "line 2: a label is empty"),
        ({"texts": "one\n"}, "there are 1 rows, but .* has 2"),
        ({"texts": "one\ntwo\nthree\n"}, "more rows than the 2"),
        ({"y": sparse.coo_matrix(Y)}, "expected a CSR matrix"),
        ({"y": -Y}, "row 0, field Y: a relevance must be"),
    ],
)
def test_pecos_that_does_not_fit(tmp_path, changes, message):
    with pytest.raises(lw.DataError, match=message):
        read(pecos(tmp_path, **{"y": Y, **changes}))


def test_pecos_never_unpickles_and_survives_malformed_matrices(tmp_path):
    pecos(tmp_path, Y)
    path = tmp_path / "Y.trn.npz"
    whole = path.read_bytes()
    parts = {"format": b"csr", "shape": [2, 3], "data": [1.0], "indices": [7], "indptr": [0, 1, 1]}
    np.savez(path, **parts)
    with pytest.raises(lw.DataError, match=r"Y\.trn\.npz"):
        read(tmp_path)
    np.savez(path, **(parts | {"data": np.array([object()])}))
    with pytest.raises(lw.DataError, match="not a sparse matrix"):
        read(tmp_path)
    for cut in range(0, len(whole), 7):
        path.write_bytes(whole[:cut])
        with pytest.raises(lw.DataError):
            read(tmp_path)


def test_stream_gives_blocks_with_their_own_labels(tmp_path):
    lines = [json.dumps({"text": str(i), "labels": [f"l{i}"]}) for i in range(5)]
    path = put(tmp_path / "d", "\n".join(lines))
    blocks = list(stream(path, block=2))
    assert [list(b.texts) for b in blocks] == [["0", "1"], ["2", "3"], ["4"]]
    assert [b.names for b in blocks] == [("l0", "l1"), ("l2", "l3"), ("l4",)]
    (block,) = stream(put(tmp_path / "e", '{"text": "a"}\n{"text": "b", "labels": ["x"]}\n'))
    assert facts(block)[1] == [[], ["x"]]
    (block,) = stream(put(tmp_path / "f", '{"text": "a"}\n'))
    assert block.labels is None


def test_labels_none_reads_no_labels(tmp_path):
    for content in ('{"text": "a"}\n', "text,labels\na,x\n", "__label__x a\n"):
        found = read(put(tmp_path / "d", content), ReadOptions(labels=None))
        assert facts(found) == (["a"], None, None)


def test_progress_reaches_the_end(tmp_path):
    path = put(tmp_path / "d", '{"text": "a", "labels": []}\n' * 3000)
    seen = []
    read(path, progress=lambda done, total: seen.append((done, total)))
    assert len(seen) > 1
    assert seen[-1] == (path.stat().st_size, path.stat().st_size)


def test_take_keeps_texts_labels_and_ids_together(tmp_path):
    path = put(tmp_path / "d", TEXT_FILES["jsonl"][0])
    assert facts(read(path).take(np.array([1, 0]))) == (["é", "red apple"], [["7"], ["a", "b"]], ("x", "1"))
