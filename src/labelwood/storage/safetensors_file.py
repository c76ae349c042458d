"""The safetensors file: named arrays in one flat file, written without copying and read as views of the map.

    8 bytes   length n of the header, little-endian
    n bytes   JSON: {name: {"dtype", "shape", "data_offsets": [begin, end]}}, padded with spaces to a multiple of 8
    the rest  the arrays end to end, C order, little-endian, the widest types first so that each is aligned

Byte for byte what the `safetensors` package writes. Reading is done here because the views must be of the very
bytes that were verified, and because every rule of the format is checked, with a message of its own.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Collection, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import limits
from ..base import canonical_json
from ..base.digests import Chunk, as_bytes
from ..errors import ConfigError, ModelFileError

# In the order of the arrays in a file.
DTYPES: dict[str, np.dtype[Any]] = {
    "U64": np.dtype("<u8"),
    "I64": np.dtype("<i8"),
    "F64": np.dtype("<f8"),
    "F32": np.dtype("<f4"),
    "U32": np.dtype("<u4"),
    "I32": np.dtype("<i4"),
    "F16": np.dtype("<f2"),
    "U16": np.dtype("<u2"),
    "I16": np.dtype("<i2"),
    "I8": np.dtype("i1"),
    "U8": np.dtype("u1"),
    "BOOL": np.dtype("?"),
}
CODES = {dtype: code for code, dtype in DTYPES.items()}
ORDER = {code: i for i, code in enumerate(DTYPES)}
ENTRY = {"dtype", "shape", "data_offsets"}
Check = Callable[[int, int], None]  # verifies the bytes begin..end of a file, or raises; called before they are read


@dataclasses.dataclass(frozen=True, eq=False)
class OnDemand:
    """A tensor that is verified piece by piece: no byte of `array` may be read before `check` was called for it."""

    array: NDArray[Any]
    where: str  # the file
    start: int  # its first byte in the file
    verify: Check

    def check(self, begin: int, end: int) -> None:
        """Verify the bytes begin..end of the array; ModelFileError if they have changed, again at every call."""
        self.verify(self.start + begin, self.start + end)

    def whole(self) -> NDArray[Any]:
        """The array, all of it verified."""
        self.check(0, self.array.nbytes)
        return self.array


def normal(array: NDArray[Any], name: str) -> NDArray[Any]:
    """The array as a file holds it: C order, little-endian, read-only. Copied only if it is not like that already."""
    little = array.dtype.newbyteorder("<") if array.dtype.kind in "biuf" else array.dtype
    if little not in CODES:
        raise ConfigError(f"the tensor {name!r} has the type {array.dtype}; allowed are {', '.join(DTYPES)}.")
    found = np.asarray(array, dtype=little, order="C").view(np.ndarray)
    found.flags.writeable = False
    return found


def encode(tensors: Mapping[str, NDArray[Any]]) -> list[Chunk]:
    """The file's bytes as chunks: the header, then the arrays' own memory."""
    arrays = {_checked_name(name): normal(array, name) for name, array in tensors.items()}
    order = sorted(arrays, key=lambda name: (ORDER[CODES[arrays[name].dtype]], name))
    header, at = {}, 0
    for name in order:
        array = arrays[name]
        entry = {"dtype": CODES[array.dtype], "shape": list(array.shape), "data_offsets": [at, at + array.nbytes]}
        header[name], at = entry, at + array.nbytes
    text = canonical_json.spell(header)
    text += b" " * (-len(text) % 8)
    if len(text) > limits.MAX_HEADER_BYTES or text.count(b",") > limits.MAX_JSON_ITEMS:
        raise ConfigError(
            f"{len(arrays)} tensors need a header of {len(text)} bytes; at most {limits.MAX_HEADER_BYTES} bytes with "
            f"{limits.MAX_JSON_ITEMS} values are allowed. Use fewer, larger tensors."
        )
    return [len(text).to_bytes(8, "little") + text, *(as_bytes(arrays[name]) for name in order)]


def decode(
    data: memoryview, where: str, check: Check = lambda begin, end: None, later: Collection[str] = ()
) -> dict[str, Any]:
    """Read-only arrays that are views of `data`; ModelFileError names the rule that is broken.

    `check` is called for bytes before they are read. The tensors named in `later` are OnDemand, unread so far.
    """
    check(0, min(8, len(data)))
    start = 8 + _header_length(data, where)
    check(0, start)
    header = canonical_json.parse(bytes(data[8:start]), f"{where}, header")
    if not isinstance(header, dict):
        raise ModelFileError(f"{where}: the header is not a table of tensors.")
    header.pop("__metadata__", None)  # allowed by the format, nothing of ours
    for name, entry in header.items():
        _check_entry(entry, f"{where}, tensor {name[:80]!r}")
    _check_layout(header, len(data) - start, where)
    found: dict[str, Any] = {}
    for name, entry in header.items():
        begin, end = (start + offset for offset in entry["data_offsets"])
        array = _view(data, begin, entry, f"{where}, tensor {name[:80]!r}")
        if name in later and array.flags.aligned and array.dtype.kind != "b":
            found[name] = OnDemand(array, where, begin, check)
        else:
            check(begin, end)
            found[name] = _sound(array, f"{where}, tensor {name[:80]!r}")
    return found


def _checked_name(name: str) -> str:
    if not name or name == "__metadata__" or len(name) > 256:
        raise ConfigError(f"{name[:80]!r} cannot name a tensor; give 1 to 256 characters, not '__metadata__'.")
    return str(canonical_json.normal(name, "a tensor's name"))


def _header_length(data: memoryview, where: str) -> int:
    if len(data) < 8:
        raise ModelFileError(f"{where}: {len(data)} bytes are too few for a safetensors file.")
    length = int.from_bytes(data[:8], "little")
    most = min(limits.MAX_HEADER_BYTES, len(data) - 8)
    if length > most:
        raise ModelFileError(f"{where}: the header claims {length} bytes, but at most {most} are possible.")
    return length


def _check_entry(entry: Any, where: str) -> None:
    if not isinstance(entry, dict) or set(entry) != ENTRY:
        raise ModelFileError(f"{where}: the entry must have exactly {', '.join(sorted(ENTRY))}.")
    dtype, shape, offsets = entry["dtype"], entry["shape"], entry["data_offsets"]
    if not isinstance(dtype, str) or dtype not in DTYPES:
        raise ModelFileError(f"{where}: the dtype {repr(dtype)[:80]} is not one of {', '.join(DTYPES)}.")
    if not _counts(shape) or len(shape) > limits.MAX_DIMENSIONS:
        raise ModelFileError(f"{where}: the shape must be at most {limits.MAX_DIMENSIONS} whole numbers ≥ 0.")
    if not _counts(offsets) or len(offsets) != 2:
        raise ModelFileError(f"{where}: data_offsets must be two whole numbers ≥ 0.")
    size, span = math.prod(shape) * DTYPES[dtype].itemsize, offsets[1] - offsets[0]
    if size != span:
        raise ModelFileError(f"{where}: type and shape need {size} bytes, but data_offsets span {span}.")


def _check_layout(header: dict[str, Any], size: int, where: str) -> None:
    """The arrays cover the data end to end: no hole, no overlap, nothing left."""
    at = 0
    for begin, end in sorted(entry["data_offsets"] for entry in header.values()):
        if begin != at:
            what = "hole" if begin > at else "overlap"
            raise ModelFileError(f"{where}: there is a {what} in the data at byte {min(begin, at)}.")
        at = end
    if at != size:
        raise ModelFileError(f"{where}: the tensors need {at} bytes of data, but there are {size}.")


def _view(data: memoryview, begin: int, entry: dict[str, Any], where: str) -> NDArray[Any]:
    try:
        array = np.ndarray(tuple(entry["shape"]), DTYPES[entry["dtype"]], buffer=data, offset=begin)
    except (ValueError, OverflowError) as error:  # an empty array with an absurd shape
        raise ModelFileError(f"{where}: the shape is not possible: {error}.") from error
    array.flags.writeable = False
    return array


def _sound(array: NDArray[Any], where: str) -> NDArray[Any]:
    """The array, if its bytes may be read as its type."""
    if array.dtype.kind == "b" and array.size and int(array.view(np.uint8).max()) > 1:
        raise ModelFileError(f"{where}: a truth value is neither 0 nor 1.")
    if not array.flags.aligned:  # another writer's order of tensors; native code wants alignment
        array = array.copy()
        array.flags.writeable = False
    return array


def _counts(value: Any) -> bool:
    return isinstance(value, list) and all(type(item) is int and item >= 0 for item in value)
