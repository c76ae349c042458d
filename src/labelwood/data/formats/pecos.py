"""PECOS' folders: texts `X.trn.txt` (or features `X.trn.npz`), labels `Y.trn.npz`, names `output-items.txt`; .tst too.

The .npz files are scipy's; they are opened without pickle and checked like any matrix from outside.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np

from ...arrays.sparse import Csr, as_csr
from ...errors import DataError
from ..label_files.label_texts import read_names
from ..parsing.fields import weighted
from ..parsing.input_pass import InputPass, without_end
from ..parsing.rows import Row
from ..parsing.source import beside
from .registry import Format, register


def rows(reading: InputPass) -> Iterator[Row]:
    """Row i of the texts (or features) and of the labels is one document."""
    part = {"train": "trn", "test": "tst"}[reading.options.split]
    place = reading.labels_part(f"Y.{part}.npz")
    labels = None if place is None else load_npz(place)
    names = _names(reading, labels)
    inputs, where = _inputs(reading, part)
    count = 0
    for count, found in enumerate(inputs, 1):
        if labels is not None and count > labels.rows:
            raise DataError(f"there are more rows than the {labels.rows} of {place}.", file=where, row=count - 1)
        if isinstance(found, DataError):
            reading.log.bad(found)
            continue
        yield found if labels is None else _labelled(found, labels, count - 1, names)
    if labels is not None and count != labels.rows:
        raise DataError(f"there are {count} rows, but {place} has {labels.rows}.", file=where)


def load_npz(path: Path) -> Csr:
    """A matrix written by scipy.sparse.save_npz in CSR form."""
    from scipy import sparse

    try:
        with np.load(path, allow_pickle=False) as file:
            kind = file["format"].item()
            if kind not in {b"csr", "csr"}:
                raise DataError(f"expected a CSR matrix, but its format is {kind!r}.")
            parts = tuple(np.asarray(file[name]) for name in ("data", "indices", "indptr"))
            shape: Any = tuple(int(size) for size in file["shape"])
        if len(shape) != 2 or any(part.ndim != 1 for part in parts) or any(p.dtype.kind not in "iu" for p in parts[1:]):
            raise DataError("expected the three arrays of a CSR matrix.")
        if len(parts[2]) != shape[0] + 1:
            raise DataError(f"expected {shape[0] + 1} row pointers, but there are {len(parts[2])}.")
        matrix = sparse.csr_matrix(shape, dtype=parts[0].dtype)
        matrix.data, matrix.indices, matrix.indptr = parts  # not through the constructor: as_csr does the checking
        return as_csr(matrix, path.name)
    except DataError as error:
        raise error.at(file=str(path)) from error
    except Exception as error:  # numpy and zipfile raise a dozen kinds for damaged files
        raise DataError(f"not a sparse matrix saved by scipy: {error}", file=path) from error


def _inputs(reading: InputPass, part: str) -> tuple[Iterator[Row | DataError], str]:
    place = reading.part(f"X.{part}.txt", f"X.{part}.npz")
    if place.suffix == ".npz":
        matrix = load_npz(place)
        reading.width = matrix.cols
        reading.log.records = matrix.rows
        return (Row(features=matrix.row(i)) for i in range(matrix.rows)), str(place)
    return _texts(reading, place), str(place)


def _texts(reading: InputPass, place: Path) -> Iterator[Row | DataError]:
    source = reading.open(place)
    for raw in source.lines():
        try:
            yield Row(without_end(reading.log.utf8(raw)))
        except DataError as error:
            yield error.at(file=source.name, line=source.line)


def _labelled(row: Row, labels: Csr, i: int, names: tuple[str, ...]) -> Row:
    columns, values = labels.row(i)
    named = [names[c] if names else str(c) for c in columns]
    try:
        kept, relevance = weighted(named, values.tolist(), "Y")
    except DataError as error:
        raise error.at(row=i) from error
    return row._replace(labels=kept, relevance=relevance)


def _names(reading: InputPass, labels: Csr | None) -> tuple[str, ...]:
    """Column → name by output-items.txt; every name is kept, with or without documents. Else columns are numbers."""
    place = beside(reading.folder(), "output-items.txt")
    if labels is None or place is None:
        return ()
    names = read_names(place)
    if len(names) != labels.cols:
        raise DataError(f"there are {len(names)} names, but the labels have {labels.cols} columns.", file=place)
    reading.names = names
    return names


register(
    Format(
        "pecos",
        rows,
        "folder: `X.trn.txt` (or features `X.trn.npz`), `Y.trn.npz`, `output-items.txt`",
        place=10,
        folder=("X.trn.txt", "X.trn.npz", "X.tst.txt", "X.tst.npz"),
    )
)
