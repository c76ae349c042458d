"""Look into a trained network, as CascadeXML's appendix looks at it.

shortlists   for each level, the mean over documents of the share of their true clusters that the search keeps, nothing
             forced, and the share of labels whose whole path is kept (its Table 11)
attention    of the first token at each layer: to itself, the mean over heads and the largest head (Fig. 2), and the
             entropy of its distribution over the tokens, in nats (Fig. 3); means over documents
similarity   PWCCA between the documents' vectors at any two layers, read as the model reads them: the first token or
             the mean of all (Fig. 4; Morcos et al., 2018)
"""

from __future__ import annotations

import dataclasses
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, Features
from ..base.config import at
from ..base.progress import QUIET, Progress
from ..base.threads import workers
from ..data import Dataset, align_labels
from ..errors import ConfigError, needs
from ..parts.label_features import binary
from ..parts.shortlist import from_ids
from ..parts.tree import up

if TYPE_CHECKING:
    from ..models.model import Model
    from ..models.predictor import Predictor
    from ..neural.inside import Attention

ENOUGH = 5  # documents for each dimension, for a PWCCA that tells more than chance


@dataclasses.dataclass(frozen=True)
class ShortlistRecall:
    """A level above the labels: K clusters, of which a search keeps k."""

    level: int
    clusters: int
    kept: int
    recall: float  # per cent


@dataclasses.dataclass(frozen=True)
class Analysis:
    """Findings about one model on some documents."""

    method: str
    documents: int
    shortlists: list[ShortlistRecall]
    paths: float  # per cent of the labels whose whole path is kept
    layers: list[list[int]]  # that each level reads
    attention: Attention
    pretrained_attention: Attention | None
    similarity: list[list[float]]  # (layers, layers)
    pretrained_similarity: list[list[float]] | None
    pooling: str  # how documents are read for the similarities
    remark: str = ""

    def to_json(self) -> dict[str, Any]:
        """Plain data, for JSON."""
        return dataclasses.asdict(self)


def analyse(
    model: Predictor, data: Dataset, *, threads: int = 0, most: int = 4000, progress: Progress = QUIET
) -> Analysis:
    """Look into the first member of a model with an encoder, on up to `most` documents."""
    member, count = model.members[0], workers(threads)
    embedder = member.embedder
    if embedder is None:
        raise ConfigError(f"{member.recipe.method} has no encoder; there is nothing to look into.")
    embedder.check_has_weights("an analysis")
    if embedder.description.engine == "bilstm" or embedder.attends:
        raise ConfigError(
            f"{member.recipe.method} has no first token that stands for a text (encoder.engine is "
            f"{embedder.description.engine!r}, encoder.pooling {embedder.config.pooling!r}); analyse a transformer."
        )
    if data.texts is None or data.labels is None:
        raise ConfigError("the analysis needs texts with their labels.")
    data = data.take(np.arange(min(most, len(data))))
    assert data.texts is not None
    with needs("an analysis", "neural"):
        from ..neural import inside
    x = member.features(data.texts, None, count, progress)
    truth = align_labels(data, {name: i for i, name in enumerate(member.labels)})
    kept, paths = shortlists(member, x, truth, count)
    tokens, pooling = embedder.tokens(member.texts_read(data.texts)), embedder.readings[-1].pooling
    pooling = "cls" if pooling == "pooler" else pooling  # a pooler is for the last layer
    found = [inside.inside(inside.copied(embedder), tokens, count, pooling)]
    base = inside.as_pretrained(embedder)
    if base is not None:
        found.append(inside.inside(base, tokens, count, pooling))
    few = "" if len(data) >= ENOUGH * found[0][1].shape[2] else (
        f"{len(data)} documents are few for vectors of {found[0][1].shape[2]}: similarities come out too high."
    )  # fmt: skip
    similar = [[[pwcca(a, b) for b in vectors] for a in vectors] for _, vectors in found]
    return Analysis(
        model.method, len(data), kept, paths, [list(reading.layers) for reading in embedder.readings], found[0][0],
        found[1][0] if base is not None else None, similar[0], similar[1] if base is not None else None,
        pooling, few,
    )  # fmt: skip


def shortlists(model: Model, x: Features, truth: Csr, threads: int) -> tuple[list[ShortlistRecall], float]:
    """Recall of each level's shortlist, and the share of labels (seen in training) whose clusters are all kept."""
    seen = np.append(model.counts > 0, np.zeros(max(0, truth.cols - len(model.counts)), np.bool_))
    truth = truth.keep(seen[truth.indices])
    known = Csr(truth.indptr, truth.indices, truth.data, len(model.counts))
    alive = np.ones(known.nnz, np.bool_)
    found, rows = [], known.row_of()
    for t in range(model.tree.depth - 1):
        nodes = model.reach(x, t + 1, threads).nodes
        kept = from_ids(nodes, model.tree.size(t))
        keys = kept.row_of() * kept.cols + kept.indices
        wanted = up(binary(known), model.tree, t)
        hit = np.isin(wanted.row_of() * wanted.cols + wanted.indices, keys)
        counts = wanted.counts()
        share = np.bincount(wanted.row_of(), hit, minlength=wanted.rows)[counts > 0] / counts[counts > 0]
        width = min(at(model.searching.beam, t, model.tree.depth, "beam"), model.tree.size(t))
        found.append(
            ShortlistRecall(t + 1, model.tree.size(t), width, 100 * float(share.mean()) if len(share) else 0.0)
        )
        above = model.tree.labels_to_nodes(t, len(model.counts))
        alive &= np.isin(rows * kept.cols + above[known.indices], keys)
    return found, 100 * float(alive.mean()) if len(alive) else 0.0


def pwcca(x: NDArray[np.floating[Any]], y: NDArray[np.floating[Any]]) -> float:
    """Projection-weighted canonical correlation of two sets of vectors (n, d): 1 if one is a linear map of the other.

    Correlations are weighted by how much of x their directions carry.
    """
    x, y = (_centred(a) for a in (x, y))
    (qx, _), (qy, _) = _basis(x), _basis(y)
    if not qx.shape[1] or not qy.shape[1]:
        return 0.0
    u, rho, _ = np.linalg.svd(qx.T @ qy, full_matrices=False)
    weight = np.abs((qx @ u).T @ x).sum(axis=1)
    return float(np.clip((weight * np.clip(rho, 0, 1)).sum() / weight.sum(), 0, 1))


def _centred(a: NDArray[np.floating[Any]]) -> NDArray[np.float64]:
    wide = a.astype(np.float64)
    found: NDArray[np.float64] = wide - wide.mean(axis=0)
    return found


def _basis(a: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """Orthonormal directions that the rows really span."""
    u, s, _ = np.linalg.svd(a, full_matrices=False)
    rank = int((s > 1e-6 * max(s.max(initial=0.0), 1e-12)).sum())
    return u[:, :rank], s[:rank]
