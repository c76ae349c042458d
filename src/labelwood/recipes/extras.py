"""Optional packages that a recipe needs: asked before any work, so that nothing is begun that cannot be ended."""

from __future__ import annotations

import importlib.util

from ..errors import MissingExtraError
from .encoder_settings import EncoderConfig
from .recipe import Recipe

SERVING = {"neural": ("torch", "tokenizers"), "onnx": ("onnxruntime", "tokenizers")}
PACKAGES = {"neural": ("torch", "tokenizers", "safetensors"), "onnx": ("onnxruntime",), "stems": ("Stemmer",)}


def extras_of(recipe: Recipe) -> tuple[str, ...]:
    """The extras that training by a recipe needs."""
    extras: tuple[str, ...] = ("stems",) if recipe.reads_words and recipe.tfidf.analyser == "stems" else ()
    if recipe.encoder.on:
        extras += ("neural",) if recipe.encoder.runtime == "torch" else ("neural", "onnx")
    return extras


def missing(recipe: Recipe) -> str | None:
    """The first package that training by a recipe needs and that is not installed."""
    needed = (package for extra in extras_of(recipe) for package in PACKAGES[extra])
    return next((package for package in needed if importlib.util.find_spec(package) is None), None)


def check_extras(recipe: Recipe, *, way_out: str = "") -> None:
    """MissingExtraError with the command that installs what the recipe needs."""
    package = missing(recipe)
    if package is not None:
        command = f"pip install 'labelwood[{','.join(extras_of(recipe))}]'"
        raise MissingExtraError(f"{recipe.method} needs {package}, which is not installed: {command}{way_out}.")


def check_serving(encoder: EncoderConfig) -> None:
    """MissingExtraError with the command that installs what a trained encoder needs to read texts."""
    extra = "neural" if encoder.runtime == "torch" else "onnx"
    package = next((name for name in SERVING[extra] if importlib.util.find_spec(name) is None), None)
    if package is not None:
        command = f"pip install 'labelwood[{extra}]'"
        raise MissingExtraError(f"this model's encoder needs {package}, which is not installed: {command}.")
