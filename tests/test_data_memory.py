"""The doors for lists and matrices, and the texts of labels."""

from __future__ import annotations

import gzip

import numpy as np
import pytest
from scipy import sparse

import labelwood as lw
from labelwood.data import from_lists, from_matrix, read_label_texts, read_names


def rows(dataset):
    y = dataset.labels
    return [
        dict(zip((dataset.names[c] for c in y.row(i)[0]), y.row(i)[1].tolist(), strict=True)) for i in range(y.rows)
    ]


def test_lists_and_generators():
    found = from_lists((t for t in ["a", "b"]), (x for x in [["y", "x"], "z"]), ids=[1, "i"])
    assert (list(found.texts), found.names, found.ids) == (["a", "b"], ("x", "y", "z"), ("1", "i"))
    assert rows(found) == [{"x": 1, "y": 1}, {"z": 1}]
    assert from_lists(["a"]).labels is None
    assert len(from_lists([])) == 0


@pytest.mark.parametrize(
    "row", [[1, 2], (1, 2), np.array([1, 2]), np.array(["1", "2"]), [np.int64(1), np.str_("2")], {1, 2}, iter([1, 2])]
)
def test_what_a_row_of_labels_may_be(row):
    assert from_lists(["t"], [row]).names == ("1", "2")


def test_relevance_and_counts():
    found = from_lists(["a", "b", "c"], [["x", "x"], ["y", "z"], []], relevance=[[1, 2], (0, 0.5), np.zeros(0)])
    assert rows(found) == [{"x": 3}, {"z": 0.5}, {}]
    assert (found.report.duplicate_labels, found.report.no_labels) == (1, 1)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: from_lists("abc"), r"texts must be a list .* but is a single str; put it in a list: \[text\]"),
        (lambda: from_lists(None), "texts must be a list .* but is None"),
        (lambda: from_lists(["a", 5]), "row 1: a text must be a str, but is int"),
        (lambda: from_lists(["a", "\ud800"]), "row 1: .*lone surrogate at character 0"),
        (lambda: from_lists(["a"], "x"), "labels must be a list"),
        (lambda: from_lists(["a", "b"], [["x"]]), "there are 2 documents but 1 row of labels"),
        (lambda: from_lists(["a"], [["x"], ["y"]]), "there are 1 document but 2 rows of labels"),
        (lambda: from_lists(["a", "b"], [["x"], None]), "row 1: the labels are None"),
        (lambda: from_lists(["a", "b"], [["x"], [1.5]]), "row 1, field labels: .* but is float"),
        (lambda: from_lists(["a"], [["x" * 5000]]), "row 0, field labels: a label has 5000 bytes"),
        (lambda: from_lists(["a"], [[10**5000]]), "row 0, field labels: .*too many digits"),
        (lambda: from_lists(["a"], [{"x": 1}]), "row 0, field labels: .* but are an object"),
        (lambda: from_lists(["a"], [["x"]], ids=["1", "2"]), "1 document but 2 rows of ids"),
        (lambda: from_lists(["a"], [["x"]], ids=[None]), "row 0, field ids: an id must be"),
        (
            lambda: from_lists(["a"], [["x"]], relevance=[[1, 2]]),
            "row 0, field relevance: 1 label must have 1 relevance, but the value is 2 numbers",
        ),
        (lambda: from_lists(["a"], [["x"]], relevance=[[float("nan")]]), "row 0, field relevance: .* but is nan"),
        (lambda: from_lists(["a"], [["x"]], relevance=[[10**400]]), "row 0, field relevance"),
        (lambda: from_lists(["a"], [["x"]], relevance=[]), "0 rows of relevance"),
        (lambda: from_lists(["a"], [["x", "x"]], relevance=[[1e15, 1e15]]), "row 0: labels is malformed"),
        (lambda: from_matrix(np.eye(2), np.eye(3)), "there are 2 documents but 3 rows of Y"),
        (lambda: from_matrix(np.eye(2), np.eye(2), names=["a"]), "Y has 2 columns but there are 1 names"),
        (lambda: from_matrix(np.eye(2), np.eye(2), names=["a", "a"]), "two columns of Y are named 'a'"),
        (lambda: from_matrix(np.eye(2), -np.eye(2)), "row 0: Y holds -1.0 in column 0"),
        (lambda: from_matrix(np.eye(2), [["a"], ["b"]], names=["a", "b"]), "names are for the columns"),
        (lambda: from_matrix(np.eye(2), np.eye(2), relevance=[[1], [1]]), "relevance is for lists"),
        (lambda: from_lists(["a", "b"], np.eye(3)), "there are 2 documents but 3 rows of Y"),
        (lambda: from_lists(["a"], [["x"]], names=["x"]), "names are for the columns"),
        (
            lambda: from_matrix((np.eye(2), sparse.eye(2, format="csr"))),
            r"second part is sparse; give \(sparse, dense\)",
        ),
        (lambda: from_matrix((sparse.eye(2), sparse.eye(2))), r"give \(sparse, dense\)"),
        (lambda: from_matrix(np.eye(2), [["a"]]), "there are 2 documents but 1 row of labels"),
    ],
)
def test_what_is_refused_with_its_row(call, message):
    with pytest.raises(lw.DataError, match=message):
        call()


@pytest.mark.parametrize("kind", [np.asarray, sparse.csr_matrix, sparse.coo_array, sparse.csc_matrix])
def test_a_label_matrix_is_put_into_the_order_of_its_names(kind):
    y = np.array([[1, 0, 0, 0.5], [0, 0, 2, 0], [0, 0, 0, 0]], np.float32)
    found = from_matrix(np.ones((3, 2)), kind(y), names=("d", "c", "b", "a"), ids=range(3))
    assert found.names == ("a", "b", "c", "d")  # c without documents is kept
    assert rows(found) == [{"a": 0.5, "d": 1}, {"b": 2}, {}]
    assert (found.features.dense_cols, found.ids, found.report.no_labels) == (2, ("0", "1", "2"), 1)


def test_texts_take_a_label_matrix_too():
    found = from_lists(["t", "u"], sparse.csr_matrix([[1, 0], [1, 2]]), names=["b", "a"])
    assert (list(found.texts), found.names, rows(found)) == (["t", "u"], ("a", "b"), [{"b": 1}, {"a": 2, "b": 1}])
    assert from_lists(["t", "u"], np.eye(2)).names == ("0", "1")


def test_a_label_matrix_without_names_is_numbered_and_loses_its_zeros():
    y = sparse.csr_matrix(np.ones((1, 11)))
    y.data[3] = 0
    found = from_matrix(sparse.csr_matrix(np.ones((1, 2))), y)
    assert found.names == (*"0123456789", "10")
    assert rows(found) == [{name: 1 for name in found.names if name != "3"}]


def test_features_with_lists_of_labels():
    found = from_matrix((sparse.csr_matrix(np.eye(2)), np.ones((2, 3))), [["b"], ["a", "b"]])
    assert (found.features.sparse_cols, found.features.dense_cols) == (2, 3)
    assert rows(found) == [{"b": 1}, {"a": 1, "b": 1}]
    assert from_matrix(np.eye(2)).labels is None


def test_names(tmp_path):
    path = tmp_path / "names"
    path.write_bytes("\ufeffzwei é\r\na b\n".encode())
    assert read_names(path) == ("zwei é", "a b")
    path.write_bytes(b"a\n\xff\n")
    with pytest.raises(lw.DataError, match="line 2, column 1: byte 0xff"):
        read_names(path)


LABEL_FILES = [
    '{"1": "one", "2": "zwei é"}',
    '{"1": {"label": "one", "alt_labels": ["uno"]},\n "2": {"title": "zwei é"}}\n',
    '{"id": 1, "label": "one"}\n\n{"id": "2", "label": "zwei é"}\n',
    '{"uid": "1", "title": "one"}\n{"uid": "2", "title": "zwei é"}',
    "1\tone\n2\tzwei é\n",
    "id\ttext\n1\tone\n2\tzwei é\n",
    '\nid,label\n1,one\n2,"zwei é"\n\n',
    "<1>\tone\n<2>\tzwei é\n",
    "\ufeff1,one\r\n2,zwei é\r\n1,one\r\n",
]


@pytest.mark.parametrize("content", LABEL_FILES)
def test_label_texts(tmp_path, content):
    path = tmp_path / "labels"
    path.write_text(content, encoding="utf-8", newline="")
    assert read_label_texts(path) == {"1": "one", "2": "zwei é"}
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert read_label_texts(path) == {"1": "one", "2": "zwei é"}


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        (b"", "", "the file is empty"),
        (b"\n", "", "only blank lines"),
        (b"{}", "", "not a single label"),
        (b'{"a": 1}', "field 'a'", "must be a string, but is a whole number"),
        (b'{"a": {"x": "y"}}', "field 'a'", "expected the label's text as 'label'"),
        (b'{"a": "\\ud800"}', "field 'a'", "lone surrogate"),
        (b'{"a": "b",\n "c" "d"}', "line 2, column 6", "not valid JSON"),
        (b'{"a": "b", "a": "c"}', "", "the key 'a' stands twice"),
        (b'{"id": 1, "label": "x"}\n{"id": 2}\n', "line 2", "expected an object with 'id' or"),
        (b'{"id": 1, "label": "x"}\n{"id": 1, "label": "y"}\n', "line 2", "'1' stands twice"),
        (b"1\tone\n2\n", "line 2", "expected two columns, a label and its text, but found 1"),
        (b'1,one\n"2,two\n', "line 2", "not valid CSV"),
        (b"1\tone\n1\ttwo\n", "line 2", "the label '1' stands twice"),
        (b"1\tone\n\ttwo\n", "line 2", "a label is empty"),
        (b"1\tone\n2\t\xff\n", "line 2", "byte 0xff"),
    ],
)
def test_bad_label_texts(tmp_path, content, place, message):
    path = tmp_path / "labels"
    path.write_bytes(content)
    with pytest.raises(lw.DataError) as caught:
        read_label_texts(path)
    assert str(caught.value).startswith(f"{path}, {place}" if place else f"{path}: ")
    assert message in str(caught.value)


def test_numbered_labels_keep_the_order_of_the_numbers() -> None:
    """Column 10 of Y is label id 10, though "10" stands before "2" in a dictionary."""
    y = np.eye(12)
    data = from_matrix(np.ones((12, 1)), y)
    assert data.names == tuple(str(i) for i in range(12))
    assert data.labels is not None
    assert data.labels.to_scipy().toarray().tolist() == y.tolist()


@pytest.mark.parametrize(
    ("given", "order"),
    [
        (["10", "9", "0"], ("0", "9", "10")),
        (["10", "9", "b"], ("10", "9", "b")),
        (["10", "09"], ("09", "10")),
        (["é", "z", "A"], ("A", "z", "é")),
    ],
)
def test_order_of_label_names(given: list[str], order: tuple[str, ...]) -> None:
    assert from_lists(["x"] * len(given), [[name] for name in given]).names == order
