"""The rows of bench/ablations.py: for each table its title, and for each row a method and its settings."""

from __future__ import annotations

from typing import Any

XRT, CASCADE, XT = "xr-transformer", "cascadexml", "x-transformer"
DEEP = {XRT, CASCADE, XT, "lightxml", "attentionxml"}
Rows = dict[str, tuple[str, dict[str, Any]]]


def single(clusters: int | None) -> dict[str, Any]:
    """Fine-tuning on one level, so many clusters or the labels themselves, as long as on two."""
    tree = {"coarse.kind": "flat"} if clusters is None else {"coarse.levels": (clusters,)}
    return {**tree, "finetune.levels": 1, "finetune.epochs": 2}


SIZES = (8, 32, 128)
TWICE = {"finetune.epochs": 1}  # on two levels, a document is seen twice
TAIL = {"tail.classifier_share": 0.6, "tail.propensity_power": 0.5}
NO_WORDS = {"encoder.features": "embedding"}
PARABEL = {"tree.branch": 2, "search.combiner": "l2-hinge"}
KINDS = ("pifa", "pifa-neural", "text-neural")
THREE, NINE = ({"ensemble.runs": 3 * n, "ensemble.labels": KINDS * n} for n in (1, 3))
AVERAGES = ("rank", "mean", "round-robin")
TABLES: dict[str, tuple[str, Rows]] = {
    "methods": (
        "xr-transformer beside linear recipes",
        {
            "xr-transformer": (XRT, {}), "xr-linear": ("xr-linear", {}), "parabel": ("parabel", {}),
            "bonsai": ("bonsai", {}), "dismec": ("dismec", {}),
        },
    ),
    "linear": (
        "Linear recipes",
        {
            "xr-linear": ("xr-linear", {}), "tail": ("xr-linear", TAIL), "parabel": ("parabel", {}),
            "bonsai": ("bonsai", {}), "dismec": ("dismec", {}),
        },
    ),
    "long-tail": (
        "xr-transformer beside linear recipes, by margins and by nearness to a label's documents",
        {
            "dismec": ("dismec", {}), "dismec, tail": ("dismec", TAIL), "bonsai": ("bonsai", {}),
            "xr-linear, tail": ("xr-linear", TAIL), "xr-transformer": (XRT, {}), "xr-transformer, tail": (XRT, TAIL),
        },
    ),
    "frozen": (
        "A frozen encoder",
        {
            "frozen and tf-idf": (XRT, {"finetune.on": False}),
            "frozen and tf-idf, tail": (XRT, {"finetune.on": False, **TAIL}),
        },
    ),
    "networks": (
        "xr-transformer and cascadexml, with and without tf-idf",
        {
            "xr-transformer": (XRT, {}), "xr-transformer, no tf-idf": (XRT, {"encoder.features": "embedding"}),
            "cascadexml": (CASCADE, {}), "cascadexml, the network alone": (CASCADE, {"ranker": "none"}),
            "xr-linear": ("xr-linear", {}), "parabel": ("parabel", {}), "bonsai": ("bonsai", {}),
            "dismec": ("dismec", {}),
        },
    ),
    "ensembles": (
        "Three seeds together",
        {
            "xr-transformer": (XRT, {"ensemble.runs": 3, "ensemble.average": "softmax"}),
            "cascadexml": (CASCADE, {"ensemble.runs": 3}),
            "cascadexml, the networks alone": (CASCADE, {"ensemble.runs": 3, "ranker": "none"}),
        },
    ),
    "bootstrap": (
        "First weights of a head (eq. 11)",
        {name: (XRT, {"levelwise.bootstrap": name}) for name in ("weighted-linear", "linear", "inherit", "none")}
        | {
            f"{name}, random heads with biases of 0": (
                XRT, {"levelwise.bootstrap": name, "finetune.first_bias": "zero"},
            )
            for name in ("weighted-linear", "none")
        },
    ),
    "costs": (
        "Cost-sensitive weights",
        {
            "none": (XRT, {"finetune.relevance": "off", "linear.relevance": "off"}),
            "in fine-tuning, l1 (the paper's)": (XRT, {"finetune.relevance": "induce", "linear.relevance": "off"}),
            "in fine-tuning, counts (the code's)": (
                XRT, {"finetune.relevance_norm": "none", "linear.relevance": "off"},
            ),
            "in the classifiers": (XRT, {"finetune.relevance": "off", "linear.relevance": "induce"}),
            "in both": (XRT, {"finetune.relevance": "induce", "linear.relevance": "induce"}),
        },
    ),
    "shortlist": (
        "Where candidates come from (eq. 8)",
        {name: (XRT, {"levelwise.source": name}) for name in ("union", "teacher", "predicted")},
    ),
    "resolution": (
        "Several resolutions, or one (Figure 2)",
        {
            "multi-resolution": (XRT, TWICE),
            **{f"single, {k} clusters": (XRT, single(k)) for k in SIZES},
            "single, all labels": (XRT, single(None)),
            "multi-resolution, no tf-idf": (XRT, {**TWICE, **NO_WORDS}),
            **{f"single, {k} clusters, no tf-idf": (XRT, {**single(k), **NO_WORDS}) for k in SIZES},
            "single, all labels, no tf-idf": (XRT, {**single(None), **NO_WORDS}),
        },
    ),
    "tree": (
        "The tree of the classifiers",
        {"refined": (XRT, {}), "preliminary": (XRT, {"levelwise.refine": False})},
    ),
    "features": (
        "What the classifiers read",
        {
            "fine-tuned and tf-idf": (XRT, {}),
            "fine-tuned alone": (XRT, NO_WORDS),
            "frozen and tf-idf": (XRT, {"finetune.on": False}),
            "frozen alone": (XRT, {"finetune.on": False, **NO_WORDS}),
            "tf-idf alone": (XRT, {"encoder.model": "none"}),
        },
    ),
    "tokens": (
        "Tokens that are read",
        {f"{n} tokens": (XRT, {"encoder.max_tokens": n}) for n in (128, 32, 64, 256)},
    ),
    "layers": (
        "CascadeXML: layers of the levels",
        {
            "each its own": (CASCADE, {"ranker": "none"}),
            "all the last": (CASCADE, {"ranker": "none", "joint.layers": ("6",)}),
        },
    ),
    "rescaling": (
        "CascadeXML: weights of the levels",
        {
            "by candidates": (CASCADE, {"ranker": "none"}),
            "all the same": (CASCADE, {"ranker": "none", "joint.level_weights": (1.0,)}),
        },
    ),
    "clusters": (
        "CascadeXML: clusters at the last shortlist",
        {
            "by rule": (CASCADE, {"ranker": "none"}),
            **{f"{k} clusters": (CASCADE, {"ranker": "none", "coarse.levels": (k,)}) for k in (16, 64, 128)},
        },
    ),
    "cascade-tokens": (
        "CascadeXML: tokens that are read, with and without tf-idf",
        {
            f"{n} tokens{tail}": (CASCADE, {"encoder.max_tokens": n, **more})
            for n in (128, 64, 256)
            for tail, more in (("", {}), (", no tf-idf", {"ranker": "none"}))
        },
    ),
    "x-transformer": (
        "X-Transformer: negatives, features and label representations (its Table 5)",
        {
            "pifa, words, TFN": (XT, {"encoder.features": "words", "shortlist.source": "teacher"}),
            "pifa, words, TFN+MAN": (XT, {"encoder.features": "words"}),
            "pifa, words and embedding, TFN": (XT, {"shortlist.source": "teacher"}),
            "pifa, words and embedding, MAN": (XT, {"shortlist.source": "predicted"}),
            "pifa, words and embedding, TFN+MAN": (XT, {}),
            "pifa-neural": (XT, {"labels.kind": "pifa-neural"}),
            "text": (XT, {"labels.kind": "text-neural"}),
            "pifa, first token": (XT, {"encoder.pooling": "cls"}),
            "three seeds of pifa": (XT, {"ensemble.runs": 3}),
            "three label representations": (XT, THREE),
            **{f"nine models, {average}": (XT, {**NINE, "ensemble.average": average}) for average in AVERAGES},
        },
    ),
    "deep": (
        "Every method with a network",
        {name: (name, {}) for name in (XRT, CASCADE, XT, "lightxml", "attentionxml")}
        | {name: (name, {}) for name in ("xr-linear", "parabel", "bonsai", "dismec")},
    ),
    "baselines": (
        "Encoders beside words, by two trees",
        {
            f"{name}, {tree}": (method, {**settings, **shape})
            for tree, shape in (("xr-linear", {}), ("parabel", PARABEL))
            for name, method, settings in (
                ("tf-idf", "xr-linear", {}),
                ("word vectors and tf-idf", "xr-linear", {"encoder.model": "minilm", "encoder.layer": 0}),
                ("frozen alone", "xr-linear", {"encoder.model": "minilm", **NO_WORDS}),
                ("frozen and tf-idf", "xr-linear", {"encoder.model": "minilm"}),
                ("fine-tuned and tf-idf", XRT, {"search.score": "path"}),
            )
        },
    ),
    "runtime": (
        "What computes embeddings at prediction",
        {name: (XRT, {"encoder.runtime": name}) for name in ("torch", "onnx", "onnx-int8")},
    ),
}  # fmt: skip
