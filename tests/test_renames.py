"""Old names of settings and of their values are read, and say what they are called now."""

from __future__ import annotations

import warnings

import pytest

import labelwood as lw
from labelwood.base.config import describe, to_dict
from labelwood.recipes.methods import METHODS
from labelwood.recipes.recipe import Recipe
from labelwood.recipes.renames import NAMES, VALUES, current, current_table
from labelwood.recipes.resolve import from_plain, resolve

KNOWN = {row.path for row in describe(Recipe("xr-linear"))}


def test_every_new_name_is_a_setting_and_no_old_one_is():
    assert set(NAMES.values()) | set(VALUES) <= KNOWN
    assert not set(NAMES) & KNOWN


def test_an_old_name_is_read_and_the_new_one_is_given():
    with pytest.warns(UserWarning, match=r"the setting finetune\.width is called finetune\.parents now"):
        recipe = resolve("xr-transformer", settings={"finetune.width": 7})
    assert recipe.finetune.parents == 7
    with pytest.warns(UserWarning, match=r"finetune\.loss = bce is called finetune\.loss = logistic now"):
        recipe = resolve("xr-transformer", settings={"finetune.loss": "bce"})
    assert recipe.finetune.loss == "logistic"


def test_an_old_value_may_stand_for_two_settings_or_in_a_list():
    with pytest.warns(UserWarning, match="relevance_norm = none"):
        assert current({"finetune.relevance": "counts"}) == {
            "finetune.relevance": "induce", "finetune.relevance_norm": "none",
        }  # fmt: skip
    assert current({"finetune.loss": "bce,hinge"}, warn=False) == {"finetune.loss": ("logistic", "hinge")}
    assert current({"finetune.loss": ["hinge", "bce"]}, warn=False) == {"finetune.loss": ("hinge", "logistic")}


def test_a_config_file_with_old_names(tmp_path):
    path = tmp_path / "old.toml"
    path.write_text('[finetune]\nhead_lr = 0.5\nreadout = "path"\n[tail]\nbeta = 0.25\n')
    with pytest.warns(UserWarning, match="old name is still read"):
        recipe = resolve("cascadexml", config=path)
    assert (recipe.optimiser.head_lr, recipe.joint.score, recipe.tail.propensity_power) == (0.5, "path", 0.25)


def test_both_names_of_one_setting_are_an_error_where_they_differ():
    with pytest.raises(lw.ConfigError, match=r"finetune\.parents is set twice, to 3 and \(as finetune\.width\) to 4"):
        current({"finetune.parents": 3, "finetune.width": 4}, warn=False)


def test_todays_names_say_nothing():
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        recipe = resolve("cascadexml", settings={"finetune.parents": 3, "optimiser.lr": 1e-3})
    assert recipe.finetune.parents == 3


@pytest.mark.parametrize("method", METHODS)
def test_a_recipe_survives_its_manifest(method):
    assert from_plain(to_dict(METHODS[method].recipe)) == METHODS[method].recipe


def test_a_manifest_of_an_earlier_release_is_read():
    table = to_dict(METHODS["cascadexml"].recipe)
    for section in ("optimiser", "levelwise", "joint"):
        table.pop(section)
    share, score = table.pop("network_share"), table["search"].pop("score")
    old = {"width": [1, 2], "share": 0.5, "lr": 1e-3, "layers": ["1", "2"], "loss": "bce", "readout": "path"}
    for name in ("parents", "lam", "relevance_norm"):
        table["finetune"].pop(name)
    table["finetune"] |= old
    table["search"]["readout"] = "leaf"
    table["ranker"] = "tree"  # so that the search acts
    recipe = from_plain(table)
    assert (share, score) == (None, "path")
    assert recipe.finetune.parents == (1, 2)
    assert (recipe.network_share, recipe.optimiser.lr, recipe.joint.layers) == (0.5, 1e-3, ("1", "2"))
    assert (recipe.finetune.loss, recipe.joint.score, recipe.search.score) == ("logistic", "path", "label")


def test_what_is_no_table_of_settings_is_left_to_the_check():
    assert current_table({"linear": 3}) == {"linear": 3}
    with pytest.raises(lw.ConfigError):
        from_plain({"method": "xr-linear", "finetune": {"share": 0.5, "nothing": 1}})
    with pytest.raises(lw.ConfigError, match="given twice"):
        current_table({"optimiser": 3, "finetune": {"lr": 1}})
