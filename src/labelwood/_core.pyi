"""Types of the native core (native/bind_*.cpp)."""

from numpy import float32, int32, int64
from numpy.typing import NDArray

def isa() -> str: ...
def validate(
    ptr: NDArray[int64], idx: NDArray[int32], val: NDArray[float32], cols: int, threads: int
) -> tuple[str, int, int]: ...

from collections.abc import Callable

from numpy import uint16

Progress = Callable[[int, int], object] | None

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
    threads: int,
    progress: Progress,
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
    kway: bool,
    max_iter: int,
    seed: int,
    tree: int,
    threads: int,
    progress: Progress,
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
    loss: int,
    cp: float,
    cn: float,
    eps: float,
    max_iter: int,
    bias: float,
    threshold: float,
    seed: int,
    tree: int,
    level: int,
    threads: int,
    progress: Progress,
) -> dict[str, NDArray[float32]]: ...

class Level:
    def __init__(
        self,
        child_ptr: NDArray[int64],
        chunk_ptr: NDArray[int64],
        rows: NDArray[int32],
        row_ptr: NDArray[int64],
        cols: NDArray[uint16],
        vals: NDArray[float32],
        bias: NDArray[float32],
        dense: NDArray[float32],
    ) -> None: ...

def beam_search(
    x_ptr: NDArray[int64],
    x_idx: NDArray[int32],
    x_val: NDArray[float32],
    x_cols: int,
    x_dense: NDArray[float32],
    levels: list[Level],
    combiner: list[int],
    power: list[int],
    keep: list[int],
    names: NDArray[int32],
    threads: int,
    progress: Progress,
) -> tuple[NDArray[int32], NDArray[float32]]: ...
