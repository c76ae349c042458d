"""A tiny encoder with random weights, written as a Hugging Face folder: what tests train instead of a real one."""

from __future__ import annotations

import json
import string
from pathlib import Path
from typing import Any

import numpy as np

SIZES = {"hidden_size": 32, "intermediate_size": 64, "num_attention_heads": 4, "num_hidden_layers": 2}
SHIPPED: dict[str, Any] = {}  # methods as they are shipped, where tests make them smaller
PIECES = [*string.ascii_lowercase, *string.digits]


def tokenizer() -> str:
    """tokenizer.json: WordPiece of single letters and digits, and of the words that the toy sets say."""
    from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, processors

    words = [f"word{i}" for i in range(40)] + ["common", *(f"filler{i}" for i in range(9))]
    names = ["[PAD]", "[UNK]", "[CLS]", "[SEP]", *PIECES, *(f"##{p}" for p in PIECES), *words]
    found = Tokenizer(models.WordPiece({name: i for i, name in enumerate(names)}, unk_token="[UNK]"))
    found.normalizer = normalizers.BertNormalizer()
    found.pre_tokenizer = pre_tokenizers.BertPreTokenizer()
    frame = [("[CLS]", 2), ("[SEP]", 3)]
    found.post_processor = processors.TemplateProcessing(single="[CLS] $A [SEP]", special_tokens=frame)
    return str(found.to_str())


def write(folder: Path, *, pooler: bool = True, seed: int = 0) -> Path:
    """A BERT with random weights."""
    from safetensors.numpy import save_file

    folder.mkdir(parents=True, exist_ok=True)
    spec = tokenizer()
    vocab = len(json.loads(spec)["model"]["vocab"])
    config = {
        "model_type": "bert", "vocab_size": vocab, "max_position_embeddings": 128, "type_vocab_size": 2,
        "hidden_act": "gelu", "layer_norm_eps": 1e-12, "pad_token_id": 0, "hidden_dropout_prob": 0.1,
        "attention_probs_dropout_prob": 0.1, **SIZES,
    }  # fmt: skip
    (folder / "config.json").write_text(json.dumps(config), encoding="utf-8")
    (folder / "tokenizer.json").write_text(spec, encoding="utf-8")
    save_file(_weights(config, pooler, np.random.default_rng(seed)), folder / "model.safetensors")
    return folder


def _weights(config: dict[str, object], pooler: bool, rng: np.random.Generator) -> dict[str, np.ndarray]:
    d, ff = SIZES["hidden_size"], SIZES["intermediate_size"]
    shapes: dict[str, tuple[int, ...]] = {
        "embeddings.word_embeddings.weight": (int(str(config["vocab_size"])), d),
        "embeddings.position_embeddings.weight": (128, d),
        "embeddings.token_type_embeddings.weight": (2, d),
    }
    norms = ["embeddings.LayerNorm"]
    linear = {"pooler.dense": (d, d)} if pooler else {}
    for t in range(SIZES["num_hidden_layers"]):
        layer = f"encoder.layer.{t}"
        linear |= {f"{layer}.attention.self.{x}": (d, d) for x in ("query", "key", "value")}
        linear |= {f"{layer}.attention.output.dense": (d, d), f"{layer}.intermediate.dense": (ff, d)}
        linear[f"{layer}.output.dense"] = (d, ff)
        norms += [f"{layer}.attention.output.LayerNorm", f"{layer}.output.LayerNorm"]
    for name, (rows, cols) in linear.items():
        shapes |= {f"{name}.weight": (rows, cols), f"{name}.bias": (rows,)}
    found = {name: rng.normal(0, 0.2, shape).astype(np.float32) for name, shape in shapes.items()}
    for name in norms:
        found |= {f"{name}.weight": np.ones(d, np.float32), f"{name}.bias": np.zeros(d, np.float32)}
    return found
