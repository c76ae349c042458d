"""Facts for the checks of a recipe, about the data and the encoders that are here: nothing is read or fetched."""

from __future__ import annotations

import dataclasses

from ..data import Dataset
from ..data.languages import shares
from ..neural.encoders import pretrained
from ..recipes.checks import Facts
from ..recipes.recipe import Recipe


def facts_of(data: Dataset, recipe: Recipe) -> Facts:
    """Facts of a data set, and of the encoders that the recipe names."""
    names = (recipe.ensemble.encoders or (recipe.encoder.model,)) if recipe.encoder.on else ()
    peeked = {name: pretrained.peek(name) for name in names if name != "none"}
    facts = Facts.of(data, {name: found for name, found in peeked.items() if found is not None})
    if not recipe.encoder.on or data.texts is None:
        return facts
    return dataclasses.replace(facts, languages=shares(data.texts))
