"""Settings that do nothing with the data at hand, though they could with other data: warnings, all in `HINTS`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator

from ..base.config import idle, replaced, value_at
from ..data.language_words import NAMES
from ..data.languages import UNKNOWN
from .facts import Case
from .recipe import Recipe

Rule = Callable[[Case], Iterator[str]]
HINTS: list[Rule] = []
ENGLISH_VOCABULARIES = {28996, 30522, 30527}  # pieces of BERT's in English, cased and uncased, and of MPNet's
MANY = 0.3  # share of texts in other languages from which on an English encoder is worth a warning


def hint(rule: Rule) -> Rule:
    """Register a rule."""
    HINTS.append(rule)
    return rule


@hint
def trees_that_cannot_differ(case: Case) -> Iterator[str]:
    kind, trees = case.recipe.tree.kind, case.recipe.ensemble.trees
    if case.facts.labels is None or trees == 1:
        return
    if kind == "flat" or (kind == "taxonomy" and case.recipe.tree.widest is None):
        yield (
            f"tree.kind = {kind!r} has nothing random in it, so the {trees} trees are the same; ensemble.trees = 1 "
            "predicts the same in less time."
        )


@hint
def relevances_are_used(case: Case) -> Iterator[str]:
    kind = case.recipe.linear.relevance
    if case.facts.relevances is True and kind != "given":
        yield (
            f"the labels carry relevances, which linear.relevance = {kind!r} ignores; use them with linear.relevance = "
            "'given'."
        )
    if case.facts.relevances is False and kind == "given":
        yield "linear.relevance is 'given', but every relevance is 1; did you mean 'induce'?"


@hint
def encoders_read_their_language(case: Case) -> Iterator[str]:
    """Texts that are mostly in other languages than the encoder's, which is known of English ones alone."""
    languages = case.facts.languages
    others = sum(share for language, share in languages.items() if language not in {"en", UNKNOWN})
    if others <= languages.get("en", 0.0) or others < MANY:
        return
    most = next(language for language in languages if language not in {"en", UNKNOWN})
    for name, config in case.encoders.items():
        if name == "minilm" or config.get("vocab_size") in ENGLISH_VOCABULARIES:
            yield (
                f"the encoder {name} reads English, but {100 * others:.0f} % of the texts are in other languages, most "
                f"of them in {NAMES[most]}; name a multilingual one, or one of that language, with encoder.model."
            )


@hint
def settings_that_this_data_leaves_idle(case: Case) -> Iterator[str]:
    recipe, facts = case.recipe, case.facts
    if facts.columns is not None and not recipe.encoder.on:
        group, what = (
            ("features.", "texts") if facts.texts and not facts.columns else ("tfidf.", "features of your own")
        )
        for path in _own_settings(recipe):
            if path.startswith(group):
                yield f"{path} = {case.shown(path)} does nothing here: the data holds {what}."
    shallow = [name for name in case.trees if (sizes := case.sizes(name)) is not None and len(sizes) == 1]
    as_grown = replaced(recipe, {f"{name}.kind": "flat" for name in shallow})
    for path in sorted(idle(as_grown).keys() - idle(recipe).keys()):
        if path in _own_settings(recipe) and not path.startswith(("tree.", "coarse.", "labels.", "ensemble.")):
            yield (
                f"{path} = {case.shown(path)} does nothing here: {facts.labels} labels make a tree of one level. "
                f"It acts {idle(as_grown)[path]}."
            )


def _own_settings(recipe: Recipe) -> set[str]:
    """The settings that differ from their method's defaults and from its presets: the user must have set them."""
    from .methods import METHODS

    found = METHODS.get(recipe.method)
    if found is None:
        return set()
    sets = [*found.presets.values(), *found.published.values()]
    own = set()
    for path in _paths(recipe):
        value = value_at(recipe, path)
        if value != value_at(found.recipe, path) and not any(value == table.get(path) for table in sets):
            own.add(path)
    return own


def _paths(recipe: Recipe) -> Iterator[str]:
    for field in dataclasses.fields(recipe):
        value = getattr(recipe, field.name)
        if dataclasses.is_dataclass(value):
            yield from (f"{field.name}.{inner.name}" for inner in dataclasses.fields(value))
        else:
            yield field.name
