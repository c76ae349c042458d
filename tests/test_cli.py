"""The command line: every command, its exit codes, and that it gives what the Python API gives."""

from __future__ import annotations

import dataclasses
import importlib.util
import io
import json
import os
import re
import shlex
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import labelwood as lw
from labelwood import cli, read_data
from labelwood.cli import options, show
from labelwood.data import ReadOptions, stream
from labelwood.metrics.ranking import Evaluation
from labelwood.storage import model_folder
from toy import keyword_set

ALL_KEYS = [f"{m}@{k}" for m in ("P", "R", "nDCG", "PSP", "PSnDCG", "coverage", "macro-F1") for k in (1, 3, 5, 10)]


@dataclasses.dataclass
class Result:
    code: int
    out: str
    err: str

    @property
    def lines(self) -> list[Any]:
        return [json.loads(line) for line in self.out.splitlines()]


Run = Callable[..., Result]


@pytest.fixture
def run(capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> Run:
    def go(*args: object, stdin: bytes = b"") -> Result:
        capsys.readouterr()
        monkeypatch.setattr(sys, "stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        code = cli.main([str(arg) for arg in args])
        return Result(code, *capsys.readouterr())

    return go


def _jsonl(path: Path, rows: list[dict[str, Any]]) -> Path:
    path.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("cli")


@pytest.fixture(scope="module")
def train_file(folder: Path) -> Path:
    texts, labels = keyword_set()
    return _jsonl(folder / "train.jsonl", [{"text": t, "labels": y} for t, y in zip(texts, labels, strict=True)])


@pytest.fixture(scope="module")
def test_file(folder: Path) -> Path:
    rows = [{"id": f"doc-{i}", "text": f"word{i} common", "labels": [f"label{i}"]} for i in range(12)]
    rows.append({"id": "odd", "text": "word3 word4", "labels": ["label3", "never seen"]})
    rows.append({"id": "new", "text": "common", "labels": ["brand new"]})
    return _jsonl(folder / "test.jsonl", rows)


@pytest.fixture(scope="module")
def model(folder: Path, train_file: Path) -> Path:
    made = folder / "model"
    assert cli.main(["train", str(train_file), "--model", str(made)]) == 0
    return made


def _files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir()}


# -- the program itself


def test_version_and_help(run: Run) -> None:
    assert run("--version") == Result(0, f"labelwood {lw.__version__}\n", "")
    shown = run("--help")
    assert shown.code == 0
    for command in ("quickstart", "train", "predict", "evaluate", "inspect", "verify", "methods"):
        assert f"  {command} " in shown.out
        assert run(command, "--help").code == 0
    assert run().code == 2


@pytest.mark.parametrize(
    "args", [["trian"], ["train", "x"], ["train", "--model", "m"], ["predict"], ["predict", "m", "f", "-k", "0"],
             ["methods", "--nonsense"], ["train", "x", "--model", "m", "--set", "linear.cp"],
             ["train", "x", "--model", "m", "--resume", "--overwrite"], ["predict", "m"],
             ["predict", "m", "f", "--text", "t"], ["evaluate", "m", "f", "--on-bad", "ignore"],
             ["evaluate", "m", "f", "--bootstrap", "-1"], ["evaluate", "m", "f", "--ks", "0"]],
)  # fmt: skip
def test_wrong_usage_is_2(run: Run, args: list[str]) -> None:
    found = run(*args)
    assert found.code == 2
    assert found.out == ""
    assert "Error: " in found.err


def test_a_clear_error_is_one_line_and_1(run: Run, tmp_path: Path) -> None:
    found = run("inspect", tmp_path / "none")
    assert found.code == 1
    assert found.out == ""
    assert found.err.startswith("error: ")
    assert found.err.count("\n") == 1


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["predict", "m", "f", "-k", "0"], "'-k': it must be a whole number from 1 to 10000, but is '0'."),
        (["predict", "m", "f", "-k", "ten"], "'-k': it must be a whole number from 1 to 10000, but is 'ten'."),
        (["evaluate", "m", "f", "--threads", "-1"], "it must be a whole number from 0 to 1024, but is '-1'."),
        (["train", "f", "-m", "m", "--seed", "abc"], f"from 0 to {2**63 - 1}, but is 'abc'."),
    ],
)  # fmt: skip
def test_a_wrong_number_is_shown_with_what_is_allowed(run: Run, args: list[str], message: str) -> None:
    found = run(*args)
    assert (found.code, found.err.splitlines()[-1].endswith(message)) == (2, True), found.err


def test_every_setting_has_its_flag() -> None:
    assert list(options.DATA_FLAGS) == [f.name for f in dataclasses.fields(lw.ReadOptions)]
    assert list(options.METRIC_FLAGS) == [f.name for f in dataclasses.fields(lw.MetricsConfig)]


def test_a_bug_is_not_hidden(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("labelwood.cli.inspect.load", lambda folder: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        run("verify", "x")


def test_out_of_memory_is_a_clear_error(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(folder: Path) -> None:
        raise MemoryError

    monkeypatch.setattr("labelwood.cli.inspect.load", full)
    found = run("verify", "x")
    assert (found.code, found.err.startswith("error: there is not enough memory")) == (1, True)


def test_nothing_optional_is_imported(tmp_path: Path) -> None:
    for name in ("torch", "pyarrow", "pandas"):
        (tmp_path / f"{name}.py").write_text("raise SystemExit(f'{__name__} was imported')")
    code = "import sys, labelwood.cli as c; sys.exit(c.main(['methods']))"
    env = {**os.environ, "PYTHONPATH": str(tmp_path)}
    done = subprocess.run([sys.executable, "-c", code], env=env, capture_output=True, check=False)
    assert (done.returncode, done.stderr) == (0, b"")


def test_a_terminal_that_cannot_spell_a_label_is_no_failure(model: Path) -> None:
    env = {**os.environ, "PYTHONIOENCODING": "ascii"}
    command = [sys.executable, "-m", "labelwood", "methods", "xr-linear"]
    done = subprocess.run(command, env=env, capture_output=True, check=True)
    assert b"\\u2265 1" in done.stdout


# -- train


def test_train_writes_what_the_api_writes(run: Run, model: Path, train_file: Path, tmp_path: Path) -> None:
    lw.train(train_file).save(tmp_path / "api")
    assert _files(model) == _files(tmp_path / "api")
    assert not model.with_name("model.work").exists()


def test_train_says_what_it_did(run: Run, train_file: Path, tmp_path: Path) -> None:
    rows = [json.loads(line) for line in train_file.read_text().splitlines()]
    rows[0]["labels"] = ["label0", "label0"]
    rows.append({"text": "nothing", "labels": []})
    found = run("train", _jsonl(tmp_path / "t.jsonl", rows), "--model", tmp_path / "m", "--set", "tree.leaf=4")
    assert (found.code, found.err) == (0, "")
    lines = found.out.splitlines()
    assert lines[0] == f"{tmp_path}/t.jsonl: 73 documents, 12 labels, 0.99 labels per document"
    assert lines[1] == "  text from text"
    assert lines[2] == "  1 document without a label; 1 repeated label merged"
    assert lines[3] == "  read as words: too few to tell how much the language inflects"
    assert lines[4] == "tree: 4 → 12 (nodes by level, the last are the labels)"
    stages = [line.rsplit("  ", 1)[0].strip() for line in lines[5:-1]]
    assert stages == ["stage", "reading data", "reading words", "label features", "label tree", "level 1 of 2",
                      "level 2 of 2", "saving"]  # fmt: skip
    size = show.size(model_folder.describe(tmp_path / "m").bytes)
    assert lines[-1] == f"model: {tmp_path}/m (5 files, {size})"


def test_train_measures_on_held_out_data(run: Run, train_file: Path, tmp_path: Path) -> None:
    found = run("train", train_file, "--model", tmp_path / "m", "--valid", train_file)
    assert f"On {train_file}" in found.out
    [row] = [line.split() for line in found.out.splitlines() if line.startswith("nDCG")]
    assert row == ["nDCG", "100.00", "100.00", "100.00", "100.00"]


def test_train_reads_standard_input(run: Run, train_file: Path, model: Path, tmp_path: Path) -> None:
    found = run("train", "-", "--model", tmp_path / "m", stdin=train_file.read_bytes())
    assert found.out.startswith("standard input: 72 documents, 12 labels, 1.00 labels per document\n")
    assert _files(tmp_path / "m") == _files(model)


def test_settings_come_from_preset_then_config_then_set(run: Run, train_file: Path, tmp_path: Path) -> None:
    config = tmp_path / "c.toml"
    config.write_text("[search]\nbeam = 7\n[linear]\nthreshold = 0.2\ncp = 3.0\n")
    more = ["--preset", "tail", "--config", config, "--set", "linear.cp=2", "--set", "tfidf.words=1,2", "--seed", "9"]
    assert run("train", train_file, "--model", tmp_path / "m", *more).code == 0
    recipe = model_folder.describe(tmp_path / "m").meta["recipe"]
    assert recipe["tail"]["propensity_power"] == 0.5  # preset
    assert recipe["search"]["beam"] == 7  # config over preset
    assert recipe["linear"]["threshold"] == 0.2
    assert recipe["linear"]["cp"] == 2.0  # set over config
    assert recipe["tfidf"]["words"] == [1, 2]
    assert recipe["seed"] == 9


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--method", "xr-liner"], "there is no method 'xr-liner'; did you mean 'xr-linear'?"),
        (["--preset", "tial"], "xr-linear has no preset 'tial'; did you mean 'tail'?"),
        (["--set", "linear.treshold=1"], "there is no setting 'linear.treshold'; did you mean 'linear.threshold'?"),
        (["--set", "linear.cp=-1"], "linear.cp must be"),
        (["--config", "missing.toml"], "cannot read the config missing.toml"),
        (["--valid", "missing.jsonl"], "missing.jsonl: there is no such file."),
    ],
)
def test_mistakes_are_named(run: Run, train_file: Path, tmp_path: Path, more: list[str], message: str) -> None:
    found = run("train", train_file, "--model", tmp_path / "m", *more)
    assert found.code == 1
    assert found.err.startswith(f"error: {message}")
    assert list(tmp_path.iterdir()) == []


def test_a_place_that_cannot_be_written_is_found_before_reading(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(place: Path) -> str:
        found = run("train", "missing.jsonl", "--model", place)
        assert found.code == 1
        return found.err

    assert refused(model) == (
        f"error: there is a model in {model}; choose another folder, or replace it with --overwrite.\n"
    )
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "mine.txt").write_text("mine")
    assert "is not a model folder and holds other files ('mine.txt', 1 in all)" in refused(tmp_path / "full")
    for place in (tmp_path / "full" / "mine.txt", tmp_path / "full" / "mine.txt" / "model"):
        assert f"{place}: Not a directory. A file stands where a folder is needed" in refused(place)
    monkeypatch.setattr(os, "access", lambda path, mode: path != tmp_path)
    assert f"{tmp_path} cannot be written to" in refused(tmp_path / "new" / "model")
    assert sorted(p.name for p in tmp_path.rglob("*")) == ["full", "mine.txt"]


def test_overwrite_replaces_the_model(run: Run, train_file: Path, tmp_path: Path) -> None:
    assert run("train", train_file, "--model", tmp_path / "m").code == 0
    assert run("train", train_file, "--model", tmp_path / "m", "--overwrite", "--seed", "3").code == 0
    assert lw.load(tmp_path / "m").recipe.seed == 3
    assert [p.name for p in tmp_path.iterdir()] == ["m"]


def test_bad_lines_are_reported_on_stderr(run: Run, train_file: Path, model: Path, tmp_path: Path) -> None:
    lines = train_file.read_bytes().splitlines(keepends=True)
    bad = tmp_path / "bad.jsonl"
    bad.write_bytes(b"".join([*lines[:2], b"{nonsense\n", *lines[2:], b'{"labels": ["x"]}\n']))
    stopped = run("train", bad, "--model", tmp_path / "m")
    assert stopped.code == 1
    assert stopped.err.startswith(f"error: {bad}, line 3")
    found = run("train", bad, "--model", tmp_path / "m", "--on-bad", "skip")
    assert found.code == 0
    report = found.err.splitlines()
    assert report[0] == f"warning: {bad}: 2 bad lines were skipped; the first:"
    assert report[1].startswith(f"  {bad}, line 3")
    assert report[2].startswith(f"  {bad}, line 74")
    assert len(report) == 3
    assert _files(tmp_path / "m") == _files(model)


def test_replaced_bytes_are_counted(run: Run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "latin.jsonl"
    path.write_bytes(b'{"text": "word1 caf\xe9"}\n{"text": "word2"}\n')
    found = run("predict", model, path, "--on-bad", "replace", "-k", "1")
    assert found.err == f"warning: {path}: bad bytes were replaced in 1 line.\n"
    assert [row["labels"][0]["label"] for row in found.lines] == ["label1", "label2"]


# -- predict


def test_predictions_are_those_of_the_api(run: Run, model: Path, test_file: Path) -> None:
    texts = [json.loads(line)["text"] for line in test_file.read_text().splitlines()]
    expected = lw.load(model).predict(texts, k=3)
    found = run("predict", model, test_file, "-k", "3")
    assert (found.code, found.err) == (0, "")
    assert [row["id"] for row in found.lines] == [*(f"doc-{i}" for i in range(12)), "odd", "new"]
    assert [[(y["label"], y["score"]) for y in row["labels"]] for row in found.lines] == expected
    assert all(list(row) == ["id", "labels"] and list(row["labels"][0]) == ["label", "score"] for row in found.lines)
    assert run("predict", model, "-", "-k", "3", stdin=test_file.read_bytes()).out == found.out
    assert run("predict", model, test_file, "-k", "3", "--threads", "1").out == found.out


def test_predict_takes_texts_themselves(run: Run, model: Path) -> None:
    found = run("predict", model, "--text", "word5", "--text", "word7", "-k", "1")
    assert [(row["id"], row["labels"][0]["label"]) for row in found.lines] == [(0, "label5"), (1, "label7")]


def test_rows_are_numbered_across_blocks(run: Run, model: Path, tmp_path: Path) -> None:
    path = _jsonl(tmp_path / "many.jsonl", [{"text": f"word{i % 12}"} for i in range(5000)])
    rows = run("predict", model, path, "-k", "1").lines
    assert [row["id"] for row in rows] == list(range(5000))
    assert [row["labels"][0]["label"] for row in rows] == [f"label{i % 12}" for i in range(5000)]


def test_progress_is_measured_in_bytes_of_the_input(test_file: Path) -> None:
    told: list[tuple[int, int]] = []
    for kind in ("jsonl", "csv"):  # read by blocks of lines, and line by line
        path = test_file if kind == "jsonl" else test_file.with_suffix(".csv")
        if kind == "csv":
            path.write_text("text\n" + "word1\n" * 14)
        options = ReadOptions(labels=None)
        blocks = list(stream(path, options, block=7, progress=lambda done, total: told.append((done, total))))
        assert [len(block) for block in blocks] == [7, 7]
    whole = test_file.stat().st_size
    assert told == [(whole, whole), (len("text\n" + "word1\n" * 8), len("text\n" + "word1\n" * 14))]  # one row ahead


def test_bad_lines_of_all_blocks_are_added_up(run: Run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "many.jsonl"
    path.write_text('{"text": "word1"}\n' * 4500 + "oops\n" + '{"text": "word1"}\n' * 4500 + "oops\n" * 7)
    found = run("predict", model, path, "-k", "1", "--on-bad", "skip")
    assert len(found.lines) == 9000
    report = found.err.splitlines()
    assert report[0] == f"warning: {path}: 8 bad lines were skipped; the first:"
    assert [line.partition(", column")[0] for line in report[1:]] == [
        f"  {path}, line {n}" for n in (4501, 9002, 9003, 9004, 9005)
    ]


def test_fields_are_chosen_on_the_command_line(run: Run, model: Path, tmp_path: Path) -> None:
    path = tmp_path / "t.csv"
    path.write_text("key,title,body\na1,word3,word3\na2,common,word4 word4\n")
    more = ["--text-field", "title", "--text-field", "body", "--id-field", "key"]
    rows = run("predict", model, path, *more, "-k", "1").lines
    assert [(row["id"], row["labels"][0]["label"]) for row in rows] == [("a1", "label3"), ("a2", "label4")]


def test_output_appears_whole_or_not_at_all(run: Run, model: Path, test_file: Path, tmp_path: Path) -> None:
    out = tmp_path / "out.jsonl"
    assert run("predict", model, test_file, "-o", out) == Result(0, "", "")
    good = out.read_text()
    assert good == run("predict", model, test_file).out
    bad = tmp_path / "bad.jsonl"
    bad.write_text('{"text": "word1"}\n' * 5000 + "oops\n")
    assert run("predict", model, bad, "-o", out).code == 1
    assert out.read_text() == good
    assert sorted(p.name for p in tmp_path.iterdir()) == ["bad.jsonl", "out.jsonl"]


@pytest.mark.parametrize(("command", "option"), [("predict", "-o"), ("evaluate", "--json")])
def test_a_target_that_cannot_be_written_is_found_first(run: Run, tmp_path: Path, command: str, option: str) -> None:
    """Before the model and the input, which are not even there."""
    (tmp_path / "file").touch()
    for target in (tmp_path / "no" / "out", tmp_path, tmp_path / "file" / "out"):
        refused = run(command, "no model", "no input", option, target)
        assert (refused.code, refused.err.startswith(f"error: cannot write {target}: ")) == (1, True), refused.err
    assert run(command, "no model", "no input", option, tmp_path / "file").err.startswith("error: no model is not")
    assert [path.name for path in tmp_path.iterdir()] == ["file"]


# -- texts of labels


@pytest.fixture(scope="module")
def texts_file(folder: Path) -> Path:
    path = folder / "texts.json"
    path.write_text(json.dumps({"label1": "the number one", "label10": "ten, é", "elsewhere": "x", "label2": ""}))
    return path


def test_label_texts_are_kept_and_shown(
    run: Run, model: Path, train_file: Path, texts_file: Path, tmp_path: Path
) -> None:
    found = run("train", train_file, "--model", tmp_path / "m", "--label-texts", texts_file)
    assert (found.code, found.err) == (0, "")
    assert found.out.splitlines()[2:4] == [
        f"{texts_file}: texts for 2 of 12 labels",
        "  10 labels without a text; 1 text for labels that are not in the data, ignored",
    ]
    rows = run("predict", tmp_path / "m", "--text", "word10", "--text", "word3", "-k", "1").lines
    plain = run("predict", model, "--text", "word10", "--text", "word3", "-k", "1").lines
    assert [row["labels"][0].pop("text") for row in rows] == ["ten, é", ""]
    assert rows == plain
    assert ["label", "texts", "for", "2", "labels"] in [
        line.split() for line in run("inspect", tmp_path / "m").out.splitlines()
    ]
    assert "label texts" not in run("inspect", model).out
    new, old = _files(tmp_path / "m"), _files(model)
    changed = {name.partition("-")[0] for name in new.keys() ^ old.keys()}
    assert changed == {"labels"}  # nothing else of the model


def test_label_texts_belong_to_what_is_resumed(run: Run, train_file: Path, texts_file: Path, tmp_path: Path) -> None:
    args = ["train", train_file, "--model", tmp_path / "m", "--resume"]
    assert run(*args, "--label-texts", texts_file).code == 0
    assert "already trained" in run(*args, "--label-texts", texts_file).out
    refused = run(*args)
    assert (refused.code, "the texts of its labels are not the same" in refused.err) == (1, True)


def test_label_texts_of_other_labels_are_refused(run: Run, train_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "texts.json"
    path.write_text('{"L1": "one"}')
    found = run("train", train_file, "--model", tmp_path / "m", "--label-texts", path)
    assert (found.code, "none of the 1 label texts is for a label of the data" in found.err) == (1, True)
    assert "'label0', the texts' like 'L1'" in found.err
    early = run("train", "no such file", "--model", tmp_path / "m", "--label-texts", "missing.json")
    assert early.err == "error: missing.json: there is no such file.\n"


# -- a taxonomy


def test_a_taxonomy_is_the_tree_and_belongs_to_what_is_resumed(run: Run, train_file: Path, tmp_path: Path) -> None:
    path = tmp_path / "taxonomy.tsv"
    path.write_text("".join(f"label{i}\tgroup{i % 3}\n" for i in range(11)))
    args = ["train", train_file, "--model", tmp_path / "m", "--taxonomy", path, "--resume"]
    found = run(*args)
    assert found.code == 0, found.err
    assert f"{path}: a taxonomy of 14 nodes, 11 of 12 labels in it\n" in found.out
    assert "not in the taxonomy: 1 label of 12;" in found.err
    assert "tree: 4 → 12 (nodes by level, the last are the labels)\n" in found.out
    assert "already trained" in run(*args).out
    path.write_text(path.read_text().replace("label4\tgroup1", "label4\tgroup2"))
    refused = run(*args)
    assert (refused.code, "that of another run" in refused.err) == (1, True)


def test_a_circle_is_found_before_the_data_is_read(run: Run, tmp_path: Path) -> None:
    path = tmp_path / "taxonomy.tsv"
    path.write_text("a\tb\nb\ta\n")
    found = run("train", "no such file", "--model", tmp_path / "m", "--taxonomy", path)
    assert found.code == 1
    assert found.err.startswith(f"error: {path}, line 2: the taxonomy goes round in a circle: a → b → a")


def test_output_into_a_pipe_leaves_the_pipe(run: Run, model: Path, test_file: Path, tmp_path: Path) -> None:
    pipe, got = tmp_path / "pipe", []
    os.mkfifo(pipe)
    reader = threading.Thread(target=lambda: got.append(pipe.read_text()))
    reader.start()
    assert run("predict", model, test_file, "-o", pipe).code == 0
    reader.join()
    assert pipe.is_fifo()
    assert got == [run("predict", model, test_file).out]


def test_a_link_is_followed(run: Run, model: Path, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "real")
    assert run("predict", model, "--text", "word1", "-o", tmp_path / "link").code == 0
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_text().startswith('{"id": 0')


def test_a_reader_that_leaves_is_no_noise(model: Path, tmp_path: Path) -> None:
    path = _jsonl(tmp_path / "many.jsonl", [{"text": f"word{i % 12}"} for i in range(20000)])
    for args in (["predict", str(model), str(path)], ["methods", "xr-linear"]):
        command = [sys.executable, "-m", "labelwood", *args]
        with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
            assert process.stdout is not None
            assert process.stderr is not None
            process.stdout.close()
            assert process.stderr.read() == b""
        assert process.returncode == 141


# -- evaluate


def _evaluation(model: Path, test_file: Path, **config: Any) -> Evaluation:
    return lw.load(model).evaluate(test_file, metrics=lw.MetricsConfig(**config))


def test_evaluate_writes_json(run: Run, model: Path, test_file: Path, tmp_path: Path) -> None:
    found = run("evaluate", model, test_file, "--json", tmp_path / "m.json")
    assert (found.code, found.err) == (0, "")
    written = json.loads((tmp_path / "m.json").read_text())
    rest = ["intervals", "counts", "unseen", "a", "b", "psndcg", "bootstrap", "seed", "level"]
    assert list(written) == ALL_KEYS + rest
    assert written == json.loads(json.dumps(_evaluation(model, test_file).to_json()))
    assert written["P@1"] == pytest.approx(100 * 13 / 14)
    assert written["counts"]["rows"] == 14
    assert written["counts"]["unseen_labels"] == 2
    only = run("evaluate", model, test_file, "--json", "-")
    assert json.loads(only.out) == written


def test_evaluate_prints_a_table(run: Run, model: Path, test_file: Path) -> None:
    lines = run("evaluate", model, test_file).out.splitlines()
    assert lines[0] == f"{test_file}: 14 documents, 14 labels, 1.07 labels per document"
    assert lines[1] == "  text from text"
    assert lines[2].split() == ["metric", "@1", "@3", "@5", "@10"]
    values = _evaluation(model, test_file)
    assert lines[3].split() == ["P", *(f"{values.values[f'P@{k}']:.2f}" for k in (1, 3, 5, 10))]
    low, high = values.intervals["P@1"]
    assert lines[4].split()[0] == f"{low:.2f}–{high:.2f}"
    assert "training: 2 labels (2 occurrences), counted as misses; no other label in 1 of 14 rows." in " ".join(
        lines[-3:]
    )
    assert all(len(line) <= 80 for line in lines[1:])


def test_evaluate_drops_unseen_labels_when_asked(run: Run, model: Path, test_file: Path) -> None:
    found = run("evaluate", model, test_file, "--unseen", "drop", "--ks", "2,1", "--bootstrap", "0")
    lines = found.out.splitlines()
    assert lines[2].split() == ["metric", "@1", "@2"]
    assert lines[3].split() == ["P", "100.00", "50.00"]
    assert "dropped together with 1 of 14 rows left without a label." in " ".join(lines)
    assert not any("–" in line for line in lines)
    as_json = run("evaluate", model, test_file, "--unseen", "drop", "--ks", "5", "--bootstrap", "0", "--json", "-")
    assert json.loads(as_json.out)["P@5"] == pytest.approx(20)
    assert json.loads(as_json.out)["intervals"] == {}


def test_metrics_options_reach_the_metrics(run: Run, model: Path, test_file: Path) -> None:
    more = ["--propensity-a", "0.6", "--propensity-b", "2.6", "--psndcg", "attentionxml", "--bootstrap", "50",
            "--bootstrap-seed", "4", "--level", "90"]  # fmt: skip
    found = json.loads(run("evaluate", model, test_file, "--json", "-", *more).out)
    config = {"a": 0.6, "b": 2.6, "psndcg": "attentionxml", "bootstrap": 50, "seed": 4, "level": 90.0}
    assert {key: found[key] for key in config} == config
    assert found == json.loads(json.dumps(_evaluation(model, test_file, **config).to_json()))


def test_propensity_constants_by_data_set(run: Run, model: Path, test_file: Path) -> None:
    def constants(*more: str) -> tuple[float, float]:
        found = json.loads(run("evaluate", model, test_file, "--json", "-", "--bootstrap", "0", *more).out)
        return found["a"], found["b"]

    assert constants() == (0.55, 1.5)
    assert constants("--propensity", "Wikipedia-500K") == (0.5, 0.4)
    assert constants("--propensity", "amazon_670k") == (0.6, 2.6)
    assert constants("--propensity", "Amazon-670K", "--propensity-b", "9") == (0.6, 9.0)
    assert constants("--propensity-a", "0.1") == (0.1, 1.5)


def test_evaluation_in_blocks_is_that_of_the_whole(
    run: Run, model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Labels, also unseen ones, are numbered anew in every block; one block has no labels at all."""
    names = ["label3", "label11", "never", "label0", "brand new", "label7"]
    rows = [{"text": f"word{i % 12} word{i % 5}", "labels": sorted({names[i % 6], names[i % 5]})} for i in range(300)]
    rows[100:105] = [{"text": "word1", "labels": []}] * 5
    rows[5]["labels"] *= 2
    path = _jsonl(tmp_path / "many.jsonl", rows)
    sizes: list[int] = []

    def small(*args: Any, **options: Any) -> Iterator[Any]:
        for block in stream(*args, block=5, **options):
            sizes.append(len(block))
            yield block

    monkeypatch.setattr("labelwood.cli.evaluate.stream", small)
    found = run("evaluate", model, path, "--json", tmp_path / "m.json", "--unseen", "drop")
    assert sizes == [5] * 60
    assert json.loads((tmp_path / "m.json").read_text()) == json.loads(
        json.dumps(_evaluation(model, path, unseen="drop").to_json())
    )
    whole = read_data(path)
    assert whole.labels is not None
    per_document = f"{whole.labels.nnz / 300:.2f} labels per document"
    assert found.out.splitlines()[0] == f"{path}: 300 documents, 6 labels, {per_document}"
    assert (whole.report.no_labels, whole.report.duplicate_labels) == (5, 2)
    assert found.out.splitlines()[2] == "  5 documents without a label; 2 repeated labels merged"


def test_evaluation_needs_labels(run: Run, model: Path, tmp_path: Path) -> None:
    path = _jsonl(tmp_path / "t.jsonl", [{"text": "word1"}])
    assert "line 1, field labels: the field 'labels' is missing" in run("evaluate", model, path).err
    assert (
        run("evaluate", model, path, "--labels-field", "none").err
        == "error: the data has no labels; evaluation needs them.\n"
    )


def test_features_instead_of_text(run: Run, model: Path, tmp_path: Path, test_file: Path) -> None:
    data = tmp_path / "data.txt"
    data.write_text("6 3 3\n" + "0 0:1.0\n1 1:1.0\n2 2:1.0\n" * 2)
    assert run("train", data, "--model", tmp_path / "m").code == 0
    assert [row["labels"][0]["label"] for row in run("predict", tmp_path / "m", data).lines] == list("012012")
    assert json.loads(run("evaluate", tmp_path / "m", data, "--json", "-").out)["P@1"] == 100.0
    assert "the data holds features" in run("predict", model, data).err
    assert "the data holds text" in run("evaluate", tmp_path / "m", test_file).err
    assert run("predict", tmp_path / "m", "--text", "word1").code == 1


def test_folders_are_tested_on_their_test_part(run: Run, tmp_path: Path) -> None:
    for part, word in (("trn", "old"), ("tst", "new")):
        (tmp_path / f"X.{part}.txt").write_text(f"{word} one\n{word} two two\n")
    found = {part: (tmp_path / f"X.{part}.txt") for part in ("trn", "tst")}
    texts = found["trn"].read_text().splitlines()
    lw.train(texts, [["a"], ["b"]], settings={"tfidf.min_df": 1}).save(tmp_path / "m")
    rows = run("predict", tmp_path / "m", tmp_path, "--format", "pecos", "-k", "1").lines
    expected = lw.load(tmp_path / "m").predict(found["tst"].read_text().splitlines(), k=1)
    assert [[(y["label"], y["score"]) for y in row["labels"]] for row in rows] == expected


# -- inspect, verify, methods


def test_inspect_shows_the_model(run: Run, model: Path, train_file: Path, tmp_path: Path) -> None:
    found = run("inspect", model)
    manifest = model_folder.describe(model)
    assert found.out.startswith(f"{model}: xr-linear\n")
    rows = [line.split() for line in found.out.splitlines()]
    assert ["trained", "on", "72", "documents"] in rows
    assert ["labels", "12"] in rows
    assert ["1", "12", str(lw.load(model).levels[0].nonzeros)] in rows
    for entry in manifest.files.values():
        assert [entry.name, f"{entry.bytes:,}"] in rows
    assert "all settings are the defaults" in found.out
    assert run("train", train_file, "--model", tmp_path / "m", "--set", "linear.cp=0.5").code == 0
    rows = [line.split() for line in run("inspect", tmp_path / "m").out.splitlines()]
    assert ["linear.cp", "0.5", "1.0"] in rows


def test_verify_notices_a_flipped_bit(run: Run, model: Path, tmp_path: Path) -> None:
    found = run("verify", model)
    assert (found.code, found.err) == (0, "")
    assert found.out.startswith(f"{model} is sound: xr-linear, 12 labels, 4 files, ")
    for name, content in _files(model).items():
        (tmp_path / name).write_bytes(content)
    [level] = tmp_path.glob("level-1-*")
    content = bytearray(level.read_bytes())
    content[-1] ^= 1
    level.write_bytes(content)
    found = run("verify", tmp_path)
    assert found.code == 1
    assert found.err.startswith(f"error: {level}: bytes 0 to ")


def test_methods_are_listed(run: Run) -> None:
    found = run("methods")
    assert [line for line in found.out.splitlines() if line in lw.methods()] == list(lw.methods())


@pytest.mark.parametrize("name", lw.methods())
def test_settings_that_act_are_listed_and_all_of_them_if_asked_for(run: Run, name: str) -> None:
    from labelwood.base.config import describe, idle
    from labelwood.recipes.methods import METHODS

    recipe = METHODS[name].recipe
    every = {row.path for row in describe(recipe)}
    for flags, expected in (((), every - idle(recipe).keys()), (("--all",), every)):
        found = run("methods", name, *flags)
        lines = [line.split() for line in found.out.splitlines() if line]
        listed = [cells[0] for cells in lines if cells[0] in every and len(cells) > 2]
        assert set(listed) == expected
        assert all(len(line) <= 80 for line in found.out.splitlines())
    assert "did you mean 'xr-linear'?" in run("methods", "xr-lineer").err


def test_the_listing_of_a_linear_method_is_short(run: Run) -> None:
    out = run("methods", "xr-linear").out
    names = [line.split()[0] for line in out.splitlines() if re.match(r"  [a-z]+(\.[a-z_0-9]+)? +\S", line)]
    settings = [name for name in names if "." in name or name == "seed"]
    assert 40 < len(settings) <= 60
    assert settings.index("tfidf.chars") < settings.index("linear.eps") < settings.index("seed")
    assert "finetune" not in out
    assert "it acts where an encoder is fine-tuned" in " ".join(run("methods", "xr-linear", "--all").out.split())


# -- quickstart


def test_quickstart(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, train_file: Path) -> None:
    monkeypatch.chdir(tmp_path)
    found = run("quickstart")
    assert (found.code, found.err) == (0, "")
    made = [] if importlib.util.find_spec("torch") is None else ["quickstart-model-transformer"]
    assert sorted(p.name for p in tmp_path.iterdir()) == ["quickstart-model", *made]
    assert ("is not installed, so the transformer is left out" in found.out) is not bool(made)
    lines = found.out.splitlines()
    assert lines[1] == "training: 2,885 documents, 323 labels, 6.00 labels per document"
    [precision] = [line.split() for line in lines if line.startswith("P  ")]
    assert float(precision[1]) > 90
    assert sum(line.count("✓") for line in lines) >= 8
    suggested = [shlex.split(line)[1:] for line in lines if line.startswith("  labelwood ")]
    assert len(suggested) == 6
    for args in suggested:
        assert run(*args).code == 0, args
    assert run("quickstart", "--linear-only").code == 0  # its own model is replaced
    assert run("train", train_file, "--model", "quickstart-model", "--overwrite").code == 0
    before = _files(tmp_path / "quickstart-model")
    refused = run("quickstart")  # somebody's own is not
    assert (refused.code, "is not from quickstart" in refused.err) == (1, True)
    assert _files(tmp_path / "quickstart-model") == before


# -- small parts


@pytest.mark.parametrize(
    ("count", "text"),
    [(0, "0 bytes"), (999, "999 bytes"), (1000, "1.0 kB"), (1_550_000, "1.6 MB"), (2 * 10**15, "2000.0 TB")],
)
def test_sizes_for_people(count: int, text: str) -> None:
    assert show.size(count) == text


def test_times_for_people() -> None:
    assert [show.seconds(value) for value in (0.004, 59.99, 61)] == ["0.00 s", "59.99 s", "1 min 1 s"]


def test_control_characters_do_not_reach_the_terminal(run: Run, tmp_path: Path) -> None:
    found = run("inspect", tmp_path / "a\x1b[31mb\nc")
    assert "\x1b" not in found.err
    assert found.err.count("\n") == 1
