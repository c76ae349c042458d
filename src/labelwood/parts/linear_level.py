"""A trained level as a model keeps it: chunks, searched as they lie on disk.

A chunk is the children of one parent with all their weights, one flat record (native/linear/chunk.h). What training
emits is what disk holds and what the search reads.
"""

from __future__ import annotations

import dataclasses
import functools
import itertools
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays.sparse import Features
from ..errors import ConfigError, ModelFileError
from ..storage.atomic_files import Spool
from ..storage.safetensors_file import OnDemand

WEIGHTS = ("float32", "float16", "int8")


@dataclasses.dataclass(frozen=True, eq=False)
class LinearLevel:
    """The chunks of one level: their records in one pile, in any order, and the place of each parent's.

    The records of a large model on disk are verified one by one, each before its first use (`source`).
    """

    child_ptr: NDArray[np.int64]  # (parents + 1)
    records: NDArray[np.uint8]
    places: NDArray[np.int64]  # (parents, 2): first byte, bytes
    sparse_cols: int
    dense_cols: int
    source: OnDemand | None = None
    dense_begin: int = 0  # first of X's dense columns that it reads

    engine = "native"

    @property
    def reads(self) -> tuple[int, int, int]:
        """Its sparse columns, its first dense column, its dense columns."""
        return self.sparse_cols, self.dense_begin, self.dense_cols

    @functools.cached_property
    def native(self) -> _core.Level:
        if self.source is None:
            return self._level(None)
        return self._level(_FirstUse(self.source, self._level(None), self.places))

    def _level(self, first: _FirstUse | None) -> _core.Level:
        ready = None if first is None else first.ready
        return _core.Level(self.child_ptr, self.records, self.places, self.sparse_cols, self.dense_cols, ready, first)

    def reading(self, dense_begin: int) -> LinearLevel:
        """The same level, reading its dense columns from another place of X on."""
        return dataclasses.replace(self, dense_begin=dense_begin)

    @property
    def nonzeros(self) -> int:
        return self.native.nonzeros()

    def verify(self) -> None:
        """Check all that is not checked yet; ModelFileError says what is wrong."""
        if self.source is not None:
            self.source.whole()
            _check_records(self._level(None))

    def tensors(self) -> dict[str, NDArray[Any]]:
        """Arrays that the model folder stores; child_ptr belongs to the tree."""
        self.verify()
        return {"records": self.records, "places": self.places}

    @staticmethod
    def from_tensors(
        child_ptr: NDArray[np.int64], tensors: Mapping[str, Any], sparse_cols: int, dense_cols: int,
        dense_begin: int = 0,
    ) -> LinearLevel:  # fmt: skip
        """The inverse of `tensors`, every record checked, now or on first use: native code reads nothing unchecked."""
        source = tensors.get("records")
        source = source if isinstance(source, OnDemand) else None
        if source is not None:
            tensors = {**tensors, "records": source.array}
        kinds: dict[str, tuple[type[Any], int]] = {"records": (np.uint8, 1), "places": (np.int64, 2)}
        for name, (kind, dimensions) in kinds.items():
            if name not in tensors or tensors[name].dtype != kind or tensors[name].ndim != dimensions:
                raise ModelFileError(f"a level's array {name!r} is missing or of the wrong type.")
        if set(tensors) != set(kinds):
            raise ModelFileError(f"a level has unknown arrays: {sorted(set(tensors) - set(kinds))}.")
        records = tensors["records"]
        if records.ctypes.data % 8:  # a file written by another program
            records, source = _aligned(records if source is None else source.whole()), None
        level = LinearLevel(child_ptr, records, tensors["places"], sparse_cols, dense_cols, source, dense_begin)
        try:
            native = level.native
        except ValueError as error:
            raise ModelFileError(f"a level's records do not fit its tree: {error}.") from error
        if source is None:
            _check_records(native)
        return level


def _check_records(level: _core.Level) -> None:
    if fault := level.faults():
        raise ModelFileError(f"a level has an unsound chunk: {fault}.")


class _FirstUse:
    """Called by the search with a parent whose record is not `ready`: verifies its bytes, then its bounds.

    What it found right stays right; what is damaged raises at every use. It holds no reference to the level it serves.
    """

    def __init__(self, source: OnDemand, level: _core.Level, places: NDArray[np.int64]) -> None:
        self.source, self.level, self.places = source, level, places
        self.ready = np.zeros(len(places), np.uint8)

    def __call__(self, parent: int) -> None:
        begin, size = self.places[parent].tolist()
        self.source.check(begin, begin + size)
        if fault := self.level.fault(parent):
            start = self.source.start + begin
            raise ModelFileError(
                f"{self.source.where}: bytes {start} to {start + size} hold an unsound chunk: {fault}."
            )
        self.ready[parent] = 1


def _aligned(records: NDArray[np.uint8]) -> NDArray[np.uint8]:
    copy = np.empty((len(records) + 7) // 8, np.int64).view(np.uint8)[: len(records)]
    copy[:] = records
    return copy


class Pile:
    """Collects the records of a level as training emits them: in memory, or in a spool on disk."""

    def __init__(self, parents: int, spool: Spool | None = None) -> None:
        self.places = np.zeros((parents, 2), np.int64)
        self.size = 0
        self.spool = spool
        self.bytes = bytearray()  # grows in place: large blocks are remapped, not copied

    def write(self, parent: int, record: NDArray[np.uint8]) -> None:
        self.places[parent] = self.size, len(record)
        self.size += len(record)
        if self.spool is None:
            self.bytes += record.data
        else:
            self.spool.write(record.data)

    def records(self) -> NDArray[np.uint8]:
        """All records, end to end; nothing can be added any more."""
        return np.frombuffer(self.bytes if self.spool is None else self.spool.map(), np.uint8)


def from_weights(
    weight: NDArray[np.float32], bias: NDArray[np.float32], child_ptr: NDArray[np.int64], kind: str, begin: int = 0,
    *, spool: Spool | None = None,
) -> LinearLevel:  # fmt: skip
    """A level from W (K, d) and b (K,) of dense features, the first of which is X's column `begin`."""
    pile, none, number = Pile(len(child_ptr) - 1, spool), np.zeros(0, np.int32), WEIGHTS.index(kind)
    empty = np.zeros(0, np.int64), np.zeros(0, np.uint32), np.zeros(0, np.float32)
    for parent, (first, last) in enumerate(itertools.pairwise(child_ptr)):
        block = np.ascontiguousarray(weight[first:last].T).ravel()
        own = np.ascontiguousarray(bias[first:last])
        pile.write(parent, _core.encode_chunk(none, *empty, own, block, 0, weight.shape[1], number))
    return LinearLevel(child_ptr, pile.records(), pile.places, 0, weight.shape[1], None, begin)


def check_features(x: Features, sparse_cols: int, dense_cols: int) -> Features:
    """X as the model expects it; a ConfigError gives both widths otherwise."""
    if (x.sparse_cols, x.dense_cols) != (sparse_cols, dense_cols):
        raise ConfigError(
            f"the features have {x.sparse_cols} sparse and {x.dense_cols} dense columns, but the model was trained on "
            f"{sparse_cols} and {dense_cols}; use the same features."
        )
    return x
