"""Types of the native core (native/bind_*.cpp)."""

from collections.abc import Callable

from numpy import float32, int32, int64, uint8
from numpy.typing import NDArray

Progress = Callable[[int, int], None]
CsrParts = tuple[NDArray[int64], NDArray[int32], NDArray[float32]]
TermParts = tuple[NDArray[uint8], NDArray[int64], NDArray[float32]]

def isa() -> str: ...
def validate(
    ptr: NDArray[int64], idx: NDArray[int32], val: NDArray[float32], cols: int, threads: int
) -> tuple[str, int, int]: ...

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
    def transform(
        self, arena: NDArray[uint8], offsets: NDArray[int64], threads: int, progress: Progress | None
    ) -> CsrParts: ...

def tfidf_fit(
    arena: NDArray[uint8], offsets: NDArray[int64], options: TfidfOptions, threads: int, progress: Progress | None
) -> tuple[TermParts, CsrParts, int]: ...
def pack_strings(strings: list[str], threads: int) -> tuple[NDArray[uint8], NDArray[int64], int]: ...
