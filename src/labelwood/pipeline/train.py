"""Training, from a data set and a recipe to a model: which stages, in which order, and what they end in.

stages.py has the linear ones, neural/stages.py those of an encoder.
"""

from __future__ import annotations

import dataclasses
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays.sparse import Features
from ..base.config import to_dict
from ..base.digests import digest_arrays, digest_plain
from ..data import Dataset
from ..errors import ConfigError, DataError
from ..models.ensemble import Ensemble
from ..models.model import Model
from ..models.predictor import Predictor
from ..neural.attention_level import Levels
from ..parts.label_features import NEURAL_KINDS, binary
from ..parts.linear import LinearLevel
from ..parts.tfidf import Tfidf
from ..parts.tree import Tree
from ..recipes.checks import check
from ..recipes.methods import tidy
from ..recipes.recipe import Recipe, check_depth
from ..storage.stage_cache import Workspace
from .facts import facts_of
from .run_options import Run
from .stages import Grown, Level, Stages, shared_levels
from .training_set import Problem, prepare

if TYPE_CHECKING:
    from .networks import Encoded


def train(data: Dataset, recipe: Recipe, run: Run, valid: Dataset | None = None) -> Predictor:
    """Train a model; with `run.work` every finished stage is kept there until the caller removes the folder.

    `valid` are held-out documents that choose between states of a network; a recipe without one does not look at them.
    """
    with Workspace(run.work, shared=run.shared, reused=run.reused) as space:
        return _train(data, recipe, run, space, valid)


def train_into(
    folder: Path, data: Dataset, recipe: Recipe, run: Run, *, valid: Dataset | None = None, keep_work: bool = False
) -> Predictor:
    """Train and save; the workspace goes only once the model is there, so a crash at any moment can be resumed."""
    with Workspace(run.work, shared=run.shared, reused=run.reused) as space:
        model = _train(data, recipe, run, space, valid)
        with run.progress.stage("saving"):
            model.save(folder)
        if not keep_work:
            space.remove()
    return model


def identity(recipe: Recipe, data_key: str) -> dict[str, Any]:
    """What a run is, for resuming: the same recipe on the same data gives the same bits."""
    return {"recipe": to_dict(tidy(recipe)), "data": data_key}


def identity_of(model: Predictor) -> dict[str, Any]:
    """The run that a model came from; nothing if its members were not trained together."""
    recipe, recipes = model.recipe, [member.recipe for member in model.members]
    config = getattr(model, "config", recipe.ensemble)
    if any(other != recipe for other in recipes) or len(recipes) != recipe.members:
        return {}
    if config != recipe.ensemble and not recipe.has_network:  # a blend's weights come out of its training
        return {}
    return identity(recipe, model.data_key)


def problem_of(data: Dataset, recipe: Recipe, valid: Dataset | None) -> Problem:
    """What the recipe is trained on."""
    return prepare(data, valid if recipe.encoder.on and recipe.finetune.on else None)


def _train(data: Dataset, recipe: Recipe, run: Run, space: Workspace, valid: Dataset | None) -> Predictor:
    problem = problem_of(data, recipe, valid)
    check(recipe, facts_of(data, recipe))
    space.begin(identity(recipe, problem.data_key), resume=run.resume, overwrite=run.overwrite)
    try:
        return _Trainer(data, problem, recipe, run, space).train()
    except (ConfigError, DataError):
        space.abandon()  # what was asked for cannot be trained: there is nothing to resume
        raise


@dataclasses.dataclass(frozen=True, eq=False)
class _Trainer(Stages):
    """One run, or several with a seed or an encoder of their own each."""

    def train(self) -> Predictor:
        config, runs = self.recipe.ensemble, [self.of_run(number) for number in range(self.recipe.ensemble.runs)]
        if self.recipe.has_network:
            found: list[Predictor] = []
            for run in runs:
                models, weights = run.blend()
                found.append(models[0] if len(models) == 1 else Ensemble(models, config.of(len(models), weights)))
            return found[0] if len(found) == 1 else Ensemble(found, config)
        members = [model for run in runs for model in run.members()]
        return members[0] if len(members) == 1 else Ensemble(members, config)

    def of_run(self, number: int) -> _Trainer:
        """The same, with the seed and the encoder of one run."""
        recipe, encoders, kinds = self.recipe, self.recipe.ensemble.encoders, self.recipe.ensemble.labels
        encoder = recipe.encoder if encoders is None else dataclasses.replace(recipe.encoder, model=encoders[number])
        labels = recipe.labels if kinds is None else dataclasses.replace(recipe.labels, kind=kinds[number])
        seed = recipe.ensemble.seed(recipe.seed, number)
        own = dataclasses.replace(recipe, seed=seed, encoder=encoder, labels=labels)
        return dataclasses.replace(self, recipe=own, whole=recipe)

    def members(self) -> list[Model]:
        """The models of one run: one for each tree."""
        tfidf, words, words_key = self.features()
        x, x_key, embedder, all_words = words, words_key, None, tfidf
        if self.recipe.encoder.on:
            encoded = self.encoded(tfidf, words, words_key)
            x, x_key, embedder = encoded.x, encoded.key, encoded.embedder
            tfidf = tfidf if self.recipe.encoder.features == "both" else None
        if self.recipe.encoder.on and not self.recipe.levelwise.refine:
            trees = self.trees(words, words_key, all_words, self.recipe.coarse)
        else:
            trees = self.trees(x, x_key, tfidf, self.recipe.tree)
        _core.give_back_memory()  # label features are gone
        for grown in trees:
            check_depth(self.recipe, grown.tree.depth)
        mu = self.centroids(x, x_key)
        members: list[Model] = []
        first: list[Level] = []
        for grown in trees:
            levels = self.levels(x, x_key, grown, shared_levels(grown.tree, trees[0].tree, first))
            first = first or levels
            members.append(self.model((tfidf, embedder), x, grown.tree, [level.level for level in levels], mu))
        return members

    def blend(self) -> tuple[list[Model], tuple[float, ...]]:
        """The network of one run and the classifiers beside it, with their weights."""
        from .blend import Blend, first_weights, shortlist

        tfidf, words, key = self.features()
        encoded = self.encoded(tfidf, words, key)
        network, raw = encoded.network, encoded.raw
        assert network is not None and raw is not None  # noqa: PT018
        above = network.levels[: network.tree.depth - 1]
        if len(above) < network.tree.depth - 1:
            raise ConfigError(
                f"the network is trained on {len(network.levels)} of {network.tree.depth} levels, but classifiers can "
                "stand only one level below it; set finetune.levels higher, or coarse.levels to fewer."
            )
        reads = tfidf if encoded.x.sparse is not None and self.recipe.ranker != "none" else None

        def ranker(rows: NDArray[np.int64] | None = None) -> tuple[Tree, Levels]:
            x, y, key = encoded.x, self.problem.y, encoded.key
            if rows is not None:
                x, y, key = x.take(rows), y.take(rows), digest_plain([key, digest_arrays(rows)])
            of = dataclasses.replace(self, problem=dataclasses.replace(self.problem, y=y))
            if self.recipe.ranker == "tree":
                grown = self._by_words().trees(encoded.x, encoded.key, tfidf, self.recipe.tree)[0]
                found = [level.level for level in of.levels(x, key, grown, [])]
            else:
                grown = Grown(0, "tree", network.tree, network.tuned.key)
                m = shortlist(encoded, binary(y), self.recipe.shortlist, self.run.workers, rows=rows)
                make = partial(of.level, x, grown, above, m, first_weights(encoded, self.recipe))
                stage = self.space.stage("ranker", {"features": key, **self.classifiers()}, make)
                ptr = network.tree.child_ptrs[-1]
                found = [LinearLevel.from_tensors(ptr, stage.tensors, x.sparse_cols, x.dense_cols)]
            found = [dataclasses.replace(level, dense_begin=raw.shape[1]) for level in found]
            return grown.tree, found if self.recipe.ranker == "tree" else [*above, *found]

        def model(x: Features, tree: Tree, levels: Levels) -> Model:
            return self.model((reads, encoded.embedder), x, tree, levels, None)

        if self.recipe.ranker == "none":
            encoded = dataclasses.replace(encoded, x=Features(None, encoded.x.dense))
        return Blend(self.recipe, self.run, self.problem.y, encoded, network, ranker, model).members()

    def encoded(self, tfidf: Tfidf | None, words: Features, key: str) -> Encoded:
        """X with the embedding of the text beside its words, by an encoder that may be fine-tuned first."""
        from .networks import Encoding, Held

        if self.data.texts is None or self.data.features is not None:
            raise ConfigError(
                f"{self.recipe.method} reads text (encoder.model is {self.recipe.encoder.model!r}), but the data holds "
                "features; give texts, or set encoder.model = none."
            )

        def coarse() -> tuple[Tree, str]:
            found = self.coarse_tree(tfidf, words, key)
            if self.recipe.has_network and self.recipe.ranker != "tree":  # its classifiers stand on this tree
                check_depth(self.recipe, found.tree.depth)
            return found.tree, found.key

        valid = self.problem.valid
        held = None if valid is None else Held.of(valid, self.problem, tfidf, self.run.workers)
        texts, y, key = self.data.texts, self.problem.y, self.problem.data_key
        return Encoding(self.recipe, self.run, self.space, texts, y, key, words, coarse, held).run_stages()

    def coarse_tree(self, tfidf: Tfidf | None, words: Features, key: str) -> Grown:
        """The tree of a network: of words, of what a first network made of them, or of the labels' own texts."""
        from .networks import embed_texts

        kind, config, name = self.recipe.labels.kind, self.recipe.coarse, "coarse tree"
        if not self.recipe.has_network or kind not in NEURAL_KINDS:
            return self.trees(words, key, tfidf, config, name=name)[0]
        own = self._by_words()
        pifa = own.recipe
        if kind == "pifa-neural":  # by the run that has `pifa` and this encoder, whichever run this is
            first = dataclasses.replace(
                self, recipe=dataclasses.replace(pifa, seed=self._first_seed(self.whole or pifa))
            )
            found = first.encoded(tfidf, words, key)
            return own.trees(Features(None, found.x.dense), found.key, None, config, name=name)[0]
        texts = [self.data.label_texts[i] if self.data.label_texts else "" for i in self.problem.seen]
        given = [text or self.problem.names[i] for i, text in zip(self.problem.seen, texts, strict=True)]
        dense, z_key = embed_texts(self.recipe, self.run, self.space, given)
        return own.tree(lambda: Features(None, dense), z_key, config, 0, name)

    def _by_words(self) -> _Trainer:
        """The same, with labels clustered by their documents where the recipe leaves that to a network."""
        labels = self.recipe.labels
        kind = "pifa" if labels.kind in NEURAL_KINDS else labels.kind
        return dataclasses.replace(
            self, recipe=dataclasses.replace(self.recipe, labels=dataclasses.replace(labels, kind=kind))
        )

    def _first_seed(self, whole: Recipe) -> int:
        """Of the first run of an ensemble whose labels are clustered by `pifa` and that has this run's encoder."""
        config, own = whole.ensemble, self.recipe.encoder.model
        kinds = config.labels or (whole.labels.kind,) * config.runs
        models = config.encoders or (whole.encoder.model,) * config.runs
        fitting = (i for i in range(config.runs) if kinds[i] == "pifa" and models[i] == own)
        alike = next((i for i in range(config.runs) if models[i] == own), 0)
        return config.seed(whole.seed, next(fitting, alike))
