"""A recipe: one method with all its settings, everything that changes the bits of a model.

It goes into the model's manifest, fully resolved. How it is run (threads, device, memory, progress, paths) is `Run`, in
base/run.py, and never does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping

from .. import limits
from ..base.config import check_levels, from_dict, section, setting
from ..parts.label_features import LabelFeatureConfig
from ..parts.linear import LinearConfig
from ..parts.propensity import TailConfig
from ..parts.rank_average import EnsembleConfig
from ..parts.search import SearchConfig
from ..parts.shortlist import ShortlistConfig
from ..parts.tfidf import FeaturesConfig, TfidfConfig
from ..parts.tree import TreeConfig
from .network_settings import EncoderConfig, FinetuneConfig, JointConfig, LevelwiseConfig, OptimiserConfig
from .renames import current_table

NETWORK = frozenset({"finetune", "optimiser", "levelwise", "joint", "coarse"})  # lists count the coarse tree's levels


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One method with all its settings."""

    method: str
    seed: int = setting(0, "every random choice follows from this", low=0, high=limits.MAX_SEED)
    tfidf: TfidfConfig = section(TfidfConfig, "text to sparse features")
    features: FeaturesConfig = section(FeaturesConfig, "the user's own features")
    encoder: EncoderConfig = section(EncoderConfig, "a pretrained network that reads the text too")
    finetune: FinetuneConfig = section(FinetuneConfig, "training that network, level by level")
    optimiser: OptimiserConfig = section(OptimiserConfig, "how fast it learns")
    levelwise: LevelwiseConfig = section(LevelwiseConfig, "what only training level by level has")
    joint: JointConfig = section(JointConfig, "what only training all levels at once has")
    coarse: TreeConfig = section(TreeConfig, "the label tree it is fine-tuned on, from tf-idf alone")
    labels: LabelFeatureConfig = section(LabelFeatureConfig, "label features for clustering")
    tree: TreeConfig = section(TreeConfig, "the label tree")
    shortlist: ShortlistConfig = section(ShortlistConfig, "negatives of each level")
    linear: LinearConfig = section(LinearConfig, "the linear classifiers")
    search: SearchConfig = section(SearchConfig, "beam search at prediction")
    ranker: str = setting(
        "tree",
        "the classifiers: on a label tree of their own (tree); beside a network that is trained with all its levels, "
        "below its clusters (network); or that network alone (none)",
        choices=("tree", "network", "none"),
    )
    network_share: float | None = setting(
        None,
        "weight of such a network beside the classifiers; none: the best on held-back documents",
        low=0,
        high=1,
    )
    tail: TailConfig = section(TailConfig, "propensities, and ranking candidates again by them")
    ensemble: EnsembleConfig = section(EnsembleConfig, "several trees that predict together")

    @property
    def has_network(self) -> bool:
        """Is there a network that is trained down to clusters or labels and predicts by itself?"""
        return self.encoder.on and self.finetune.on and (self.finetune.order == "joint" or self.encoder.attends)

    @property
    def members(self) -> int:
        """Models that predict together."""
        both = self.has_network and self.ranker != "none" and self.finetune.levels is None  # a network and classifiers
        return self.ensemble.members * (2 if both else 1)


def check_depth(recipe: Recipe, levels: int) -> None:
    """ConfigError where settings do not fit a tree of so many levels, or one another: found before any training."""
    check_levels(recipe, levels, skip=NETWORK)
    recipe.search.check_kind()
    for level in range(levels):
        recipe.linear.check_solver(level, levels)
        recipe.linear.costs(level, levels)


def from_plain(table: object) -> Recipe:
    """A recipe read back from a manifest: every key known, by its name of today or an earlier one."""
    return from_dict(Recipe, current_table(table) if isinstance(table, Mapping) else table)
