"""`labelwood ensemble`: trained models into one that averages their rankings."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from ..errors import ConfigError, counted
from ..models.ensemble import Ensemble, load
from ..parts.rank_average import EnsembleConfig
from ..storage import model_folder, targets
from . import show
from .options import ENSEMBLE_FLAGS, NewModel, expand, place


@expand("config", EnsembleConfig(), ENSEMBLE_FLAGS)
def ensemble(
    models: Annotated[
        list[Path],
        typer.Argument(metavar="MODEL", parser=place, help="Folders of trained models.", show_default=False),
    ],
    *,
    model: NewModel,
    overwrite: Annotated[bool, typer.Option("--overwrite", help="Replace a model in DIR.")] = False,
    config: EnsembleConfig,
) -> None:
    """Put trained models together into one.

    Their rankings are averaged; labels are matched by name. What the models have in common is stored once. An ensemble
    among them is opened: its members share its weight.
    """
    if model_folder.exists(model) and not overwrite:
        raise ConfigError(f"there is a model in {model}; choose another folder, or replace it with --overwrite.")
    model_folder.check_target(model, overwrite=True)
    targets.check_model(model, [])
    made = Ensemble([load(folder) for folder in models], config)
    if config.average in {"mean", "softmax"} and len({member.gives_margins for member in made.members}) > 1:
        show.complain(
            "warning",
            f"some of the models score by margins, others by probabilities, and their {config.average} mixes the two; "
            "--average sigmoid, rank or round-robin suits both.",
        )
    made.save(model)
    manifest = model_folder.describe(model)
    labels, trees = counted(len(made.labels), "label"), counted(made.config.members, "tree")
    show.say(f"{made.method}: {made.config.average} of {trees}, {labels}")
    show.say(f"model: {model} ({counted(len(manifest.files), 'file')}, {show.size(manifest.bytes)})")
