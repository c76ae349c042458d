"""Manifests of earlier schemas in today's form: one function for each step, on plain tables.

Schema 2 has optional sections, and a model that lacks one behaves as schema 1 did:

    reading      the fields of a record that are read, and their weights      absent: the text alone
    analyser     how words are cut, where it is not tf-idf's own way           absent: as the recipe's tfidf says
    calibration  what turns scores into probabilities                          absent: raw scores
    probe        a fixed built-in text with its answer and tolerance           absent: nothing is compared
    ancestry     the models that this one came from by updates                 absent: trained from nothing

An encoder's description has its `architecture` where schema 1 had `config`, and labels that attend to tokens read
tokens, where schema 1 kept their numbers among the dense columns.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

SECTIONS = ("reading", "analyser", "calibration", "probe", "ancestry")


def to_schema_2(body: dict[str, Any]) -> dict[str, Any]:
    """A manifest of schema 1; what is not as it should be is left to the checks of the reader."""
    meta = body.get("meta")
    if isinstance(meta, dict):
        members = meta.get("members")
        models = members if isinstance(members, list) else [meta]
        for model in models:
            if isinstance(model, dict) and isinstance(model.get("encoder"), dict):
                _encoder(model)
    return {**body, "schema": 2}


def _encoder(model: dict[str, Any]) -> None:
    """The encoder's description, and what levels read where labels attend to tokens."""
    about = model["encoder"]
    if "config" in about:
        about["architecture"] = about.pop("config")
    try:
        attends = about["raw"] and about["readings"][0][1] == "attention"
        if not attends:
            return
        tokens = int(model["reads"][0][2])
        alone = all(reading[1] == "attention" for reading in about["readings"])
        width = 0 if alone else (model["dense_cols"] - tokens) // 2  # the mean state, as it was and at its length
        deep = sum(1 for read in model["reads"] if list(read) == [0, 0, tokens])
        below = [[words, begin - tokens - width, dense] for words, begin, dense in model["reads"][deep:]]
    except (KeyError, TypeError, IndexError, ValueError):
        return
    model["reads"] = [[0, 0, 0]] * deep + below
    model["dense_cols"] = width


MIGRATIONS: dict[int, Callable[[dict[str, Any]], dict[str, Any]]] = {1: to_schema_2}  # n → a manifest of schema n + 1
