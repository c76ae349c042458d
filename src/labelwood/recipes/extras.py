"""Optional packages that a recipe needs: asked before any work, so that nothing is begun that cannot be ended."""

from __future__ import annotations

import importlib.util

from ..errors import MissingExtraError
from .recipe import Recipe

PACKAGES = {"neural": ("torch", "tokenizers", "safetensors"), "onnx": ("onnx", "onnxruntime"), "stems": ("Stemmer",)}


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
