"""Every method side by side. A paper is a recipe — data over the same parts — not a module of its own."""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from typing import Any

from .. import limits
from ..errors import ConfigError, nearest
from ..parts.linear import LinearConfig
from ..parts.rank_average import EnsembleConfig
from ..parts.search import SearchConfig
from ..parts.shortlist import ShortlistConfig
from ..parts.tree import TreeConfig
from .encoder_settings import EncoderConfig
from .network_settings import FinetuneConfig, JointConfig, OptimiserConfig
from .published import ATTENTION_XML, CASCADE_XML, X_TRANSFORMER, XR_TRANSFORMER
from .recipe import Recipe


@dataclasses.dataclass(frozen=True)
class Method:
    """A recipe with its story: what `labelwood methods` shows."""

    recipe: Recipe
    summary: str
    paper: str
    good_at: str
    cost: str
    presets: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)
    published: Mapping[str, Mapping[str, Any]] = dataclasses.field(default_factory=dict)  # a paper's, by data set


METHODS: dict[str, Method] = {
    "xr-linear": Method(
        recipe=Recipe("xr-linear"),
        summary="linear classifiers down a balanced label tree, beam search over l3-hinge path scores",
        paper="PECOS: Prediction for Enormous and Correlated Output Spaces (Yu et al., 2022)",
        good_at="large label sets on a CPU: trains in seconds to minutes, predicts in microseconds",
        cost="seconds of training for some ten thousand documents, 0.1 ms a text",
        presets={
            "default": {},
            "fast": {"linear.eps": 0.3, "linear.max_iter": 10, "linear.weights": "int8"},
            "ensemble": {"ensemble.trees": 3},  # the paper's results: three trees, mean of their scores
            # Nearness to a label's documents counts, and rare labels more.
            "tail": {"tail.classifier_share": 0.6, "tail.propensity_power": 0.5},
        },
    ),
    "parabel": Method(
        recipe=Recipe(
            "parabel",
            tree=TreeConfig(branch=2),  # a perfect binary tree, every level kept
            linear=LinearConfig(max_iter=20),
            search=SearchConfig(combiner="l2-hinge"),  # log p = -max(0, 1-m)², summed down the path
            ensemble=EnsembleConfig(trees=3),
        ),
        summary="three balanced binary label trees, squared-hinge probabilities along each path, mean over the trees",
        paper="Parabel: Partitioned Label Trees for Extreme Classification (Prabhu et al., 2018)",
        good_at="the classic baseline of label trees; steadier than one tree at three times its cost",
        cost="three times that of xr-linear",
        presets={"default": {}, "one-tree": {"ensemble.trees": 1}},
    ),
    "bonsai": Method(
        recipe=Recipe(
            "bonsai",
            tree=TreeConfig(kind="unbalanced", branch=100, depth=2),
            linear=LinearConfig(max_iter=20),
            search=SearchConfig(combiner="l2-hinge", discount=0.98),  # log p = -max(0, 1-m)² + 0.98 log p of the parent
            ensemble=EnsembleConfig(trees=3),
        ),
        summary="three shallow trees of unequal clusters, squared-hinge probabilities along each path, mean over trees",
        paper="Bonsai: Diverse and Shallow Trees for Extreme Multi-label Classification (Khandagale et al., 2020)",
        good_at="rare labels: clusters as large as they are, and few levels at which a search can go wrong",
        cost="three trees with wide nodes: some ten times that of xr-linear",
        presets={
            "default": {},
            "large": {"tree.depth": 3},  # the paper's depth from some hundred thousand labels on
            "one-tree": {"ensemble.trees": 1},
        },
    ),
    "plt": Method(
        recipe=Recipe(
            "plt",
            tree=TreeConfig(branch=2),
            linear=LinearConfig(loss="logistic", cp=10.0, cn=10.0),
            search=SearchConfig(combiner="sigmoid"),
        ),
        summary="a probabilistic label tree: logistic classifiers, a label's probability is the product down its path",
        paper="Probabilistic Label Trees for Extreme Multi-Label Classification (Jasinska-Kobus et al., 2020)",
        good_at="the classic of probabilities multiplied down a tree; as scores they are not calibrated",
        cost="two to three times that of xr-linear",
        presets={
            "default": {},
            "exact": {"search.kind": "exact"},  # the best labels for certain, not only those of a beam
            "ensemble": {"ensemble.trees": 3},
        },
    ),
    "xr-transformer": Method(
        recipe=Recipe(
            "xr-transformer",
            encoder=EncoderConfig(model="minilm"),
            finetune=FinetuneConfig(on=True),
            coarse=TreeConfig(leaf=16, branch=16),
            shortlist=ShortlistConfig(
                source="union", parents=50
            ),  # what a search opens must have been among the negatives
            linear=LinearConfig(relevance="induce", cp=4.0, threshold=0.01),  # α = λ = 0.25, as for Wiki10
            search=SearchConfig(score="label", beam=50),
        ),
        summary="a transformer fine-tuned coarse to fine over a label tree; then xr-linear on words and its embedding",
        paper="Fast Multi-Resolution Transformer Fine-tuning for Extreme Multi-label Text Classification "
        "(Zhang et al., 2021)",
        good_at="texts whose meaning is not in single words; minutes to hours of fine-tuning",
        cost="a fine-tuning for each level of the tree, 20 documents a second on two cores; 10 ms a text in int8",
        presets={
            "default": {},
            "fast": {"encoder.max_tokens": 64, "finetune.epochs": 0.75, "encoder.runtime": "onnx-int8"},
            "best": {"finetune.epochs": 5, "finetune.checks": 5, "ensemble.runs": 3, "ensemble.average": "softmax"},
        },
        published=XR_TRANSFORMER,
    ),
    "cascadexml": Method(
        recipe=Recipe(
            "cascadexml",
            encoder=EncoderConfig(model="minilm"),
            finetune=FinetuneConfig(
                on=True,
                order="joint",
                loss="logistic",
                relevance="off",
                epochs=4.0,
                checks=4,
                parents=None,
                head_dropout=0.2,
            ),
            optimiser=OptimiserConfig(
                lr=5e-5,
                head_lr=2e-3,
                first_head_lr=None,
                schedule="cosine",
                fall=0.2,
                weight_decay=0.05,
                head_weight_decay=0.005,
                clip=None,
            ),
            coarse=TreeConfig(branch=8, leaf=12, min_codes=1024),
            shortlist=ShortlistConfig(source="union", parents=50),
            ranker="network",
            linear=LinearConfig(relevance="induce", cp=4.0, threshold=0.01),
            ensemble=EnsembleConfig(average="sigmoid", candidates=50),
        ),
        summary="one transformer, end to end: coarse levels of the label tree read its earlier layers and shortlist "
        "the next; one-vs-all classifiers on words and its embedding beside it",
        paper="CascadeXML: Rethinking Transformers for End-to-end Multi-resolution Training in Extreme Multi-label "
        "Classification (Kharbanda et al., 2022)",
        good_at="one training for all levels, simpler than xr-transformer and about as accurate",
        cost="one fine-tuning of several epochs; a text as in xr-transformer",
        presets={
            "default": {},
            "fast": {"encoder.max_tokens": 64, "finetune.epochs": 2, "encoder.runtime": "onnx-int8"},
            "best": {"finetune.epochs": 8, "finetune.checks": 8, "ensemble.runs": 3},
        },
        published=CASCADE_XML,
    ),
    "x-transformer": Method(
        recipe=Recipe(
            "x-transformer",
            encoder=EncoderConfig(model="minilm"),
            finetune=FinetuneConfig(
                on=True,
                order="joint",
                levels=1,
                loss="squared-hinge",
                relevance="off",
                epochs=4.0,
                checks=4,
            ),
            optimiser=OptimiserConfig(head_lr=1e-2, first_head_lr=None),
            coarse=TreeConfig(leaf=100, least=64, min_codes=limits.MAX_CHILDREN),  # one level of clusters
            shortlist=ShortlistConfig(source="union"),  # TFN + MAN
            ranker="network",
            linear=LinearConfig(threshold=0.01),
            search=SearchConfig(score="label"),
            ensemble=EnsembleConfig(average="rank"),
        ),
        summary="labels in clusters, a transformer that finds clusters, linear classifiers on words and its embedding "
        "below those it finds",
        paper="Taming Pretrained Transformers for Extreme Multi-label Text Classification (Chang et al., 2020)",
        good_at="the classic of the field; ensembles over several ways to cluster the labels",
        cost="one fine-tuning; nine of them as in the paper",
        presets={
            "default": {},
            "fast": {"encoder.max_tokens": 64, "finetune.epochs": 2, "encoder.runtime": "onnx-int8"},
        },
        published=X_TRANSFORMER,
    ),
    "lightxml": Method(
        recipe=Recipe(
            "lightxml",
            encoder=EncoderConfig(model="minilm", pooling="cls"),
            finetune=FinetuneConfig(
                on=True,
                order="joint",
                loss="logistic",
                relevance="off",
                epochs=4.0,
                checks=8,
                parents=None,
                head_dropout=0.5,
            ),
            optimiser=OptimiserConfig(
                lr=1e-4,
                head_lr=2e-3,
                first_head_lr=None,
                schedule="cosine",
                weight_decay=0.01,
                head_weight_decay=0.01,
                clip=None,
                average_from=0.5,
            ),
            joint=JointConfig(
                layers=("last5",),
                maps=0,
                truth="replace",
                level_weights=(1.0,),  # its loss is the plain sum of both
            ),
            coarse=TreeConfig(kind="flat"),
            shortlist=ShortlistConfig(source="union", parents=50),
            ranker="network",
            linear=LinearConfig(relevance="induce", cp=4.0, threshold=0.01),
            ensemble=EnsembleConfig(average="sigmoid", candidates=50),
        ),
        summary="a transformer whose last five layers are read side by side, negatives from groups of labels; "
        "one-vs-all classifiers on words and embedding beside it",
        paper="LightXML: Transformer with Dynamic Negative Sampling for High-Performance Extreme Multi-label Text "
        "Classification (Jiang et al., 2021)",
        good_at="up to some ten thousand labels, all of them scored by the network",
        cost="one fine-tuning; vectors five times as wide",
        presets={
            "default": {},
            "groups": {  # many labels: groups open them, and a bottleneck keeps their vectors short
                "coarse.kind": "balanced",
                "coarse.least": 2,
                "coarse.min_codes": limits.MAX_CHILDREN,
                "joint.maps": (0, 300),
            },
            "fast": {"encoder.max_tokens": 64, "finetune.epochs": 2, "encoder.runtime": "onnx-int8"},
        },
    ),
    "attentionxml": Method(
        recipe=Recipe(
            "attentionxml",
            encoder=EncoderConfig(model="minilm", engine="bilstm", pooling="attention"),
            finetune=FinetuneConfig(
                on=True,
                loss="logistic",
                relevance="off",
                epochs=10.0,
                checks=10,
                parents=160,
                dropout=0.2,
                head_dropout=0.5,
                shard_tokens=4096,
            ),
            optimiser=OptimiserConfig(lr=1e-3, head_lr=1e-3, first_head_lr=None, schedule="cosine", average_from=0.5),
            coarse=TreeConfig(branch=8, leaf=8, min_codes=2048, flat=8192),  # few levels, and wide ones
            shortlist=ShortlistConfig(source="union", parents=1),  # what it opens: its levels are searched once
            ranker="network",
            linear=LinearConfig(relevance="induce", cp=4.0, threshold=0.01),
            ensemble=EnsembleConfig(average="sigmoid", candidates=50),
        ),
        summary="an LSTM over word vectors for each level of a wide tree, each label attending to its own words; "
        "one-vs-all classifiers on words and its mean state beside it",
        paper="AttentionXML: Label Tree-based Attention-Aware Deep Model for High-Performance Extreme Multi-Label Text "
        "Classification (You et al., 2019)",
        good_at="texts for which there is no pretrained transformer; each label attends to words of its own",
        cost="ten epochs of a small network for each level; labels times words at prediction",
        presets={
            "default": {},
            "fast": {"encoder.max_tokens": 64, "encoder.hidden": 128, "finetune.epochs": 5, "finetune.checks": 5},
        },
        published=ATTENTION_XML,
    ),
    "dismec": Method(
        recipe=Recipe(
            "dismec",
            tree=TreeConfig(kind="flat"),
            linear=LinearConfig(threshold=0.01),
            search=SearchConfig(combiner="noop"),
        ),
        summary="no tree: one classifier for each label against all documents; small weights are dropped",
        paper="DiSMEC: Distributed Sparse Machines for Extreme Multi-label Classification (Babbar, Schölkopf, 2017)",
        good_at="the best linear accuracy where every label can see every document: up to some ten thousand labels",
        cost="labels times documents: minutes for four thousand labels, hours for a hundred thousand",
        presets={
            "default": {},
            # Negatives only from the clusters that a coarse tree finds likely; margins alone rank, as in one-vs-all.
            "shortlist": {"tree.kind": "balanced", "shortlist.source": "union"},
        },
    ),
}


def methods() -> tuple[str, ...]:
    """Names of all recipes."""
    return tuple(METHODS)


def method(name: str) -> Method:
    """A method by name; ConfigError with the nearest name otherwise."""
    if not isinstance(name, str) or name not in METHODS:
        raise ConfigError(f"there is no method {str(name)[:80]!r}; {nearest(str(name)[:80], METHODS)}")
    return METHODS[name]
