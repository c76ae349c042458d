"""The safetensors file: the same bytes as the package writes, views of the map, and one error per broken rule."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp
from safetensors import numpy as official

from labelwood import ConfigError, LabelwoodError, ModelFileError, limits
from labelwood.storage import safetensors_file

ARRAYS = st.dictionaries(
    st.text(st.characters(codec="utf-8"), min_size=1, max_size=8),
    st.sampled_from(list(safetensors_file.DTYPES.values())).flatmap(
        lambda dtype: hnp.arrays(dtype, hnp.array_shapes(min_dims=0, max_dims=3, min_side=0, max_side=4))
    ),
    max_size=6,
)


def encode(tensors) -> bytes:
    return b"".join(safetensors_file.encode(tensors))


def decode(data: bytes):
    return safetensors_file.decode(memoryview(data), "file")


def build(header, data: bytes = b"", length: int | None = None) -> bytes:
    text = header if isinstance(header, bytes) else json.dumps(header).encode()
    return (len(text) if length is None else length).to_bytes(8, "little") + text + data


def entry(dtype="F32", shape=(2,), offsets=(0, 8)):
    return {"dtype": dtype, "shape": list(shape), "data_offsets": list(offsets)}


@settings(max_examples=100, deadline=None)
@given(ARRAYS)
def test_the_package_writes_and_reads_the_same_bytes(tensors):
    data = encode(tensors)
    assert data == official.save(tensors)
    for found in (decode(data), official.load(data)):
        assert found.keys() == tensors.keys()
        for name, array in tensors.items():
            assert (found[name].dtype, found[name].shape) == (array.dtype, array.shape)
            assert found[name].tobytes() == array.tobytes()


def test_the_layout_by_hand():
    data = encode({"b": np.array([1, 2], np.uint8), "a": np.array([3], "<i4")})
    text = b'{"a":{"dtype":"I32","shape":[1],"data_offsets":[0,4]},"b":{"dtype":"U8","shape":[2],"data_offsets":[4,6]}}'
    assert data == (112).to_bytes(8, "little") + text.ljust(112) + b"\x03\0\0\0\x01\x02"


def test_arrays_are_written_from_their_own_memory_and_read_as_views():
    array = np.arange(6, dtype=np.float32)
    chunk = safetensors_file.encode({"a": array})[1]
    assert np.shares_memory(np.frombuffer(chunk, np.uint8), array)
    assert array.flags.writeable  # the caller's array is left as it was
    data = memoryview(encode({"a": array, "flag": np.array([True])}))
    found = safetensors_file.decode(data, "file")
    assert np.shares_memory(found["a"], np.frombuffer(data, np.uint8))
    assert not found["a"].flags.writeable


def test_any_layout_in_memory_gives_the_same_file():
    array = np.arange(12, dtype=np.int32).reshape(3, 4)
    same = [array, np.asfortranarray(array), array.astype(">i4"), np.repeat(array, 2, axis=0)[::2]]
    assert len({encode({"a": a}) for a in same}) == 1


def test_misaligned_tensors_of_another_writer_are_copied_into_place():
    header = {"a": entry("U8", (1,), (0, 1)), "b": entry("I64", (1,), (1, 9)), "__metadata__": {"by": "other"}}
    found = decode(build(header, b"\x07" + (5).to_bytes(8, "little")))
    assert list(found) == ["a", "b"]
    assert found["b"].tolist() == [5]
    assert found["b"].flags.aligned
    assert not found["b"].flags.writeable


BROKEN = {
    "too few for a safetensors": b"1234567",
    "claims 99 bytes, but at most 2": build({}, length=99),
    "claims 18446744073709551615 bytes": build({}, length=2**64 - 1),
    "not valid JSON: Expecting": build(b"{"),
    "can't decode": build(b"\xff\xff"),
    "nested too deeply": build(b"[" * 100_000),
    "nested more than": build(b'{"a":' * 40 + b"1" + b"}" * 40),
    "NaN is not allowed": build(b'{"a":NaN}'),
    "stands twice": build(b'{"a":1,"a":1}'),
    "lone surrogate": build(b'{"\\ud800":1}'),
    "not a table": build([1]),
    "exactly data_offsets, dtype, shape": build({"a": {"dtype": "F32", "shape": [0]}}),
    "dtype 'BF16' is not one of": build({"a": entry("BF16")}, b"12345678"),
    "shape must be at most 16": build({"a": entry(shape=[-2], offsets=[0, 8])}, b"12345678"),
    "whole numbers ≥ 0": build({"a": entry(shape=[True])}, b"1234"),
    "shape must be": build({"a": entry(shape=[1] * 17, offsets=[0, 4])}, b"1234"),
    "data_offsets must be two": build({"a": entry(offsets=[0, 4, 8])}, b"12345678"),
    "need 8 bytes, but data_offsets span 4": build({"a": entry(offsets=[0, 4])}, b"1234"),
    "span -8": build({"a": entry(shape=[0], offsets=[8, 0])}, b"12345678"),
    "hole in the data at byte 0": build({"a": entry(offsets=[8, 16])}, bytes(16)),
    "overlap in the data at byte 4": build({"a": entry(), "b": entry(shape=[2], offsets=[4, 12])}, bytes(12)),
    "need 8 bytes of data, but there are 9": build({"a": entry()}, bytes(9)),
    "need 8 bytes of data, but there are 7": build({"a": entry()}, bytes(7)),
    "shape is not possible": build({"a": entry(shape=[2**62, 2**62, 0], offsets=[0, 0])}),
    "neither 0 nor 1": build({"a": entry("BOOL", (2,), (0, 2))}, b"\1\2"),
    "more than 524288 values": build(b"[" + b"0," * (limits.MAX_JSON_ITEMS + 1) + b"0]"),
}


@pytest.mark.parametrize("message", BROKEN)
def test_each_rule_has_its_error(message):
    with pytest.raises(ModelFileError) as caught:
        decode(BROKEN[message])
    assert message in str(caught.value)
    assert str(caught.value).startswith("file")


def test_the_header_limit():
    most = limits.MAX_HEADER_BYTES
    assert decode(build(b"{}".ljust(most))) == {}
    assert decode(build(b"{}".ljust(most - 1))) == {}
    with pytest.raises(ModelFileError, match=f"at most {most} are possible"):
        decode(build(b"{}".ljust(most + 1)))
    with pytest.raises(ConfigError, match="Use fewer"):
        safetensors_file.encode({f"{i:0200}": np.zeros(0) for i in range(20_000)})


def test_dimensions_limit():
    for dims, fits in [(15, True), (16, True), (17, False)]:
        data = build({"a": entry("U8", [1] * dims, (0, 1))}, b"1")
        if fits:
            assert decode(data)["a"].ndim == dims
        else:
            with pytest.raises(ModelFileError, match="at most 16"):
                decode(data)


@pytest.mark.parametrize("name", ["", "__metadata__", "x" * 257])
def test_names_that_cannot_be(name):
    with pytest.raises(ConfigError, match="cannot name a tensor"):
        safetensors_file.encode({name: np.zeros(1)})


def test_a_name_that_is_not_unicode():
    with pytest.raises(ConfigError, match="lone surrogate"):
        safetensors_file.encode({"\ud800": np.zeros(1)})


@pytest.mark.parametrize("array", [np.array(["a"]), np.array([object()]), np.zeros(1, complex), np.zeros(1, "M8[s]")])
def test_types_that_cannot_be(array):
    with pytest.raises(ConfigError, match="allowed are U64"):
        safetensors_file.encode({"a": array})


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200), st.booleans())
def test_any_bytes_load_or_are_refused(data, framed):
    try:
        found = decode(build(data[: len(data) // 2], data[len(data) // 2 :]) if framed else data)
    except LabelwoodError:
        return
    assert isinstance(found, dict)
