"""A hierarchy over the labels, as the user gives it: nodes with their parents."""

from __future__ import annotations

import dataclasses

import numpy as np
from numpy.typing import NDArray


@dataclasses.dataclass(frozen=True, eq=False)
class Taxonomy:
    """Nodes 0 … L-1 are the labels of the data, the others have no documents. Acyclic: `with_taxonomy` sees to it."""

    nodes: int
    inside: NDArray[np.bool_]  # (L,) labels that the taxonomy knows
    child: NDArray[np.int32]  # (edges,) in the order of the file, each pair once
    parent: NDArray[np.int32]
