"""Graphs that model folders of schema 1 hold. None of them runs: its tensors are taken out, and our own graph of the
same description is made of them.

A graph is read if it computes what ours computes, operator by operator, whatever its steps are called. Everything else
is refused by that: other operators, domains or opsets, external data, functions, subgraphs (Loop, If, Scan), other
inputs or outputs, tensors of other shapes.
"""

from __future__ import annotations

import hashlib
import json
import struct
from collections.abc import Iterable, Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.digests import as_bytes
from ...errors import ModelFileError
from . import protobuf
from .graph import IR, MS, OPSETS, TYPES, Arrays, Graph, Node
from .layout import LARGEST, check_finite

OPERATORS = {
    "": {"Add", "Cast", "Concat", "Div", "DynamicQuantizeLinear", "Gather", "LayerNormalization", "MatMul",
         "MatMulInteger", "Mul", "ReduceSum", "Shape", "Slice", "Tanh", "Unsqueeze"},
    MS: {"Attention", "BiasGelu", "FastGelu", "QAttention", "SkipLayerNormalization"},
}  # fmt: skip
MODEL_FIELDS = {1, 2, 3, 4, 5, 6, 7, 8, 14}  # of 20 and 25 are training and functions
GRAPH_FIELDS = {1, 2, 5, 10, 11, 12, 13, 16}
NODE_FIELDS = {1, 2, 3, 4, 5, 6, 7, 9}
TENSOR_FIELDS = {1, 2, 4, 5, 7, 8, 9, 12, 14}  # 13 names other files
ATTRIBUTE_FIELDS = {1, 2, 3, 13, 20}  # 5, 6, 10 and 11 are tensors and subgraphs
PACKED = {np.dtype(np.float32): 4, np.dtype(np.int8): 5, np.dtype(np.int32): 5, np.dtype(np.int64): 7}
KINDS = {number: kind for kind, number in TYPES.items()}
DISAGREES = "it is not the graph of the encoder that the manifest describes"


def tensors_of(data: memoryview, expected: Graph) -> Arrays:
    """The tensors of a stored graph that computes what the expected one does; ModelFileError if it does not."""
    try:
        return _tensors_of(data, expected)
    except (UnicodeDecodeError, struct.error, OverflowError) as error:
        raise _refused(f"it cannot be read: {error}") from error


def _tensors_of(data: memoryview, expected: Graph) -> Arrays:
    graph = _model(data)
    nodes: list[Node] = []
    found: Arrays = {}
    declared: dict[int, list[bytes]] = {11: [], 12: []}
    for field, value in _parts(graph, GRAPH_FIELDS, "graph"):
        if field == 1:
            nodes.append(_node(_bytes(value)))
            _bounded(len(nodes), len(expected.nodes), "operators")
        elif field == 5:
            name, array = _tensor(_bytes(value), expected)
            if name in found:
                raise _refused(f"the tensor {name!r} stands in it twice")
            found[name] = array
        elif field in declared:
            declared[field].append(bytes(_bytes(value)))
            _bounded(len(declared[field]), len(expected.declared[field]), "inputs or outputs")
    if declared != expected.declared:
        raise _refused("its inputs must be ids and mask, int32, and its output embedding, float32, of the right width")
    missing = sorted(set(expected.tensors) - set(found))
    if missing:
        raise _refused(f"the tensor {missing[0]!r} is missing")
    if _meaning(nodes, found, expected) != _meaning(expected.nodes, expected.constants, expected):
        raise _refused(DISAGREES)
    return found


def _model(data: memoryview) -> memoryview:
    """The graph inside, after what the file says of itself."""
    graph, opsets = None, {}
    for field, value in _parts(data, MODEL_FIELDS, "file"):
        if field == 1 and value != IR:
            raise _refused(f"its version is {value!r:.40}, but must be {IR}")
        if field == 7:
            if graph is not None:
                raise _refused("it holds two graphs")
            graph = _bytes(value)
        elif field == 8:
            parts = dict(_parts(_bytes(value), {1, 2}, "opset"))
            opsets[_text(parts.get(1, memoryview(b"")))] = parts.get(2)
            _bounded(len(opsets), len(OPSETS), "opsets")
    if graph is None or opsets != OPSETS:
        raise _refused(f"its opsets must be {OPSETS}")
    return graph


def _node(data: memoryview) -> Node:
    inputs: list[str] = []
    outputs: list[str] = []
    attributes: list[tuple[str, int | float]] = []
    kind = domain = ""
    for field, value in _parts(data, NODE_FIELDS, "operator"):
        if field in {1, 2}:
            names = inputs if field == 1 else outputs
            names.append(_text(value))
            _bounded(len(names), 16, "inputs or outputs of an operator")
        elif field == 4:
            kind = _text(value)
        elif field == 5:
            attributes.append(_attribute(_bytes(value)))
            _bounded(len(attributes), 16, "attributes of an operator")
        elif field == 7:
            domain = _text(value)
    if kind not in OPERATORS.get(domain, set()):
        raise _refused(f"the operator {domain[:40]}:{kind[:40]} is not one that an encoder needs")
    while inputs and not inputs[-1]:
        inputs.pop()  # one that may be left out
    return Node(kind, tuple(inputs), tuple(outputs), domain, tuple(attributes))


def _attribute(data: memoryview) -> tuple[str, int | float]:
    name, found = "", None
    for field, value in _parts(data, ATTRIBUTE_FIELDS, "attribute"):
        if field == 1:
            name = _text(value)
        elif field == 2:
            found = struct.unpack("<f", _bytes(value))[0]
        elif field == 3:
            if not isinstance(value, int):
                raise _refused("an attribute is no number")
            found = protobuf.signed(value)
    if found is None:
        raise _refused(f"the attribute {name[:40]!r} is no number")
    return name, found


def _tensor(data: memoryview, expected: Graph) -> tuple[str, NDArray[Any]]:
    """A tensor by name, which must be of the type and shape that our own graph has."""
    shape: list[int] = []
    values: dict[int, int | memoryview] = {}
    for field, value in _parts(data, TENSOR_FIELDS, "tensor"):
        if field == 1:
            shape += [value] if isinstance(value, int) else _few(value)
            _bounded(len(shape), 4, "dimensions of a tensor")
        elif field in values:
            raise _refused("a tensor has its values twice")
        else:
            values[field] = value
    name = _text(values.pop(8, memoryview(b"")))
    if name not in expected.tensors:
        raise _refused(f"the tensor {name[:60]!r} is none that the encoder needs")
    kind, wanted = expected.tensors[name]
    if KINDS.get(_whole(values.pop(2, 0))) != kind or tuple(shape) != wanted:
        raise _refused(f"the tensor {name!r} must be {kind} {list(wanted)}, but has the shape {str(shape)[:80]}")
    values.pop(12, None)
    if values.pop(14, 0) != 0:
        raise _refused(f"the tensor {name!r} has its values in another file")
    if len(values) != 1:
        raise _refused(f"the tensor {name!r} must have its values in one field")
    field, held = values.popitem()
    array = _array(field, _bytes(held), kind, wanted)
    check_finite(name, array, LARGEST)
    return name, array


def _array(field: int, held: memoryview, kind: np.dtype[Any], shape: tuple[int, ...]) -> NDArray[Any]:
    """Values of a tensor, from bytes or from a row of numbers."""
    count = int(np.prod(shape, dtype=np.int64))
    raw = field == 9 or (field == 4 and kind == np.float32)
    if not raw and field != PACKED[kind]:
        raise _refused("a tensor has values of another type")
    if raw:
        if len(held) != count * kind.itemsize:
            raise _refused(f"a tensor of {count} values has {len(held)} bytes")
        return np.frombuffer(held, kind).reshape(shape)
    if len(held) > 10 * count:
        raise _refused(f"a tensor of {count} values has {len(held)} bytes")
    found = [protobuf.signed(value) for value in protobuf.numbers(held)]
    if len(found) != count:
        raise _refused(f"a tensor of {count} values has {len(found)}")
    return np.array(found, np.int64).astype(kind).reshape(shape)


def _meaning(nodes: Iterable[Node], tensors: Mapping[str, NDArray[Any]], expected: Graph) -> str:
    """Digest of what the output computes: operators and their inputs, down to the inputs and the weights by name.

    Of a constant it is the value that counts. Steps must stand in their order.
    """
    known = {"": "", "ids": "input ids", "mask": "input mask"}
    for name in expected.tensors:
        constant = expected.constants.get(name)
        known[name] = f"weight {name}"
        if constant is not None:
            known[name] = _digest([constant.dtype.str, list(constant.shape), bytes(as_bytes(tensors[name])).hex()])
    for node in nodes:
        if not all(name in known for name in node.inputs):
            raise _refused("an operator reads what no operator before it makes")
        attributes = [[name, type(value).__name__, repr(np.float32(value))] for name, value in sorted(node.attributes)]
        made = _digest([node.domain, node.kind, attributes, [known[name] for name in node.inputs]])
        for i, name in enumerate(node.outputs):
            if name in known:
                raise _refused(f"{name[:60]!r} is made twice")
            known[name] = f"{made} {i} of {len(node.outputs)}"
    return known.get("embedding", "")


def _digest(plain: list[Any]) -> str:
    return hashlib.sha256(json.dumps(plain).encode("utf-8")).hexdigest()


def _parts(data: memoryview, allowed: set[int], what: str) -> Iterable[tuple[int, int | memoryview]]:
    """Fields of a message, each one that may stand in it."""
    for field, _, value in protobuf.fields(data):
        if field not in allowed:
            raise _refused(f"a {what} has the field {field}, which no graph of ours has")
        yield field, value


def _few(data: memoryview) -> list[int]:
    _bounded(len(data), 40, "bytes of a shape")
    return list(protobuf.numbers(data))


def _bytes(value: int | memoryview) -> memoryview:
    if isinstance(value, int):
        raise _refused("a number stands where a message should")
    return value


def _whole(value: int | memoryview) -> int:
    return value if isinstance(value, int) else -1


def _text(value: int | memoryview) -> str:
    held = _bytes(value)
    _bounded(len(held), 256, "bytes of a name")
    return bytes(held).decode("utf-8")


def _bounded(count: int, most: int, what: str) -> None:
    if count > most:
        raise _refused(f"it has more than {most} {what}")


def _refused(why: str) -> ModelFileError:
    return ModelFileError(
        f"the model's ONNX graph is refused: {why}. Train the model again, or get it from its author."
    )
