"""Types of the native core (native/bind/*.cpp)."""

from collections.abc import Callable

from numpy import float32, int32, int64, uint8, uint32, uint64
from numpy.typing import NDArray

Progress = Callable[[int, int], object]
CsrParts = tuple[NDArray[int64], NDArray[int32], NDArray[float32]]
TermParts = tuple[NDArray[uint8], NDArray[int64], NDArray[float32]]
TextParts = tuple[NDArray[uint8], NDArray[int64], NDArray[int64], NDArray[int32]]  # arena, offsets, cuts, weights

def isa() -> str: ...
def give_back_memory() -> None: ...
def validate(
    ptr: NDArray[int64], idx: NDArray[int32], val: NDArray[float32], cols: int, largest: float, threads: int
) -> tuple[str, int, int]: ...
def pair_distances(
    x_ptr: NDArray[int64],
    x_idx: NDArray[int32],
    x_val: NDArray[float32],
    x_cols: int,
    x_dense: NDArray[float32],
    z_ptr: NDArray[int64],
    z_idx: NDArray[int32],
    z_val: NDArray[float32],
    z_dense: NDArray[float32],
    ids: NDArray[int32],
    threads: int,
) -> NDArray[float32]: ...
def transpose(ptr: NDArray[int64], idx: NDArray[int32], val: NDArray[float32], cols: int) -> CsrParts: ...
def sum_columns(
    ptr: NDArray[int64], idx: NDArray[int32], val: NDArray[float32], group: NDArray[int32], threads: int
) -> CsrParts: ...
def unit_rows(
    ptr: NDArray[int64],
    idx: NDArray[int32],
    val: NDArray[float32],
    cols: int,
    dense: NDArray[float32],
    threads: int,
) -> tuple[NDArray[float32], NDArray[float32]]: ...
def pifa(
    yt_ptr: NDArray[int64],
    yt_idx: NDArray[int32],
    yt_val: NDArray[float32],
    n: int,
    x_ptr: NDArray[int64],
    x_idx: NDArray[int32],
    x_val: NDArray[float32],
    x_cols: int,
    x_dense: NDArray[float32],
    top: int,
    most: int,
    threads: int,
    progress: Progress | None,
) -> tuple[NDArray[int64], NDArray[int32], NDArray[float32], NDArray[float32]]: ...
def split(
    z_ptr: NDArray[int64],
    z_idx: NDArray[int32],
    z_val: NDArray[float32],
    z_cols: int,
    z_dense: NDArray[float32],
    members: NDArray[int32],
    node_ptr: NDArray[int64],
    parts: NDArray[int32],
    cut: int,
    max_iter: int,
    sample: int,
    seed: int,
    tree: int,
    first: int,
    threads: int,
    progress: Progress | None,
) -> tuple[NDArray[int32], NDArray[int64]]: ...
def train_level(
    x_ptr: NDArray[int64],
    x_idx: NDArray[int32],
    x_val: NDArray[float32],
    x_cols: int,
    x_dense: NDArray[float32],
    yt_ptr: NDArray[int64],
    yt_idx: NDArray[int32],
    yt_val: NDArray[float32],
    mt_ptr: NDArray[int64],
    mt_idx: NDArray[int32],
    mt_val: NDArray[float32],
    child_ptr: NDArray[int64],
    negative: NDArray[float32],
    first: NDArray[float32] | None,
    loss: int,
    solver: int,
    mean_start: bool,
    l1: float,
    cp: float,
    cn: float,
    eps: float,
    max_iter: int,
    bias: float,
    threshold: float,
    weight: int,
    seed: int,
    tree: int,
    level: int,
    first_parent: int,
    write: Callable[[int, NDArray[uint8]], None],
    threads: int,
    progress: Progress | None,
) -> None: ...
def encode_chunk(
    rows: NDArray[int32],
    end: NDArray[int64],
    cols: NDArray[uint32],
    vals: NDArray[float32],
    bias: NDArray[float32],
    dense: NDArray[float32],
    sparse_cols: int,
    dense_cols: int,
    weight: int,
) -> NDArray[uint8]: ...

class Level:
    def __init__(
        self,
        child_ptr: NDArray[int64],
        records: NDArray[uint8],
        places: NDArray[int64],
        sparse_cols: int,
        dense_cols: int,
        ready: NDArray[uint8] | None,
        verify: Callable[[int], None] | None,
    ) -> None: ...
    def fault(self, parent: int) -> str: ...
    def faults(self) -> str: ...
    def nonzeros(self) -> int: ...
    def decode(
        self, parent: int
    ) -> tuple[
        NDArray[int32], NDArray[int64], NDArray[uint32], NDArray[float32], NDArray[float32], NDArray[float32]
    ]: ...

class Searcher:
    def __init__(
        self,
        levels: list[Level],
        combiner: list[int],
        power: list[int],
        discount: list[float],
        keep: list[int],
        begin: list[int],
        sparse_cols: int,
        dense_cols: int,
        names: NDArray[int32],
        exact: bool,
        logs: bool,
    ) -> None: ...
    def __call__(
        self,
        x_ptr: NDArray[int64],
        x_idx: NDArray[int32],
        x_val: NDArray[float32],
        x_cols: int,
        x_dense: NDArray[float32],
        threads: int,
        progress: Progress | None,
    ) -> tuple[NDArray[int32], NDArray[float32]]: ...
    def resume(
        self,
        x_ptr: NDArray[int64],
        x_idx: NDArray[int32],
        x_val: NDArray[float32],
        x_cols: int,
        x_dense: NDArray[float32],
        start_ids: NDArray[int32],
        start_scores: NDArray[float32],
        threads: int,
        progress: Progress | None,
    ) -> tuple[NDArray[int32], NDArray[float32]]: ...

class Names:
    def __init__(self, arena: NDArray[uint8], offsets: NDArray[int64]) -> None: ...
    def some(self, begin: int, end: int) -> list[str]: ...
    def pairs(self, ids: NDArray[int32], scores: NDArray[float32]) -> list[list[tuple[str, float]]]: ...
    def repeated(self) -> int: ...

def merge(
    ids: list[NDArray[int32]],
    scores: list[NDArray[float32]],
    weights: list[float],
    margins: list[bool],
    average: int,
    length: int,
    keep: int,
    threads: int,
    progress: Progress | None,
) -> tuple[NDArray[int32], NDArray[float32]]: ...

TOKENISER_VERSION: int

class TfidfOptions:
    def __init__(
        self,
        *,
        lowercase: bool,
        strip: bool,
        min_chars: int,
        words: tuple[int, int],
        chars: tuple[int, int],
        min_df: int,
        max_df: float,
        max_features: int,
        sublinear: bool,
        idf: int,
        l2: bool,
    ) -> None: ...

class Vectoriser:
    def __init__(
        self, options: TfidfOptions, bytes: NDArray[uint8], offsets: NDArray[int64], idf: NDArray[float32]
    ) -> None: ...
    def transform(self, texts: TextParts, words: Words | None, threads: int, progress: Progress | None) -> CsrParts: ...

class Words:
    def __init__(self) -> None: ...
    def add_stems(
        self,
        bytes: NDArray[uint8],
        offsets: NDArray[int64],
        stem_bytes: NDArray[uint8],
        stem_offsets: NDArray[int64],
    ) -> None: ...
    def keep_whole(self, bytes: NDArray[uint8], offsets: NDArray[int64]) -> None: ...
    def knows(self, bytes: NDArray[uint8], offsets: NDArray[int64]) -> NDArray[uint8]: ...

def count_words(
    texts: TextParts, options: TfidfOptions, words: Words | None, threads: int, progress: Progress | None
) -> tuple[NDArray[uint8], NDArray[int64], NDArray[int64]]: ...
def tfidf_fit(
    texts: TextParts, options: TfidfOptions, words: Words | None, threads: int, progress: Progress | None
) -> tuple[TermParts, CsrParts, int]: ...
def sketch_texts(
    arena: NDArray[uint8], offsets: NDArray[int64], threads: int, progress: Progress | None
) -> tuple[NDArray[int32], NDArray[int32], NDArray[uint8], NDArray[uint64], NDArray[uint32]]: ...
def pack_strings(strings: list[str], threads: int) -> tuple[NDArray[uint8], NDArray[int64], int]: ...

JsonColumns = tuple[
    NDArray[uint8],  # texts
    NDArray[int64],  # where they end
    NDArray[int64],  # where the second and later fields begin
    NDArray[int32],  # labels of each row
    NDArray[int32],  # those left out as duplicates
    NDArray[int32],  # numbers of the labels
    NDArray[int32],  # shapes
    list[str] | None,  # ids
]
OddLine = tuple[
    int, int, int, int, bool
]  # rows before it, its number from 1, its first byte, its end, is its shape new

class JsonLines:
    def __init__(self, *, fields: int, need_labels: bool, label_bytes: int) -> None: ...
    def learn(self, names: list[str], texts: list[int], labels: int, id: int, refused: bool) -> bool: ...
    def read(
        self, data: bytes, begin: int, size: int, ids: bool, threads: int
    ) -> tuple[JsonColumns, list[OddLine], int, int]: ...
    def names(self, begin: int) -> list[str]: ...
