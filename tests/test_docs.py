"""The pages: every block of code runs, every link, setting and name is there, and every page says what it is.

README, tutorial and how-to are run block by block in a folder of their own, where a page's files stay from block to
block. A block of output (```text) right below is compared with what was printed; `…` stands for anything.
"""

from __future__ import annotations

import contextlib
import dataclasses
import importlib.util
import io
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
import typer.main

import labelwood as lw
import prose
from conftest import HAS_TORCH
from labelwood.base.config import describe, with_settings
from labelwood.recipes.methods import METHODS
from labelwood.recipes.recipe import Recipe
from labelwood.storage import model_folder

ROOT = Path(__file__).parent.parent
DOCS = ROOT / "docs"
INDEX = DOCS / "README.md"
KINDS = ("tutorial", "howto", "reference", "results")
PAGES = sorted(DOCS.rglob("*.md"))
README = ROOT / "README.md"
RUN = [README, *sorted(page for kind in ("tutorial", "howto") for page in (DOCS / kind).glob("*.md"))]
NOT_RUN = 5  # blocks that a fresh machine cannot run; each is marked and says why
SECONDS = 900  # of one block at most, on a machine with other work; alone they take a minute together


def text_of(page: Path) -> str:
    return page.read_text(encoding="utf-8")


def name_of(page: Path) -> str:
    return page.relative_to(ROOT).as_posix()


# --- Code ----------------------------------------------------------------------------------------


@dataclasses.dataclass(frozen=True)
class Block:
    """A fenced block: its language, its lines, why it is not run if so, and the output that is shown below it."""

    language: str
    code: str
    line: int
    not_run: str | None = None
    shown: str | None = None


MARKER = re.compile(r"^<!-- not run: (.+) -->$")
FENCE = re.compile(r"^```(\w*)$")


def blocks(page: Path) -> list[Block]:
    """The fenced blocks of a page; a block of output belongs to the block above it."""
    lines = text_of(page).splitlines()
    found: list[Block] = []
    number, last_end = 0, -2
    while number < len(lines):
        opening = FENCE.match(lines[number])
        if not opening:
            number += 1
            continue
        end = next(i for i in range(number + 1, len(lines)) if lines[i] == "```")
        code = "\n".join(lines[number + 1 : end]) + "\n"
        above = [line for line in lines[max(0, number - 2) : number] if line]
        marker = MARKER.match(above[-1]) if above else None
        if opening[1] == "text":
            if found and number - last_end == 2:
                found[-1] = dataclasses.replace(found[-1], shown=code)
        else:
            found.append(Block(opening[1], code, number + 1, marker[1] if marker else None))
        number, last_end = end + 1, end
    return found


def run_python(block: Block, page: Path, names: dict[str, object]) -> str:
    """What a block prints; the names it makes are there for those below it."""
    out = io.StringIO()
    with contextlib.redirect_stdout(out):
        exec(compile("\n" * block.line + block.code, str(page), "exec"), names)
    return out.getvalue()


def run_shell(block: Block, page: Path, folder: Path) -> str:
    """What a block prints; the first command that fails ends it."""
    path = os.pathsep.join([str(Path(sys.executable).parent), os.environ.get("PATH", "")])
    env = {**os.environ, "PATH": path, "OMP_WAIT_POLICY": "PASSIVE"}  # torch's threads wait without burning a busy core
    done = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", block.code], cwd=folder, env=env,
        stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=SECONDS, check=False,
    )  # fmt: skip
    assert done.returncode == 0, f"{name_of(page)}, line {block.line}: {done.stdout[-2000:]}\n{done.stderr[-2000:]}"
    return done.stdout


def check_output(block: Block, page: Path, printed: str) -> None:
    """Every line that is shown stands in the output, in that order."""
    lines = iter(printed.splitlines())
    for shown in (block.shown or "").splitlines():
        pattern = re.compile(r"\s+".join(re.escape(part).replace("…", ".*") for part in shown.split()))
        assert any(pattern.fullmatch(line.strip()) for line in lines), (
            f"{name_of(page)}, below line {block.line}: no line of the output is {shown!r}:\n{printed}"
        )


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_every_block_of_code_runs(page, tmp_path, monkeypatch):
    if "<!-- needs an encoder -->" in text_of(page) and not HAS_TORCH:
        pytest.skip("torch is not installed")
    monkeypatch.chdir(tmp_path)
    names: dict[str, object] = {"__name__": "__main__"}
    for block in blocks(page):
        if block.not_run is not None:
            continue
        assert block.language in {"python", "console", "toml"}, f"{name_of(page)}, line {block.line}: not a language"
        if block.language == "python":
            check_output(block, page, run_python(block, page, names))
        elif block.language == "console":
            check_output(block, page, run_shell(block, page, tmp_path))


def test_few_blocks_are_not_run():
    marked = [(name_of(page), block.line, block.not_run) for page in RUN for block in blocks(page) if block.not_run]
    assert len(marked) == NOT_RUN, marked
    for page in RUN:
        assert text_of(page).count("<!-- not run: ") == sum(1 for block in blocks(page) if block.not_run), name_of(page)


@pytest.mark.parametrize("page", RUN, ids=name_of)
def test_code_stands_in_fences(page):
    """An indented block would be code that nobody runs."""
    before = ""
    for number, line in enumerate(prose.FENCE.sub("", text_of(page)).splitlines(), 1):
        assert not (line.startswith("    ") and not before.strip()), f"{name_of(page)}, line {number}: {line}"
        before = line


def test_output_that_is_shown_is_compared(tmp_path):
    page = tmp_path / "page.md"
    page.write_text("```python\nprint('a 1.25 s')\n```\n\n```text\na …  s\n```\n", encoding="utf-8")
    (block,) = blocks(page)
    check_output(block, ROOT / "page.md", "first\na 1.25 s\n")
    with pytest.raises(AssertionError):
        check_output(block, ROOT / "page.md", "first\nb 1.25 s\n")


# --- Links and order -----------------------------------------------------------------------------

LINK = re.compile(r"\]\(([^)\s]+)\)")


def links(page: Path) -> list[str]:
    """Where a page points to, but for addresses of the web."""
    text = re.sub(r"`[^`\n]*`", "", prose.FENCE.sub("", text_of(page)))
    return [target for target in LINK.findall(text) if not target.startswith(("http://", "https://", "mailto:"))]


def anchors(page: Path) -> set[str]:
    """Headings of a page as a browser of repositories names them."""
    found = set()
    for heading in re.findall(r"^#+ (.+)$", prose.FENCE.sub("", text_of(page)), re.MULTILINE):
        plain = re.sub(r"\[([^\]]*)\]\([^)]*\)", r"\1", heading).replace("`", "").replace("*", "").lower()
        found.add(re.sub(r"[^\w\- ]", "", plain).replace(" ", "-"))
    return found


@pytest.mark.parametrize("page", [README, ROOT / "CONTRIBUTING.md", ROOT / "CHANGELOG.md", *PAGES], ids=name_of)
def test_every_link_leads_somewhere(page):
    for target in links(page):
        path, _, anchor = target.partition("#")
        there = page if not path else (page.parent / path).resolve()
        assert there.exists(), f"{name_of(page)}: {target}"
        if anchor and there.suffix == ".md" and there.exists():
            assert anchor in anchors(there), f"{name_of(page)}: {target}; there are {sorted(anchors(there))}"


def test_every_page_is_reached_from_the_index():
    reached, todo = set(), [INDEX]
    while todo:
        page = todo.pop()
        if page in reached or page.suffix != ".md" or not page.exists():
            continue
        reached.add(page)
        todo += [(page.parent / target.partition("#")[0]).resolve() for target in links(page)]
    assert not set(PAGES) - reached


def test_every_figure_is_shown():
    shown = {(page.parent / target).resolve() for page in [README, *PAGES] for target in links(page)}
    assert not set(DOCS.rglob("*.svg")) - shown


def test_pages_are_of_four_kinds():
    assert {page.parent.name for page in PAGES if page.parent != DOCS} == set(KINDS)
    assert {page.name for page in DOCS.glob("*.md")} <= {"README.md", "architecture.md"}
    index = text_of(INDEX)
    for page in PAGES:
        if page.parent != DOCS:
            assert f"({page.relative_to(DOCS).as_posix()})" in index, f"docs/README.md leaves out {name_of(page)}"


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent != DOCS], ids=name_of)
def test_a_page_opens_with_who_needs_it(page):
    title, _, rest = text_of(page).partition("\n")
    assert re.fullmatch(r"# \S.*", title)
    assert rest.lstrip("\n").startswith("For "), f"{name_of(page)} begins with {rest.strip()[:60]!r}"


@pytest.mark.parametrize("page", sorted((DOCS / "results").glob("*.md")), ids=name_of)
def test_results_name_their_commands(page):
    assert re.search(r"^ {4}\S|^```", text_of(page), re.MULTILINE), f"{name_of(page)} has figures without a command"


# --- Names ---------------------------------------------------------------------------------------

SETTINGS = {row.path for row in describe(METHODS["xr-linear"].recipe)}
SECTIONS = sorted({path.partition(".")[0] for path in SETTINGS if "." in path})
KEYS = {"encoder.config", "encoder.architecture"}  # of a manifest
ENDINGS = ("py", "cpp", "h", "md", "json", "jsonl", "csv", "tsv", "xz", "txt", "svm", "toml", "parquet", "svg")
DOTTED = re.compile(rf"(?<![\w./-])({'|'.join(SECTIONS)})\.([a-z]\w*)(?![\w(])")
GIVEN = re.compile(rf"(?<![\w./:-])((?:{'|'.join(SECTIONS)})\.[a-z]\w*|ranker|network_share|seed)=([\w.,+-]+)")
CODE = re.compile(r"^( *)```.*?^\1```$|`[^`\n]+`|^ {4}\S.*$", re.MULTILINE | re.DOTALL)


def code_of(page: Path) -> str:
    """All that stands in code style."""
    return "\n".join(match.group() for match in CODE.finditer(text_of(page)))


@pytest.mark.parametrize("page", [README, *PAGES], ids=name_of)
def test_every_setting_that_is_named_exists(page):
    for section, key in DOTTED.findall(code_of(page)):
        assert f"{section}.{key}" in SETTINGS | KEYS or key in ENDINGS, f"{name_of(page)} names {section}.{key}"


@pytest.mark.parametrize("page", [README, *PAGES], ids=name_of)
def test_every_value_that_is_named_is_allowed(page):
    base = with_settings(Recipe("xr-linear"), {"tfidf.chars": (4, 4)})  # so that tfidf.words=none leaves something
    for path, value in GIVEN.findall(code_of(page)):
        with_settings(base, {path: value.rstrip(".,")})


def test_the_index_of_methods_is_whole():
    for name in ("reference/methods.md", "howto/choose-a-method.md"):
        assert not {method for method in METHODS if f"`{method}`" not in text_of(DOCS / name)}


def test_the_commands_are_whole():
    from labelwood.cli import app

    page = text_of(DOCS / "reference" / "command-line.md")
    names = {command.name or command.callback.__name__ for command in app.registered_commands}
    assert not {name for name in names if f"`labelwood {name}" not in page}


@pytest.mark.parametrize("page", [README, *(page for page in PAGES if page.parent.name != "results")], ids=name_of)
def test_every_option_that_is_named_exists(page):
    from labelwood.cli import app

    commands = typer.main.get_command(app).commands.values()  # type: ignore[attr-defined]
    known = {name for command in commands for parameter in command.params for name in parameter.opts}
    others = {"--version", "--help", "--no-deps"}  # of the program itself, and of pip
    for option in re.findall(r"(?<![\w-])--[a-z][\w-]*", code_of(page)):
        assert option in known | others, f"{name_of(page)} names {option}"


def test_the_api_page_is_that_of_the_docstrings():
    """Mended by `.venv/bin/python tools/api_page.py`."""
    spec = importlib.util.spec_from_file_location("api_page", ROOT / "tools" / "api_page.py")
    assert spec is not None
    assert spec.loader is not None
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)
    assert text_of(made.PAGE) == made.page()


def test_the_api_page_names_every_public_name():
    page = text_of(DOCS / "reference" / "api.md")
    for name in lw.__all__:
        assert f"`{name}`" in page or f"`lw.{name}`" in page, f"docs/reference/api.md leaves out {name}"
        found = getattr(lw, name)
        if isinstance(found, type) and not issubclass(found, Exception):
            fields = found.__dataclass_fields__ if dataclasses.is_dataclass(found) else {}
            for member in [*vars(found), *fields]:
                told = member.startswith("_") or re.search(rf"`\.?(?:{name}\.)?{member}\b", page)
                assert told, f"docs/reference/api.md leaves out {name}.{member}"


def test_the_page_on_model_folders_names_every_tensor():
    """Of the frozen models that hold no LSTM, whose weights have torch's own names."""
    page = text_of(DOCS / "reference" / "model-format.md")
    for folder in (ROOT / "tests" / "files" / "v1").iterdir():
        if not folder.is_dir() or folder.name == "attentionxml":
            continue
        for part, tensors in model_folder.load(folder).parts.items():
            for tensor in tensors:
                name = re.sub(r"^layers\.\d+\.", "layers.<i>.", tensor)
                name = re.sub(r"^child_ptr\.\d+$", "child_ptr.0", name)
                name = re.sub(r"^maps\.\d+\.", "maps.<number>.", name)
                row = f"`{name}`" in page or f"`{name.removesuffix('bias')}weight`, `.bias`" in page
                assert row, f"docs/reference/model-format.md leaves out {part}: {tensor}"


def test_the_changelog_is_kept_by_kind():
    headings = re.findall(r"^### (.+)$", text_of(ROOT / "CHANGELOG.md"), re.MULTILINE)
    assert headings
    assert set(headings) <= {"Added", "Changed", "Deprecated", "Removed", "Fixed", "Security"}


# --- Words ---------------------------------------------------------------------------------------


def test_the_readme_is_short():
    assert len(text_of(README).splitlines()) <= 130


@pytest.mark.parametrize("page", [README, ROOT / "CONTRIBUTING.md", *PAGES], ids=name_of)
def test_pages_name_no_place_of_one_machine(page):
    found = re.findall(r"(?<![\w.~$}])/(?:home|root|work|tmp|opt|usr|mnt|var|Users)/\S*", text_of(page))
    found += re.findall(r"\S*(?:pypi\.org|pythonhosted|download\.pytorch)\S*", text_of(page))
    assert not found


def test_sentences_of_the_page_on_encoders_are_short():
    assert prose.mean_words(text_of(DOCS / "reference" / "encoders.md")) <= 17


@pytest.mark.parametrize("page", [page for page in PAGES if page.parent.name in KINDS[:3]], ids=name_of)
def test_sentences_are_short(page):
    assert prose.mean_words(text_of(page)) <= 20


def test_words_of_a_sentence_are_counted():
    page = (
        "# Head\n\nOne two three. Four `a b c` five, [six seven](x.md).\n\n| a | b |\n\n- eight nine\n  ten\n- eleven\n"
    )
    assert [prose.words(sentence) for sentence in prose.sentences(page)] == [3, 5, 3, 1]
