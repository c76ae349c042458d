"""Names and shapes of an encoder's weights by its config, and what a config may say. Nothing here imports torch.

A model folder from elsewhere is held against this before anything is built from it, so that what is allocated is what
is there.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...errors import ModelFileError
from ...recipes.encoder_settings import WIDTHS, Reading

Shapes = dict[str, tuple[int, ...]]
Weights = Mapping[str, NDArray[Any]]

SIZES = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "intermediate_size", "layer_norm_eps",
    "max_position_embeddings", "type_vocab_size",
)  # fmt: skip
ACTIVATIONS = {"gelu": "none", "gelu_new": "tanh", "gelu_pytorch_tanh": "tanh"}
LSTM_SIZES = {"vocab_size": 2**31, "word_size": 2**16, "hidden_size": 2**16}  # and what each must be below
MOST_LAYERS = 1000
FETCHED = ("implementation", "backbone", "kernel", "quantization", "auto_map")  # transformers looks for them elsewhere
LARGEST = 1e6  # weight of our own networks: with larger ones sums overflow, and trained ones are far smaller
LEAST_EPS = 1e-30  # in float32 it is not zero
NARROW = 256  # layers of the MLP of labels that attend halve the width down to this
ORDINARY = 2**20  # whole numbers of a config that any encoder may have: a base of positions is a million
COUNTED = ("num_labels",)  # those of which transformers makes a table, whatever the weights


def bert(config: Mapping[str, Any]) -> Shapes:
    """Weights of the lean BERT."""
    d, ff = config["hidden_size"], config["intermediate_size"]
    shapes: Shapes = {
        "words.weight": (config["vocab_size"], d),
        "places.weight": (config["max_position_embeddings"], d),
        "types.weight": (config["type_vocab_size"], d),
        **_norm("norm", d),
    }
    for t in range(config["num_hidden_layers"]):
        name = f"layers.{t}"
        shapes |= {**_linear(f"{name}.qkv", d, 3 * d), **_linear(f"{name}.out", d, d), **_norm(f"{name}.norm1", d)}
        shapes |= {**_linear(f"{name}.up", d, ff), **_linear(f"{name}.down", ff, d), **_norm(f"{name}.norm2", d)}
    return shapes | _linear("pooler", d, d)


def bilstm(config: Mapping[str, Any]) -> Shapes:
    """Weights of the BiLSTM."""
    word, h = config["word_size"], config["hidden_size"] // 2
    shapes: Shapes = {"words.weight": (config["vocab_size"], word), "layers.0.first": (2, 2, 1, h)}
    for direction in ("", "_reverse"):
        sides = {"weight_ih": (4 * h, word), "weight_hh": (4 * h, h), "bias_ih": (4 * h,), "bias_hh": (4 * h,)}
        shapes |= {f"layers.0.lstm.{name}_l0{direction}": shape for name, shape in sides.items()}
    return shapes


def maps(readings: tuple[Reading, ...], width: int) -> Shapes:
    """Weights of the maps of an encoder of this width."""
    shapes: Shapes = {}
    for i, reading in enumerate(readings):
        if reading.pooling == "attention":
            widths = mlp(reading.width(width))
            for t, (a, b) in enumerate(pairwise(widths)):
                shapes |= _linear(f"maps.{i}.layers.{t}", a, b)
        elif reading.map:
            shapes |= _linear(f"maps.{i}", width * len(reading.layers), reading.map)
    return shapes


def mlp(width: int) -> list[int]:
    """Widths of what makes a logit of what a label has seen, from the first input to the last output."""
    widths = [width, max(1, width // 2)]
    while widths[-1] // 2 >= NARROW:
        widths.append(widths[-1] // 2)
    return [*widths, 1]


def is_bert(config: Mapping[str, Any]) -> bool:
    """Is this the config of a BERT as the lean one is?"""
    return (
        config.get("model_type") == "bert"
        and isinstance(config.get("hidden_act"), str)
        and config["hidden_act"] in ACTIVATIONS
        and all(isinstance(config.get(name), int | float) for name in SIZES)
        and config.get("position_embedding_type", "absolute") == "absolute"
        and not config.get("is_decoder", False)
        and not config.get("add_cross_attention", False)
    )


def check_config(engine: str, config: Mapping[str, Any], readings: tuple[Reading, ...]) -> None:
    """ModelFileError unless an engine can build what a config says and has the layers that are read."""
    if engine == "lean":
        depth = _check_bert(config)
    elif engine == "bilstm":
        depth = _check_bilstm(config)
    else:
        depth = _check_other(config)
    last = max(layer for reading in readings for layer in reading.layers)
    first = min(layer for reading in readings for layer in reading.layers)
    if last > depth or (engine == "bilstm" and first == 0):
        raise ModelFileError(f"layers {first} to {last} of the model's encoder are read, but it has 1 to {depth}.")


def check_engine_weights(engine: str, config: Mapping[str, Any], readings: tuple[Reading, ...], state: Weights) -> None:
    """ModelFileError unless an engine's network has exactly these weights."""
    if engine == "transformers":
        _check_other_weights(config, state)
        return
    shapes = bert(config) if engine == "lean" else bilstm(config)
    kinds = (np.float32, np.float16) if engine == "lean" else (np.float32,)
    check_weights(shapes | maps(readings, config["hidden_size"]), state, kinds)


def check_weights(shapes: Shapes, state: Weights, kinds: tuple[type, ...] = (np.float32, np.float16)) -> None:
    """ModelFileError unless these are exactly the weights, all finite."""
    _check_names(shapes, state)
    for name, shape in shapes.items():
        found = state[name]
        if found.dtype.type not in kinds or found.shape != shape:
            raise ModelFileError(
                f"the model's encoder: the weight {name!r} must be {_spell(kinds)} {list(shape)}, but is {found.dtype} "
                f"{str(list(found.shape))[:80]}."
            )
        check_finite(name, found, LARGEST)


def check_finite(name: str, found: NDArray[Any], largest: float = np.inf) -> None:
    """ModelFileError if a weight holds what is no number, or one so large that sums of it overflow."""
    if found.dtype.kind != "f" or not found.size:
        return
    most = max(float(found.max()), -float(found.min()))
    if np.isfinite(most) and most > largest:
        raise ModelFileError(
            f"the model's encoder: the weight {name[:80]!r} holds {most:.3g}; at most {largest:.0g} is allowed."
        )
    if not np.isfinite(most):
        raise ModelFileError(f"the model's encoder: the weight {name[:80]!r} holds numbers that are not finite.")


def _check_names(shapes: Shapes, state: Weights) -> None:
    for what, names in (("lacks", set(shapes) - set(state)), ("must not have", set(state) - set(shapes))):
        if names:
            raise ModelFileError(f"the model's encoder {what} the weight {min(names)[:80]!r}.")


def _check_bert(config: Mapping[str, Any]) -> int:
    """Check the config of a lean BERT, and hand back its layers."""
    if not is_bert(config):
        raise ModelFileError("the model's encoder is not a BERT that this release knows.")
    for name in SIZES:
        if name != "layer_norm_eps":
            _check_size(config, name, 2**31)
    _check_size(config, "num_hidden_layers", MOST_LAYERS + 1)
    if config["hidden_size"] % config["num_attention_heads"]:
        raise ModelFileError(
            f"the model's encoder: hidden_size is {config['hidden_size']}, which {config['num_attention_heads']} heads "
            "cannot share."
        )
    eps = config["layer_norm_eps"]
    if isinstance(eps, bool) or not LEAST_EPS <= eps <= 1:
        raise ModelFileError(f"the model's encoder: layer_norm_eps must be {LEAST_EPS} to 1, but is {str(eps)[:40]}.")
    return int(config["num_hidden_layers"])


def _check_bilstm(config: Mapping[str, Any]) -> int:
    """Check the config of a BiLSTM, and hand back its layers."""
    for name, most in LSTM_SIZES.items():
        _check_size(config, name, most)
    _check_size(config, "num_hidden_layers", 2)
    if config["hidden_size"] % 2:
        raise ModelFileError("the model's encoder is not a BiLSTM that this release knows: its width is odd.")
    return 1


def _check_other(config: Mapping[str, Any]) -> int:
    """Check the config of an encoder that the library transformers builds, and hand back its layers."""
    if not isinstance(config.get("model_type"), str):
        raise ModelFileError("the model's encoder names no model_type.")
    for key in _keys(config):
        if any(word in key for word in FETCHED) and not key.endswith("_autoset"):
            raise ModelFileError(
                f"the model's encoder: its config sets {key[:60]!r}, by which code or weights are fetched."
            )
    for names in (("num_hidden_layers", "n_layers", "n_layer"), WIDTHS):
        if not any(isinstance(config.get(name), int) for name in names):
            raise ModelFileError(f"the model's encoder says none of {', '.join(names)}.")
    name = next(n for n in ("num_hidden_layers", "n_layers", "n_layer") if isinstance(config.get(n), int))
    _check_size(config, name, MOST_LAYERS + 1)
    return int(config[name])


def _check_other_weights(config: Mapping[str, Any], state: Weights) -> None:
    """ModelFileError if a config that transformers will read asks for more than its weights can be."""
    largest = max([ORDINARY, *(side for array in state.values() for side in array.shape)])
    for value in [*_numbers(config), *(2**8 * config[name] for name in COUNTED if isinstance(config.get(name), int))]:
        if abs(value) > largest:
            raise ModelFileError(
                f"the model's encoder: its config says {str(value)[:40]}, which its weights do not bear out."
            )
    for name, array in state.items():
        check_finite(name, array)


def _numbers(value: Any) -> Iterator[int]:
    """All whole numbers of plain data."""
    if isinstance(value, Mapping):
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _numbers(item)
    elif isinstance(value, int):
        yield value


def _keys(value: Any) -> Iterator[str]:
    """Keys of plain data that are set to something."""
    if isinstance(value, Mapping):
        yield from (key for key, item in value.items() if item not in (None, False))
        value = list(value.values())
    if isinstance(value, list):
        for item in value:
            yield from _keys(item)


def _check_size(config: Mapping[str, Any], name: str, below: int) -> None:
    value = config.get(name)
    if type(value) is not int or not 0 < value < below:
        raise ModelFileError(f"the model's encoder: {name} must be 1 to {below - 1}, but is {str(value)[:40]}.")


def _linear(name: str, inputs: int, outputs: int) -> Shapes:
    return {f"{name}.weight": (outputs, inputs), f"{name}.bias": (outputs,)}


def _norm(name: str, width: int) -> Shapes:
    return {f"{name}.weight": (width,), f"{name}.bias": (width,)}


def _spell(kinds: tuple[type, ...]) -> str:
    return " or ".join(np.dtype(kind).name for kind in kinds)
