"""`labelwood quickstart`: the whole way in a few minutes, on the data set that ships with the library."""

from __future__ import annotations

import dataclasses
import importlib.util
import os
import shlex
import shutil
import sys
import time
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from ..base.progress import Terminal
from ..base.run import Run
from ..data import Dataset, read
from ..errors import ConfigError
from ..metrics.ranking import Evaluation
from ..models.predictor import Predictor
from ..pipeline.train import train_into
from ..pipeline.training_set import prepare
from ..quickstart import quickstart_path
from ..recipes.resolve import resolve
from ..storage import model_folder, targets
from . import show
from .options import place

_SHOWN = 3  # documents
_K = 5  # labels of each


def quickstart(
    model: Annotated[
        Path,
        typer.Option("--model", "-m", metavar="DIR", parser=place, help="Where to save; a model there is replaced."),
    ] = Path("quickstart-model"),
    linear_only: Annotated[bool, typer.Option("--linear-only", help="Leave out the transformer: seconds.")] = False,
) -> None:
    """Train, measure and try two first models.

    A linear one takes seconds, a transformer minutes. They learn to tag Debian packages from their descriptions; the
    data comes with the library.
    """
    tuned = model.with_name(f"{model.name}-transformer")
    training, held_out = (read(quickstart_path(part)) for part in ("train", "test"))
    for folder in (model, tuned):
        model_folder.check_target(folder, overwrite=True)
        targets.check_model(folder, [])
        _refuse_foreign(folder, training)
    show.heading("Debian packages: from the description to the tags", first=True)
    show.dataset("training", training)
    show.dataset("held out", held_out)
    made = [_made("xr-linear", model, training, held_out)]
    if not linear_only and _has_neural():
        made.append(_made("xr-transformer", tuned, training, held_out, "fast"))
    show.heading("How good are they?" if len(made) > 1 else "How good is it?")
    show.metrics(made[0].evaluation)
    if len(made) > 1:
        show.say("", f"{made[1].method} beside it:")
        _table(made)
    show.heading(f"What does it say? (✓ is a true label, top {_K} of {len(made[-1].model.labels)})")
    _examples(made[-1].model, held_out)
    _next(shlex.quote(str(model)))


@dataclasses.dataclass(frozen=True)
class _Made:
    """A model with what it took and what it is worth."""

    method: str
    model: Predictor
    seconds: float
    evaluation: Evaluation
    milliseconds: float  # of one document
    size: int


def _made(method: str, folder: Path, training: Dataset, held_out: Dataset, preset: str | None = None) -> _Made:
    run = Run(progress=Terminal())
    model = train_into(folder, training, resolve(method, preset=preset), run)
    seconds = sum(time for name, time in run.progress.timings.items() if " / " not in name)
    size = model_folder.describe(folder).bytes
    show.say(f"trained {method} in {show.seconds(seconds)}, saved {show.size(size)} to {folder}")
    return _Made(method, model, seconds, model.evaluate(held_out), _latency(model, held_out), size)


def _latency(model: Predictor, data: Dataset) -> float:
    """Median milliseconds of one document at a time."""
    assert data.texts is not None
    times = []
    for i in range(min(20, len(data))):
        start = time.perf_counter()
        model.predict([data.texts[i]])
        times.append(1000 * (time.perf_counter() - start))
    return float(np.median(times))


def _table(made: list[_Made]) -> None:
    names = ("P@1", "P@3", "P@5", "PSP@1", "PSP@5")
    rows = [
        (m.method, *(f"{m.evaluation[name]:.1f}" for name in names), show.seconds(m.seconds),
         f"{m.milliseconds:.2g} ms", show.size(m.size))
        for m in made
    ]  # fmt: skip
    show.table(rows, ("method", *names, "training", "a text", "on disk"), right=range(1, len(names) + 4))


def _has_neural() -> bool:
    missing = [name for name in ("torch", "tokenizers", "onnxruntime") if not importlib.util.find_spec(name)]
    if missing:
        show.say(
            f"{missing[0]} is not installed, so the transformer is left out; "
            "to see it: pip install 'labelwood[neural,onnx]'"
        )
    return not missing


def _refuse_foreign(folder: Path, training: Dataset) -> None:
    """Replace only what an earlier quickstart left."""
    if model_folder.exists(folder) and model_folder.describe(folder).meta.get("data") != prepare(training).data_key:
        raise ConfigError(f"the model in {folder} is not from quickstart; choose another folder with --model.")


def _examples(model: Predictor, data: Dataset) -> None:
    """A few documents with about as many labels as are shown, spread over the set."""
    assert data.texts is not None
    assert data.labels is not None
    fitting = np.flatnonzero(data.labels.counts() == _K)
    rows = fitting[np.linspace(0, len(fitting) - 1, _SHOWN + 2).astype(int)[1:-1]]
    chosen = data.take(rows)
    assert chosen.texts is not None
    assert chosen.labels is not None
    for i, labels in enumerate(model.predict(list(chosen.texts), k=_K)):
        begin, end = chosen.labels.indptr[i : i + 2]
        true = {chosen.names[j] for j in chosen.labels.indices[begin:end]}
        show.say("", _clip(chosen.texts[i], 78))
        marked = ((f"{score:.2f}", "✓" if name in true else " ", name) for name, score in labels)
        show.table(marked, indent=2)
        missed = sorted(true - {name for name, _ in labels})
        if missed:
            show.say(f"  not found: {', '.join(missed)}")


def _clip(text: str, width: int) -> str:
    line = " ".join(text.split())
    return line if len(line) <= width else line[: width - 1].rsplit(" ", 1)[0] + " …"


def _next(model: str) -> None:
    train_file, test_file = (shlex.quote(str(quickstart_path(part))) for part in ("train", "test"))
    command = _command()
    show.heading("What next?")
    show.say(
        "  # tags for a text of your own, and what is in the model",
        f'  {command} predict {model} --text "a fast web server written in Python"',
        f"  {command} inspect {model}",
        "  # the settings, a model that puts rare labels first, and its numbers",
        f"  {command} methods xr-linear",
        f"  {command} train {train_file} --model {model}-tail --preset tail",
        f"  {command} evaluate {model}-tail {test_file}",
        "  # your own data: JSON lines with a text and its labels, or CSV, Parquet, fastText, …",
        f"  {command} train --help",
    )


def _command() -> str:
    """Command that calls this program again: by name if the shell finds it, else by the path it was called by."""
    if shutil.which("labelwood") is not None or Path(sys.argv[0]).name != "labelwood":
        return "labelwood"
    return shlex.quote(os.path.relpath(sys.argv[0]))
