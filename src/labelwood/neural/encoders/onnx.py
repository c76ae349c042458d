"""The lean BERT as an ONNX graph, float32 or int8, and its running without torch.

The graph is written node by node with ONNX Runtime's fused operators, so it does not depend on an exporter's mood. int8
is dynamic: weights by output channel, activations by tensor as they come; word vectors and norms stay float32.

    ids (n, longest) int32, mask (n, longest) int32  →  embedding (n, d) float32
"""

from __future__ import annotations

import dataclasses
import logging
import tempfile
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...arrays.tokens import Tokens
from ...base.progress import Tick
from ...errors import ConfigError, ModelFileError, needs
from ...recipes.encoder_settings import Reading
from .description import Description
from .tokens import by_length

MS = "com.microsoft"
OPSET = 17
TOKENS = 2048  # that go through at once


@dataclasses.dataclass(frozen=True)
class Shape:
    """Shape of a graph: what it needs to know of the network and of its readings."""

    heads: int
    eps: float
    tanh: bool
    pooler: bool
    readings: tuple[Reading, ...]

    @property
    def layers(self) -> int:
        """Layers that are computed."""
        return max(layer for reading in self.readings for layer in reading.layers)

    @staticmethod
    def of(what: Description) -> Shape:
        """Shape of an encoder that can become a graph; ConfigError where it cannot."""
        config = what.architecture
        if what.engine != "lean":
            raise ConfigError(
                f"encoder.runtime = onnx is for BERT and its like, but this encoder is a {config.get('model_type')}; "
                "use torch."
            )
        tanh = config["hidden_act"] != "gelu"
        return Shape(config["num_attention_heads"], config["layer_norm_eps"], tanh, what.pooler, what.readings)


def check_exportable(what: Description) -> None:
    """Say before a training what would keep its encoder from becoming a graph: another architecture, or no package."""
    Shape.of(what)
    with needs("encoder.runtime = onnx", "onnx"):
        import onnx  # noqa: F401
        import onnxruntime  # noqa: F401


def export(shape: Shape, state: Mapping[str, NDArray[Any]], *, int8: bool) -> bytes:
    """The graph with its weights."""
    with needs("encoder.runtime = onnx", "onnx"):
        import onnx
        from onnxruntime.quantization import QuantType, quantize_dynamic
    model = _Graph(shape, state).model()
    whole: bytes = model.SerializeToString()
    if not int8:
        return whole
    with tempfile.TemporaryDirectory() as folder:
        source, target = Path(folder) / "float.onnx", Path(folder) / "int8.onnx"
        onnx.save(model, source)
        options = {"MatMulConstBOnly": True, "DefaultTensorType": onnx.TensorProto.FLOAT}
        logging.disable(logging.WARNING)  # it asks for a preparation that is for other graphs
        try:
            quantize_dynamic(
                source, target, per_channel=True, weight_type=QuantType.QInt8, extra_options=options,
                op_types_to_quantize=["MatMul", "Attention"],
            )  # fmt: skip
        finally:
            logging.disable(logging.NOTSET)
        return target.read_bytes()


class _Graph:
    """Builds the graph, node by node."""

    def __init__(self, shape: Shape, state: Mapping[str, NDArray[Any]]) -> None:
        self.shape, self.state = shape, state
        self.nodes: list[Any] = []
        self.weights: dict[str, NDArray[Any]] = {}

    def model(self) -> Any:
        from onnx import TensorProto, helper, numpy_helper

        states = self.hidden()
        parts = [self.read(states, i, reading) for i, reading in enumerate(self.shape.readings)]
        self.node("Concat", parts, "embedding", axis=1)
        sides = ["n", "longest"]
        inputs = [helper.make_tensor_value_info(name, TensorProto.INT32, sides) for name in ("ids", "mask")]
        width = sum(reading.width(len(self.state["norm.weight"])) for reading in self.shape.readings)
        outputs = [helper.make_tensor_value_info("embedding", TensorProto.FLOAT, ["n", width])]
        initial = [numpy_helper.from_array(np.asarray(a, order="C"), name) for name, a in self.weights.items()]
        graph = helper.make_graph(self.nodes, "encoder", inputs, outputs, initial)
        opsets = [helper.make_opsetid("", OPSET), helper.make_opsetid(MS, 1)]
        return helper.make_model(graph, opset_imports=opsets, ir_version=9)

    def node(self, kind: str, inputs: list[str], output: str, domain: str = "", **attributes: Any) -> str:
        from onnx import helper

        self.nodes.append(helper.make_node(kind, inputs, [output], name=output, domain=domain, **attributes))
        return output

    def weight(self, name: str, *, transposed: bool = False) -> str:
        array = self.state[name].astype(np.float32)
        self.weights[name] = array.T if transposed else array
        return name

    def constant(self, name: str, value: NDArray[Any]) -> str:
        self.weights[name] = value
        return name

    def hidden(self) -> list[str]:
        """(n, longest, d) of each layer, the embeddings first."""
        words = self.node("Gather", [self.weight("words.weight"), "ids"], "words")
        length = self.node("Shape", ["ids"], "length", start=1, end=2)
        zero, one = self.constant("zero", np.zeros(1, np.int64)), self.constant("axis1", np.array([1], np.int64))
        table = self.state["places.weight"] + self.state["types.weight"][0]  # every token is of the first type
        places = self.node("Slice", [self.constant("places", table.astype(np.float32)), zero, length], "here")
        h = self.node("Add", [words, places], "sum")
        h = self.norm(h, "norm", "h0")
        bits = self.node("ReduceSum", ["mask", one], "lengths", keepdims=0)
        states = [h]
        for t in range(self.shape.layers):
            states.append(self.layer(states[-1], bits, t))
        return states

    def norm(self, x: str, weights: str, output: str) -> str:
        inputs = [x, self.weight(f"{weights}.weight"), self.weight(f"{weights}.bias")]
        return self.node("LayerNormalization", inputs, output, epsilon=self.shape.eps, axis=-1)

    def linear(self, x: str, weights: str, *, bias: bool = True, name: str = "") -> str:
        """x·W + b; `name` where the same weights are used again."""
        name = name or weights
        out = self.node("MatMul", [x, self.weight(f"{weights}.weight", transposed=True)], f"{name}.product")
        return self.node("Add", [out, self.weight(f"{weights}.bias")], f"{name}.sum") if bias else out

    def skip_norm(self, x: str, skip: str, layer: str, part: tuple[str, str]) -> str:
        """norm(x + bias + skip) in one operator."""
        product, norm = part
        inputs = [x, skip, self.weight(f"{layer}.{norm}.weight"), self.weight(f"{layer}.{norm}.bias")]
        inputs.append(self.weight(f"{layer}.{product}.bias"))
        return self.node("SkipLayerNormalization", inputs, f"{layer}.{norm}", MS, epsilon=self.shape.eps)

    def layer(self, h: str, lengths: str, t: int) -> str:
        name = f"layers.{t}"
        inputs = [h, self.weight(f"{name}.qkv.weight", transposed=True), self.weight(f"{name}.qkv.bias"), lengths]
        a = self.node("Attention", inputs, f"{name}.attention", MS, num_heads=self.shape.heads)
        h = self.skip_norm(self.linear(a, f"{name}.out", bias=False), h, name, ("out", "norm1"))
        up = self.linear(h, f"{name}.up", bias=False)
        kind = "FastGelu" if self.shape.tanh else "BiasGelu"
        up = self.node(kind, [up, self.weight(f"{name}.up.bias")], f"{name}.gelu", MS)
        return self.skip_norm(self.linear(up, f"{name}.down", bias=False), h, name, ("down", "norm2"))

    def read(self, states: list[str], number: int, reading: Reading) -> str:
        """(n, width) of one reading."""
        parts = [self.pooled(states[layer], f"read.{number}.{layer}", reading.pooling) for layer in reading.layers]
        found = parts[0] if len(parts) == 1 else self.node("Concat", parts, f"read.{number}", axis=1)
        return self.linear(found, f"maps.{number}") if reading.map else found

    def pooled(self, h: str, name: str, pooling: str) -> str:
        """(n, d)."""
        if pooling == "mean":
            return self.mean(h, name)
        first = self.node("Gather", [h, self.constant("first", np.array(0, np.int64))], f"{name}.summary", axis=1)
        if pooling == "cls" or not self.shape.pooler:
            return first
        again = any(node.name == "pooler.product" for node in self.nodes)
        sums = self.linear(first, "pooler", name=f"{name}.pooler" if again else "")
        return self.node("Tanh", [sums], f"{name}.tanh")

    def mean(self, h: str, name: str) -> str:
        axis = self.constant("token_axis", np.array([1], np.int64))
        last = self.constant("last_axis", np.array([-1], np.int64))
        if not any(node.output[0] == "wide" for node in self.nodes):
            mask = self.node("Unsqueeze", [self.node("Cast", ["mask"], "real", to=1), last], "wide")
            self.node("ReduceSum", [mask, axis], "count", keepdims=0)
        total = self.node(
            "ReduceSum", [self.node("Mul", [h, "wide"], f"{name}.kept"), axis], f"{name}.total", keepdims=0
        )
        return self.node("Div", [total, "count"], f"{name}.mean")


class Session:
    """The graph at work. One session for each number of threads; threads of Python may share it."""

    def __init__(self, graph: bytes) -> None:
        self.graph = graph
        self._made: dict[int, Any] = {}
        self._lock = threading.Lock()

    def _session(self, threads: int) -> Any:
        with self._lock:
            if threads not in self._made:
                with needs("this model's encoder", "onnx"):
                    import onnxruntime as ort
                options = ort.SessionOptions()
                options.intra_op_num_threads, options.inter_op_num_threads = threads, 1
                options.log_severity_level = 3
                try:
                    made = ort.InferenceSession(self.graph, options, providers=["CPUExecutionProvider"])
                except Exception as error:  # the package has a dozen classes for it
                    raise ModelFileError(f"the model's ONNX graph cannot be opened: {error}") from error
                self._made[threads] = made
            return self._made[threads]

    def embed(self, tokens: Tokens, threads: int, progress: Tick | None = None) -> NDArray[np.float32]:
        """(documents, d)."""
        session, done = self._session(threads), 0
        width = session.get_outputs()[0].shape[1]
        out = np.zeros((len(tokens), width), np.float32)
        for rows in by_length(tokens, TOKENS):
            part = tokens.take(rows)
            longest = int(part.lengths.max())
            mask = np.arange(longest) < part.lengths[:, None]
            ids = np.zeros(mask.shape, np.int32)
            ids[mask] = part.ids
            out[rows] = session.run(None, {"ids": ids, "mask": mask.astype(np.int32)})[0]
            done += len(rows)
            if progress is not None:
                progress(done, len(tokens))
        return out
