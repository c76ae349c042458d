"""Types of the native core (native/bind_*.cpp)."""

from numpy import float32, int32, int64
from numpy.typing import NDArray

def isa() -> str: ...
def validate(
    ptr: NDArray[int64], idx: NDArray[int32], val: NDArray[float32], cols: int, threads: int
) -> tuple[str, int, int]: ...
