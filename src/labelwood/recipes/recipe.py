"""A recipe: one method with all its settings, everything that changes the bits of a model.

It goes into the model's manifest, fully resolved. How it is run (threads, device, memory, progress, paths) is `Run`, in
base/run.py, and never does.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Callable

from .. import limits
from ..base.config import Acts, each, section, setting
from ..parts.label_features import LabelFeatureConfig
from ..parts.linear import LinearConfig
from ..parts.propensity import TailConfig
from ..parts.rank_average import EnsembleConfig
from ..parts.search import SearchConfig
from ..parts.shortlist import ShortlistConfig
from ..parts.tfidf import FeaturesConfig, TfidfConfig
from ..parts.tree import TreeConfig
from .encoder_settings import EncoderConfig
from .network_settings import FinetuneConfig, JointConfig, LevelwiseConfig, OptimiserConfig

NETWORK = frozenset({"finetune", "optimiser", "levelwise", "joint", "coarse"})  # lists count the coarse tree's levels


def _on(test: Callable[[Recipe], bool], where: str) -> Acts:
    """A rule that looks at the whole recipe."""
    return Acts(lambda _, recipe: test(recipe), where)


_TUNED = "where an encoder is fine-tuned (encoder.model, finetune.on = true)"
_CLASSIFIES = "where classifiers predict: with ranker = tree or network, or without a network that predicts by itself"
_NETWORK = "beside a network that predicts by itself (finetune.order = joint, or encoder.pooling = attention)"


@dataclasses.dataclass(frozen=True)
class Recipe:
    """One method with all its settings.

    A section says when it acts; its fields say what more they need. Ranks give the order of `labelwood methods NAME`.
    """

    method: str
    seed: int = setting(
        0, "every random choice follows from this; another one gives a model that is as good and a little different",
        low=0, high=limits.MAX_SEED,
    )  # fmt: skip
    tfidf: TfidfConfig = section(
        TfidfConfig, "tfidf: from text to sparse features", rank=5,
        acts=_on(lambda r: r.reads_words, "where words are read: by classifiers, for a label tree or in matching"),
    )  # fmt: skip
    features: FeaturesConfig = section(
        FeaturesConfig, "features: those of your own, in place of text", rank=9,
        acts=_on(lambda r: not r.encoder.on, "with features of your own, which a method with an encoder cannot read"),
    )  # fmt: skip
    encoder: EncoderConfig = section(
        EncoderConfig, "encoder: a network that reads the text", rank=3,
        acts=_on(lambda r: r.encoder.on, "where texts are read by an encoder too (encoder.model)"),
    )  # fmt: skip
    finetune: FinetuneConfig = section(
        FinetuneConfig,
        "finetune: training the encoder on the levels of a label tree",
        rank=1,
        acts=_on(lambda r: r.tunes, _TUNED),
    )
    optimiser: OptimiserConfig = section(
        OptimiserConfig, "optimiser: how fast the encoder learns", rank=2, acts=_on(lambda r: r.tunes, _TUNED)
    )
    levelwise: LevelwiseConfig = section(
        LevelwiseConfig, "levelwise: training one level after the other", rank=4,
        acts=_on(
            lambda r: r.tunes and r.finetune.order == "levelwise",
            "where an encoder is fine-tuned level by level (encoder.model, finetune.order = levelwise)",
        ),
    )  # fmt: skip
    joint: JointConfig = section(
        JointConfig, "joint: training all levels at once", rank=4,
        acts=_on(
            lambda r: r.tunes and r.finetune.order == "joint",
            "where all levels are fine-tuned at once (encoder.model, finetune.order = joint)",
        ),
    )  # fmt: skip
    coarse: TreeConfig = section(
        TreeConfig, "coarse: the label tree that the encoder is trained on", rank=4,
        acts=_on(
            lambda r: r.grows_coarse,
            "where an encoder is fine-tuned (encoder.model, finetune.on = true), or with levelwise.refine = false",
        ),
    )  # fmt: skip
    labels: LabelFeatureConfig = section(
        LabelFeatureConfig, "labels: what stands for a label when labels are clustered", rank=8,
        acts=_on(lambda r: r.clusters_labels, "where labels are clustered (tree.kind or coarse.kind other than flat)"),
    )  # fmt: skip
    tree: TreeConfig = section(
        TreeConfig, "tree: the label tree of the classifiers", rank=6,
        acts=_on(
            lambda r: r.own_tree,
            "where classifiers have a label tree of their own (ranker = tree, levelwise.refine = true); here they "
            "share the tree of the network, which coarse.* shapes",
        ),
    )  # fmt: skip
    shortlist: ShortlistConfig = section(
        ShortlistConfig, "shortlist: negatives of each level", rank=7,
        acts=_on(lambda r: r.classifies and r.clusters, "for classifiers on a tree of clusters, not a flat one"),
    )  # fmt: skip
    linear: LinearConfig = section(
        LinearConfig, "linear: the classifiers", rank=5, acts=_on(lambda r: r.classifies, _CLASSIFIES)
    )
    search: SearchConfig = section(
        SearchConfig, "search: how labels are found at prediction", rank=6,
        acts=_on(
            lambda r: r.searches,
            "where classifiers have a label tree of their own (ranker = tree), or stand below a network that ends "
            "above the labels (finetune.levels); here the network's search counts (finetune.parents, joint.score)",
        ),
    )  # fmt: skip
    ranker: str = setting(
        "tree",
        "the classifiers: on a label tree of their own (tree); beside a network that is trained with all its levels, "
        "below its clusters (network); or that network alone (none: smaller, less accurate)",
        choices=("tree", "network", "none"), acts=_on(lambda r: r.has_network, _NETWORK), rank=1,
    )  # fmt: skip
    network_share: float | None = setting(
        None,
        "weight of a network beside the classifiers; a higher one trusts the network more; none: the best on held-back "
        "documents",
        low=0, high=1,
        acts=_on(
            lambda r: r.has_network and r.ranker != "none" and r.finetune.levels is None,
            "where a network and classifiers both rank labels (ranker = tree or network, finetune.levels = none)",
        ),
    )  # fmt: skip
    tail: TailConfig = section(TailConfig, "tail: rare labels, and a second ranking", rank=7)
    ensemble: EnsembleConfig = section(EnsembleConfig, "ensemble: several models that predict together", rank=7)

    @property
    def tunes(self) -> bool:
        """Is there an encoder that is fine-tuned?"""
        return self.encoder.on and self.finetune.on

    @property
    def has_network(self) -> bool:
        """Is there a network that is trained down to clusters or labels and predicts by itself?"""
        return self.tunes and (self.finetune.order == "joint" or self.encoder.attends)

    @property
    def classifies(self) -> bool:
        """Are there linear classifiers?"""
        return not self.has_network or self.ranker != "none"

    @property
    def own_tree(self) -> bool:
        """Do the classifiers have `tree`, a label tree of their own?"""
        if self.has_network:
            return self.ranker == "tree"
        return not self.encoder.on or self.levelwise.refine

    @property
    def grows_coarse(self) -> bool:
        """Is `coarse` a tree that is grown, for a network or because its refinement is left out?"""
        return self.tunes or (self.encoder.on and not self.levelwise.refine)

    @property
    def stand(self) -> TreeConfig:
        """The tree that the classifiers stand on."""
        return self.tree if self.own_tree else self.coarse

    @property
    def clusters(self) -> bool:
        """Do the classifiers stand on clusters, so that labels are searched and not all scored?"""
        return self.stand.kind != "flat"

    @property
    def clusters_labels(self) -> bool:
        """Is there a tree whose clusters come from label features?"""
        return (self.own_tree and self.tree.kind != "flat") or (self.grows_coarse and self.coarse.kind != "flat")

    @property
    def tunes_levels(self) -> bool:
        """May several levels be fine-tuned? It depends on the number of labels, too."""
        return self.tunes and self.coarse.kind != "flat" and self.finetune.levels != 1

    @property
    def matches_by_words(self) -> bool:
        """Does a linear model on words and embedding choose the clusters of the next level?"""
        one_by_one = self.finetune.order == "levelwise" and not self.encoder.attends
        return self.tunes_levels and one_by_one and self.levelwise.matcher != "transformer"

    @property
    def whole_network(self) -> bool:
        """Do classifiers stand below a network that reaches the labels, on its own tree?"""
        return self.has_network and self.ranker == "network" and self.finetune.levels is None

    @property
    def searches(self) -> bool:
        """Are labels searched as `search` says, not as a network does?"""
        return not self.has_network or self.ranker == "tree" or (self.classifies and not self.whole_network)

    @property
    def reads_words(self) -> bool:
        """Is tf-idf read: by the classifiers, for a label tree, or in matching?"""
        if not self.encoder.on or (self.classifies and self.encoder.features != "embedding"):
            return True
        return self.matches_by_words or (self.grows_coarse and self.coarse.kind != "flat")

    @property
    def uses_propensity(self) -> bool:
        """Do propensities count, in the losses or in the scores?"""
        weighted = self.classifies and set(each(self.linear.weighting)) != {"none"}
        return weighted or self.tail.propensity_power > 0

    @property
    def members(self) -> int:
        """Models that predict together."""
        both = self.has_network and self.ranker != "none" and self.finetune.levels is None  # a network and classifiers
        return self.ensemble.members * (2 if both else 1)
