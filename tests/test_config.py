"""Configs: reading, checking, changing, printing. On a small config of our own: no recipe's numbers matter here."""

from __future__ import annotations

import dataclasses

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import labelwood as lw
from labelwood import limits
from labelwood.base.config import (
    PerLevel,
    at,
    check_levels,
    describe,
    from_dict,
    merge,
    read_toml,
    section,
    setting,
    to_dict,
    with_settings,
)
from labelwood.base.setting_values import parse_value
from labelwood.recipes.methods import METHODS
from labelwood.recipes.recipe import Recipe
from labelwood.recipes.resolve import from_plain, resolve


@dataclasses.dataclass(frozen=True)
class Inner:
    width: PerLevel[int] = setting(3, "how wide", low=1, high=9)
    share: float = setting(0.5, "a share", above=0, high=1)
    norm: str = setting("l2", "how long", choices=("l2", "none"))
    kind: PerLevel[str] = setting("a", "which", choices=("a", "b"))


@dataclasses.dataclass(frozen=True)
class Outer:
    name: str = setting("x", "free text")
    on: bool = setting(True, "a switch")
    sizes: tuple[int, ...] | None = setting(None, "level sizes", low=1)
    inner: Inner = section(Inner, "the inner part")


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("none", None),
        ("Null", None),
        ("true", True),
        ("FALSE", False),
        ("3", 3),
        ("-3", -3),
        ("0.1", 0.1),
        ("1e-3", 1e-3),
        ("1_000", 1000),
        ("a,b,c", ("a", "b", "c")),
        ("1, 2,3", (1, 2, 3)),
        ("1,", (1,)),
        ("[1, 2]", [1, 2]),
        ('"3"', "3"),
        ('"a,b"', "a,b"),
        ("l3-hinge", "l3-hinge"),
        ("  spaced  ", "spaced"),
        ("16-256-3956", "16-256-3956"),
        ("", ""),
        ("x = 1", "x = 1"),
        ("1\nv2 = 2", "1\nv2 = 2"),
    ],
)
def test_the_right_side_of_set(text, value):
    found = parse_value(text)
    assert found == value
    assert type(found) is type(value)


@pytest.mark.parametrize(
    ("path", "value", "expected"),
    [
        ("inner.width", "4", 4),
        ("inner.width", "4,5", (4, 5)),
        ("inner.width", "[4, 5]", (4, 5)),
        ("inner.width", (4, 5), (4, 5)),
        ("inner.width", [4, 5], (4, 5)),
        ("inner.width", "4-5-6", (4, 5, 6)),
        ("inner.width", 4.0, 4),
        ("inner.share", 1, 1.0),
        ("inner.share", "0.25", 0.25),
        ("inner.norm", "none", "none"),
        ("inner.kind", "a,b", ("a", "b")),
        ("sizes", "16-256-3956", (16, 256, 3956)),
        ("sizes", "16", (16,)),
        ("sizes", "none", None),
        ("on", "false", False),
        ("name", "3", None),
        ("name", '"3"', "3"),
    ],
)
def test_settings_by_dotted_name(path, value, expected):
    if expected is None and value != "none":
        with pytest.raises(lw.ConfigError, match=path):
            with_settings(Outer(), {path: value})
        return
    found: object = with_settings(Outer(), {path: value})
    for part in path.split("."):
        found = getattr(found, part)
    assert found == expected
    assert type(found) is type(expected)


@pytest.mark.parametrize(
    ("path", "value", "words"),
    [
        ("inner.widht", 3, "did you mean 'inner.width'"),
        ("iner.width", 3, "did you mean 'inner.width'"),
        ("qqq", 3, "lists all"),
        ("inner.width.more", 3, "did you mean 'inner.width'"),
        ("inner", 3, "is a group of settings; name one of: inner.kind, inner.norm, inner.share, inner.width"),
        ("", 3, "there is no setting ''"),
        (".", 3, "there is no setting '.'"),
        ("inner.", 3, "there is no setting 'inner.'"),
        ("inner.width", 0, "inner.width must be a whole number ≥ 1 and ≤ 9, or a list of them, but is 0"),
        ("inner.width", 10, "≤ 9"),
        ("inner.width", (1, 10), "≤ 9"),
        ("inner.width", 2.5, "whole number"),
        ("inner.width", True, "whole number"),
        ("inner.width", "many", "whole number"),
        ("inner.width", (), r"but is \(\)"),
        ("inner.width", ((1,),), "whole number"),
        ("inner.width", None, "but is None"),
        ("inner.width", 10**400, "≤ 9"),
        ("inner.share", 0, "> 0"),
        ("inner.share", 1.001, "≤ 1"),
        ("inner.share", float("nan"), "but is nan"),
        ("inner.share", "inf", "but is inf"),
        ("inner.share", 10**400, "≤ 1"),
        ("inner.share", (0.5, 0.5), "but is"),
        ("inner.norm", "l3", "l2 or none, but is 'l3'"),
        ("inner.kind", ("a", "c"), "a or b"),
        ("on", 1, "true or false"),
        ("sizes", (0,), "≥ 1"),
        ("sizes", "x" * 10_000, r"\.\.\."),
    ],
)
def test_wrong_settings_are_named(path, value, words):
    with pytest.raises(lw.ConfigError, match=words) as caught:
        with_settings(Outer(), {path: value})
    assert len(str(caught.value)) < 400


def test_the_edges_are_inside():
    for path, value in (("inner.width", 1), ("inner.width", 9), ("inner.share", 1), ("sizes", (1,))):
        with_settings(Outer(), {path: value})


config_values = st.builds(
    lambda width, share, norm, kind, name, on, sizes: Outer(name, on, sizes, Inner(width, share, norm, kind)),
    width=st.one_of(st.integers(1, 9), st.lists(st.integers(1, 9), min_size=1).map(tuple)),
    share=st.floats(0, 1, exclude_min=True),
    norm=st.sampled_from(["l2", "none"]),
    kind=st.one_of(st.sampled_from("ab"), st.lists(st.sampled_from("ab"), min_size=1).map(tuple)),
    name=st.text(),
    on=st.booleans(),
    sizes=st.none() | st.lists(st.integers(1), min_size=1).map(tuple),
)


@settings(max_examples=300, deadline=None)
@given(config_values)
def test_round_trip(config):
    assert from_dict(Outer, to_dict(config)) == config


def test_to_dict_is_complete_and_plain():
    assert to_dict(Outer(sizes=(1, 2))) == {
        "name": "x",
        "on": True,
        "sizes": [1, 2],
        "inner": {"width": 3, "share": 0.5, "norm": "l2", "kind": "a"},
    }


def test_from_dict_is_strict():
    with pytest.raises(lw.ConfigError, match=r"no setting 'inner\.widt'; did you mean 'width'"):
        from_dict(Outer, {"inner": {"widt": 3}})
    with pytest.raises(lw.ConfigError, match="the config must be a table of settings, but is 3"):
        from_dict(Outer, 3)
    with pytest.raises(lw.ConfigError, match="inner must be a table of settings, but is a list"):
        from_dict(Outer, {"inner": []})
    with pytest.raises(lw.ConfigError, match=r"inner\.share must be a number"):
        from_dict(Outer, {"inner": {"share": "0.5"}})  # a manifest holds numbers, not text that looks like them


def test_merge_keeps_what_is_not_named():
    start = Outer(name="kept", inner=Inner(width=7))
    assert merge(start, {"inner": {"share": 0.25}}) == Outer(name="kept", inner=Inner(width=7, share=0.25))
    assert merge(start, {}) == start
    for table, words in (
        ([], "must be a table"),
        ({"inner": 3}, "inner must be a table"),
        ({"inner": {"x": 1}}, r"inner\.x"),
        ({3: 4}, "there is no setting '3'"),
        ({"name": {"a": 1}}, "name must be text, but is a dict"),
    ):
        with pytest.raises(lw.ConfigError, match=words):
            merge(start, table)


def test_describe():
    rows = {row.path: row for row in describe(Outer())}
    assert list(rows) == ["name", "on", "sizes", "inner.width", "inner.share", "inner.norm", "inner.kind"]
    assert rows["inner.width"].allowed == "a whole number ≥ 1 and ≤ 9, or a list of them"
    assert rows["inner.share"].allowed == "a number > 0 and ≤ 1"
    assert rows["inner.norm"].allowed == "l2 or none"
    assert rows["sizes"].allowed == "a list: a whole number ≥ 1, or none"
    assert (rows["on"].default, rows["on"].help) == (True, "a switch")


def test_one_value_or_one_for_each_level():
    assert [at(5, t, 3, "x") for t in range(3)] == [5, 5, 5]
    assert [at((5, 6, 7), t, 3, "x") for t in range(3)] == [5, 6, 7]
    with pytest.raises(lw.ConfigError, match=r"x gives 2 values \(5, 6\) but the tree has 3 levels"):
        at((5, 6), 0, 3, "x")


def test_check_levels_looks_at_per_level_settings_only():
    check_levels(Outer(sizes=(1, 2, 3, 4)), 2)
    check_levels(Outer(inner=Inner(width=(1, 2), kind=("a", "b"))), 2)
    with pytest.raises(lw.ConfigError, match=r"inner\.kind gives 3 values"):
        check_levels(Outer(inner=Inner(kind=("a", "b", "a"))), 2)


def test_files(tmp_path):
    path = tmp_path / "c.toml"
    path.write_text('seed = 3\n[tree]\nlevels = [4, 8]\n[search]\nbeam = "5,6,7"\n')
    recipe = resolve(config=path)
    assert (recipe.seed, recipe.tree.levels, recipe.search.beam) == (3, (4, 8), (5, 6, 7))
    for content in (b"x = ", b"\xff = 1", b"a = " + b"[" * 100_000, b"\x00", b"[a]\n[a]\n"):
        path.write_bytes(content)
        with pytest.raises(lw.ConfigError, match=r"c\.toml is not valid TOML"):
            read_toml(path)
    for missing in (tmp_path / "none.toml", tmp_path):
        with pytest.raises(lw.ConfigError, match="cannot read"):
            read_toml(missing)
    path.write_bytes(b"#" * (limits.MAX_CONFIG_BYTES + 1))
    with pytest.raises(lw.ConfigError, match="is larger than"):
        read_toml(path)


def test_layers_of_a_recipe():
    """Defaults, preset, config, single settings, seed: the later wins."""
    table = {"search": {"beam": 7}, "seed": 1}
    recipe = resolve("xr-linear", preset="fast", config=table, settings={"linear.threshold": "0.2"}, seed=9)
    assert (recipe.linear.weights, recipe.search.beam, recipe.linear.threshold, recipe.seed) == ("int8", 7, 0.2, 9)
    assert resolve("xr-linear", preset="fast", config={"linear": {"eps": 0.2}}).linear.eps == 0.2
    for options, words in (
        ({"name": "xr-liner"}, "did you mean 'xr-linear'"),
        ({"preset": "fats"}, "did you mean 'fast'"),
        ({"config": {"method": "other"}}, "the config is for method 'other'"),
        ({"seed": -1}, "seed"),
        ({"seed": 2**63}, "seed"),
        ({"settings": {"seed": True}}, "seed"),
    ):
        with pytest.raises(lw.ConfigError, match=words):
            resolve(**options)


@pytest.mark.parametrize("name", METHODS)
def test_every_recipe_survives_its_manifest(name):
    recipe = METHODS[name].recipe
    assert recipe.method == name
    assert from_plain(to_dict(recipe)) == recipe
    for row in describe(recipe):
        assert row.help
        assert row.allowed
    for preset in METHODS[name].presets:
        assert isinstance(resolve(name, preset=preset), Recipe)


@pytest.mark.parametrize(
    ("wrong", "right"), [("threshold", "linear.threshold"), ("linear.treshold", "linear.threshold")]
)
def test_a_setting_without_its_group_is_found(wrong, right):
    with pytest.raises(lw.ConfigError, match=f"did you mean '{right}'"):
        resolve("xr-linear", settings={wrong: 1})


def test_dotted_keys_in_a_table_are_settings():
    table = {"linear.threshold": 0.3, "search": {"beam": 4}}
    recipe = resolve("xr-linear", config=table)
    assert (recipe.linear.threshold, recipe.search.beam) == (0.3, 4)


@pytest.mark.parametrize("value", ["none,pw", '["none", "pw"]', (None, "pw"), ["none", "pw"]])
def test_the_choice_none_is_a_word_in_a_list_too(value):
    assert resolve(settings={"linear.weighting": value}).linear.weighting == ("none", "pw")
