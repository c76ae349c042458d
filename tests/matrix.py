"""Every method with every setting: values drawn from what a setting allows, and one way to try them.

A trial either trains on the toy set, saves, loads and predicts the same, or was refused by `check` with a way out,
before any work. Nothing else may happen.
"""

from __future__ import annotations

import dataclasses
import importlib.util
import re
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import suppress
from functools import cache
from itertools import combinations
from pathlib import Path
from typing import Any

import numpy as np

import labelwood as lw
from cases import acting
from labelwood.base.config import SettingRow, describe, idle, value_at, with_settings
from labelwood.base.digests import digest_tensors
from labelwood.base.run import Run
from labelwood.data import Dataset, from_lists, with_label_texts, with_taxonomy
from labelwood.pipeline.facts import facts_of
from labelwood.pipeline.train import train
from labelwood.pipeline.words import settled
from labelwood.recipes.checks import check
from labelwood.recipes.facts import Case
from labelwood.recipes.methods import METHODS
from labelwood.recipes.recipe import NETWORK, Recipe
from labelwood.recipes.resolve import resolve
from toy import contract_set

HAS_TORCH = importlib.util.find_spec("torch") is not None
Settings = dict[str, Any]
TEXTS, LISTS = contract_set()
# What keeps a trial small: deep trees of few labels, two steps of training.
SMALL: Settings = {
    "tree.leaf": 2, "tree.branch": 2, "coarse.leaf": 4, "coarse.branch": 2, "coarse.flat": 0, "finetune.steps": 2,
    "finetune.checks": 1, "finetune.valid": 6.0, "finetune.batch": 16, "encoder.hidden": 8, "encoder.max_tokens": 16,
}  # fmt: skip
WAY_OUT = re.compile(r"\b([Ll]eave|set|use|give|choose|change|raise|train|must be|take|lower|one for each)\b")
# Values that no rule of a setting gives.
OWN: dict[str, list[Any]] = {
    "encoder.model": ["minilm", "none"], "tail.propensity": ["Amazon-670K"], "ensemble.trees": [3],
    "ensemble.runs": [2], "ensemble.weights": [(1.0, 2.0)], "ensemble.encoders": [("minilm",)],
    "ensemble.labels": [("pifa",), ("cooccurrence",)], "joint.layers": [("1", "2"), ("last5",), ("1+2",)],
    "joint.level_weights": [(1.0,), (1.0, 2.0)], "tree.levels": [(4,), (3, 6)], "coarse.levels": [(4,), (3, 6)],
    "tfidf.words": [(1, 2), None], "tfidf.chars": [(3, 4)], "finetune.steps": [1, 3], "finetune.epochs": [0.5],
    "tree.branch": [3], "coarse.branch": [3], "tree.depth": [2], "coarse.depth": [2], "finetune.valid": [0.0, 0.2],
    "finetune.batch": [5], "encoder.layer": [0, 1], "finetune.frozen_layers": [0, 1], "labels.walks": [5],
    "finetune.levels": [1, 2], "seed": [3], "joint.maps": [0, 5], "linear.max_iter": [1], "linear.eps": [0.5],
    "encoder.max_tokens": [3, 30], "encoder.hidden": [4], "finetune.shard_tokens": [50],
    "levelwise.max_clusters": [1, 4], "linear.cp": [0.1, 10.0], "linear.cn": [0.1, 10.0], "tfidf.max_df": [0.5],
}  # fmt: skip
# Settings that change which parts there are, beside all of those that have choices: what pairs are made of.
SWITCHES = {
    "encoder.model", "ensemble.trees", "ensemble.runs", "tail.classifier_share", "tail.propensity_power", "tree.levels",
    "coarse.levels", "finetune.levels", "labels.walks", "joint.layers", "joint.maps", "finetune.frozen_layers",
    "optimiser.average_from", "finetune.valid", "finetune.steps", "network_share", "linear.threshold", "tfidf.words",
    "finetune.parents", "levelwise.max_clusters", "ensemble.labels",
}  # fmt: skip


@cache
def data() -> Dataset:
    """The toy set with texts of its labels and a taxonomy over them."""
    found = with_label_texts(from_lists(TEXTS, LISTS), {f"label{i}": f"word{i} common" for i in range(12)})
    return with_taxonomy(found, {f"label{i}": f"group{i % 3}" for i in range(12)})


@cache
def vectors() -> str:
    """A file of word vectors."""
    path = Path(tempfile.mkdtemp(prefix="labelwood-vectors-")) / "glove.txt"
    path.write_text("".join(f"word{i} 0.{i + 1} 1 0.5\n" for i in range(12)), encoding="utf-8")
    return str(path)


def rows(method: str) -> dict[str, SettingRow]:
    """All settings of a method by name."""
    return {row.path: row for row in describe(METHODS[method].recipe)}


def base(method: str, own: Settings) -> Recipe:
    """A small recipe with settings of one's own, none of them looked at."""
    return with_settings(METHODS[method].recipe, acting(SMALL, method, own))


def values(method: str, path: str) -> list[Any]:
    """Values of a setting that are not its default: choices, bounds, and what lies between."""
    if path == "encoder.vectors":
        return [vectors()]
    if not HAS_TORCH and path.startswith(("encoder.", "ensemble.encoders")):
        return []
    now = value_at(base(method, {}), path)
    found = OWN.get(path) or [*_drawn(type(owner(method, path)), path.rpartition(".")[2], now)]
    return [value for value in found if value != now]


def by_level(method: str, path: str) -> list[Any]:
    """A list of one value for each level, where a setting takes such lists."""
    recipe = base(method, {})
    kinds = {field.name: str(field.type) for field in dataclasses.fields(type(owner(method, path)))}
    if "PerLevel" not in kinds[path.rpartition(".")[2]] or path in idle(recipe):
        return []
    case = Case(recipe, facts_of(data(), recipe))
    sizes = case.sizes("tree" if recipe.own_tree else "coarse")
    levels = len(sizes or ())
    if path.partition(".")[0] in NETWORK:
        once = recipe.finetune.order == "joint" and path in {"finetune.epochs", "finetune.steps"}
        levels = 1 if once else case.tuned or 0
    return [(value,) * levels for value in values(method, path)[:1] if levels and value is not None]


def owner(method: str, path: str) -> object:
    """The section that holds a setting."""
    section = path.rpartition(".")[0]
    recipe = METHODS[method].recipe
    return value_at(recipe, section) if section else recipe


def _drawn(cls: Any, name: str, now: Any) -> Iterator[Any]:
    field = next(field for field in dataclasses.fields(cls) if field.name == name)
    low, high, above, choices = (field.metadata[key] for key in ("low", "high", "above", "choices"))
    kind = str(field.type)
    if choices:
        yield from choices
    elif kind.startswith("bool"):
        yield from (True, False)
    elif "float" in kind:
        least = low if low is not None else (above or 0) + 1e-3
        middle = 2 * now if isinstance(now, float) and now else (least + min(high or 1, 1)) / 2
        yield from (min(middle, 1e6 if high is None else high), max(least, 1e-3 if low is None else low))
        if high is not None and high <= 1:
            yield high
    elif "int" in kind:
        yield from ((now if isinstance(now, int) else 3) + 1, max(low or 0, 0))
    if "None" in kind:
        yield None


def refusal(method: str, own: Settings) -> str | None:
    """What `check` says of these settings, set by a user on this data."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            recipe = resolve(method, settings=acting(SMALL, method, own))
            check(recipe, facts_of(data(), recipe))
    except lw.ConfigError as error:
        return str(error)
    return None


def goes_together(recipe: Recipe) -> bool:
    """Has `check` nothing against a recipe, whoever set what in it?"""
    with suppress(lw.ConfigError), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check(recipe, facts_of(data(), recipe))
        return True
    return False


def tried(method: str, own: Settings) -> str:
    """One trial: "trained" or "refused"; anything else raises."""
    said = refusal(method, own)
    if said is not None:
        for line in said.splitlines():
            assert WAY_OUT.search(line), f"no way out: {line}"
        return "refused"
    recipe = resolve(method, settings=acting(SMALL, method, own))
    with warnings.catch_warnings(), tempfile.TemporaryDirectory(prefix="labelwood-matrix-") as folder:
        warnings.simplefilter("ignore")
        model = train(data(), recipe, Run(1))
        before = model.predict_arrays(TEXTS[:24], k=5, threads=1)
        model.save(folder)
        loaded = lw.load(folder)
        after = loaded.predict_arrays(TEXTS[:24], k=5, threads=1)
        loaded.verify()
    assert np.isfinite(before[1]).all()
    assert all(np.array_equal(a, b) for a, b in zip(before, after, strict=True)), "the saved model predicts otherwise"
    assert loaded.recipe == settled(recipe, data())
    return "trained"


def weights(recipe: Recipe) -> list[str]:
    """Digests of all that a training makes, and of what it predicts."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model = train(data(), recipe, Run(1))
    found = [digest_tensors(part) for member in model.members for part in member.parts().values()]
    return [*found, digest_tensors({"scores": model.predict_arrays(TEXTS[:24], k=5, threads=1)[1]})]


def parts_of(method: str) -> list[tuple[str, Any]]:
    """Settings and values that change which parts a method has."""
    recipe = base(method, {})
    found = []
    for path, row in rows(method).items():
        if path in idle(recipe) and path not in {"encoder.engine"}:
            continue
        choices = " or " in row.allowed and not re.search("text|number", row.allowed)
        if path in SWITCHES or choices:
            found += [(path, value) for value in values(method, path)]
    return found


def covering(method: str) -> tuple[list[Settings], list[tuple[Settings, str]]]:
    """(rows that cover every pair of settings of different parts, pairs that are refused with what was said).

    A greedy array without randomness: a row begins with the first pair that is left and takes on, one by one, settings
    that go with it, those first that cover most.
    """
    options = parts_of(method)
    left: set[tuple[int, int]] = set()
    refused = []
    for a, b in combinations(range(len(options)), 2):
        (one, v), (two, w) = options[a], options[b]
        if one.partition(".")[0] == two.partition(".")[0]:
            continue
        said = refusal(method, {one: v, two: w})
        if said is None:
            left.add((a, b))
        else:
            refused.append(({one: v, two: w}, said))
    found = []
    while left:
        chosen = list(min(left))
        while (more := _next(method, options, chosen, left)) is not None:
            chosen.append(more)
        left -= {(min(a, b), max(a, b)) for a, b in combinations(chosen, 2)}
        found.append({options[i][0]: options[i][1] for i in chosen})
    return found, refused


def _next(method: str, options: list[tuple[str, Any]], chosen: list[int], left: set[tuple[int, int]]) -> int | None:
    """The option that covers most pairs with those chosen and is not refused beside them."""
    paths = {options[i][0] for i in chosen}
    gains = []
    for i, (path, _) in enumerate(options):
        if path not in paths and (gain := sum((min(i, j), max(i, j)) in left for j in chosen)):
            gains.append((-gain, i))
    for _, i in sorted(gains)[:12]:
        if refusal(method, {options[j][0]: options[j][1] for j in [*chosen, i]}) is None:
            return i
    return None


def smallest(method: str, own: Settings) -> Settings:
    """The settings without which a failing trial would pass, found by leaving out one after the other."""
    for path in list(own):
        less = {key: value for key, value in own.items() if key != path}
        try:
            tried(method, less)
        except Exception:  # whatever it is, these still fail
            own = less
    return own
