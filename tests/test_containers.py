"""Whatever container a caller hands over is read rightly at every argument, or refused with the way out (goal H5)."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import numpy as np
import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from scipy import sparse

import labelwood as lw
from labelwood.arrays.texts import Texts
from labelwood.data import from_documents, from_lists, from_matrix

TEXTS = ["red fish", "blue fish", "red bird"]
LISTS = [["a", "b"], ["b"], []]
Y = np.array([[1, 1], [0, 1], [0, 0]])


def objects(values):
    array = np.empty(len(values), object)
    array[:] = values
    return array


# What holds a value for each document: read as the list would be.
COLUMNS = {
    "list": list,
    "tuple": tuple,
    "generator": lambda values: (value for value in values),
    "iterator": iter,
    "map": lambda values: map(str if isinstance(values[0], str) else type(values[0]), values),
    "dict values": lambda values: dict(enumerate(values)).values(),
    "array of objects": objects,
    "Series": pd.Series,
    "Series of objects": lambda values: pd.Series(values, dtype=object),
    "Series with another index": lambda values: pd.Series(values, index=[7, 7, 0]),
    "column of a DataFrame": lambda values: pd.DataFrame({"other": range(3), "it": values})["it"],
    "Index": lambda values: pd.Index(objects(values)),
    "polars Series": pl.Series,
    "column of a polars DataFrame": lambda values: pl.DataFrame({"it": values})["it"],
    "pyarrow Array": pa.array,
    "pyarrow ChunkedArray": lambda values: pa.chunked_array([values[:1], values[1:]]),
    "column of a pyarrow Table": lambda values: pa.table({"it": values})["it"],
}

# The same for single strings only.
STRINGS = {
    "array of str": np.array,
    "array of StringDType": lambda values: np.array(values, np.dtypes.StringDType()),
    "Categorical": pd.Categorical,
    "Series of categories": lambda values: pd.Series(values, dtype="category"),
    "Series of string": lambda values: pd.Series(values, dtype="string"),
    "Series of pyarrow strings": lambda values: pd.Series(pa.array(values), dtype=pd.ArrowDtype(pa.string())),
    "array of pandas": lambda values: pd.array(values, dtype="string"),
    "polars categories": lambda values: pl.Series(values, dtype=pl.Categorical),
    "pyarrow dictionary": lambda values: pa.array(values).dictionary_encode(),
    "pyarrow large strings": lambda values: pa.array(values, pa.large_string()),
    "dict keys": lambda values: dict.fromkeys(values).keys(),
}

# What is no list of entries, whatever it holds: the argument, and what is said of it.
REFUSED = {
    "None": (None, "is None"),
    "str": ("red fish", r"is a single str; put it in a list: \["),
    "bytes": (b"red", "is a single bytes"),
    "bytearray": (bytearray(b"red"), "is a single bytearray"),
    "int": (3, "is of type int"),
    "path": (Path("red"), "is a path; read the file first"),
    "dict": ({"text": "red fish"}, "is a dict with the keys 'text'; "),
    "dict by number": ({0: ["a"], 1: ["b"]}, "is a dict with the keys 0, 1; "),
    "set": ({"red fish"}, "is a set, which has no order"),
    "frozenset": (frozenset(["red fish"]), "is a set, which has no order"),
    "0-d array": (np.array("x"), "is an array of 0 dimensions"),
    "2-d array": (np.array([["x", "y"]]), "is an array of 2 dimensions; give"),
    "masked array": (np.ma.masked_array(["x", "y"], [0, 1]), "is a masked array"),
    "array of bytes": (np.array([b"x"]), r"is an array of bytes; decode it first"),
    "LazyFrame": (pl.LazyFrame({"text": TEXTS}), r"is of type LazyFrame; collect it first: frame.collect\(\)"),
    "Dataset": (from_lists(["x"]), r"is a Dataset; give its texts \(data.texts\)"),
    "type": (list, "is of type type"),
    "items of a dict": ({"a": "b"}.items(), "is the items of a dict, whose keys would be read"),
    "groups": (pd.DataFrame({"a": [1, 2]}).groupby("a"), "is of type DataFrameGroupBy"),
    "records of numpy": (pd.DataFrame({"a": ["x"]}).to_records(), "is a structured array; .* 'index', 'a'"),
}


def rows(dataset):
    y = dataset.labels
    return [[dataset.names[column] for column in y.row(row)[0]] for row in range(y.rows)]


@pytest.mark.parametrize("kind", [*COLUMNS, *STRINGS])
def test_texts(kind):
    made = (COLUMNS | STRINGS)[kind](TEXTS)
    assert list(from_documents(made).texts) == TEXTS


@pytest.mark.parametrize("kind", COLUMNS)
def test_lists_of_labels(kind):
    found = from_documents(TEXTS, COLUMNS[kind](LISTS))
    assert (found.names, rows(found)) == (("a", "b"), LISTS)


@pytest.mark.parametrize("kind", [*COLUMNS, *STRINGS])
def test_a_label_for_each(kind):
    found = from_documents(TEXTS, (COLUMNS | STRINGS)[kind](["x", "y", "z"]))
    assert rows(found) == [["x"], ["y"], ["z"]]


@pytest.mark.parametrize("kind", COLUMNS)
def test_numbers_of_labels_are_names(kind):
    assert rows(from_documents(TEXTS, COLUMNS[kind]([10, 2, 2]))) == [["10"], ["2"], ["2"]]
    assert rows(from_documents(TEXTS, np.array([10, 2, 2]))) == [["10"], ["2"], ["2"]]


@pytest.mark.parametrize("kind", COLUMNS)
def test_relevance(kind):
    found = from_lists(TEXTS, LISTS, relevance=COLUMNS[kind]([[1.0, 2.0], [0.5], []]))
    assert found.labels.data.tolist() == [1, 2, 0.5]


@pytest.mark.parametrize("kind", COLUMNS)
def test_records(kind):
    records = [{"title": "red", "text": "fish", "labels": ["a"]}, {"title": "blue", "text": "bird", "labels": []}] * 2
    found = from_documents(COLUMNS[kind](records[:3]))
    assert list(found.texts) == ["red\nfish", "blue\nbird", "red\nfish"]
    assert rows(found) == [["a"], [], ["a"]]


@pytest.mark.parametrize("kind", [*COLUMNS, *STRINGS])
def test_ids_and_names_of_columns(kind):
    made = (COLUMNS | STRINGS)[kind]
    assert from_lists(TEXTS, ids=made(["x", "y", "z"])).ids == ("x", "y", "z")
    found = from_matrix(np.ones((2, 2)), np.eye(2, 3), names=made(["x", "y", "z"]))
    assert (found.names, rows(found)) == (("x", "y", "z"), [["x"], ["y"]])


@pytest.mark.parametrize("kind", REFUSED)
def test_what_is_no_list(kind):
    value, message = REFUSED[kind]
    calls = {
        "texts": lambda: from_documents(value),
        "labels": lambda: from_documents(TEXTS, value),
        "ids": lambda: from_lists(TEXTS, ids=value),
        "relevance": lambda: from_lists(TEXTS, LISTS, relevance=value),
        "names": lambda: from_matrix(np.ones((3, 2)), Y, names=value),
    }
    for name, call in calls.items():
        if value is None and name != "texts":  # means that there are none
            continue
        with pytest.raises(lw.DataError, match=f"{name} must be a list with one entry per .*{message}"):
            call()
    with pytest.raises(lw.DataError, match=r"X (is|must)"):
        from_matrix(value)


@pytest.mark.parametrize("value", [sparse.csr_matrix(Y), pd.DataFrame(Y), pl.DataFrame(Y), pa.table({"a": [1]})])
def test_matrices_and_tables_where_a_list_is_needed(value):
    for call in (
        lambda: from_lists(TEXTS, ids=value),
        lambda: from_lists(TEXTS, LISTS, relevance=value),
        lambda: from_matrix(np.ones((3, 2)), Y, names=value),
    ):
        with pytest.raises(lw.DataError, match=r"must be a list with one entry per .* is a (matrix|table)"):
            call()


MISSING = {
    "None": [None, "b", "c"],
    "Series": pd.Series([None, "b", "c"]),
    "nullable Series": pd.Series([pd.NA, "b", "c"], dtype="string"),
    "Series of objects": pd.Series([np.nan, "b", "c"], dtype=object),
    "Index": pd.Index([None, "b", "c"]),
    "polars Series": pl.Series([None, "b", "c"]),
    "pyarrow Array": pa.array([None, "b", "c"]),
}


@pytest.mark.parametrize("kind", MISSING)
def test_missing_values_are_no_text_and_no_label(kind):
    with pytest.raises(lw.DataError, match=r'row 0: a text must be a str, but is None; give "" for'):
        from_documents(MISSING[kind])
    with pytest.raises(lw.DataError, match=r"row 0.*the labels are None; give \[\]"):
        from_documents(TEXTS, MISSING[kind])
    with pytest.raises(lw.DataError, match=r"row 0.*an id must be text"):
        from_lists(TEXTS, ids=MISSING[kind])
    with pytest.raises(lw.DataError, match="a label must be text"):
        from_matrix(np.ones((2, 2)), np.eye(2, 3), names=MISSING[kind])


@pytest.mark.parametrize(
    "row",
    [
        pd.DataFrame({"a": ["x"]}),
        pl.DataFrame({"a": ["x"]}),
        pa.table({"a": ["x"]}),
        {"a": 1},
        b"ab",
        np.ma.masked_array(["x", "y"], [0, 1]),
        np.array([["x"]]),
        np.array([b"x"]),
        np.array([1.5]),
        pd.Series(["x", None]),
        [["x"]],
        1.0,
        True,
        object(),
    ],
)
def test_what_a_row_of_labels_may_not_be(row):
    with pytest.raises(lw.DataError, match=r"row 1.*(label|entry)"):
        from_lists(["t", "u"], [["x"], row])


@pytest.mark.parametrize(
    "row", [pd.Series(["x", "y"]), pd.Index(["x", "y"]), pl.Series(["x", "y"]), pa.array(["x", "y"]), {"x", "y"}]
)
def test_what_a_row_of_labels_may_be(row):
    assert rows(from_lists(["t"], [row])) == [["x", "y"]]


def test_a_set_has_no_order_for_relevances():
    with pytest.raises(lw.DataError, match="row 0: the labels are a set, which has no order for their relevances"):
        from_lists(["t"], [{"x", "y"}], relevance=[[1, 2]])


def tables(columns):
    """The same table in every library."""
    return {
        "pandas": pd.DataFrame(columns),
        "pandas with another index": pd.DataFrame(columns, index=[9, 9, 1]),
        "polars": pl.DataFrame(columns),
        "pyarrow Table": pa.table(columns),
        "pyarrow RecordBatch": pa.RecordBatch.from_pydict(columns),
    }


KINDS = list(tables({"a": [1, 2, 3]}))


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_is_records(kind):
    table = tables({"id": [7, 8, 9], "text": TEXTS, "labels": LISTS})[kind]
    found = from_documents(table)
    assert (list(found.texts), rows(found), found.ids) == (TEXTS, LISTS, ("7", "8", "9"))
    other = from_documents(table, [["z"], [], []])  # labels that are given go before those of the table
    assert (other.names, rows(other)) == (("z",), [["z"], [], []])


@pytest.mark.parametrize("kind", KINDS)
def test_a_table_of_one_column(kind):
    assert list(from_documents(tables({"text": TEXTS})[kind]).texts) == TEXTS
    with pytest.raises(lw.DataError, match="the field 'text' is missing; fields found: 'review'"):
        from_documents(tables({"review": TEXTS})[kind])
    assert len(from_documents(tables({"text": TEXTS})[kind][:0])) == 0


@pytest.mark.parametrize("kind", KINDS)
def test_a_missing_value_of_a_table_is_an_empty_text(kind):
    assert list(from_documents(tables({"text": [None, "b", "c"]})[kind]).texts) == ["", "b", "c"]


@pytest.mark.parametrize("values", [[True, False, True], [1, 0, 1], [1.0, 0.0, 1.0]])
@pytest.mark.parametrize("kind", KINDS)
def test_an_indicator_table(kind, values):
    table = tables({"b": values, "a": [not value for value in values], "none": [False] * 3})[kind]
    found = from_documents(TEXTS, table)
    assert (found.names, rows(found)) == (("a", "b", "none"), [["b"], ["a"], ["b"]])
    assert rows(from_matrix(np.ones((3, 2)), table, names=["x", "y", "z"])) == [["x"], ["y"], ["x"]]


def test_indicators_of_pandas_own_types():
    nullable = pd.DataFrame({"b": [1, 0, 1], "a": [0, 1, 0]}, index=[5, 5, 5]).astype({"b": "Int64", "a": "boolean"})
    by_number = pd.DataFrame({1: [1, 0, 1], 0: [0, 1, 0]})
    scattered = pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(Y), columns=["b", "a"])
    assert rows(from_documents(TEXTS, nullable)) == [["b"], ["a"], ["b"]]
    assert rows(from_documents(TEXTS, by_number)) == [["1"], ["0"], ["1"]]
    assert rows(from_documents(TEXTS, scattered)) == [["a", "b"], ["a"], []]


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    ("columns", "message"),
    [
        ({"labels": LISTS}, r"a table of one column; give the column itself, frame\['labels'\]"),
        ({"labels": [1, 0, 1]}, "a table of one column"),
        ({"id": [1, 0, 1], "labels": LISTS}, r"the column 'labels' .* give one column of lists \(frame\['labels'\]\)"),
        ({"id": [7, 8, 9], "a": [1, 0, 1]}, "row 0: .* column 'id' holds 7; .* labels=frame.to_numpy"),
        ({"a": [1, 0, 1], "b": [0.0, 0.5, 1.0]}, "row 1: .* column 'b' holds 0.5"),
        ({"a": [1, 0, 1], "b": [0, None, 1]}, "column 'b'"),
        ({"a": ["1", "0", "1"], "b": [0, 0, 1]}, "column 'a' of the table does not"),
        ({"a": [-1, 0, 1], "b": [0, 0, 1]}, "row 0: .* holds -1"),
    ],
)
def test_tables_that_are_no_indicators(kind, columns, message):
    with pytest.raises(lw.DataError, match=message):
        from_documents(TEXTS, tables(columns)[kind])


def test_a_table_that_is_not_computed_yet():
    class Lazy:
        columns, iloc = ["a", "b"], np.empty((3, 2), object)

    Lazy.iloc[:] = 0
    with pytest.raises(lw.DataError, match="a column of type ndarray cannot be read; give a table of pandas"):
        from_documents(Lazy())


def test_columns_of_one_name():
    twice = pd.DataFrame([["x", "y"]], columns=["text", "text"])
    for call in (lambda: from_documents(twice), lambda: from_documents(["t"], twice), lambda: from_matrix(twice)):
        with pytest.raises(lw.DataError, match="two columns of the table are named 'text'"):
            call()


def test_columns_of_one_name_in_a_file(tmp_path):
    twice = pa.Table.from_arrays([pa.array(["a"]), pa.array(["b"]), pa.array([["x"]])], ["text", "text", "labels"])
    pq.write_table(twice, tmp_path / "twice.parquet")
    with pytest.raises(lw.DataError, match=r"twice.parquet: two columns are named 'text'"):
        lw.read_data(tmp_path / "twice.parquet")


@pytest.mark.parametrize("kind", KINDS)
def test_features_as_a_table(kind):
    table = tables({"a": [1, 2, 3], "b": [0.5, 0.0, -1.0]})[kind]
    assert from_matrix(table).features.dense.tolist() == [[1, 0.5], [2, 0], [3, -1]]
    both = from_matrix((sparse.csr_matrix(Y), table)).features
    assert (both.sparse_cols, both.dense.tolist()) == (2, [[1, 0.5], [2, 0], [3, -1]])
    with pytest.raises(lw.DataError, match="X must hold numbers, but the column 'text' of the table does not"):
        from_matrix(tables({"a": [1, 2, 3], "text": TEXTS})[kind])
    with pytest.raises(lw.DataError, match=r"X (must hold numbers|holds nan)"):
        from_matrix(tables({"a": [1, 2, 3], "b": [1, None, 3]})[kind])


def test_sparse_columns_of_pandas():
    table = pd.DataFrame.sparse.from_spmatrix(sparse.csr_matrix(Y))
    assert from_matrix(table).features.sparse.to_scipy().toarray().tolist() == Y.tolist()
    filled = pd.DataFrame({"a": pd.arrays.SparseArray([1, 1, 5], fill_value=1)})
    assert from_matrix(filled).features.dense.tolist() == [[1], [1], [5]]


@pytest.mark.parametrize(
    "value",
    [
        "x", b"x", {"a": 1}, {1}, [["a"]], [[1], [1, 2]], [1, 2], 3, object(), lw.Dataset, np.array("x"), np.ones(3),
        np.ones((1, 1, 1)), np.array([[None]]), np.array([[1j]]), np.array([[b"1"]]), pd.Series([1, 2]),
        np.ma.masked_array([[1.0]], [[1]]), (np.ones((1, 1)), sparse.eye(1)), np.array([["2026-11-19"]], "M8[D]"),
        from_lists(["x"]), Texts.from_strings(["x"]), pl.LazyFrame({"a": [1]}), pl.Series([1.0]), pa.array([1.0]),
        (value for value in [[1.0]]), pa.scalar([b"a"]), [sparse.eye(1, format="csr")], np.array([(1, 2)], "i4,i4"),
    ],
)  # fmt: skip
def test_what_features_may_not_be(value):
    with pytest.raises(lw.DataError, match=r"X(\[1\])? (is|must)"):
        from_matrix(value)


def test_an_array_that_will_not_be_one():
    class Odd:
        def __array__(self, *_, **__):
            raise RuntimeError("requires grad")

    with pytest.raises(lw.DataError, match="X is not a matrix: requires grad"):
        from_matrix(Odd())


def test_a_column_of_numbers_is_no_matrix_of_relevances():
    numbers = np.array([[3], [7], [0]])
    for value in (numbers, sparse.csr_matrix(numbers)):
        with pytest.raises(lw.DataError, match=r"Y is a single column of numbers.*array\[:, 0\]"):
            from_documents(TEXTS, value)
    assert from_lists(TEXTS, numbers, names=["x"]).labels.data.tolist() == [3, 7]
    assert rows(from_lists(TEXTS, [[1], [1], [0]])) == [["1"], ["1"], ["0"]]


def test_texts_are_taken_as_they_are():
    packed = Texts.from_strings(TEXTS)
    assert from_documents(packed, LISTS).texts is packed


@pytest.mark.parametrize(
    ("documents", "message"),
    [
        ([{"text": "a"}, "b"], "row 1: the first document is a record, but this one is a string"),
        (["b", {"text": "a"}], "row 1: a text must be a str, but is dict"),
        ([["a", "b"]], "row 0: a text must be a str, but is list"),
        ([("a", 1)], "row 0: a text must be a str, but is tuple"),
        ([b"a"], "row 0: a text must be a str, but is bytes"),
        ([pd.Series({"text": "a"})], "row 0: a text must be a str, but is Series"),
        (np.array([1.5]), "row 0: a text must be a str, but is float"),
        ([{"text": pd.DataFrame({"a": [1]})}], "row 0: an entry is a table of the columns 'a'"),
        ([{"text": ["a"]}], "row 0.*the text must be a string, but is a list"),
    ],
)
def test_documents_that_are_no_texts(documents, message):
    with pytest.raises(lw.DataError, match=message):
        from_documents(documents)


@pytest.mark.parametrize("first", [0, 1])
def test_records_have_labels_all_or_none(first):
    records = [{"text": "a", "labels": ["x"]}, {"text": "b"}]
    with pytest.raises(lw.DataError, match="the field 'labels' is missing; fields found: 'text'"):
        from_documents([records[first], records[1 - first]])
    assert from_documents([{"text": "a"}, {"text": "b"}]).labels is None
    assert rows(from_documents(records, [["y"], []])) == [["y"], []]


@pytest.mark.parametrize("kind", KINDS)
def test_missing_labels_of_a_table(kind):
    with pytest.raises(lw.DataError, match=r"row 1.*the labels are null; write \[\] for a document without any"):
        from_documents(tables({"text": TEXTS, "labels": [["a"], None, []]})[kind])


@pytest.mark.parametrize("table", [pd.DataFrame(index=[0, 1, 2]), pl.DataFrame(), pa.table({})])
def test_a_table_without_columns(table):
    for call in (lambda: from_documents(table), lambda: from_documents(TEXTS, table), lambda: from_matrix(table)):
        with pytest.raises(lw.DataError, match="the table has no columns"):
            call()


def test_bytes_are_no_ids():
    with pytest.raises(lw.DataError, match=r"row 0.*an id must be text or a whole number, but is bytes"):
        from_lists(["t"], ids=[b"\xff"])


def test_what_is_given_beside_labels():
    with pytest.raises(lw.DataError, match="relevance is given without labels"):
        from_lists(TEXTS, relevance=[[1], [1], [1]])
    with pytest.raises(lw.DataError, match="relevance is given without labels"):
        from_documents([{"text": "a", "labels": ["x"]}], relevance=[[2]])
    with pytest.raises(lw.DataError, match="names are for the columns of a label matrix"):
        from_documents([{"text": "a", "labels": ["x"]}], names=["x"])


def test_a_dataset_made_by_hand():
    for wrong in (
        {"texts": TEXTS},
        {"features": np.ones((3, 2))},
        {"labels": sparse.csr_matrix(Y)},
        {"names": ["a", "b"]},
    ):
        parts = {"texts": None, "features": None, "labels": None, "names": ()} | wrong
        with pytest.raises(lw.DataError, match=f"the {next(iter(wrong))} of a Dataset are a"):
            lw.Dataset(**parts)


# The public calls go through the doors above.


@pytest.fixture(scope="module")
def model():
    return lw.train(TEXTS * 4, LISTS * 4, run=lw.Run(threads=1))


@pytest.mark.parametrize("kind", KINDS)
def test_train_plan_and_evaluate_with_tables(kind, model):
    table = tables({"text": TEXTS, "labels": LISTS})[kind]
    marks = tables({"a": [1, 0, 0], "b": [1, 1, 0]})[kind]
    run, words = lw.Run(threads=1), {"tfidf.min_df": 1}
    assert lw.train(table, run=run).labels == ("a", "b")
    assert lw.train(TEXTS, marks, run=run).labels == ("a", "b")
    assert lw.train(X=marks, labels=Y, names=["x", "y"], run=run).labels == ("x", "y")
    for data in ((table,), (TEXTS, LISTS), (TEXTS, marks)):
        assert lw.plan(*data, settings=words, run=run).model > 0
    assert lw.plan(TEXTS, Y, names=["a", "b"], settings=words, run=run).model > 0
    expected = model.evaluate(TEXTS, LISTS)["P@1"]
    assert model.evaluate(table)["P@1"] == model.evaluate(TEXTS, marks)["P@1"] == expected
    assert model.evaluate(TEXTS, Y, names=["a", "b"])["P@1"] == expected
    assert model.predict(table[["text"]] if hasattr(table, "iloc") else table, k=1) == model.predict(TEXTS, k=1)


@pytest.mark.parametrize("kind", [*COLUMNS, *STRINGS])
def test_predict(kind, model):
    assert model.predict((COLUMNS | STRINGS)[kind](TEXTS), k=2) == model.predict(TEXTS, k=2)


@pytest.mark.parametrize("kind", REFUSED)
def test_what_predict_refuses(kind, model):
    value, message = REFUSED[kind]
    error, message = (lw.ConfigError, "give either texts or X") if value is None else (lw.DataError, message)
    with pytest.raises(error, match=message):
        model.predict(value)


@pytest.mark.parametrize("beside", [{"labels": LISTS}, {"relevance": [[1]]}, {"names": ["a"]}])
@pytest.mark.parametrize("data", [from_lists(TEXTS, LISTS), "some.jsonl", Path("some.jsonl")])
def test_data_that_has_its_labels_takes_no_others(data, beside):
    name = next(iter(beside))
    with pytest.raises(lw.ConfigError, match=f"already carries its labels; give {name} only with a list of texts"):
        lw.train(data, **beside)


@pytest.mark.parametrize("value", [pd.Series({"a": "x"}), pd.DataFrame({"a": ["x"]}), ["x"], [("a", "x")], 3])
def test_label_texts_and_taxonomies_are_dicts(value):
    with pytest.raises(lw.DataError, match=r"label texts must map .* give a dict, such as dict\(zip\("):
        lw.train(TEXTS, LISTS, label_texts=value)
    with pytest.raises(lw.DataError, match=r"a taxonomy must map .* give a dict, such as dict\(zip\("):
        lw.train(TEXTS, LISTS, taxonomy=value)


def test_none_of_their_packages_is_imported():
    code = "import labelwood, sys; assert not {'pandas', 'polars', 'pyarrow'} & set(sys.modules)"
    subprocess.run([sys.executable, "-c", code], check=True)
