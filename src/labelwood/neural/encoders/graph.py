"""The lean BERT as an ONNX graph, float32 or int8: nodes by the network's sizes, tensors by its weights.

The graph is written node by node with ONNX Runtime's fused operators, byte by byte without the package onnx, so it
depends on nobody's mood and equal weights give equal bytes. int8 is dynamic: weights by output channel, activations by
tensor as they come; word vectors and norms stay float32.

    ids (n, longest) int32, mask (n, longest) int32  →  embedding (n, d) float32
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.digests import Chunk, as_bytes
from ...errors import ConfigError
from ...recipes.encoder_settings import Reading
from . import layout, protobuf
from .description import Description

MS = "com.microsoft"
OPSETS = {"": 17, MS: 1}
VERSION = 1  # of how graphs are made: another one, another graph for the same weights
IR = 9
TYPES = {np.dtype(np.float32): 1, np.dtype(np.int8): 3, np.dtype(np.int32): 6, np.dtype(np.int64): 7}
ATTRIBUTES: dict[type, int] = {float: 1, int: 2}
MOST_BYTES = 2**31 - 1  # of a message of protobuf
INT8 = 127.0

Arrays = dict[str, NDArray[Any]]


@dataclasses.dataclass(frozen=True)
class Shape:
    """Shape of a graph: what it needs to know of the network and of its readings."""

    heads: int
    eps: float
    tanh: bool
    pooler: bool
    readings: tuple[Reading, ...]
    weights: Mapping[str, tuple[int, ...]]  # shapes of all weights, by name

    @property
    def layers(self) -> int:
        """Layers that are computed."""
        return max(layer for reading in self.readings for layer in reading.layers)

    @property
    def hidden(self) -> int:
        """Width of a layer."""
        return self.weights["norm.weight"][0]

    @property
    def width(self) -> int:
        """Columns of the embedding."""
        return sum(reading.width(self.hidden) for reading in self.readings)

    @staticmethod
    def of(what: Description) -> Shape:
        """Shape of an encoder that can become a graph; ConfigError where it cannot."""
        config = what.architecture
        if what.engine != "lean":
            raise ConfigError(
                f"encoder.runtime = onnx is for BERT and its like, but this encoder is a {config.get('model_type')}; "
                "use torch."
            )
        shapes = layout.bert(config) | layout.maps(what.readings, config["hidden_size"])
        if sum(4 * int(np.prod(shape)) for shape in shapes.values()) > MOST_BYTES:
            raise ConfigError("encoder.runtime = onnx is for encoders below 2 GB, but this one is larger; use torch.")
        tanh = config["hidden_act"] != "gelu"
        return Shape(config["num_attention_heads"], config["layer_norm_eps"], tanh, what.pooler, what.readings, shapes)


@dataclasses.dataclass(frozen=True)
class Node:
    """One operator of a graph."""

    kind: str
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    domain: str = ""
    attributes: tuple[tuple[str, int | float], ...] = ()

    def chunks(self) -> list[Chunk]:
        """Its message."""
        found: list[Chunk] = [*(protobuf.text(1, name) for name in self.inputs)]
        found += [*(protobuf.text(2, name) for name in self.outputs), protobuf.text(3, self.outputs[0])]
        found.append(protobuf.text(4, self.kind))
        for name, value in self.attributes:
            spelled = protobuf.number(3, value) if isinstance(value, int) else protobuf.real(2, value)
            kind = protobuf.number(20, ATTRIBUTES[type(value)])
            found += protobuf.message(5, [protobuf.text(1, name), spelled, kind])
        return [*found, protobuf.text(7, self.domain)]


class Graph:
    """Nodes of a graph, and the tensors that they need by name, type and shape."""

    def __init__(self, shape: Shape, *, int8: bool) -> None:
        self.shape, self.int8 = shape, int8
        self.nodes: list[Node] = []
        self.constants: Arrays = {}
        self.tensors: dict[str, tuple[np.dtype[Any], tuple[int, ...]]] = {}
        states = self._hidden()
        parts = [self._read(states, i, reading) for i, reading in enumerate(shape.readings)]
        self._node("Concat", parts, "embedding", axis=1)

    @staticmethod
    def of(what: Description, runtime: str) -> Graph:
        """The graph of an encoder by a setting of `encoder.runtime`."""
        return Graph(Shape.of(what), int8=runtime == "onnx-int8")

    @cached_property
    def declared(self) -> dict[int, list[bytes]]:
        """Inputs (field 11) and outputs (12), as they are spelled."""
        inputs = [_declared(name, np.dtype(np.int32), ["n", "longest"]) for name in ("ids", "mask")]
        return {11: inputs, 12: [_declared("embedding", np.dtype(np.float32), ["n", self.shape.width])]}

    def fill(self, state: Mapping[str, NDArray[Any]]) -> Arrays:
        """Its tensors by the weights of the network."""
        found: Arrays = dict(self.constants)
        for name in self.tensors:
            if name in found:
                continue
            stem = name.removesuffix("_quantized")
            if stem != name:
                found |= _quantised(stem, _single(state[stem]).T)
            elif name == "places":  # every token is of the first type
                found[name] = _single(state["places.weight"]) + _single(state["types.weight"][0])
            elif not name.endswith(("_scale", "_zero_point")):
                array = _single(state[name])
                found[name] = array.T if array.ndim == 2 and name != "words.weight" else array
        return found

    def spell(self, arrays: Mapping[str, NDArray[Any]]) -> bytes:
        """The file, with these tensors in it."""
        chunks: list[Chunk] = []
        for node in self.nodes:
            chunks += protobuf.message(1, node.chunks())
        chunks.append(protobuf.text(2, "encoder"))
        for name in self.tensors:
            chunks += protobuf.message(5, _tensor(name, arrays[name]))
        for field, messages in self.declared.items():
            for declared in messages:
                chunks += protobuf.message(field, [declared])
        model: list[Chunk] = [protobuf.number(1, IR), *protobuf.message(7, chunks)]
        for domain, version in OPSETS.items():
            model += protobuf.message(8, [protobuf.text(1, domain), protobuf.number(2, version)])
        return protobuf.joined(model)

    def _node(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: int | float) -> str:
        self.nodes.append(Node(kind, tuple(inputs), (output,), domain, tuple(attributes.items())))
        return output

    def _weight(self, name: str, *, transposed: bool = False) -> str:
        shape = self.shape.weights[name]
        self.tensors[name] = (np.dtype(np.float32), shape[::-1] if transposed else shape)
        return name

    def _constant(self, name: str, value: NDArray[Any]) -> str:
        self.constants[name] = value
        self.tensors[name] = (value.dtype, value.shape)
        return name

    def _hidden(self) -> list[str]:
        """(n, longest, d) of each layer, the embeddings first."""
        words = self._node("Gather", [self._weight("words.weight"), "ids"], "words")
        length = self._node("Shape", ["ids"], "length", start=1, end=2)
        zero, one = self._constant("zero", np.zeros(1, np.int64)), self._constant("axis1", np.array([1], np.int64))
        self.tensors["places"] = (np.dtype(np.float32), self.shape.weights["places.weight"])
        places = self._node("Slice", ["places", zero, length], "here")
        h = self._node("Add", [words, places], "sum")
        h = self._norm(h, "norm", "h0")
        lengths = self._node("ReduceSum", ["mask", one], "lengths", keepdims=0)
        states = [h]
        for t in range(self.shape.layers):
            states.append(self._layer(states[-1], lengths, t))
        return states

    def _norm(self, x: str, weights: str, output: str) -> str:
        inputs = [x, self._weight(f"{weights}.weight"), self._weight(f"{weights}.bias")]
        return self._node("LayerNormalization", inputs, output, epsilon=float(self.shape.eps), axis=-1)

    def _product(self, x: str, weights: str, output: str) -> str:
        """x·W."""
        if not self.int8:
            return self._node("MatMul", [x, self._weight(f"{weights}.weight", transposed=True)], output)
        small, scale, zero = self._quantised_weight(weights)
        rounded, by, shift = self._rounded(x)
        self._node("Mul", [by, scale], f"{output}.scales")
        whole = self._node("MatMulInteger", [rounded, small, shift, zero], f"{output}.whole")
        self._node("Cast", [whole], f"{output}.cast", to=1)
        return self._node("Mul", [f"{output}.cast", f"{output}.scales"], output)

    def _quantised_weight(self, weights: str) -> tuple[str, str, str]:
        """Names of an int8 weight, its scales and its zero points."""
        name, (outputs, inputs) = f"{weights}.weight", self.shape.weights[f"{weights}.weight"]
        small, scale, zero = (f"{name}_{kind}" for kind in ("quantized", "scale", "zero_point"))
        self.tensors[small] = (np.dtype(np.int8), (inputs, outputs))
        self.tensors[scale] = (np.dtype(np.float32), (outputs,))
        self.tensors[zero] = (np.dtype(np.int8), (outputs,))
        return small, scale, zero

    def _rounded(self, x: str) -> tuple[str, str, str]:
        """An activation as whole numbers, their scale and their zero point; made once."""
        names = (f"{x}_quantized", f"{x}_scale", f"{x}_zero_point")
        if all(node.outputs != names for node in self.nodes):
            self.nodes.append(Node("DynamicQuantizeLinear", (x,), names))
        return names

    def _linear(self, x: str, weights: str, output: str) -> str:
        """x·W + b."""
        product = self._product(x, weights, f"{output}.product")
        return self._node("Add", [product, self._weight(f"{weights}.bias")], output)

    def _skip_norm(self, x: str, skip: str, layer: str, part: tuple[str, str]) -> str:
        """norm(x + bias + skip) in one operator."""
        product, norm = part
        inputs = [x, skip, self._weight(f"{layer}.{norm}.weight"), self._weight(f"{layer}.{norm}.bias")]
        inputs.append(self._weight(f"{layer}.{product}.bias"))
        return self._node("SkipLayerNormalization", inputs, f"{layer}.{norm}", MS, epsilon=float(self.shape.eps))

    def _attention(self, h: str, lengths: str, name: str) -> str:
        output, bias = f"{name}.attention", self._weight(f"{name}.qkv.bias")
        if not self.int8:
            inputs = [h, self._weight(f"{name}.qkv.weight", transposed=True), bias, lengths]
            return self._node("Attention", inputs, output, MS, num_heads=self.shape.heads)
        small, scale, zero = self._quantised_weight(f"{name}.qkv")
        rounded, by, shift = self._rounded(h)
        inputs = [rounded, small, bias, by, scale, lengths, shift, zero]
        return self._node("QAttention", inputs, output, MS, num_heads=self.shape.heads)

    def _layer(self, h: str, lengths: str, t: int) -> str:
        name = f"layers.{t}"
        a = self._attention(h, lengths, name)
        h = self._skip_norm(self._product(a, f"{name}.out", f"{name}.mixed"), h, name, ("out", "norm1"))
        up = self._product(h, f"{name}.up", f"{name}.wide")
        kind = "FastGelu" if self.shape.tanh else "BiasGelu"
        up = self._node(kind, [up, self._weight(f"{name}.up.bias")], f"{name}.gelu", MS)
        return self._skip_norm(self._product(up, f"{name}.down", f"{name}.narrow"), h, name, ("down", "norm2"))

    def _read(self, states: list[str], number: int, reading: Reading) -> str:
        """(n, width) of one reading."""
        parts = [self._pooled(states[layer], f"read.{number}.{layer}", reading.pooling) for layer in reading.layers]
        found = parts[0] if len(parts) == 1 else self._node("Concat", parts, f"read.{number}", axis=1)
        return self._linear(found, f"maps.{number}", f"mapped.{number}") if reading.map else found

    def _pooled(self, h: str, name: str, pooling: str) -> str:
        """(n, d)."""
        if pooling == "mean":
            return self._mean(h, name)
        first = self._node("Gather", [h, self._constant("first", np.array(0, np.int64))], f"{name}.summary", axis=1)
        if pooling == "cls" or not self.shape.pooler:
            return first
        return self._node("Tanh", [self._linear(first, "pooler", f"{name}.pooler")], f"{name}.tanh")

    def _mean(self, h: str, name: str) -> str:
        axis = self._constant("token_axis", np.array([1], np.int64))
        last = self._constant("last_axis", np.array([-1], np.int64))
        if all(node.outputs[0] != "wide" for node in self.nodes):
            mask = self._node("Unsqueeze", [self._node("Cast", ["mask"], "real", to=1), last], "wide")
            self._node("ReduceSum", [mask, axis], "count", keepdims=0)
        kept = self._node("Mul", [h, "wide"], f"{name}.kept")
        total = self._node("ReduceSum", [kept, axis], f"{name}.total", keepdims=0)
        return self._node("Div", [total, "count"], f"{name}.mean")


def _single(array: NDArray[Any]) -> NDArray[np.float32]:
    return array.astype(np.float32, copy=False)


def _quantised(name: str, array: NDArray[np.float32]) -> Arrays:
    """A weight (inputs, outputs) as int8 with one scale for each output: w ≈ scale · q, |q| ≤ 127."""
    widest = np.abs(array).max(axis=0, initial=0).astype(np.float64)
    scale = (2 * widest / (2 * INT8)).astype(np.float32)
    scale[scale < np.finfo(np.float32).tiny] = 1
    small = np.round(array / scale).astype(np.int8)
    zeros = np.zeros(len(scale), np.int8)
    return {f"{name}_quantized": small, f"{name}_scale": scale, f"{name}_zero_point": zeros}


def _tensor(name: str, array: NDArray[Any]) -> list[Chunk]:
    flat = np.ascontiguousarray(array)
    shape = [protobuf.number(1, side) for side in array.shape]
    return [*shape, protobuf.number(2, TYPES[array.dtype]), protobuf.text(8, name),
            *protobuf.message(9, [as_bytes(flat)])]  # fmt: skip


def _declared(name: str, kind: np.dtype[Any], sides: list[str | int]) -> bytes:
    """An input or output with its type and shape."""
    shape: list[Chunk] = []
    for side in sides:
        shape += protobuf.message(1, [protobuf.number(1, side) if isinstance(side, int) else protobuf.text(2, side)])
    tensor = protobuf.message(1, [protobuf.number(1, TYPES[kind]), *protobuf.message(2, shape)])
    return protobuf.joined([protobuf.text(1, name), *protobuf.message(2, tensor)])
