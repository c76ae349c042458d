"""Between reader and Dataset: one `Row` per document, the `Log` of bad ones, the `Collector` that packs the rest."""

from __future__ import annotations

import codecs
import dataclasses
from array import array
from collections.abc import Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from ...arrays.sparse import Csr, Features, checked
from ...arrays.texts import Texts
from ...errors import DataError
from ..dataset import EXAMPLES, Dataset, LabelTable, ReadReport

if TYPE_CHECKING:
    from .fields import Fields, Shape
    from .source import Source
    from .spanning import Spanning

Entries = tuple[NDArray[np.int32], NDArray[np.float32]]  # columns and values of one document, in any order
_PIECE = 2**20
_DECODER = codecs.getincrementaldecoder("utf-8")


class Row(NamedTuple):
    """One document as a reader sees it. `text` is valid UTF-8; labels are checked names, None where there are none."""

    text: bytes | None = None
    labels: Sequence[str] | None = None
    relevance: Sequence[float] | None = None
    id: str | None = None
    features: Entries | None = None
    cuts: Sequence[int] | None = None  # where the second and later fields of the text begin; None: one field
    shape: Shape | None = None  # of a record with named fields: in a report it counts where its row is kept


@dataclasses.dataclass(frozen=True, eq=False)
class Rows:
    """Many documents at once, as columns. Row i has the text text[ends[i] - ends[0] : ends[i + 1] - ends[0]]."""

    text: NDArray[np.uint8]
    ends: NDArray[np.int64]  # (n + 1,)
    cuts: NDArray[np.int64]  # (n, F - 1) where the second and later fields begin, counted as `ends` are
    counts: NDArray[np.int32]  # (n,) labels; -1 where a row has none because nothing is said of them
    duplicates: NDArray[np.int32]  # (n,) labels that are left out, because they stand in the row already
    labels: NDArray[np.int32]  # numbers of the names of all labels, row after row
    shape: NDArray[np.int32]  # (n,) number of each record's shape
    ids: list[str] | None
    names: list[str]  # of label numbers; the same list for all rows of an input, which grows
    shapes: list[Shape]

    def __len__(self) -> int:
        return len(self.counts)

    def part(self, begin: int, end: int) -> Rows:
        """Some of the rows."""
        if end - begin == len(self):
            return self
        first, last = self.ends[begin] - self.ends[0], self.ends[end] - self.ends[0]
        before, held = (np.maximum(self.counts[a:b], 0).sum() for a, b in ((0, begin), (begin, end)))
        return dataclasses.replace(
            self,
            text=self.text[first:last],
            ends=self.ends[begin : end + 1],
            cuts=self.cuts[begin:end],
            counts=self.counts[begin:end],
            duplicates=self.duplicates[begin:end],
            labels=self.labels[before : before + held],
            shape=self.shape[begin:end],
            ids=None if self.ids is None else self.ids[begin:end],
        )


class Log:
    """Record of bad lines: what to do with them (None: there is no choice), and how many there were."""

    def __init__(self, on_bad: str | None = None) -> None:
        self.on_bad = on_bad
        self.skipped = self.replaced = 0
        self.header = self.blank = self.inner = 0  # lines of no record, and those within one
        self.source: Source | None = None  # of the lines
        self.records = 0  # read from an input that has no lines
        self.examples: list[str] = []
        self.fields: Fields | None = None  # of formats whose records have named fields
        self.spanning: Spanning | None = None  # of formats whose records may have several lines
        self._lines = 0  # reported before

    def bad(self, error: DataError, lines: int = 1) -> None:
        """Raise it, or count it (and the lines lost by it) where bad lines are skipped."""
        if self.on_bad != "skip":
            raise error
        self.skipped += lines
        if len(self.examples) < EXAMPLES:
            self.examples.append(str(error))

    def new_lines(self) -> int:
        """The lines read since the last call, or records where the input has no lines."""
        lines = self.records or (0 if self.source is None else self.source.line)
        found, self._lines = lines - self._lines, lines
        return found

    def utf8(self, raw: bytes) -> bytes:
        """These bytes if they are UTF-8; bad ones are replaced (and counted) or a DataError with their column."""
        bad = _first_bad_byte(raw)
        if bad is None:
            return raw
        if self.on_bad == "replace":
            self.replaced += 1
            return raw.decode("utf-8", errors="replace").encode()
        if raw[:2] in {b"\xff\xfe", b"\xfe\xff"}:
            way = (
                "it looks like UTF-16; convert the file to UTF-8 (iconv -f UTF-16 -t UTF-8; Excel: save as CSV UTF-8)."
            )
        else:
            choice = "" if self.on_bad is None else ', or replace such bytes (--on-bad replace, on_bad="replace")'
            way = f"convert the file to UTF-8{choice}."
        raise DataError(f"byte 0x{raw[bad]:02x} is not valid UTF-8; {way}", column=bad + 1)


def _first_bad_byte(raw: bytes) -> int | None:
    """Decode in pieces, because the decoded form of a huge line can be four times its size."""
    if raw.isascii():
        return None
    decoder = _DECODER()
    for start in range(0, len(raw), _PIECE):
        piece = raw[start : start + _PIECE]
        try:
            decoder.decode(piece, final=start + _PIECE >= len(raw))
        except UnicodeDecodeError as error:
            carried = len(error.object) - len(piece)  # a character begun at the end of the piece before
            return start - carried + error.start
    return None


class Collector:
    """Packs rows into a Dataset: texts into one arena, features and labels into matrices."""

    def __init__(self, log: Log, names: Sequence[str] = ()) -> None:
        self._log = log
        self._rows = self._no_labels = 0
        self._labelled = False
        self._arena, self._ends, self._cuts = bytearray(), array("q", [0]), array("q")
        self._columns, self._values, self._pointers = bytearray(), bytearray(), array("q", [0])
        self._table = LabelTable(names)
        self._ids: list[str] = []

    def __len__(self) -> int:
        return self._rows

    def add(self, row: Row | Rows) -> None:
        """A document, or many."""
        if isinstance(row, Rows):
            self._add_many(row)
            return
        self._rows += 1
        if row.shape is not None:
            row.shape.records += 1
        if row.text is not None:
            if row.cuts is not None:
                self._cuts.extend([len(self._arena) + cut for cut in row.cuts])
            self._arena += row.text
            self._ends.append(len(self._arena))
        if row.features is not None:
            self._columns += row.features[0].tobytes()
            self._values += row.features[1].tobytes()
            self._pointers.append(len(self._columns) // 4)
        if row.labels is not None:
            self._labelled = True
        self._no_labels += not row.labels
        self._table.add(row.labels or (), row.relevance if row.labels else None)
        if row.id is not None:
            self._ids.append(row.id)

    def _add_many(self, rows: Rows) -> None:
        self._rows += len(rows)
        for number, records in enumerate(np.bincount(rows.shape).tolist()):
            if records:
                rows.shapes[number].records += records
        base = len(self._arena)
        self._arena += rows.text.data
        self._ends.frombytes((rows.ends[1:] + (base - rows.ends[0])).tobytes())
        self._cuts.frombytes((rows.cuts + (base - rows.ends[0])).tobytes())
        self._labelled = self._labelled or bool((rows.counts >= 0).any())
        self._no_labels += int((rows.counts <= 0).sum())
        self._table.add_many(rows.labels, np.maximum(rows.counts, 0), rows.names)
        self._table.duplicates += int(rows.duplicates.sum())
        self._ids += rows.ids or ()

    def finish(self, width: int = 0) -> Dataset:
        """Everything collected; `width` is the number of feature columns."""
        texts = features = labels = None
        read, left = ((), ()) if self._log.fields is None else self._log.fields.told()
        if len(self._ends) > 1:
            texts = self._texts()
        if len(self._pointers) > 1:
            features = Features(self._matrix(width))
        names: tuple[str, ...] = ()
        if self._labelled:
            labels, names = self._table.finish()
        report = ReadReport(
            rows=self._rows,
            skipped=self._log.skipped,
            replaced=self._log.replaced,
            duplicate_labels=self._table.duplicates,
            no_labels=self._no_labels if self._labelled else 0,
            examples=tuple(self._log.examples),
            fields=read if self._expected() else tuple(field for field in read if field.records),
            left=left,
            lines=self._log.new_lines(),
            header=self._log.header,
            blank=self._log.blank,
            inner=self._log.inner,
        )
        self._log.skipped, self._log.replaced, self._log.examples = 0, 0, []
        self._log.header = self._log.blank = self._log.inner = 0
        ids = tuple(self._ids) if self._ids and len(self._ids) == self._rows else None
        return Dataset(texts, features, labels, names, ids, report)

    def _texts(self) -> Texts:
        """The texts, with those of their fields that hold something."""
        texts = Texts(np.frombuffer(self._arena, np.uint8), np.array(self._ends, np.int64))
        if self._log.fields is None or not self._log.fields.apart:
            return texts
        fields = self._log.fields.text
        cuts = np.array(self._cuts, np.int64).reshape(len(texts), len(fields) - 1)
        bounds = np.column_stack([texts.offsets[:-1], cuts, texts.offsets[1:]])
        kept = np.flatnonzero((bounds[:, 1:] > bounds[:, :-1]).any(axis=0))  # an empty field needs no place of its own
        if not len(kept):
            return texts
        cuts = np.ascontiguousarray(bounds[:, kept[1:]])
        return Texts(
            texts.arena, texts.offsets, tuple(fields[place] for place in kept), cuts if len(kept) > 1 else None
        )

    def _expected(self) -> bool:
        """Were the fields named, so that one which never occurs is worth a word?"""
        return self._log.fields is not None and not self._log.fields.usual

    def _matrix(self, width: int) -> Csr:
        indptr = np.array(self._pointers, np.int64)
        columns, values = np.frombuffer(self._columns, np.int32), np.frombuffer(self._values, np.float32)
        return tidy(Csr(indptr, columns, values, width))


def tidy(matrix: Csr) -> Csr:
    """Columns of each row sorted, repeats summed. The columns must be in range."""
    rows = np.repeat(np.arange(matrix.rows), matrix.counts())
    same_row = rows[1:] == rows[:-1]
    if not (same_row & (matrix.indices[1:] <= matrix.indices[:-1])).any():
        return checked(matrix, "features")
    order = np.lexsort((matrix.indices, rows))
    columns, rows = matrix.indices[order], rows[order]
    starts = np.flatnonzero(np.r_[True, (columns[1:] != columns[:-1]) | (rows[1:] != rows[:-1])])
    with np.errstate(over="ignore"):
        values = np.add.reduceat(matrix.data[order].astype(np.float64), starts).astype(np.float32)
    indptr = np.zeros(matrix.rows + 1, np.int64)
    np.cumsum(np.bincount(rows[starts], minlength=matrix.rows), out=indptr[1:])
    return checked(Csr(indptr, np.ascontiguousarray(columns[starts]), values, matrix.cols), "features")
