"""Rough figures of a training from the sizes of the data alone: no trial is made, and the same data give the same.

The rates were measured on sets of 3,000 to 45,000 documents, on two cores (docs/reference/planning.md). Expect a
factor of three either way. `labelwood plan` measures, and takes longer.
"""

from __future__ import annotations

import dataclasses
import math

LINEAR = 1.8e-8  # CPU seconds of xr-linear for each (word of a document, label of it, halving of the labels)
FLAT = 4e-9  # of dismec for each (word of a document, label)
STEP = 7e-4  # of a fine-tuning for each piece of a word in each pass over the documents
TIMES = {"xr-linear": 1.0, "parabel": 4.0, "plt": 5.0, "bonsai": 6.0}  # beside xr-linear
PASSES = {"cascadexml": 4.0, "xr-transformer": 4.0, "attentionxml": 10.0}
NETWORK = 2_200_000_000  # bytes that a fine-tuning of the default encoder holds


@dataclasses.dataclass(frozen=True)
class Extent:
    """Sizes of a set, as far as rough figures need them."""

    documents: int
    labels: int
    occurrences: int  # of labels
    distinct_words: float  # per document
    vocabulary: int
    pieces: float  # that an encoder reads, per document
    bytes: int  # of text


@dataclasses.dataclass(frozen=True)
class Rough:
    """Rough cost of a method, and why it suits or when."""

    method: str
    why: str
    cpu_seconds: float
    memory: int  # bytes


def rough(method: str, extent: Extent, why: str) -> Rough:
    """The figures of one method; two digits, as more would mean nothing."""
    e = extent
    linear = LINEAR * e.distinct_words * e.occurrences * max(1.0, math.log2(max(2, e.labels)))
    words = int(e.distinct_words * e.documents)
    memory = e.bytes + 16 * words + 100 * e.vocabulary + 60_000_000
    if method == "dismec":
        cpu = FLAT * words * e.labels
    elif method in PASSES:
        cpu = linear + STEP * PASSES[method] * e.pieces * e.documents
        memory += NETWORK
    else:
        cpu = TIMES[method] * linear
    return Rough(method, why, _digits(cpu), int(_digits(memory)))


def _digits(value: float) -> float:
    """The value with two digits, at least a tenth."""
    value = max(0.1, value)
    unit = 10.0 ** (math.floor(math.log10(value)) - 1)
    return round(round(value / unit) * unit, 6)


def suiting(extent: Extent, *, once: float, english: float, texts: bool = True) -> tuple[Rough, ...]:
    """Methods that suit a set, the first to try first; `once` is the share of its labels that are seen once."""
    found = [rough("xr-linear", extent, "the first answer: what words alone can do")]
    found.append(rough("parabel", extent, "three trees are steadier than one"))
    if once >= 0.2:
        found.append(rough("bonsai", extent, f"rare labels: {100 * once:.0f} % of the labels are seen once"))
    flat = rough("dismec", extent, "every label sees every document: the best linear figures where it is affordable")
    if extent.labels <= 50_000 and flat.cpu_seconds <= 20_000:
        found.append(flat)
    if not texts or extent.documents < 500:
        return tuple(found)
    if english >= 0.5:
        found.append(rough("cascadexml", extent, "where single words do not tell: one fine-tuning for all levels"))
        found.append(rough("xr-transformer", extent, "the same, level by level"))
    else:
        found.append(rough("cascadexml", extent, "with an encoder of your language: encoder.model=FOLDER"))
        found.append(rough("attentionxml", extent, "a network that needs no pretrained encoder"))
    return tuple(found)
