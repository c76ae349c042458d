"""Checks of settings: what cannot act, what does not go together, and what is found before any work."""

from __future__ import annotations

import subprocess
import sys
import warnings

import pytest

import labelwood as lw
from cases import acting
from labelwood.base.config import describe, idle, replaced, to_dict, value_at, with_settings
from labelwood.base.progress import Silent
from labelwood.cli import main
from labelwood.data import from_lists, with_taxonomy
from labelwood.recipes.checks import Facts, check
from labelwood.recipes.clashes import CLASHES
from labelwood.recipes.methods import METHODS
from labelwood.recipes.resolve import from_plain, resolve, tidy
from toy import contract_set

TEXTS, LISTS = contract_set()
NETWORKS = ("cascadexml", "x-transformer", "lightxml", "attentionxml")
TAXONOMY = {f"label{i}": f"group{i % 3}" for i in range(12)}


def refused(*lines: str, **options: object) -> None:
    """`train` refuses with all these lines, and no stage has run."""
    progress = Silent()
    with pytest.raises(lw.ConfigError) as caught:
        lw.train(TEXTS, LISTS, run=lw.Run(progress=progress), **options)
    for line in lines:
        assert line in str(caught.value)
    assert not progress.timings


# --- settings that cannot act --------------------------------------------------------------------


@pytest.mark.parametrize(
    ("method", "path", "value", "where"),
    [
        ("xr-linear", "optimiser.lr", 1.0, "encoder.model, finetune.on = true"),
        ("xr-linear", "encoder.vectors", "nofile.txt", "encoder.model"),
        ("xr-linear", "tail.sharpness", 30.0, "tail.classifier_share below 1"),  # its present value: set all the same
        ("xr-linear", "linear.l1", 0.5, "linear.solver = proximal"),
        ("xr-linear", "tree.depth", 3, "unbalanced tree"),
        ("xr-linear", "coarse.leaf", 3, "encoder is fine-tuned"),
        ("xr-linear", "ranker", "tree", "network that predicts by itself"),
        ("dismec", "search.beam", 5, "clusters"),
        ("cascadexml", "tree.leaf", 5, "coarse.* shapes"),
        ("cascadexml", "search.beam", 5, "finetune.parents"),
        ("cascadexml", "levelwise.source", "teacher", "level by level"),
        ("xr-transformer", "joint.score", "path", "finetune.order = joint"),
        ("xr-transformer", "features.norm", "none", "features of your own"),
        ("attentionxml", "levelwise.matcher", "concat", "encoder.pooling other than attention"),
    ],
)  # fmt: skip
def test_a_setting_that_cannot_act_is_refused_with_what_would_make_it_act(method, path, value, where):
    with pytest.raises(lw.ConfigError) as caught:
        resolve(method, settings={path: value})
    assert f"{path} = " in str(caught.value)
    assert f"cannot act in {method}" in str(caught.value)
    assert where in str(caught.value)
    group, _, name = path.rpartition(".")
    with pytest.raises(lw.ConfigError, match="cannot act"):
        resolve(method, config={group: {name: value}} if group else {name: value})


def test_all_that_is_wrong_is_said_at_once():
    refused(
        "finetune.epochs = 3.0 cannot act", "encoder.vectors = 'nofile.txt' cannot act", "ensemble.weights gives 1",
        settings={
            "finetune.epochs": 3, "encoder.vectors": "nofile.txt", "ensemble.trees": 2, "ensemble.weights": (1.0,),
        },
    )  # fmt: skip


def test_defaults_presets_and_manifests_are_never_refused():
    for name, found in METHODS.items():
        for preset in (*found.presets, *found.published):
            resolve(name, preset=preset)
        assert from_plain(to_dict(found.recipe)) == resolve(name) == tidy(found.recipe)


def test_what_makes_a_setting_act_may_be_set_beside_it():
    recipe = resolve(settings={"linear.solver": "proximal", "linear.l1": 0.5, "encoder.model": "minilm"})
    assert (recipe.linear.l1, recipe.encoder.on) == (0.5, True)
    assert resolve("dismec", preset="shortlist", settings={"search.beam": 5}).search.beam == 5


def test_what_cannot_act_is_dropped_from_an_old_manifest_without_a_word():
    table = to_dict(METHODS["xr-linear"].recipe)
    table["finetune"]["epochs"], table["optimiser"]["lr"], table["linear"]["eps"] = 9.0, 1.0, 0.5
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recipe = from_plain(table)
    assert recipe == resolve(settings={"linear.eps": 0.5})


@pytest.mark.parametrize("method", METHODS)
def test_what_is_dropped_leaves_the_rest_as_it_is(method):
    """To drop what cannot act does not change what can."""
    for row in describe(METHODS[method].recipe):
        for value in ("none", "true", "false", 1, "flat", "joint", "bilstm", "network", "words", "cosine", "off"):
            try:
                recipe = with_settings(METHODS[method].recipe, {row.path: value})
            except lw.ConfigError:
                continue
            assert idle(tidy(recipe)).keys() == idle(recipe).keys(), (row.path, value)
            assert tidy(tidy(recipe)) == tidy(recipe)


@pytest.mark.parametrize("method", METHODS)
def test_a_setting_that_acts_can_be_set_to_anything_it_allows(method):
    """It does not put itself out of action: what switches a part off acts. Only another engine may be none at all."""
    recipe = METHODS[method].recipe
    for row in describe(recipe):
        words = [word for word in row.allowed.replace(",", "").split() if word not in {"or", "a", "text"}]
        for value in words if row.path not in idle(recipe) else ():
            try:
                changed = with_settings(recipe, {row.path: value})
            except lw.ConfigError:
                continue
            assert row.path not in idle(changed) or row.path == "encoder.engine", (row.path, value)


def test_a_rule_is_given_for_every_setting_that_can_be_idle():
    """Words that complete "it acts …", without a full stop."""
    for name in METHODS:
        for path, where in idle(METHODS[name].recipe).items():
            assert where.split()[0] in {"in", "where", "with", "beside", "below", "for", "on"}, path
            assert not where.endswith(".")


@pytest.mark.parametrize("method", METHODS)
def test_help_texts_stand_alone(method):
    """Short, and without a word that points at another line."""
    for row in describe(METHODS[method].recipe):
        assert 10 < len(row.help) < 300, row.path
        assert not {"that", "it", "this", "same", "also"} & set(row.help.split()[:1]), row.path
        assert row.rank[1] in range(1, 8)


def test_a_config_for_several_methods(tmp_path):
    path = tmp_path / "shared.toml"
    path.write_text(
        'seed = 3\n[linear]\neps = 0.2\n[method.xr-linear.search]\nbeam = 7\n'
        "[method.xr-transformer]\n\"finetune.epochs\" = 1\nlinear = {eps = 0.3}\n"
    )  # fmt: skip
    linear, network = (resolve(name, config=path) for name in ("xr-linear", "xr-transformer"))
    assert (linear.seed, linear.linear.eps, linear.search.beam) == (3, 0.2, 7)
    assert (network.seed, network.linear.eps, network.search.beam, network.finetune.epochs) == (3, 0.3, 50, 1.0)
    assert resolve("dismec", config=path).linear.eps == 0.2
    path.write_text("[method.xr-liner]\nseed = 3\n")
    with pytest.raises(lw.ConfigError, match="did you mean 'xr-linear'"):
        resolve(config=path)
    with pytest.raises(lw.ConfigError, match=r"finetune\.epochs = 1\.0 cannot act"):
        resolve(config={"method": {"xr-linear": {"finetune": {"epochs": 1}}}})
    assert resolve(config={"method": "xr-linear"}) == resolve()


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({"shortlist.source": "union", "shortlist.parents": 3}, r"shortlist\.parents = 3 does nothing here: 12 labels"),
        ({"search.beam": 3}, r"search\.beam = 3 does nothing here: 12 labels make a tree of one level"),
        ({"features.norm": "none"}, r"features\.norm = 'none' does nothing here: the data holds texts"),
    ],
)
def test_what_does_nothing_with_this_data_is_warned_about(settings, words):
    with pytest.warns(UserWarning, match=words):
        lw.train(TEXTS, LISTS, settings=settings)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        lw.train(TEXTS, LISTS, preset="fast")  # a preset's settings may do nothing


def test_words_that_nobody_reads_are_warned_about():
    with pytest.warns(UserWarning, match=r"tfidf\.min_df = 1 does nothing here: the data holds features"):
        lw.train(X=[[1.0, 0.0], [0.0, 1.0]], labels=[["a"], ["b"]], settings={"tfidf.min_df": 1})


# --- presets -------------------------------------------------------------------------------------


@pytest.mark.parametrize("given", ["fast,tail", " fast , tail", ["fast", "tail"], ("fast", "tail")])
def test_presets_are_laid_over_each_other(given):
    recipe = resolve(preset=given)
    assert (recipe.linear.weights, recipe.tail.classifier_share) == ("int8", 0.6)


def test_presets_that_differ_name_the_one_that_holds():
    words = r"presets fast and best both set finetune\.epochs: 5 of best holds, not 0\.75"
    with pytest.warns(UserWarning, match=words):
        assert resolve("xr-transformer", preset="fast,best").finetune.epochs == 5
    with pytest.warns(UserWarning, match="of fast holds"):
        assert resolve("xr-transformer", preset="best,fast").finetune.epochs == 0.75
    for wrong in ("fast,fats", ["fast", 3], 3, "", "fast,"):
        with pytest.raises(lw.ConfigError, match="preset"):
            resolve(preset=wrong)


# --- clashes -------------------------------------------------------------------------------------


@pytest.mark.parametrize("method", NETWORKS)
def test_nearness_is_refused_where_its_model_could_not_be_opened(method):
    """F-S3."""
    refused("tail.classifier_share = 0.5", "leave it at 1", method=method, settings={"tail.classifier_share": 0.5})


@pytest.mark.parametrize("method", METHODS)
def test_a_taxonomy_is_the_tree_that_is_used(method):
    """F-S4."""
    recipe = resolve(method, taxonomy=True)
    used = {"tree": recipe.own_tree, "coarse": recipe.grows_coarse}
    assert any(used.values())
    assert all(value_at(recipe, f"{name}.kind") == "taxonomy" for name, grown in used.items() if grown)


@pytest.mark.parametrize("method", ["xr-transformer", *NETWORKS])
def test_a_taxonomy_shapes_networks_too(method):
    settings = acting({"finetune.steps": 2, "finetune.checks": 1, "encoder.hidden": 8}, method)
    model = lw.train(TEXTS, LISTS, method=method, taxonomy=TAXONOMY, settings=settings)
    assert {member.tree.sizes for member in model.members} == {(3, 12)}


def test_a_deep_taxonomy_is_refused_at_once_where_a_network_ends_too_early():
    pytest.importorskip("torch")  # or the package that is missing is what is told
    parents = {**TAXONOMY, "group0": "above", "group1": "above"}
    refused("1 of 3 levels", "set finetune.levels higher", method="x-transformer", taxonomy=parents)
    several = {**{name: [group] for name, group in parents.items()}, "label3": ["group0", "group2"]}
    recipe = resolve("x-transformer", taxonomy=True)
    facts = Facts.of(with_taxonomy(from_lists(TEXTS, LISTS), several))
    assert facts.taxonomy_levels is None  # where label3 stands follows from features
    check(recipe, facts)


def test_a_taxonomy_may_be_left_to_one_of_two_trees():
    recipe = resolve("xr-transformer", taxonomy=True, settings={"coarse.kind": "balanced"})
    assert (recipe.tree.kind, recipe.coarse.kind) == ("taxonomy", "balanced")
    with pytest.raises(lw.ConfigError, match=r"coarse\.kind is set to 'flat'; leave out one"):
        resolve("cascadexml", taxonomy=True, settings={"coarse.kind": "flat"})
    with pytest.raises(lw.ConfigError, match=r"coarse\.leaf = 3 cannot act"):
        resolve("cascadexml", taxonomy=True, settings={"coarse.leaf": 3})


BERT = {"model_type": "bert", "num_hidden_layers": 2, "max_position_embeddings": 128}
KNOWN = {"labels": 12, "columns": 0, "texts": True, "label_texts": False, "taxonomy": False, "relevances": False}
TWO = {"coarse.levels": (4,)}
CASES = [
    ("cascadexml", {"ensemble.trees": 2}, {}, "use ensemble.runs instead"),
    ("attentionxml", {"finetune.on": False}, {}, "set it to true"),
    ("attentionxml", {"encoder.runtime": "onnx"}, {}, "needs encoder.runtime = 'torch'"),
    ("attentionxml", {"finetune.order": "joint"}, {}, "needs finetune.order = 'levelwise'"),
    ("attentionxml", {"encoder.layer": 0}, {}, "leave it at -1"),
    ("attentionxml", {"encoder.vectors": "no/such/file"}, {}, "give a GloVe file"),
    ("cascadexml", {"finetune.levels": 1, "ranker": "none"}, {}, "ranker must be 'network'"),
    ("cascadexml", {"finetune.levels": 1, "coarse.levels": (2, 6)}, {}, "only one level below"),
    ("cascadexml", {"coarse.levels": (1, 6)}, {}, "tells nothing"),
    ("xr-transformer", {"encoder.features": "words"}, {}, "is for classifiers below a network's clusters"),
    ("xr-transformer", {"linear.start": "network", "linear.solver": "newton"}, {}, "leave linear.start = 'zero'"),
    ("cascadexml", {"linear.start": "network"}, {}, "is for linear.solver = 'newton'"),
    ("cascadexml", {"joint.layers": ("x",)}, {}, "each must be a layer"),
    ("cascadexml", {**TWO, "joint.layers": ("1", "2", "2")}, {}, "joint.layers gives 3 values for 2 levels"),
    ("cascadexml", {**TWO, "joint.layers": ("1", "9")}, {}, "layer 9 is to be read"),
    ("cascadexml", {**TWO, "joint.level_weights": (1.0, 1.0, 2.0)}, {}, "gives 3 weights for 2 levels"),
    ("cascadexml", {**TWO, "finetune.epochs": (1.0, 2.0)}, {}, "all levels are trained at once"),
    ("cascadexml", {**TWO, "optimiser.lr": (1e-3, 1e-3, 1e-3)}, {}, "the tree has 2 levels"),
    ("xr-linear", {"linear.cp": (1.0, 2.0)}, {}, "the tree has 1 level;"),
    ("xr-linear", {"tree.levels": (50,)}, {}, "sizes must grow"),
    ("xr-linear", {"tree.kind": "taxonomy"}, {}, "--taxonomy FILE"),
    ("cascadexml", {"coarse.kind": "taxonomy"}, {}, "--taxonomy FILE"),
    ("xr-linear", {"labels.kind": "text"}, {}, "--label-texts FILE"),
    ("xr-linear", {"labels.kind": "pifa-neural"}, {}, "use 'pifa'"),
    ("attentionxml", {"labels.kind": "text-neural", "encoder.model": "none", "coarse.flat": 0}, {}, "use 'pifa'"),
    ("attentionxml", {"labels.kind": "pifa-neural", "ranker": "none"}, {}, "set ranker = 'network'"),
    ("xr-transformer", {"labels.kind": "text", "encoder.features": "embedding"}, {"label_texts": True}, "'both'"),
    ("x-transformer", {"ensemble.runs": 2, "ensemble.labels": ("pifa", "pfia")}, {}, "did you mean 'pifa'"),
    ("x-transformer", {"ensemble.runs": 2, "ensemble.encoders": ("minilm",)}, {}, "one for each"),
    ("xr-linear", {"search.kind": "exact", "search.score": "label"}, {}, "search.kind to 'beam'"),
    ("xr-linear", {"linear.alpha": 0.5}, {}, "give both"),
    ("xr-linear", {"linear.loss": "hinge", "linear.solver": "newton"}, {}, "change one"),
    ("xr-linear", {"tfidf.analyser": "stems"}, {}, "name the language, such as german"),
    ("xr-transformer", {}, {"columns": 3}, "give texts, or set encoder.model = none"),
    ("xr-transformer", {"encoder.layer": 3}, {}, "has 2 layers"),
    ("xr-transformer", {"finetune.frozen_layers": 3}, {}, "has 2 layers"),
    ("xr-transformer", {"encoder.max_tokens": 129}, {}, "reads at most 128"),
    ("xr-transformer", {"encoder.engine": "transformers", "encoder.runtime": "onnx"}, {}, "use encoder.engine = auto"),
    ("xr-transformer", {}, {"encoders": {"minilm": "the encoder 'minilm' is not a folder; give one."}}, "give one"),
    ("xr-transformer", {"encoder.engine": "lean"}, {"encoders": {"m": {**BERT, "model_type": "mpnet"}}}, "use auto"),
    ("xr-transformer", {"encoder.runtime": "onnx"}, {"encoders": {"m": {"model_type": "mpnet"}}}, "use torch"),
]  # fmt: skip


@pytest.mark.parametrize(("method", "settings", "facts", "words"), CASES)
def test_every_clash_is_found_by_its_rule(method, settings, facts, words):
    """By the recipe and the facts alone, with a way out; the method as it stands has none."""
    known = Facts(**{**KNOWN, "encoders": {"minilm": BERT}})
    check(METHODS[method].recipe, known)
    recipe = with_settings(METHODS[method].recipe, settings)
    with pytest.raises(lw.ConfigError) as caught:
        check(recipe, Facts(**{**KNOWN, "encoders": {"minilm": BERT}, **facts}))
    assert words in str(caught.value)
    assert all(line.endswith(".") for line in str(caught.value).splitlines())


def test_every_rule_has_a_case():
    known = Facts(**{**KNOWN, "encoders": {"minilm": BERT}})
    from labelwood.recipes.facts import Case

    cases = [*CASES, ("cascadexml", {"tail.classifier_share": 0.5}, {}, "")]
    found = {
        rule
        for method, settings, facts, _ in cases
        for rule in CLASHES
        if list(rule(Case(with_settings(METHODS[method].recipe, settings), replaced(known, facts))))
    }
    assert {rule.__name__ for rule in CLASHES} == {rule.__name__ for rule in found}


def test_nothing_is_loaded_to_find_a_clash():
    """Neither torch nor a tokeniser: a refusal takes a moment."""
    pytest.importorskip("torch")  # or the package that is missing is what is told
    code = """
import sys
import labelwood as lw
for settings in ({"finetune.levels": 1, "ranker": "none"}, {"coarse.levels": (50,)}, {"tree.leaf": 3}):
    try:
        lw.train(["a b", "b c", "c d"] * 9, [["x"], ["y"], ["z"]] * 9, method="cascadexml", settings=settings)
    except lw.ConfigError:
        continue
    raise SystemExit("it was not refused")
assert not {"torch", "tokenizers", "transformers", "onnx"} & set(sys.modules), "loaded"
"""
    subprocess.run([sys.executable, "-c", code], check=True)


def test_plan_and_train_refuse_alike():
    for settings in ({"linear.cp": (1.0, 2.0)}, {"tree.levels": (50,)}, {"optimiser.lr": 1.0}):
        said = []
        for call in (lw.train, lw.plan):
            with pytest.raises(lw.ConfigError) as caught:
                call(TEXTS, LISTS, settings=settings)
            said.append(str(caught.value))
        assert said[0] == said[1]


def test_settings_for_several_methods_go_where_they_act():
    pytest.importorskip("torch")  # or the package that is missing is what is told
    from labelwood.reports.leaderboard import recipes

    found = recipes(["xr-linear:fast+tail", "xr-transformer"], {"finetune.epochs": 1, "linear.eps": 0.2}, None)
    assert found["xr-linear:fast+tail"].linear.weights == "int8"
    assert [recipe.linear.eps for recipe in found.values()] == [0.2, 0.2]
    assert found["xr-transformer"].finetune.epochs == 1
    with pytest.raises(lw.ConfigError, match=r"joint\.score cannot act in any of xr-linear, parabel"):
        recipes(["xr-linear", "parabel"], {"joint.score": "path"}, None)


def test_the_helper_of_other_tests_keeps_what_acts():
    assert acting({"tree.leaf": 2, "search.beam": 3}, "dismec") == {}
    assert acting({"tree.leaf": 2}, "dismec", {"tree.kind": "balanced"}) == {"tree.leaf": 2, "tree.kind": "balanced"}


def test_on_the_command_line_each_clash_is_a_line_of_its_own(tmp_path, capsys):
    (tmp_path / "t.jsonl").write_text('{"text": "word one", "labels": ["x"]}\n')
    settings = ["--set", "optimiser.lr=1", "--set", "tail.sharpness=2"]
    assert main(["train", str(tmp_path / "t.jsonl"), "--model", str(tmp_path / "m"), *settings]) == 1
    lines = capsys.readouterr().err.splitlines()
    assert [line.split(" = ")[0] for line in lines] == ["error: optimiser.lr", "error: tail.sharpness"]
    assert [path.name for path in tmp_path.iterdir()] == ["t.jsonl"]


@pytest.mark.parametrize(
    ("method", "settings", "message"),
    [
        ("cascadexml", {"coarse.widest": 2, "joint.level_weights": (1.0,) * 9}, "gives 9 weights"),
        ("cascadexml", {"coarse.widest": 2, "finetune.parents": (2,) * 9}, "gives 9 values"),
        ("x-transformer", {"coarse.widest": 2, "finetune.levels": 1}, "can stand only one level below it"),
        ("xr-transformer", {"coarse.widest": 2, "optimiser.lr": (1e-4,) * 9}, "gives 9 values"),
        ("parabel", {"tree.widest": 2, "ensemble.trees": 1, "linear.cp": (1.0,) * 9}, "gives 9 values"),
    ],
)
def test_what_a_grown_tree_tells_is_checked_by_the_same_rules_before_training(method, settings, message):
    """The depth of a taxonomy whose nodes are cut is known once it is grown."""
    if METHODS[method].recipe.encoder.on:
        pytest.importorskip("torch")
    progress = Silent()
    with pytest.raises(lw.ConfigError, match=message):
        lw.train(TEXTS, LISTS, method=method, settings=settings, taxonomy=TAXONOMY, run=lw.Run(1, progress=progress))
    stages = " ".join(progress.timings)
    assert "tree" in stages
    assert not {"training", "fine-tuning", "level"} & set(stages.split())
