"""The program's first moments: Ctrl-C ends it in one line from the first import on, and little is imported early."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import pytest

import labelwood as lw
from toy import keyword_set

INSTANTS = 30
PROGRAM = """
import os, signal, sys
import labelwood.__main__ as program
signal.signal(signal.SIGINT, signal.default_int_handler)  # a runner in the background may have it ignored
wanted, seen = int(sys.argv[1]), 0
class Counting:
    def find_spec(self, name, path=None, target=None):
        global seen
        seen += 1
        if seen == wanted:
            os.kill(os.getpid(), signal.SIGINT)
sys.meta_path.insert(0, Counting())
sys.argv = ["labelwood", "inspect", sys.argv[2]]
try:
    program.main()
finally:
    if not wanted:
        print(seen, file=sys.stderr)
"""


def run(wanted: int, model: Path) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", PROGRAM, str(wanted), str(model)]
    return subprocess.run(command, capture_output=True, text=True, check=False)


def test_ctrl_c_while_the_program_starts(tmp_path):
    """At the first import, at the last one and evenly between them."""
    lw.train(["ab cd", "ab ef"] * 4, [["x"], ["y"]] * 4).save(tmp_path / "m")
    imports = int(run(0, tmp_path / "m").stderr)
    assert imports > 300
    for wanted in {1 + (imports - 1) * i // (INSTANTS - 1) for i in range(INSTANTS)}:
        ended = run(wanted, tmp_path / "m")
        assert (ended.returncode, ended.stderr) == (130, "stopped: by Ctrl-C\n"), f"import {wanted} of {imports}"


@pytest.mark.parametrize("module", ["labelwood", "labelwood.__main__"])
def test_little_is_imported_before_the_program_answers(module):
    code = f"import sys; before = set(sys.modules); import {module}; print(*sorted(set(sys.modules) - before))"
    found = subprocess.run([sys.executable, "-S", "-c", f"import sys; sys.path[:0] = {sys.path!r}; {code}"],
                           capture_output=True, text=True, check=True).stdout.split()  # fmt: skip
    assert {name for name in found if name.startswith("labelwood")} == {"labelwood", module}
    assert {"numpy", "typer", "typing", "contextlib"}.isdisjoint(found)


def test_ctrl_c_in_a_comparison_is_one_line(tmp_path):
    """At a terminal it reaches the process of the method as well."""
    rows = (json.dumps({"text": text, "labels": names}) for text, names in zip(*keyword_set(), strict=True))
    (tmp_path / "data.jsonl").write_text("\n".join(rows) + "\n")
    endless = ["--methods", "xr-linear", "--set", "linear.eps=1e-30", "--set", "linear.max_iter=1000000"]
    given = [sys.executable, "-m", "labelwood", "compare", "data.jsonl", "data.jsonl", "--out", "out", *endless]
    with subprocess.Popen(given, cwd=tmp_path, stderr=subprocess.PIPE, start_new_session=True) as process:
        while not list(tmp_path.glob("out/work/tree-*")):  # the method is at work
            assert process.poll() is None
            time.sleep(0.05)
        [method] = Path(f"/proc/{process.pid}/task/{process.pid}/children").read_text().split()
        os.kill(int(method), signal.SIGINT)  # it leaves that to the comparison
        time.sleep(0.5)
        os.killpg(process.pid, signal.SIGINT)
        assert process.stderr is not None
        assert process.stderr.read() == b"stopped: by Ctrl-C\n"
    assert process.returncode == 130


def test_a_signal_that_is_ignored_stays_so():
    code = "import signal; signal.signal(signal.SIGINT, signal.SIG_IGN); import labelwood.__main__ as p; import sys; "
    code += "sys.argv = ['labelwood', '--version']; import os; "
    code += "import atexit; atexit.register(os.kill, os.getpid(), signal.SIGINT); p.main()"
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout, ended.stderr) == (0, f"labelwood {lw.__version__}\n", "")


def test_every_public_name_has_one_home():
    assert sorted(name for names in lw._HOMES.values() for name in names) == sorted(set(lw.__all__) - {"__version__"})
    assert dir(lw) == sorted(lw.__all__)
    with pytest.raises(AttributeError, match="module 'labelwood' has no attribute 'trian'"):
        lw.trian  # noqa: B018
