"""The settings that the papers print for their data sets, as presets. They leave the encoder to the user."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any


def _published(
    tree: tuple[int, int, int], refined: tuple[int, int], steps: tuple[tuple[int, ...], int], beams: tuple[int, ...],
    rest: Mapping[str, Any],
) -> dict[str, Any]:  # fmt: skip
    """XR-Transformer on one data set.

    (branch, least clusters, leaf) of the first tree, (branch, leaf) of the refined one, steps by level and in how many
    of them rates rise, beams by level, and the rest.
    """
    (branch, codes, leaf), (wide, last), (each, rise) = tree, refined, steps
    return {
        "coarse.branch": branch, "coarse.min_codes": codes, "coarse.leaf": leaf,
        "tree.branch": wide, "tree.leaf": last,
        "finetune.steps": each, "optimiser.warmup": tuple(round(rise / n, 4) for n in each), "finetune.batch": 256,
        "encoder.pooling": "pooler", "optimiser.first_head_lr": None, "finetune.first_bias": "zero",
        "linear.threshold": 0.001, "search.beam": beams, "shortlist.parents": beams[-2],
        "shortlist.source": ("teacher",) * (len(beams) - 1) + ("union",),
        **rest,
    }  # fmt: skip


# The paper's Table 7, its α in fine-tuning too; steps, beams, negatives and costs by level are its published settings'.
XR_TRANSFORMER = {
    "eurlex-4k": _published(
        (16, 16, 16), (8, 16), ((600, 800, 1200), 100), (75, 75, 100, 25),
        {"optimiser.lr": 5e-5, "optimiser.head_lr": 5e-5, "finetune.parents": 5, "finetune.alpha": 1.0,
         "linear.cp": (1.0, 1.0, 1.0, 2.0), "linear.cn": (2.0, 2.0, 2.0, 4.0)},
    ),
    "wiki10-31k": _published(
        (16, 128, 16), (16, 16), ((1000, 1000, 400), 100), (100,) * 4,
        {"optimiser.lr": 1e-4, "optimiser.head_lr": 1e-4, "finetune.parents": 20, "encoder.max_tokens": 256,
         "finetune.alpha": 0.25, "linear.cp": 4.0, "linear.cn": 1.0},
    ),
    "amazoncat-13k": _published(
        (8, 128, 16), (8, 16), ((5000, 10000, 30000), 1000), (75, 100, 200),
        {"optimiser.lr": 1e-4, "optimiser.head_lr": 1e-4, "finetune.parents": 50, "encoder.max_tokens": 256,
         "finetune.alpha": 2.0, "finetune.dropout": 0.05, "tree.min_codes": 128, "linear.cp": 0.25, "linear.cn": 0.5,
         "linear.threshold": 1e-4},
    ),
    "wiki-500k": _published(
        (8, 64, 16), (32, 100), ((10000, 10000, 20000, 20000), 5000), (50,) * 4,
        {"optimiser.lr": 1e-4, "optimiser.head_lr": 1e-4, "finetune.parents": 5, "finetune.alpha": 0.25,
         "linear.cp": 4.0, "linear.cn": 1.0},
    ),
    "amazon-670k": _published(
        (16, 128, 32), (32, 100), ((4000, 4000, 12000), 200), (75,) * 4,
        {"optimiser.lr": 1e-4, "optimiser.head_lr": 1e-4, "finetune.parents": 5, "levelwise.bootstrap": "linear",
         "finetune.relevance": "off", "linear.relevance": "off", "linear.cp": 1.0, "linear.cn": 1.0},
    ),
    "amazon-3m": _published(
        (16, 128, 100), (32, 100), ((10000, 10000, 10000), 1000), (50,) * 4,
        {"optimiser.lr": 1e-4, "optimiser.head_lr": 1e-4, "finetune.parents": 20, "levelwise.bootstrap": "linear",
         "finetune.alpha": 0.125, "linear.cp": 8.0, "linear.cn": 1.0},
    ),
}  # fmt: skip


def _cascade(
    tree: tuple[tuple[int, ...], tuple[int, ...]], layers: tuple[str, ...], epochs: float, tokens: int,
    dropout: tuple[float, ...], *, rise: int = 1,
) -> dict[str, Any]:  # fmt: skip
    """CascadeXML on one data set: its Table 9, for an encoder of 12 layers; tree = (clusters, how many are kept),
    `rise` the epochs in which rates rise."""
    clusters, kept = tree
    return {
        "coarse.levels": clusters, "joint.layers": layers, "finetune.parents": (1, *kept), "finetune.epochs": epochs,
        "finetune.checks": round(epochs), "encoder.max_tokens": tokens, "finetune.head_dropout": dropout,
        "finetune.batch": 256, "optimiser.lr": 1e-4, "optimiser.head_lr": 1e-3, "optimiser.warmup": rise / epochs,
        "optimiser.fall": 3 / epochs, "finetune.first_bias": "zero", "encoder.pooling": "cls",
    }  # fmt: skip


WIDE, DEEP = (2**10, 2**13, 2**16), ("5+6", "8", "10", "12")
CASCADE_XML = {
    "wiki10-31k": _cascade(((2**9, 2**12), (64, 64)), ("9+10", "11", "12"), 15, 256, (0.3, 0.3, 0.4), rise=2),
    "amazoncat-13k": _cascade(((2**8, 2**11), (32, 32)), ("7+8", "10", "12"), 6, 256, (0.2, 0.3, 0.4)),
    "wiki-500k": _cascade((WIDE, (128, 256, 512)), DEEP, 12, 128, (0.2, 0.25, 0.35, 0.5)),
    "amazon-670k": _cascade((WIDE, (128, 256, 400)), DEEP, 15, 128, (0.2, 0.25, 0.4, 0.5)),
    "amazon-3m": {
        **_cascade((WIDE, (128, 256, 95)), DEEP, 15, 128, (0.2, 0.25, 0.3, 0.5)), "optimiser.head_moments": "row",
    },
}  # fmt: skip

# The paper's Table 2: steps, those in which rates rise, and the rate. Clusters follow from its rule (leaves of 100).
X_TRANSFORMER = {
    name: {
        "finetune.steps": steps, "optimiser.warmup": round(rise / steps, 4), "optimiser.lr": rate,
        "optimiser.head_lr": rate, "finetune.batch": 256, "finetune.first_bias": "zero", "encoder.pooling": "pooler",
    }
    for name, (steps, rise, rate) in {
        "eurlex-4k": (1000, 100, 5e-5), "wiki10-31k": (1400, 100, 5e-5), "amazoncat-13k": (20000, 2000, 8e-5),
        "wiki-500k": (50000, 1000, 6e-5),
    }.items()
}  # fmt: skip


def _attention(
    tree: tuple[int, ...], parents: int, epochs: float, warm: tuple[float, ...], more: Mapping[str, Any]
) -> dict[str, Any]:
    """AttentionXML on one data set: clusters by level, parents that are opened, epochs of each level, and the epoch
    after which weights are averaged (the mean over levels: it is one share for all)."""
    shape = {"coarse.levels": tree, "finetune.parents": parents} if tree else {"coarse.kind": "flat"}
    return {
        **shape, "finetune.epochs": epochs, "optimiser.average_from": round(sum(warm) / len(warm) / epochs, 4),
        "finetune.checks": 50, "encoder.max_tokens": 500, "finetune.first_bias": "zero", "optimiser.warmup": 0.0,
        "optimiser.fall": 0.0, "ranker": "none", **more,
    }  # fmt: skip


# Its published settings: frozen word vectors and a narrow LSTM where labels are few. Its word vectors, GloVe of 840B
# words, are left to the user (encoder.vectors); early stopping and clipping by past gradients are not here.
_SMALL = {"finetune.batch": 40, "finetune.frozen_layers": 0, "finetune.shard_tokens": 2048}
_LARGE = {"finetune.batch": 200, "encoder.hidden": 512}
ATTENTION_XML = {
    "eurlex-4k": _attention((), 1, 30, (10,), _SMALL),
    "wiki10-31k": _attention((), 1, 30, (4,), _SMALL),
    "amazoncat-13k": _attention((), 1, 10, (2,), {**_LARGE, "finetune.shard_tokens": 2048}),
    "wiki-500k": _attention((2**13,), 15, 5, (2, 1), _LARGE),
    "amazon-670k": _attention((2**11, 2**14, 2**17), 160, 10, (6, 2, 2, 2), _LARGE),
    "amazon-3m": _attention((2**13, 2**16, 2**19), 160, 5, (2, 1, 1, 1), _LARGE),
}
