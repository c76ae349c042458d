"""Training set: a data set, checked for training, with a digest of everything that training reads."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ..arrays.sparse import Csr, as_features, checked
from ..base.digests import digest_arrays, digest_plain
from ..data import Dataset
from ..errors import DataError


@dataclasses.dataclass(frozen=True, eq=False)
class Problem:
    """Problem to be learned: labels (n, L) with positive relevances, and which labels occur."""

    y: Csr
    names: tuple[str, ...]
    counts: NDArray[np.int64]  # (L,) positives of each label
    data_key: str
    valid: Dataset | None = None  # held-out documents that choose between states of a network

    @property
    def seen(self) -> NDArray[np.int32]:
        return np.flatnonzero(self.counts).astype(np.int32)


def prepare(data: Dataset, valid: Dataset | None = None) -> Problem:
    """Check what training needs of a data set, and digest it; `valid` only where it takes part in the training."""
    if data.labels is None:
        raise DataError("the data has no labels; training needs a label list for each document.")
    if len(data) == 0:
        raise DataError("the data is empty; training needs at least one document with a label.")
    if data.labels.rows != len(data):
        raise DataError(
            f"there are {len(data)} documents but {data.labels.rows} rows of labels; give one row for each."
        )
    if data.features is not None:
        if data.features.rows != len(data):
            raise DataError(f"there are {len(data)} documents but {data.features.rows} rows of features.")
        as_features(data.features)  # a Dataset may have been made by hand: native code sees nothing unchecked
    if data.labels.cols != len(data.names):
        raise DataError(f"the labels have {data.labels.cols} columns but {len(data.names)} names; each needs one.")
    if len(data.label_texts) not in {0, len(data.names)}:
        raise DataError(
            f"there are {len(data.names)} labels but {len(data.label_texts)} label texts; give all or none."
        )
    if data.taxonomy is not None and len(data.taxonomy.inside) != len(data.names):
        raise DataError(
            f"there are {len(data.names)} labels but the taxonomy is over {len(data.taxonomy.inside)}; "
            "lay it over the data with with_taxonomy."
        )
    y = _positive(checked(data.labels, "labels"))
    if y.nnz == 0:
        raise DataError("no document has a label; training needs at least one.")
    counts = np.bincount(y.indices, minlength=y.cols).astype(np.int64)
    key = _data_key(data, y)
    if valid is not None:
        if valid.labels is None or valid.texts is None or not len(valid):
            raise DataError("the held-out data must have documents, each a text with its labels.")
        held_out_labels = checked(valid.labels, "held-out labels")
        if data.texts is not None:
            valid = dataclasses.replace(valid, texts=valid.texts.read_as(data.texts.fields))
        key = digest_plain([key, _data_key(valid, held_out_labels)])
    return Problem(y, data.names, counts, key, valid)


def _data_key(data: Dataset, y: Csr) -> str:
    """A digest of everything training reads."""
    arrays: list[NDArray[Any]] = [y.indptr, y.indices, y.data]
    if data.texts is not None:
        arrays += [data.texts.arena, data.texts.offsets]
        if len(data.texts.fields) > 1 or any(field.weight > 1 for field in data.texts.fields):
            arrays += data.texts.parts[2:]
    if data.features is not None:
        arrays += [a for a in data.features.parts if isinstance(a, np.ndarray)]
    if data.taxonomy is not None:
        arrays += [data.taxonomy.inside, data.taxonomy.child, data.taxonomy.parent]
    return digest_plain({"names": digest_plain(list(data.names)), "arrays": digest_arrays(*arrays)})


def _positive(y: Csr) -> Csr:
    """Drop explicit zeros; refuse negative relevances."""
    if (y.data < 0).any():
        row = int(y.row_of()[np.argmax(y.data < 0)])
        raise DataError("a label's relevance is negative; relevances must be positive.", row=row, field="relevance")
    return y if (y.data > 0).all() else y.keep(y.data > 0)
