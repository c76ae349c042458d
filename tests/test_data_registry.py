"""A data format is registered in its own file; sniffing, reading, the command line and the docs follow."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import pytest

import labelwood as lw
from labelwood.cli import main
from labelwood.data import ReadOptions, read, sniff
from labelwood.data.formats import registry
from labelwood.data.formats.registry import FORMATS, Format, Sign, in_order, register
from labelwood.data.options import FORMAT_NAMES as NAMES
from labelwood.data.parsing.input_pass import each_line
from labelwood.data.parsing.rows import Row

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture
def semicolons():
    """A format of a test's own, as its file would register it: `!a b;text`."""
    before = dict(FORMATS)

    def parse(line: bytes) -> Row:
        labels, _, text = line[1:].rstrip(b"\n").partition(b";")
        return Row(text, labels.decode().split())

    register(Format("bang", lambda reading: each_line(reading, parse), "`!a b;text`", 99, lines=(Sign(rb"!", 5),)))
    yield
    FORMATS.clear()
    FORMATS.update(before)


def test_a_registered_format_is_sniffed_and_read(semicolons, tmp_path):
    path = tmp_path / "data"
    path.write_text("!x y;one\n!y;two\n", encoding="utf-8")
    assert sniff(path) == "bang"
    found = read(path)
    assert (list(found.texts), found.names) == (["one", "two"], ("x", "y"))
    with pytest.raises(lw.DataError, match="xmc, xmc-pair, attentionxml, pecos, bang"):
        sniff(_written(tmp_path / "other", "what is this\n"))


def _written(path: Path, text: str) -> Path:
    path.write_text(text, encoding="utf-8")
    return path


def test_a_name_or_a_rank_is_taken_once(semicolons):
    taken = FORMATS["bang"]
    for new in (
        Format("bang", taken.rows, "", 100), Format("other", taken.rows, "", 99),
        Format("other", taken.rows, "", 100, lines=(Sign(b"x", 5),)),
    ):  # fmt: skip
        with pytest.raises(lw.ConfigError, match="has the name, the place or a rank of 'bang'"):
            register(new)
    assert "other" not in FORMATS


def test_every_file_of_the_folder_registers_what_it_reads():
    """And nothing else in the library names a format."""
    folder = Path(registry.__file__).parent
    files = {path.stem for path in folder.glob("*.py")} - {"__init__", "registry"}
    assert {known.rows.__module__.rpartition(".")[2] for known in FORMATS.values()} == files
    for path in (ROOT / "src" / "labelwood" / "data").glob("*.py"):
        text = path.read_text(encoding="utf-8")
        assert not [name for name in FORMATS if f'"{name}"' in text], path


def test_options_and_the_command_line_offer_every_format(capsys):
    names = [known.name for known in in_order()]
    assert ("auto", *names) == NAMES
    assert len(names) >= 10
    for name in names:
        assert ReadOptions(format=name).format == name
    assert main(["train", "--help"]) == 0
    assert "|".join(NAMES) in "".join(capsys.readouterr().out.split())


def test_the_docs_show_every_format():
    spec = importlib.util.spec_from_file_location("formats_table", ROOT / "tools" / "formats_table.py")
    assert spec is not None
    assert spec.loader is not None
    tool = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(tool)
    doc = tool.page().read_text(encoding="utf-8")
    assert tool.with_table(doc) == doc, "run: python tools/formats_table.py"


def test_a_folder_of_two_formats_is_the_later_one(tmp_path):
    for name in ("trn_X_Xf.txt", "X.trn.txt"):
        (tmp_path / name).touch()
    assert sniff(tmp_path) == "pecos"
