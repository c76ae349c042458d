"""Settings that do not go together, or do not go with the data: one small rule for each, all of them in `CLASHES`.

A rule yields one line for each clash it finds: what is wrong, the value, what is allowed, the way out. What is not
known yet, such as the depth of a tree that follows the data, is left to the stage that finds it out.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from .. import limits
from ..base.config import each, idle, lists_by_level
from ..errors import ConfigError, counted, nearest
from ..parts.label_features import KINDS, NEURAL_KINDS
from ..parts.tree import TreeConfig, level_sizes
from .facts import Case, Facts
from .recipe import NETWORK, Recipe

LEAN = {"bert", "roberta", "xlm-roberta", "camembert", "distilbert"}  # what our own BERT and a graph may hold
LAYERS = re.compile(r"last[1-9]\d*|\d+(\+\d+)*")

Rule = Callable[[Case], Iterator[str]]
CLASHES: list[Rule] = []


def clash(rule: Rule) -> Rule:
    """Register a rule."""
    CLASHES.append(rule)
    return rule


def _told(check: Callable[[], object]) -> Iterator[str]:
    """The line of a check that raises."""
    try:
        check()
    except ConfigError as error:
        yield str(error)


# --- the network ---------------------------------------------------------------------------------


@clash
def a_network_has_one_tree(case: Case) -> Iterator[str]:
    if case.recipe.has_network and case.recipe.ensemble.trees > 1:
        yield (
            f"a network has one label tree, but ensemble.trees is {case.recipe.ensemble.trees}; use ensemble.runs "
            "instead."
        )


@clash
def what_starts_from_nothing_is_trained(case: Case) -> Iterator[str]:
    encoder, finetune = case.recipe.encoder, case.recipe.finetune
    if not (encoder.attends or encoder.engine == "bilstm"):
        return
    what = "encoder.pooling = 'attention'" if encoder.attends else "encoder.engine = 'bilstm'"
    if not finetune.on:
        yield f"{what} starts from nothing, but finetune.on is false; set it to true."
    if encoder.runtime != "torch":
        yield f"{what} needs encoder.runtime = 'torch', but it is {encoder.runtime!r}; leave it at 'torch'."
    if encoder.attends and finetune.order == "joint":
        yield f"{what} needs finetune.order = 'levelwise', but it is 'joint'; set it, or choose another pooling."
    if encoder.engine == "bilstm" and encoder.layer == 0:
        yield "encoder.layer is 0, but of a BiLSTM only its states are read; leave it at -1."


@clash
def a_network_above_the_labels_needs_classifiers(case: Case) -> Iterator[str]:
    recipe, levels = case.recipe, case.recipe.finetune.levels
    if not recipe.has_network or levels is None:
        return
    if recipe.ranker != "network":
        yield (
            f"finetune.levels = {levels} ends the network above the labels; ranker must be 'network' then, but is "
            f"{recipe.ranker!r}."
        )
    depth = case.depth("coarse")
    if depth is not None and levels < depth - 1:
        fewer = "coarse.depth" if recipe.coarse.kind == "unbalanced" else "coarse.levels"
        yield (
            f"the network is trained on {levels} of {depth} levels, but classifiers can stand only one level below it; "
            f"set finetune.levels higher, or {fewer} to fewer."
        )


@clash
def a_first_level_tells_something(case: Case) -> Iterator[str]:
    sizes = case.sizes("coarse")
    if case.recipe.tunes and sizes is not None and len(sizes) > 1 and sizes[0] < 2:
        yield (
            f"the coarse tree is {'-'.join(map(str, sizes))}, and a first level of one cluster tells nothing; leave it "
            "out of coarse.levels, or choose another coarse.kind."
        )


@clash
def words_alone_are_for_classifiers_below_clusters(case: Case) -> Iterator[str]:
    recipe = case.recipe
    if not recipe.encoder.on or not recipe.classifies or recipe.encoder.features != "words":
        return
    if not (recipe.has_network and recipe.ranker == "network"):
        yield (
            "encoder.features = 'words' is for classifiers below a network's clusters (ranker = 'network'), but ranker "
            f"is {recipe.ranker!r}; to do without the encoder, set encoder.model = none."
        )


@clash
def classifiers_start_from_a_network_that_is_there(case: Case) -> Iterator[str]:
    recipe = case.recipe
    if not recipe.classifies or "network" not in each(recipe.linear.start):
        return
    if not recipe.whole_network or recipe.encoder.attends:
        yield (
            "linear.start = 'network' is for classifiers beside a network that reaches the labels by its embedding "
            "(cascadexml, lightxml; ranker = 'network'); leave linear.start = 'zero'."
        )
    elif recipe.encoder.features == "words":
        yield (
            "linear.start = 'network' is for classifiers that read the network's embedding, but encoder.features is "
            "'words'; set it to 'both', or leave linear.start = 'zero'."
        )


@clash
def nearness_needs_members_with_centroids(case: Case) -> Iterator[str]:
    """Networks keep no centroids yet: without this rule their models could not be opened."""
    if case.recipe.has_network and case.recipe.tail.classifier_share < 1:
        yield (
            f"tail.classifier_share = {case.recipe.tail.classifier_share:g} ranks by nearness to a label's documents, "
            f"which the network of {case.recipe.method} does not keep; leave it at 1, or use a method of linear "
            "classifiers or xr-transformer."
        )


@clash
def layers_by_level(case: Case) -> Iterator[str]:
    recipe, given = case.recipe, case.recipe.joint.layers
    if not recipe.has_network or recipe.finetune.order != "joint":
        return
    for text in given or ():
        if not LAYERS.fullmatch(text):
            yield f'joint.layers has {text[:40]!r}; each must be a layer or several, like "8", "5+6" or "last5".'
        elif text.startswith("last") and recipe.encoder.layer == 0:
            yield f"joint.layers = {text!r} ends at encoder.layer, which is 0, below all layers; set it to -1."
    for name, values in (("joint.layers", given), ("joint.level_weights", recipe.joint.level_weights)):
        if values is not None and case.tuned is not None and len(values) not in {1, case.tuned}:
            what = "weights" if name.endswith("weights") else "values"
            levels = counted(case.tuned, "level")
            yield f"{name} gives {len(values)} {what} for {levels}; give one for all, or one for each."
    named = [text for text in given or () if LAYERS.fullmatch(text) and not text.startswith("last")]
    highest = max((int(part) for text in named for part in text.split("+")), default=0)
    depths = {name: _layers(config) for name, config in case.encoders.items()}
    if recipe.encoder.engine == "bilstm":
        depths = {"(a BiLSTM)": 1}
    for name, depth in depths.items():
        if depth is not None and highest > depth:
            has = f"the encoder {name} has {counted(depth, 'layer')}"
            yield f"layer {highest} is to be read, but {has}; give joint.layers lower ones."


# --- label trees ---------------------------------------------------------------------------------


@clash
def trees_fit_the_labels(case: Case) -> Iterator[str]:
    labels = case.facts.labels
    for name in case.trees:
        config: TreeConfig = getattr(case.recipe, name)
        if config.kind == "taxonomy" and case.facts.taxonomy is False:
            yield (
                f"{name}.kind is 'taxonomy', but there is none; give a file of children and their parents with "
                "--taxonomy FILE or taxonomy=, or choose another kind."
            )
        if config.kind == "balanced" and labels is not None:
            yield from _told(lambda config=config, name=name: level_sizes(labels, config, name))  # type: ignore[misc]
            depth = len(case.sizes(name) or ())
            if depth > limits.MAX_LEVELS:
                yield (
                    f"the tree would have {depth} levels; at most {limits.MAX_LEVELS} are allowed: raise {name}.branch "
                    "or give fewer levels."
                )


@clash
def labels_are_clustered_by_what_is_there(case: Case) -> Iterator[str]:
    recipe, facts = case.recipe, case.facts
    for kind in sorted(case.kinds - set(KINDS)):
        yield f"ensemble.labels has {kind[:80]!r}; {nearest(kind[:80], KINDS)}"
    if not recipe.clusters_labels:
        return
    for kind in sorted(case.kinds):
        if kind in NEURAL_KINDS and not recipe.has_network:
            yield f"labels.kind = {kind!r} is for the tree of a network (finetune.order = 'joint'); use 'pifa'."
        elif kind == "text-neural" and recipe.encoder.model == "none":
            yield "labels.kind = 'text-neural' needs a pretrained encoder; set encoder.model, or use 'pifa'."
        elif kind == "pifa-neural" and recipe.encoder.attends and recipe.ranker == "none":
            yield (
                "labels.kind = 'pifa-neural' needs embeddings of all documents, which a network of label attention "
                "makes for classifiers alone; set ranker = 'network', or use labels.kind = 'pifa'."
            )
        if kind in {"text", "pifa+text"}:
            yield from _label_texts(kind, recipe, facts)


def _label_texts(kind: str, recipe: Recipe, facts: Facts) -> Iterator[str]:
    if facts.label_texts is False or facts.texts is False or facts.columns:
        yield (
            f"labels.kind is {kind!r}, which needs documents of text and the texts of labels; give them with "
            "--label-texts FILE or label_texts=, or use labels.kind = 'pifa'."
        )
    words = not recipe.encoder.on or recipe.encoder.features != "embedding"
    if recipe.own_tree and recipe.tree.kind != "flat" and not words:
        yield (
            f"labels.kind = {kind!r} compares labels by words, but encoder.features = 'embedding' leaves them out; set "
            "encoder.features = 'both', or labels.kind = 'pifa'."
        )


@clash
def lists_have_a_value_for_each_level(case: Case) -> Iterator[str]:
    recipe = case.recipe
    skipped = idle(recipe).keys()
    depth = case.depth("tree" if recipe.own_tree else "coarse")
    for path, values in lists_by_level(recipe):
        if path in skipped:
            continue
        once = recipe.has_network and recipe.finetune.order == "joint" and path in {"finetune.epochs", "finetune.steps"}
        levels = depth
        if path.partition(".")[0] in NETWORK:
            levels = 1 if once else case.tuned
        if levels and len(values) != levels:  # no level at all: its settings are not looked at
            of = "all levels are trained at once" if once else f"the tree has {counted(levels, 'level')}"
            yield f"{path} gives {len(values)} values {values} but {of}; give one value, or exactly {levels}."


# --- classifiers and search ----------------------------------------------------------------------


@clash
def classifiers_can_be_solved(case: Case) -> Iterator[str]:
    if not case.recipe.classifies:
        return
    linear = case.recipe.linear
    lengths = {len(values) for _, values in lists_by_level(linear)}
    levels = max(lengths, default=1)
    if len(lengths) <= 1:
        for level in range(levels):
            yield from _told(lambda level=level: linear.check_solver(level, levels))  # type: ignore[misc]
            yield from _told(lambda level=level: linear.costs(level, levels))  # type: ignore[misc]


@clash
def an_exact_search_has_falling_scores(case: Case) -> Iterator[str]:
    if case.recipe.searches:
        yield from _told(case.recipe.search.check_kind)


@clash
def members_of_an_ensemble(case: Case) -> Iterator[str]:
    yield from _told(case.recipe.ensemble.shares)
    if case.recipe.ensemble.encoders is not None and not case.recipe.encoder.on:
        yield "ensemble.encoders is given, but encoder.model is none; set it to one of them, too."


# --- words ---------------------------------------------------------------------------------------


@clash
def stems_are_of_a_language(case: Case) -> Iterator[str]:
    tfidf = case.recipe.tfidf
    if tfidf.analyser == "stems" and tfidf.stemmer is None:
        yield "tfidf.analyser is 'stems', but tfidf.stemmer is none; name the language, such as german."


# --- encoders and data ---------------------------------------------------------------------------


@clash
def an_encoder_reads_text(case: Case) -> Iterator[str]:
    recipe = case.recipe
    if recipe.encoder.on and (case.facts.texts is False or case.facts.columns):
        yield (
            f"{recipe.method} reads text (encoder.model is {recipe.encoder.model!r}), but the data holds features; "
            "give texts, or set encoder.model = none."
        )


@clash
def encoders_are_there(case: Case) -> Iterator[str]:
    for found in case.facts.encoders.values():
        if isinstance(found, str):
            yield found
    vectors = case.recipe.encoder.vectors
    if case.recipe.encoder.engine == "bilstm" and vectors is not None:
        path = Path(vectors).expanduser()
        if not path.is_file():
            what = "Is a directory" if path.is_dir() else "No such file"
            yield f"encoder.vectors: {path} cannot be read: {what}; give a GloVe file."


@clash
def encoders_can_do_what_is_asked(case: Case) -> Iterator[str]:
    encoder, finetune = case.recipe.encoder, case.recipe.finetune
    if not encoder.on:
        return
    for name, config in case.encoders.items():
        depth, longest, kind = _layers(config), config.get("max_position_embeddings"), config.get("model_type")
        if depth is not None and encoder.layer > depth:
            yield f"encoder.layer is {encoder.layer}, but the encoder {name} has {depth} layers; lower it."
        if depth is not None and case.recipe.tunes and finetune.frozen_layers > depth:
            frozen = finetune.frozen_layers
            yield f"finetune.frozen_layers is {frozen}, but the encoder {name} has {depth} layers; lower it."
        if kind == "bert" and isinstance(longest, int) and longest < encoder.max_tokens:
            yield f"encoder.max_tokens is {encoder.max_tokens}, but this encoder reads at most {longest}; lower it."
        if kind not in LEAN and encoder.engine == "lean":
            yield f"encoder.engine = 'lean' is for BERT, but {name} is {kind!r}; use auto."
        if kind not in LEAN and encoder.runtime != "torch":
            yield (
                f"encoder.runtime = {encoder.runtime!r} is for BERT and its like, but {name} is {kind!r}; use torch."
            )
    if encoder.engine == "transformers" and encoder.runtime != "torch":
        yield (
            f"encoder.runtime = {encoder.runtime!r} is made from our own BERT, but encoder.engine is 'transformers'; "
            "use encoder.engine = auto, or encoder.runtime = torch."
        )
    if encoder.engine == "bilstm" and case.recipe.tunes and finetune.frozen_layers > 1:
        yield f"finetune.frozen_layers is {finetune.frozen_layers}, but a BiLSTM has 1 layer; lower it."


def _layers(config: Mapping[str, Any]) -> int | None:
    """Layers of an encoder by its config."""
    names = ("num_hidden_layers", "n_layers", "n_layer")
    return next((config[name] for name in names if isinstance(config.get(name), int)), None)
