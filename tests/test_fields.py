"""Records of several fields: what is read, in which order, with what weights, and that a model reads the same again."""

from __future__ import annotations

import json
import re
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest

import labelwood as lw
import reference_tfidf as twin
from labelwood import cli, limits
from labelwood.arrays.texts import TextField, Texts
from labelwood.data import ReadOptions, from_records, read, stream
from labelwood.models.model import Model, from_stored
from labelwood.parts.tfidf import Tfidf, TfidfConfig
from labelwood.storage import model_folder

ROWS = [
    {"title": "red apple", "text": "a fruit of trees", "labels": ["fruit"], "lang": "en"},
    {"text": "only a text", "labels": ["none"], "year": 1999},
    {"title": "only a title", "labels": ["none"]},
    {"abstract": "told at the end", "Title": "Fallen leaf", "text": "", "labels": ["leaf"]},
]


def lines(rows: Sequence[dict[str, object]]) -> str:
    return "".join(json.dumps(row) + "\n" for row in rows)


def put(path, rows):
    path.write_text(lines(rows))
    return path


def fields_of(texts: Texts, row: int) -> list[str]:
    """The fields of a document, without the line feeds between them."""
    bounds = [texts.offsets[row], *(() if texts.cuts is None else texts.cuts[row]), texts.offsets[row + 1]]
    return [texts.arena[a:b].tobytes().decode().removeprefix("\n") for a, b in pairwise(bounds)]


def test_the_usual_fields_are_joined_in_their_order(tmp_path):
    """Also where the first record lacks some of them, or writes them in capitals (F-D1, F-D13)."""
    found = read(put(tmp_path / "d", ROWS))
    assert list(found.texts) == [
        "red apple\na fruit of trees",
        "only a text",
        "only a title",
        "Fallen leaf\ntold at the end",
    ]
    assert found.texts.fields == (TextField("title"), TextField("text"), TextField("abstract"))
    assert fields_of(found.texts, 0) == ["red apple", "a fruit of trees", ""]
    assert fields_of(found.texts, 1) == ["", "only a text", ""]
    assert fields_of(found.texts, 3) == ["Fallen leaf", "", "told at the end"]
    assert found.report.fields == (("title", 1, 3), ("text", 1, 3), ("abstract", 1, 1))
    assert found.report.left == ("lang", "year")


@pytest.mark.parametrize("separator", [",", "\t"])
def test_columns_in_capitals_are_read(tmp_path, separator):
    path = tmp_path / "d"
    path.write_text("title,Text,note,labels\na,b,c,x\n".replace(",", separator))
    found = read(path)
    assert list(found.texts) == ["a\nb"]
    assert (found.report.fields, found.report.left) == ((("title", 1, 1), ("text", 1, 1)), ("note",))


def test_python_takes_records(tmp_path):
    from_file, from_python = read(put(tmp_path / "d", ROWS)), from_records(ROWS)
    assert list(from_file.texts) == list(from_python.texts)
    assert from_file.names == from_python.names
    assert from_file.report.fields == from_python.report.fields


def test_each_block_keeps_its_fields_apart(tmp_path):
    rows = [{"text": "a"}, {"text": "b"}, {"title": "c", "text": "d"}, {"text": "e"}, {"title": "f"}]
    blocks = list(stream(put(tmp_path / "d", rows), block=2))
    assert [list(block.texts) for block in blocks] == [["a", "b"], ["c\nd", "e"], ["f"]]
    names = [[field.name for field in block.texts.fields] for block in blocks]
    assert names == [["text"], ["title", "text"], ["title"]]
    assert fields_of(blocks[1].texts, 0) == ["c", "d"]
    total = sum((block.report for block in blocks[1:]), blocks[0].report)
    assert sorted(total.fields) == [("text", 1, 4), ("title", 1, 2)]


# --- weights --------------------------------------------------------------------------------------

TITLED = [{"title": f"word{i % 5} big", "text": f"some word{i % 3} text", "labels": [f"l{i % 5}"]} for i in range(20)]


@pytest.mark.parametrize("sublinear", [True, False])
@pytest.mark.native
def test_a_weight_multiplies_the_counts_of_a_field(sublinear):
    config = TfidfConfig(min_df=1, chars=(3, 3), sublinear=sublinear)
    weighted = from_records(TITLED, options=ReadOptions(text=("title:3", "text"))).texts
    repeated = [f"{row['title']}\n{row['title']}\n{row['title']}\n{row['text']}" for row in TITLED]
    tfidf, x = Tfidf.fit(weighted, config, threads=2)
    kept, idf = twin.vocabulary(repeated, config)
    assert tfidf.terms() == kept
    assert np.abs(x.to_scipy().toarray() - twin.matrix(repeated, kept, idf, config)).max() < 1e-6
    assert (tfidf.transform(weighted, threads=1).to_scipy() != x.to_scipy()).nnz == 0


@pytest.mark.native
def test_no_pair_of_words_spans_two_fields():
    texts = from_records([{"title": "alpha beta", "text": "gamma delta"}]).texts
    tfidf, _ = Tfidf.fit(texts, TfidfConfig(words=(2, 2), min_df=1), threads=1)
    assert sorted(tfidf.terms()) == ["alpha beta", "gamma delta"]


@pytest.mark.parametrize("weight", [0, 1, limits.MAX_FIELD_WEIGHT, limits.MAX_FIELD_WEIGHT + 1])
def test_weights_are_bounded(weight):
    options = ReadOptions(text=(f"title:{weight}",))
    if 1 <= weight <= limits.MAX_FIELD_WEIGHT:
        assert from_records(TITLED, options=options).texts.fields == (TextField("title", weight),)
        return
    with pytest.raises(lw.ConfigError, match=f"from 1 to 100, but 'title:{weight}' asks for {weight}"):
        from_records(TITLED, options=options)


@pytest.mark.parametrize("count", [limits.MAX_TEXT_FIELDS, limits.MAX_TEXT_FIELDS + 1])
def test_the_number_of_fields_is_bounded(count):
    names = tuple(f"f{i}" for i in range(count))
    record = dict.fromkeys(names, "a")
    if count == limits.MAX_TEXT_FIELDS:
        assert len(from_records([record], options=ReadOptions(text=names, labels=None)).texts.fields) == count
        return
    with pytest.raises(lw.ConfigError, match="1 to 64 fields can be read as text, but 65 are named"):
        from_records([record], options=ReadOptions(text=names, labels=None))


def test_a_field_named_twice_counts_twice_and_a_colon_may_belong_to_a_name():
    twice = from_records(TITLED, options=ReadOptions(text=("title", "title", "text"))).texts
    assert twice.fields == (TextField("title", 2), TextField("text"))
    assert from_records([{"dc:1": "a"}], options=ReadOptions(text=("dc:1",), labels=None)).texts.fields == (
        TextField("dc:1"),
    )


# --- the fields are part of the model ---------------------------------------------------------------


@pytest.fixture(scope="module")
def model() -> lw.Model:
    return lw.train(TITLED, options=ReadOptions(text=("title:2", "text")), settings={"tfidf.min_df": 1})


def test_a_model_keeps_its_fields_and_weights(model, tmp_path):
    model.save(tmp_path / "m")
    assert model_folder.load(tmp_path / "m").meta["reading"] == {"fields": [["title", 2], ["text", 1]]}
    loaded = lw.load(tmp_path / "m")
    assert loaded.record_fields.fields == (TextField("title", 2), TextField("text"))
    assert loaded.predict(TITLED) == model.predict(TITLED)


def test_prediction_and_evaluation_read_the_fields_of_training(model, tmp_path):
    right = model.predict(TITLED)
    path = put(tmp_path / "d", TITLED)
    assert [model.named(*model.predict_arrays(block.texts)) for block in stream(path, fields=model.record_fields)] == [
        right
    ]
    assert model.evaluate(path).values == model.evaluate(TITLED).values
    found = read(path)  # by the usual fields, before a model was there
    assert model.named(*model.predict_arrays(found.texts)) == right
    renamed = [{"Titel": row["title"], "Inhalt": row["text"], "labels": row["labels"]} for row in TITLED]
    options = ReadOptions(text=("Titel", "Inhalt"))
    assert model.evaluate(renamed, options=options).values == model.evaluate(TITLED).values


def test_a_plain_string_is_the_text_of_a_model_of_two_fields(model):
    alone = [row["text"] for row in TITLED]
    assert model.predict(alone) == model.predict([{"text": text} for text in alone])
    assert model.texts_read(Texts.from_strings(alone)).fields == (TextField("text"),)
    titles = from_records([{"title": text} for text in alone], fields=model.record_fields).texts
    assert model.texts_read(titles).fields == (TextField("title", 2),)


def test_texts_of_other_fields_are_not_read_as_nothing(model):
    """A data set read by other names than the model's is refused, not taken for empty texts."""
    other = from_records([{"content": "word1"}], options=ReadOptions(labels=None))
    with pytest.raises(
        lw.DataError, match=r"of the fields content, but the model reads title and text; .* ReadOptions"
    ):
        model.predict_arrays(other.texts)
    with pytest.raises(lw.DataError, match="'title' is missing; fields found: 'content'"):
        model.predict([{"content": "word1"}])


def test_fields_that_the_user_names_are_read_in_place_of_those_of_the_model():
    plain = lw.train(
        [{"text": f"word{i % 5}", "labels": [f"l{i % 5}"]} for i in range(20)], settings={"tfidf.min_df": 1}
    )
    pair = [{"head": "nothing", "body": f"word{i}", "labels": [f"l{i}"]} for i in range(5)]
    assert plain.evaluate(pair, options=ReadOptions(text=("head", "body"))).values["P@1"] == 100


def test_weights_beside_a_model_are_those_of_the_model(model):
    same = model.evaluate(TITLED, options=ReadOptions(text=("title:2", "text")))
    assert same.values == model.evaluate(TITLED).values
    with pytest.raises(lw.ConfigError, match=r"from its training \(title:2, text:1\); name fields without any"):
        model.evaluate(TITLED, options=ReadOptions(text=("title:3", "text")))


def test_a_model_of_schema_1_reads_the_text_alone():
    texts = from_records([{"title": "word1", "text": "word2"}], options=ReadOptions(labels=None)).texts
    plain = lw.train(
        [f"word{i % 5}" for i in range(20)], [[f"l{i % 5}"] for i in range(20)], settings={"tfidf.min_df": 1}
    )
    old = Model(**{**vars_of(plain), "text_fields": None})
    assert old.predict([{"title": "word1", "text": "word2"}], k=1)[0][0][0] == "l2"
    assert old.named(*old.predict_arrays(texts, k=1))[0][0][0] == "l2"
    assert old.predict([{"title": "word1"}], k=1)[0][0][0] == "l1"


def vars_of(model: lw.Model) -> dict[str, object]:
    """The fields of the dataclass, without what it has cached."""
    return {name: getattr(model, name) for name in Model.__dataclass_fields__}


def test_members_of_an_ensemble_read_their_own_fields(model):
    texts = lw.train([row["text"] for row in TITLED], [row["labels"] for row in TITLED], settings={"tfidf.min_df": 1})
    alone = lw.train(TITLED, options=ReadOptions(text="title"), settings={"tfidf.min_df": 1})
    both = lw.Ensemble([model, alone], average="mean")
    assert [field.name for field in both.record_fields.fields] == ["title", "text"]
    scores = [dict(member.predict([TITLED[0]], k=5)[0]) for member in (model, alone)]
    for label, score in both.predict([TITLED[0]], k=1)[0]:
        assert score == pytest.approx(np.mean([found[label] for found in scores]), abs=1e-6)
    assert lw.Ensemble([model, texts]).predict(TITLED, k=1)


@pytest.mark.parametrize(
    "section",
    [
        None, {}, {"fields": None}, {"fields": [["a"]]}, {"fields": [["a", 0]]}, {"fields": [["a", 1.5]]},
        {"fields": [["a", True]]}, {"fields": [[1, 1]]}, {"fields": [["a", 101]]}, {"fields": [["a", 1], ["a", 2]]},
        {"fields": [["a", 1]] * 65}, {"fields": [], "more": 1},
    ],
)  # fmt: skip
def test_a_damaged_section_is_refused(model, tmp_path, section):
    model.save(tmp_path / "m")
    stored = model_folder.load(tmp_path / "m")
    with pytest.raises(lw.ModelFileError, match="reading"):
        from_stored({**stored.meta, "reading": section}, stored.parts, {})


# --- the command line ---------------------------------------------------------------------------------


def test_the_command_line_says_what_it_read(capsys, tmp_path):
    path = put(tmp_path / "d", [*TITLED, {"text": "no title", "labels": ["l1"], "lang": "en"}])
    command = ["train", str(path), "--model", str(tmp_path / "m")]
    assert cli.main([*command, "--text-field", "title:2", "--text-field", "text"]) == 1
    assert "line 21, field title: the field 'title' is missing" in capsys.readouterr().err
    assert cli.main([*command, "--set", "tfidf.min_df=1"]) == 0
    assert "  text from title (in 20 of 21) and text; not read: lang" in capsys.readouterr().out.splitlines()


def test_a_field_that_is_nowhere_is_said(capsys, model, tmp_path):
    model.save(tmp_path / "m")
    path = put(tmp_path / "d", [{"text": "word1", "labels": ["l1"]}])
    for verb in ("predict", "evaluate"):
        assert cli.main([verb, str(tmp_path / "m"), str(path)]) == 0
        said = f"warning: {path}: the model reads title and text, but no record has title;"
        assert said in capsys.readouterr().err


def test_inspect_shows_the_fields(capsys, model, tmp_path):
    model.save(tmp_path / "m")
    assert cli.main(["inspect", str(tmp_path / "m")]) == 0
    assert re.search(r"^features +title × 2 and text, \d+ terms$", capsys.readouterr().out, re.MULTILINE)
