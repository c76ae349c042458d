"""`labelwood quickstart`: the whole way in a few seconds, on the data set that ships with the library."""

from __future__ import annotations

import os
import shlex
import shutil
import sys
from pathlib import Path
from typing import Annotated

import numpy as np
import typer

from .. import store
from ..data import Dataset, read
from ..errors import ConfigError
from ..predictor import Predictor
from ..problem import prepare
from ..progress import Terminal
from ..quickstart import quickstart_path
from ..recipes import resolve
from ..train import Run, train_into
from . import show

_SHOWN = 3  # documents
_K = 5  # labels of each


def quickstart(
    model: Annotated[
        Path, typer.Option("--model", "-m", metavar="DIR", help="Where to save; a model there is replaced.")
    ] = Path("quickstart-model"),
) -> None:
    """Train, measure and try a first model, in seconds.

    It learns to tag Debian packages from their descriptions; the data comes with the library.
    """
    store.check_target(model, overwrite=True)
    run = Run(progress=Terminal())
    training, held_out = (read(quickstart_path(part)) for part in ("train", "test"))
    _refuse_foreign(model, training)
    show.heading("Debian packages: from the description to the tags", first=True)
    show.dataset("training", training)
    show.dataset("held out", held_out)
    trained = train_into(model, training, resolve("xr-linear"), run)
    seconds = sum(time for name, time in run.progress.timings.items() if " / " not in name)
    show.say(f"trained xr-linear in {show.seconds(seconds)}, saved {show.size(store.describe(model).bytes)} to {model}")
    show.heading("How good is it?")
    show.metrics(trained.evaluate(held_out))
    show.heading(f"What does it say? (✓ is a true label, top {_K} of {len(trained.labels)})")
    _examples(trained, held_out)
    _next(shlex.quote(str(model)))


def _refuse_foreign(folder: Path, training: Dataset) -> None:
    """Replace only what an earlier quickstart left."""
    if store.exists(folder) and store.describe(folder).meta.get("data") != prepare(training).data_key:
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
    """How to call this program again: by name if the shell finds it, else by the path it was called by."""
    if shutil.which("labelwood") is not None or Path(sys.argv[0]).name != "labelwood":
        return "labelwood"
    return shlex.quote(os.path.relpath(sys.argv[0]))
