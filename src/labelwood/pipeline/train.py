"""Training, from a data set and a recipe to a model: every run of every method, written straight down.

    words      X of the words                                words.py
    coarse     the label tree that an encoder is tuned on    trees.py
    tuned      the encoder after its fine-tuning             networks.py, neural/finetune
    encoded    [words ; embedding]                           networks.py
    tree       the classifiers' own tree                     trees.py
    levels     shortlist, costs, solver, level by level      levels.py
    blend      a network's share beside its classifiers      blend.py

Each stage takes and gives `Keyed` values and is made once, whoever asks for it.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from .. import _core
from ..arrays.names import Names
from ..base.config import to_dict
from ..base.run import Keeping, Run
from ..data import Dataset
from ..errors import ConfigError, DataError, MissingExtraError
from ..models.ensemble import Ensemble
from ..models.model import Model
from ..models.predictor import Predictor
from ..parts.rank_average import EnsembleConfig
from ..parts.tree import Tree
from ..recipes.checks import check
from ..recipes.recipe import Recipe
from ..recipes.resolve import tidy
from ..recipes.runs import by_documents, first_network, of_run
from ..storage.keyed import Keyed
from ..storage.stage_cache import Workspace
from .blend import network_models
from .facts import facts_of
from .job import Documents, Job, made_model
from .levels import TrainedLevel, label_centroids, shared_levels, train_levels
from .networks import HeldOut, by_embedding, embed_label_texts, encode, fine_tune, held_out
from .training_set import Problem, prepare
from .trees import grow, grow_on
from .words import read_words, settled


def train(
    data: Dataset, recipe: Recipe, run: Run, valid: Dataset | None = None, keeping: Keeping = Keeping()
) -> Predictor:
    """Train a model; with `run.work` every finished stage is kept there until the caller removes the folder.

    `valid` are held-out documents that choose between states of a network; a recipe without one does not look at them.
    """
    with Workspace(run.folder, shared=keeping.shared, reused=keeping.reused, every=keeping.every) as space:
        return train_in(space, data, recipe, run, valid)


def train_into(
    folder: Path, data: Dataset, recipe: Recipe, run: Run, *, valid: Dataset | None = None,
    keeping: Keeping = Keeping(), keep_work: bool = False,
) -> Predictor:  # fmt: skip
    """Train and save; the workspace goes only once the model is there, so a crash at any moment can be resumed."""
    with Workspace(run.folder, shared=keeping.shared, reused=keeping.reused, every=keeping.every) as space:
        model = train_in(space, data, recipe, run, valid)
        with run.progress.stage("saving"):
            model.save(folder)
        if not keep_work:
            space.remove()
    return model


def identity(recipe: Recipe, data_key: str) -> dict[str, Any]:
    """Identity of a run, for resuming: the same recipe on the same data gives the same bits."""
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
    """Problem that the recipe is trained on."""
    return prepare(data, valid if recipe.encoder.on and recipe.finetune.on else None)


def train_in(space: Workspace, data: Dataset, recipe: Recipe, run: Run, valid: Dataset | None = None) -> Predictor:
    """Train in a workspace of the caller's."""
    recipe = settled(recipe, data)
    problem = problem_of(data, recipe, valid)
    facts = facts_of(data, recipe)
    check(recipe, facts)
    space.begin(identity(recipe, problem.data_key), resume=run.resume, overwrite=run.overwrite)
    names = Names.of(problem.names), Names.of(data.label_texts)
    try:
        return _all_runs(Job(data, problem, recipe, recipe, run, space, names, facts))
    except (ConfigError, DataError, MissingExtraError):
        space.abandon()  # what was asked for cannot be trained: there is nothing to resume
        raise


def _all_runs(job: Job) -> Predictor:
    """The model of one run, or the ensemble of several."""
    config = job.recipe.ensemble
    words = read_words(job)
    held = held_out(job, words)
    runs = [job.of(of_run(job.recipe, number)) for number in range(config.runs)]
    if not job.recipe.has_network:
        return _together([model for one in runs for model in _train_run(one, words, held)], config)
    found: list[Predictor] = []
    for one in runs:
        models, weights = _train_network(one, words, held)
        found.append(_together(models, config.of(len(models), weights)))
    return _together(found, config)


def _together(models: list[Any], config: EnsembleConfig) -> Predictor:
    """One model, or several as an ensemble."""
    return models[0] if len(models) == 1 else Ensemble(models, config)


def _train_run(job: Job, words: Keyed[Documents], held: HeldOut | None) -> list[Model]:
    """The models of one run of linear classifiers, one for each tree; an encoder may read the documents, too."""
    recipe, count = job.recipe, job.recipe.ensemble.trees
    documents, coarse = words, None
    if recipe.encoder.on:
        if recipe.finetune.on:
            coarse = grow(job, words, recipe.labels, recipe.coarse, name="coarse tree")[0]
            job.check_tree("coarse", coarse.value)
        encoded = encode(job, words, fine_tune(job, words, coarse, held))
        documents = Keyed(encoded.value.documents, encoded.key)
    trees = grow(job, documents if recipe.own_tree else words, recipe.labels, recipe.stand, count=count)
    _core.give_back_memory()  # label features are gone
    for tree in trees:
        job.check_tree("tree" if recipe.own_tree else "coarse", tree.value)
    mu = label_centroids(job, documents)
    models: list[Model] = []
    first: list[TrainedLevel] = []
    for number, tree in enumerate(trees):
        shared = shared_levels(tree.value, trees[0].value, first)
        levels = train_levels(job, documents, tree, number, shared)
        first = first or levels
        found = [level.value for level in levels]
        models.append(made_model(job, documents.value, tree.value, found, centroids=mu))
    return models


def _train_network(
    job: Job, words: Keyed[Documents], held: HeldOut | None
) -> tuple[list[Model], tuple[float, ...]]:  # fmt: skip
    """The models of one run whose network predicts by itself, and their weights."""
    coarse = _network_tree(job, words, held)
    job.check_tree("coarse", coarse.value)
    tuned = fine_tune(job, words, coarse, held)
    return network_models(job, encode(job, words, tuned, held))


def _network_tree(job: Job, words: Keyed[Documents], held: HeldOut | None) -> Keyed[Tree]:
    """The tree of a network: of words, of what a first network made of them, or of the labels' own texts."""
    recipe, name = job.recipe, "coarse tree"
    if recipe.labels.kind == "text-neural":
        return grow_on(job, embed_label_texts(job), recipe.coarse, name)
    documents, labels = words, by_documents(recipe.labels)
    if recipe.labels.kind == "pifa-neural":
        first = job.of(first_network(job.whole, recipe))
        tree = grow(first, words, labels, recipe.coarse, name=name)[0]
        job.check_tree("coarse", tree.value)
        documents = by_embedding(first, fine_tune(first, words, tree, held))
    return grow(job, documents, labels, recipe.coarse, name=name)[0]
