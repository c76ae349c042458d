"""The README's example runs as it stands."""

from __future__ import annotations

import re
from pathlib import Path

README = (Path(__file__).parent.parent / "README.md").read_text(encoding="utf-8")


def test_the_example_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (code,) = re.findall(r"```python\n(.*?)```", README, flags=re.DOTALL)
    names: dict[str, object] = {}
    exec(compile(code, "README.md", "exec"), names)
    (best,) = names["model"].predict(["small web server"], k=2)  # type: ignore[attr-defined]
    shown = [(label, float(score)) for label, score in re.findall(r'\("(\w+)", ([\d.]+)…\)', code)]
    assert [(label, int(1000 * score) / 1000) for label, score in best] == shown
