"""Rules of the house that a reader could check by eye: what the sources never say, and what importing never loads."""

from __future__ import annotations

import ast
import inspect
import re
import subprocess
import sys
from pathlib import Path

import pytest

import labelwood as lw

ROOT = Path(__file__).resolve().parents[1]
PYTHON = sorted((ROOT / "src").rglob("*.py"))
NATIVE = sorted([*(ROOT / "native").rglob("*.cpp"), *(ROOT / "native").rglob("*.h")])
HEAVY = {"torch", "transformers", "fastapi", "uvicorn", "ray", "matplotlib", "pyarrow", "sklearn", "pandas"}
VAGUE = {
    *[
        "What",
        "Who",
        "Whom",
        "Whose",
        "Of",
        "Those",
        "As",
        "Where",
        "Whether",
        "How",
        "By",
        "From",
        "On",
        "In",
        "At",
        "With",
        "For",
        "To",
        "It",
        "They",
        "This",
        "That",
        "When",
    ]
}
NEVER = {"pickle", "cPickle", "_pickle", "dill", "cloudpickle", "joblib", "shelve", "marshal"}


def imported(tree: ast.AST) -> set[str]:
    """Top-level names of all modules that a file imports, wherever it does."""
    found: set[str] = set()
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found |= {name.name.split(".")[0] for name in node.names}
        elif isinstance(node, ast.ImportFrom) and node.level == 0 and node.module:
            found.add(node.module.split(".")[0])
    return found


def called(tree: ast.AST) -> set[str]:
    """What a file calls, as written: `eval`, `torch.load`."""
    return {ast.unparse(node.func) for node in ast.walk(tree) if isinstance(node, ast.Call)}


def room(path: Path) -> str:
    return str(path.relative_to(ROOT))


@pytest.mark.parametrize("path", PYTHON, ids=room)
def test_nothing_runs_code_from_data(path):
    tree = ast.parse(path.read_text(encoding="utf-8"))
    assert not imported(tree) & NEVER
    assert not called(tree) & {"eval", "exec", "compile", "__import__", "torch.load", "os.system"}
    assert not re.search(r"trust_remote_code\s*=\s*True|allow_pickle\s*=\s*True|shell\s*=\s*True", path.read_text())


@pytest.mark.parametrize("path", [*PYTHON, *NATIVE, ROOT / "CMakeLists.txt", ROOT / "pyproject.toml"], ids=room)
def test_no_paths_of_one_machine(path):
    text = path.read_text(encoding="utf-8")
    assert not re.findall(r"""["'\s(](?:/home|/root|/Users|/mnt|/opt|/tmp|/var)/""", text)


@pytest.mark.parametrize("path", PYTHON, ids=room)
def test_every_file_says_what_it_is(path):
    text = path.read_text(encoding="utf-8")
    assert ast.get_docstring(ast.parse(text))
    assert len(text.splitlines()) < 450


@pytest.mark.parametrize("path", PYTHON, ids=room)
def test_a_docstring_names_its_object(path):
    """It begins with a verb or a noun, or it is a question with an answer of yes or no."""
    kinds = ast.Module | ast.ClassDef | ast.FunctionDef | ast.AsyncFunctionDef
    for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
        said = ast.get_docstring(node) if isinstance(node, kinds) else None
        assert said is None or said.split()[0] not in VAGUE, said.splitlines()[0]


@pytest.mark.parametrize("path", PYTHON, ids=room)
def test_a_file_that_is_spoken_of_is_there(path):
    """F-S13: docstrings and comments name the modules of today."""
    files = [room(file) for folder in ("src", "tests", "bench") for file in (ROOT / folder).rglob("*.py")]
    for name in re.findall(r"(?<![\w.*/])([a-z_]+(?:/[a-z_]+)*\.py)\b", path.read_text(encoding="utf-8")):
        assert any(file.endswith(f"/{name}") or file == name for file in files), name


@pytest.mark.parametrize("path", PYTHON, ids=room)
def test_heavy_libraries_stay_in_their_rooms(path):
    """torch only in neural/, FastAPI only in serve/, Ray only in cluster/; pyarrow where Parquet is read."""
    rooms = {"torch": "neural", "transformers": "neural", "fastapi": "serve", "ray": "cluster", "pyarrow": "parquet"}
    for name in imported(ast.parse(path.read_text(encoding="utf-8"))) & rooms.keys():
        assert rooms[name] in room(path), name


def test_importing_is_light():
    code = f"import sys, labelwood; print(sorted(set(sys.modules) & {HEAVY!r}))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "[]"


def test_importing_training_and_loading_open_no_connection_and_run_nothing(tmp_path):
    """C1: an audit hook over import, train, predict, save and load."""
    code = f"""
import sys
seen = []
bad = ("socket.connect", "socket.bind", "socket.getaddrinfo", "subprocess.Popen", "os.system", "os.exec", "os.fork",
       "os.posix_spawn", "pickle.find_class", "urllib.Request", "ctypes.dlopen")
import numpy, scipy.sparse, safetensors
sys.addaudithook(lambda event, args: seen.append((event, str(args))) if event in bad else None)
import labelwood as lw
model = lw.train(["ab cd", "ab ef"] * 4, [["x"], ["y"]] * 4)
model.save({str(tmp_path / "m")!r})
print(lw.load({str(tmp_path / "m")!r}).predict(["ab cd"], k=1)[0][0][0], seen)
"""
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert found.stdout.strip() == "x []"


def public() -> list[object]:
    """The functions and classes of `labelwood`, and the methods of the classes."""
    found: list[object] = []
    for name in lw.__all__:
        value = getattr(lw, name)
        if inspect.isfunction(value) or inspect.isclass(value):
            found.append(value)
        if inspect.isclass(value) and not issubclass(value, Exception):
            members = (getattr(value, m) for m in vars(value) if not m.startswith("_"))
            found += [m for m in members if inspect.isfunction(m)]
    return found


@pytest.mark.parametrize("value", public(), ids=lambda v: v.__qualname__)
def test_what_is_public_is_explained(value):
    assert inspect.getdoc(value)
    if inspect.isfunction(value):
        kinds = {p.kind for p in inspect.signature(value).parameters.values()}
        assert inspect.Parameter.VAR_KEYWORD not in kinds


def test_every_native_name_has_its_types():
    stub = ast.parse((ROOT / "src" / "labelwood" / "_core.pyi").read_text(encoding="utf-8"))
    typed = {node.name for node in stub.body if isinstance(node, ast.FunctionDef | ast.ClassDef)}
    typed |= {
        node.target.id for node in stub.body if isinstance(node, ast.AnnAssign) and isinstance(node.target, ast.Name)
    }
    source = "".join(path.read_text(encoding="utf-8") for path in NATIVE if path.name.startswith("bind"))
    bound = set(re.findall(r'\bm\.def\(\s*"(\w+)"|class_<\w+>\(m, "(\w+)"|\bm\.attr\("(\w+)"', source))
    names = {next(filter(None, groups)) for groups in bound}
    assert len(names) > 8
    assert names == typed
    assert names == {name for name in dir(lw._core) if not name.startswith("_")}  # type: ignore[attr-defined]


def test_native_rooms():
    """No Python objects, files or output outside the bindings; no unchecked speed."""
    for path in NATIVE:
        text = path.read_text(encoding="utf-8")
        if not path.name.startswith("bind"):
            assert "nanobind" not in text, path
            assert "Python.h" not in text or path.name.startswith("pack"), path
        assert not re.search(r"\bfopen\b|std::[io]?fstream|\bprintf\b|std::cout|\brand\(\)|#pragma omp", text), path
    assert "ffast-math" not in (ROOT / "CMakeLists.txt").read_text(encoding="utf-8")
