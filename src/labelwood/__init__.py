"""labelwood: extreme multi-label text classification. Raw text in, label names out.

import labelwood as lw
model = lw.train(texts, labels, method="xr-linear")
model.predict(["..."], k=5)
model.save("model/"); model = lw.load("model/")
"""

from __future__ import annotations

from .api import analyse, compare, load, plan, train
from .arrays.sparse import Csr, Features
from .base.progress import Event, Progress, Silent, Terminal
from .base.run import Run
from .data import Dataset, ReadOptions
from .data import read as read_data
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
from .reports.leaderboard import Leaderboard, Standing

__version__ = "0.1.0"
__all__ = [
    "Analysis",
    "BudgetError",
    "ConfigError",
    "Csr",
    "DataError",
    "Dataset",
    "Ensemble",
    "EnsembleConfig",
    "Evaluation",
    "Event",
    "Features",
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
    "load",
    "methods",
    "plan",
    "read_data",
    "train",
]
