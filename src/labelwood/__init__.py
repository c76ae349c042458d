"""labelwood: extreme multi-label text classification. Raw text in, label names out.

import labelwood as lw
model = lw.train(texts, labels, method="xr-linear")
model.predict(["..."], k=5)
model.save("model/"); model = lw.load("model/")

Public names are imported when they are first asked for, so that the program answers Ctrl-C while it starts.
"""

from __future__ import annotations

import importlib

TYPE_CHECKING = False  # typing has the same; to import it takes longer than all that is imported here
if TYPE_CHECKING:
    from .api import analyse, compare, doctor, load, plan, train
    from .arrays.sparse import Csr, Features
    from .base.progress import Event, Progress, Silent, Terminal
    from .base.run import Run
    from .data import Dataset, ReadOptions
    from .data.read import read as read_data
    from .errors import (
        BudgetError,
        ConfigError,
        DataError,
        LabelwoodError,
        MissingExtraError,
        ModelFileError,
        StorageError,
        TrainingError,
    )
    from .evaluation.network_analysis import Analysis
    from .metrics.ranking import Evaluation, MetricsConfig
    from .models.ensemble import Ensemble
    from .models.model import Model
    from .models.predictor import Predictor
    from .parts.rank_average import EnsembleConfig
    from .planning.estimate import Plan
    from .recipes.methods import methods
    from .recipes.recipe import Recipe
    from .reports.doctor import Checkup
    from .reports.findings import Finding
    from .reports.leaderboard import Leaderboard, Standing

__version__ = "0.1.0"
__all__ = [
    "Analysis",
    "BudgetError",
    "Checkup",
    "ConfigError",
    "Csr",
    "DataError",
    "Dataset",
    "Ensemble",
    "EnsembleConfig",
    "Evaluation",
    "Event",
    "Features",
    "Finding",
    "LabelwoodError",
    "Leaderboard",
    "MetricsConfig",
    "MissingExtraError",
    "Model",
    "ModelFileError",
    "Plan",
    "Predictor",
    "Progress",
    "ReadOptions",
    "Recipe",
    "Run",
    "Silent",
    "Standing",
    "StorageError",
    "Terminal",
    "TrainingError",
    "__version__",
    "analyse",
    "compare",
    "doctor",
    "load",
    "methods",
    "plan",
    "read_data",
    "train",
]

_HOMES = {
    "api": ("analyse", "compare", "doctor", "load", "plan", "train"),
    "arrays.sparse": ("Csr", "Features"),
    "base.progress": ("Event", "Progress", "Silent", "Terminal"),
    "base.run": ("Run",),
    "data": ("Dataset", "ReadOptions", "read_data"),
    "errors": (
        "BudgetError", "ConfigError", "DataError", "LabelwoodError", "MissingExtraError", "ModelFileError",
        "StorageError", "TrainingError",
    ),
    "evaluation.network_analysis": ("Analysis",),
    "metrics.ranking": ("Evaluation", "MetricsConfig"),
    "models.ensemble": ("Ensemble",),
    "models.model": ("Model",),
    "models.predictor": ("Predictor",),
    "parts.rank_average": ("EnsembleConfig",),
    "planning.estimate": ("Plan",),
    "recipes.methods": ("methods",),
    "recipes.recipe": ("Recipe",),
    "reports.doctor": ("Checkup",),
    "reports.findings": ("Finding",),
    "reports.leaderboard": ("Leaderboard", "Standing"),
}  # fmt: skip
_RENAMED = {"read_data": "read"}


def __getattr__(name: str) -> object:
    for module, names in _HOMES.items():
        if name in names:
            found = getattr(importlib.import_module(f"labelwood.{module}"), _RENAMED.get(name, name))
            globals()[name] = found
            return found
    if name.startswith("_"):
        raise AttributeError(f"module 'labelwood' has no attribute {name!r}")
    return _room(name)


def _room(name: str) -> object:
    """A module of the package, as if it were imported with it."""
    try:
        return importlib.import_module(f"labelwood.{name}")
    except ModuleNotFoundError as error:
        if error.name != f"labelwood.{name}":
            raise
        raise AttributeError(f"module 'labelwood' has no attribute {name!r}") from None


def __dir__() -> list[str]:
    return __all__
