"""`labelwood inspect`, `verify` and `methods`: what is in a model, whether it is sound, and what there is to choose."""

from __future__ import annotations

import dataclasses
from typing import Annotated

import typer

from ..base.config import SettingRow, describe, idle
from ..errors import counted
from ..models.ensemble import Ensemble, load
from ..models.model import Model
from ..models.predictor import Predictor
from ..recipes.methods import METHODS, Method, method
from ..recipes.recipe import Recipe
from ..storage import model_folder
from . import show
from .options import ModelFolder

LAST = 10  # rank of settings that belong to no section


def inspect(model: ModelFolder) -> None:
    """Show what is in a model.

    Recipe, labels, tree, weights by level, files.
    """
    loaded, manifest = load(model), model_folder.describe(model)
    show.heading(f"{model}: {loaded.method}", first=True)
    unseen = int((loaded.counts == 0).sum())
    show.table(
        [
            ("trained on", counted(loaded.rows, "document")),
            (
                "labels",
                f"{len(loaded.labels):,}" + (f", {unseen:,} of them without a training document" * bool(unseen)),
            ),
            *([("label texts", f"for {sum(map(bool, loaded.label_texts)):,} labels")] if loaded.label_texts else []),
            ("features", _features(loaded)),
            ("seed", str(loaded.recipe.seed)),
            *_average(loaded),
            ("size", f"{show.size(manifest.bytes)} in {counted(len(manifest.files), 'file')}"),
            ("format", f"schema {manifest.schema}"),
        ]
    )
    for number, member in enumerate(loaded.members, 1):
        show.say("")
        if isinstance(loaded, Ensemble):
            show.say(f"tree {number}: {member.recipe.method}, weight {loaded.config.shares()[number - 1]:.3g}")
        rows = ((str(t + 1), f"{member.tree.size(t):,}", f"{w.nonzeros:,}") for t, w in enumerate(member.levels))
        show.table(rows, ("level", "nodes", "non-zero weights"), right=[0, 1, 2])
    show.say("")
    show.table([(e.name, f"{e.bytes:,}") for e in manifest.files.values()], ("file", "bytes"), right=[1])
    for recipe in {member.recipe.method: member.recipe for member in loaded.members}.values():
        _changed(recipe)


def _average(model: Predictor) -> list[tuple[str, str]]:
    if not isinstance(model, Ensemble):
        return []
    return [("average", f"{model.config.average} of {counted(model.config.members, 'tree')}")]


def _features(model: Predictor) -> str:
    """Tables of every member, each kind once."""
    return "; ".join(dict.fromkeys(_features_of(member) for member in model.members))


def _features_of(model: Model) -> str:
    if model.tfidf is not None:
        fields = [f"{name} × {weight}" if weight > 1 else name for name, weight in model.text_fields or ()]
        return f"{' and '.join(fields) or 'text'}, {model.sparse_cols:,} terms"
    return f"the user's own: {model.sparse_cols:,} sparse and {model.dense_cols:,} dense columns"


def _changed(recipe: Recipe) -> None:
    usual = {row.path: row.default for row in describe(METHODS[recipe.method].recipe)}
    if usual["tfidf.analyser"] == "auto":  # a model has what it was settled on, words unless the texts inflect
        usual["tfidf.analyser"] = "words"
    rows = [row for row in describe(recipe) if row.default != usual[row.path]]
    show.say("")
    if not rows:
        show.say(f"all settings are the defaults of {recipe.method} (labelwood methods {recipe.method})")
        return
    table = [(row.path, _spell(row.default), _spell(usual[row.path])) for row in rows]
    show.table(table, ("changed setting", "value", "default"))


def verify(model: ModelFolder) -> None:
    """Check every byte of a model.

    Files against their digests, and the parts against each other.
    """
    loaded, manifest = load(model), model_folder.describe(model)
    loaded.verify()
    labels, files = counted(len(loaded.labels), "label"), counted(len(manifest.files), "file")
    show.say(f"{model} is sound: {loaded.method}, {labels}, {files}, {show.size(manifest.bytes)} verified")


def methods(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="List this method's settings.")] = None,
    *,
    everything: Annotated[bool, typer.Option("--all", help="Also those that need another setting to act.")] = False,
) -> None:
    """List the methods, or the settings of one.

    The settings are those that act in it, the most useful first.
    """
    if name is not None:
        _one(name, method(name), everything=everything)
        return
    for i, (key, found) in enumerate(METHODS.items()):
        show.heading(key, first=i == 0)
        show.table([*_story(found), ("presets", ", ".join([*found.presets, *found.published]))], indent=2)
    show.say("", "labelwood methods NAME lists the settings of a method")


def _story(found: Method) -> list[tuple[str, str]]:
    return [("what", found.summary), ("good at", found.good_at), ("cost", found.cost), ("paper", found.paper)]


def _one(name: str, found: Method, *, everything: bool) -> None:
    show.heading(name, first=True)
    show.table(_story(found), indent=2)
    show.heading("presets (--preset, several with commas between)")
    presets = {**found.presets, **found.published}
    spelled = ((key, ", ".join(f"{k}={_spell(v)}" for k, v in values.items())) for key, values in presets.items())
    show.table(spelled, indent=2)
    lazy = idle(found.recipe)
    rows = [row for row in describe(found.recipe) if row.path not in lazy]
    show.heading("settings (--set NAME=VALUE, or a TOML file with --config)")
    for title, group in _groups(rows).items():
        show.say("", f"  {title}")
        table = ((row.path, _spell(row.default), f"{row.help} — {row.allowed}") for row in group)
        show.table(table, ("name", "default", "meaning — allowed"), indent=2)
    if not everything:
        show.say("", f"{len(lazy)} more need another setting to act: labelwood methods {name} --all")
        return
    show.heading("settings that need another one to act")
    rest = [row for row in describe(found.recipe) if row.path in lazy]
    acting = ((row.path, f"{row.help} — {row.allowed}; it acts {lazy[row.path]}") for row in rest)
    show.table(acting, ("name", "meaning — allowed"), indent=2)


def _groups(rows: list[SettingRow]) -> dict[str, list[SettingRow]]:
    """Settings by title, the most useful first: what is worth trying, then each section by its rank."""
    titles = {field.name: field.metadata.get("help", "") for field in dataclasses.fields(Recipe)}
    found: dict[str, list[SettingRow]] = {"what to try first": [row for row in rows if row.rank[1] == 1]}
    rest = sorted((row for row in rows if row.rank[1] > 1), key=lambda row: (row.rank[0] or LAST, row.rank[1]))
    for row in rest:
        section = row.path.rpartition(".")[0]
        found.setdefault(titles[section] if section else "the method as a whole", []).append(row)
    return found


def _spell(value: object) -> str:
    if isinstance(value, bool) or value is None:
        return str(value).lower()
    return ",".join(map(_spell, value)) if isinstance(value, tuple) else str(value)
