"""A user's taxonomy: files of every layout, cycles, and the tree it becomes, by hand and for random DAGs."""

from __future__ import annotations

import dataclasses
import gzip
import json
import lzma
import warnings
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import labelwood as lw
from cases import cases
from labelwood import limits
from labelwood.arrays.sparse import Features, as_csr
from labelwood.arrays.taxonomy import Taxonomy
from labelwood.data import from_lists, read_label_texts, read_taxonomy, with_taxonomy
from labelwood.parts.taxonomy_tree import depth_of
from labelwood.parts.tree import Tree, TreeConfig, build
from labelwood.pipeline.training_set import prepare
from toy import keyword_set, random_features

PARENTS = {"apple": ("fruit",), "tomato": ("fruit", "vegetable"), "fruit": ("food",), "food": ()}
FILES = {
    "tsv": "apple\tfruit\ntomato\tfruit\ntomato\tvegetable\nfruit\tfood\nfood\t\n",
    "header": "child\tparent\napple\tfruit\ntomato\tfruit\ntomato\tvegetable\nfruit\tfood\nfood\t\n",
    "csv": 'id,parent\napple,fruit\ntomato,"fruit"\ntomato,vegetable\n\nfruit,food\nfood,\n',
    "uris": "<apple>\t<fruit>\n<tomato>\t<fruit>\n<tomato>\t<vegetable>\n<fruit>\t<food>\n<food>\t\n",
    "pairs": "".join(
        json.dumps({"child": c, "parent": p}) + "\n"
        for c, p in [
            ("apple", "fruit"),
            ("tomato", "fruit"),
            ("tomato", "vegetable"),
            ("fruit", "food"),
            ("food", None),
        ]
    ),
    "lists": "".join(json.dumps({"id": c, "parents": p}) + "\n" for c, p in PARENTS.items()),
    "object": json.dumps({c: list(p) for c, p in PARENTS.items()}, indent=1),
    "table": json.dumps({c: {"label": c.upper(), "parents": list(p)} for c, p in PARENTS.items()}),
}


@pytest.mark.parametrize("layout", FILES)
@pytest.mark.parametrize("pack", [bytes, gzip.compress, lzma.compress])
def test_every_layout_says_the_same(tmp_path, layout, pack):
    path = tmp_path / "taxonomy"
    path.write_bytes(pack(FILES[layout].encode()))
    assert read_taxonomy(path) == PARENTS


LINES = [("apple", "fruit"), ("tomato", "fruit"), ("tomato", "vegetable"), ("fruit", "food"), ("food", "")]


@pytest.mark.parametrize(
    "names",
    [
        ("child", "parent"), ("narrower", "broader"), ("id", "broader"), ("Child", "Parent"),
        ("child_id", "parent_id"), ("uri", "parents"), ("childLabel", "parentLabel"), ("narrowerURI", "broaderURI"),
        ("category", "parent category"), ("skos:narrower", "skos:broader"), ("subclass", "superclass"),
        ("term", "Broader term"), ("name", "parent"), ("narrower term", "term"), ("child", "id"),
        ("sub_topic", "super_topic"),
    ],
)  # fmt: skip
@pytest.mark.parametrize("delimiter", "\t,")
@pytest.mark.parametrize("swapped", [False, True])
def test_a_header_is_known_in_either_order(tmp_path, names, delimiter, swapped):
    path = tmp_path / "taxonomy"
    cells = [pair[::-1] if swapped else pair for pair in [names, *LINES]]
    path.write_text("\n".join(map(delimiter.join, cells)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert read_taxonomy(path) == PARENTS


@pytest.mark.parametrize("first", ["child,person", "parent,Oberbegriff", "parent,parents", "Broader,above"])
def test_a_header_that_does_not_say_which_column_is_which(tmp_path, first):
    path = tmp_path / "taxonomy"
    path.write_text(f"{first}\napple,fruit\n")
    with pytest.raises(
        lw.DataError, match=r"line 1, column 1: .* name the columns 'child' and 'parents'; if it is not"
    ):
        read_taxonomy(path)


def test_below_a_header_any_name_is_a_node(tmp_path):
    path = tmp_path / "taxonomy"
    path.write_text("child,parent\nchild,person\nparent,person\n")
    assert read_taxonomy(path) == {"child": ("person",), "parent": ("person",)}
    path.write_text("child 7,parent 1\n")  # no header: other signs than letters
    assert read_taxonomy(path) == {"child 7": ("parent 1",)}


def test_an_unknown_header_is_said(tmp_path):
    path = tmp_path / "taxonomy"
    path.write_text("Begriff,Oberbegriff\napple,fruit\npear,fruit\nfruit,food\n")
    with pytest.warns(UserWarning, match=r"the first line, 'Begriff' below 'Oberbegriff', has nothing in common with"):
        read_taxonomy(path)
    path.write_text("Begriff,Oberbegriff\napple,fruit\ncarrot,vegetable\n")  # pairs that all stand alone say nothing
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read_taxonomy(path)


@pytest.mark.parametrize("parents", [{"fruit": ["apple", "pear"]}, {"food": ["fruit"], "fruit": ["apple", "pear"]}])
def test_a_hierarchy_the_wrong_way_round_is_said(parents):
    data = from_lists(["x"], [["apple", "pear"]])
    with pytest.warns(UserWarning, match="more parents .* than children .*; are they the wrong way round"):
        with_taxonomy(data, parents)


def test_label_texts_with_a_header_in_either_order(tmp_path):
    path = tmp_path / "texts"
    for content in ("id,label\n7,sky\n", "label,id\nsky,7\n", "Title\tURI\nsky\t7\n"):
        path.write_text(content)
        assert read_label_texts(path) == {"7": "sky"}


@pytest.mark.parametrize(
    ("content", "place", "message"),
    [
        ("a\tb\nb\tc\nx\ty\nc\ta\n", "line 4", "a → b → c → a"),
        ("a\ta\n", "line 1", "a → a"),
        ('{"id": "a", "parents": ["b"]}\n{"id": "b", "parents": ["a"]}\n', "line 2", "a → b → a"),
        ('{"a": ["b"], "b": ["a"]}', "taxonomy:", "a → b → a"),
        ("a\tb\nc\n", "line 2", "two columns, a child and its parent"),
        ('{"id": "a", "parents": ["b"]}\n{"id": "b"}\n', "line 2", "'parents'"),
        ('{"a": {"label": "A"}}', "taxonomy, field 'a':", "write [] for none"),
        ('{"a": [1.5]}', "taxonomy, field 'a':", "text or a whole number"),
        ('{"a": 1.5}', "taxonomy, field 'a':", "a list of names or nothing"),
        ('{"a": [""]}', "taxonomy, field 'a':", "empty"),
        ("child\tparent\n", "taxonomy:", "not a single label"),
        ("\n", "taxonomy:", "only blank lines"),
    ],
)
def test_bad_files(tmp_path, content, place, message):
    path = tmp_path / "taxonomy"
    path.write_text(content, encoding="utf-8")
    with pytest.raises(lw.DataError) as caught:
        read_taxonomy(path)
    assert str(path) in str(caught.value)
    assert place in str(caught.value)
    assert message in str(caught.value)


def test_a_long_cycle_is_shown_in_part_and_deep_chains_are_no_trouble():
    chain = {str(i): str(i + 1) for i in range(20_000)}
    data = from_lists(["x"], [["0"]])
    assert with_taxonomy(data, chain).taxonomy.nodes == 20_001
    with pytest.raises(lw.DataError, match="0 → 1 → 2 → 3 → 4 → 5 → … → 0"):
        with_taxonomy(data, {**chain, "20000": "0"})


def labelled(*names: str):
    return from_lists(["x"], [list(names)])


def grown(parents, names, x=None, seen=None, **settings) -> list:
    """The tree as nested lists of names, without pass-through nodes; checks that all leaves are at the last level."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = with_taxonomy(labelled(*names), parents)
    labels = np.array([data.names.index(n) for n in (seen or data.names)], np.int32)
    z = np.eye(len(labels)) if x is None else np.array([x[data.names[i]] for i in labels])
    config = TreeConfig(kind="taxonomy", **settings)
    tree = build(Features(as_csr(z)), labels, config, 0, taxonomy=data.taxonomy, threads=1)
    tree = Tree.from_tensors(tree.tensors(), len(data.names))
    assert sorted(tree.leaves.tolist()) == sorted(labels.tolist())
    return shape(tree, data.names)


def shape(tree: Tree, names) -> list:
    level = [names[i] for i in tree.leaves]
    for ptr in reversed(tree.child_ptrs):
        level = [level[a] if b - a == 1 else level[a:b] for a, b in pairwise(ptr)]
    return level[0]


def test_an_inner_label_has_a_leaf_of_its_own():
    assert grown({"b": "a", "c": "a", "d": ""}, "abcd") == [["a", "b", "c"], "d"]


@pytest.mark.parametrize(("labels", "sizes"), [(10_000, (10_000,)), (10_001, (11, 10_001))])
def test_a_node_of_very_many_children_is_cut(labels, sizes):
    """Evenly by id where the labels do not differ."""
    below = Taxonomy(
        labels + 1, np.ones(labels, bool), np.arange(labels, dtype=np.int32), np.full(labels, labels, "i4")
    )
    z = Features(dense=np.ones((labels, 1), np.float32))
    tree = build(z, np.arange(labels, dtype=np.int32), TreeConfig(kind="taxonomy"), 0, taxonomy=below, threads=1)
    assert tree.sizes == sizes
    assert tree.leaves.tolist() == list(range(labels))
    assert np.diff(tree.child_ptrs[-1]).max() <= max(1000, labels if len(sizes) == 1 else 0)
    assert depth_of(below, np.arange(labels, dtype=np.int32)) == len(sizes)


def test_nodes_without_labels_are_dropped_and_chains_collapse():
    """x and y are no labels; nothing is below z; the chain over c becomes c."""
    parents = {"a": "x", "b": "x", "z": "x", "c": "y", "y": "w", "x": "", "w": ""}
    assert grown(parents, "abc") == [["a", "b"], "c"]
    assert grown({"a": "x", "b": "x", "x": "top"}, "ab") == ["a", "b"]
    assert grown({"a": "x", "b": "x", "c": "y", "d": "y"}, "abcd", seen="acd") == ["a", ["c", "d"]]


def test_labels_outside_stand_under_one_node_and_are_counted():
    with pytest.warns(UserWarning, match="not in the taxonomy: 2 labels of 4;"):
        with_taxonomy(labelled(*"abcd"), {"a": "x", "b": "x"})
    assert grown({"a": "x", "b": "x"}, "abcd") == [["a", "b"], ["c", "d"]]
    assert grown({"a": "x", "b": "x"}, "abc") == [["a", "b"], "c"]
    assert grown({"a": ""}, "a") == "a"
    with pytest.raises(lw.DataError, match="named like 'q', the taxonomy's like 'a'"):
        with_taxonomy(labelled("q"), {"a": "x"})


SEVERAL = {"a": "x", "b": "y", "m": ["x", "y"], "n": "m", "x": "", "y": ""}
SIMILAR = {"a": [1, 0], "b": [0, 1], "m": [0.9, 0.1], "n": [0, 1]}  # m alone is like a; with n below it, like b


def test_several_parents():
    assert grown(SEVERAL, "abmn", SIMILAR) == ["a", ["b", ["m", "n"]]]
    assert grown(SEVERAL, "abmn", SIMILAR, parent="first") == [["a", ["m", "n"]], "b"]
    assert grown(SEVERAL, "abm", SIMILAR) == [["a", "m"], "b"]
    alike = {name: [1, 1] for name in "abmn"}
    assert grown(SEVERAL, "abmn", alike) == [["a", ["m", "n"]], "b"]  # no nearer one: the first


def test_pass_through_nodes_stand_above_what_they_pad():
    """f is a leaf below the root, d and e a pair: the pair stays a pair down to the last level."""
    data = with_taxonomy(labelled(*"abcdef"), {"a": "z", "b": "z", "c": "y", "z": "y", "d": "x", "e": "x", "f": ""})
    tree = build(
        Features(as_csr(np.eye(6))), np.arange(6, dtype=np.int32), TreeConfig(kind="taxonomy"), 0,
        taxonomy=data.taxonomy, threads=1,
    )  # fmt: skip
    assert [ptr.tolist() for ptr in tree.child_ptrs] == [[0, 3], [0, 1, 3, 4], [0, 1, 2, 4, 6]]
    assert [data.names[i] for i in tree.leaves] == ["f", "c", "a", "b", "d", "e"]


def test_wide_nodes_are_grouped():
    names = [f"l{i}" for i in range(9)]
    x = {name: np.eye(3)[i % 3] for i, name in enumerate(names)}
    found = grown(dict.fromkeys(names, "top"), names, x, widest=4)
    assert len(found) == 3
    assert sorted(len(group) for group in found) == [3, 3, 3]
    deep = grown(dict.fromkeys(names, "top"), names, x, widest=2)

    def widths(node):
        return [] if isinstance(node, str) else [len(node), *(w for kid in node for w in widths(kid))]

    assert max(widths(deep)) == 2


def test_too_many_levels_are_refused():
    chain = {f"l{i}": f"l{i + 1}" for i in range(limits.MAX_LEVELS + 1)}
    names = [*chain, f"l{limits.MAX_LEVELS + 1}"]
    with pytest.raises(lw.ConfigError, match=f"at most {limits.MAX_LEVELS}"):
        grown(chain, names)
    del chain["l0"], chain["l1"]
    grown(chain, names[2:])


@cases(100)
@given(seed=st.integers(0, 2**32), nodes=st.integers(1, 25), labels=st.integers(1, 15))
def test_any_dag_becomes_a_sound_tree(seed, nodes, labels):
    """Every seen label is a leaf once, below an ancestor of its own, and threads change nothing."""
    rng = np.random.default_rng(seed)
    names = [f"n{i}" for i in rng.permutation(nodes)]
    parents = {n: [names[j] for j in rng.integers(i, size=rng.integers(3))] if i else [] for i, n in enumerate(names)}
    own = [*names[-labels:], "outside"]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        data = with_taxonomy(labelled(*own), parents)
    ids = np.flatnonzero(rng.random(len(data.names)) < 0.8).astype(np.int32)
    if not len(ids):
        return
    z, _ = random_features(rng, len(ids), 5, int(rng.integers(2)))
    config = TreeConfig(kind="taxonomy", widest=int(rng.integers(2, 6)) if rng.random() < 0.3 else None)
    trees = [build(z, ids, config, 1, taxonomy=data.taxonomy, threads=t) for t in (1, 3)]
    tree = Tree.from_tensors(trees[0].tensors(), len(data.names))
    assert sorted(tree.leaves.tolist()) == ids.tolist()
    assert trees[1].leaves.tolist() == tree.leaves.tolist()
    if config.widest is None and tree.depth > 1:
        above = ancestors(parents)
        for a, b in pairwise(tree.child_ptrs[-1]):
            together = [above.get(data.names[i], {"outside"}) for i in tree.leaves[a:b]]
            assert b - a == 1 or set.intersection(*together)


def ancestors(parents) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for name, own in parents.items():  # parents come first
        found[name] = {name}.union(*(found[p] for p in own))
    return found


TEXTS, LISTS = keyword_set()
TREE = {f"label{i}": f"group{i % 3}" for i in range(12)} | {"label11": "label10"}


def test_training_needs_the_file_once(tmp_path):
    path = tmp_path / "taxonomy.tsv"
    path.write_text("".join(f"{child}\t{parent}\n" for child, parent in TREE.items()))
    model = lw.train(TEXTS, LISTS, taxonomy=path)
    assert model.recipe.tree.kind == "taxonomy"
    assert shape(model.tree, model.labels)[1] == ["label1", ["label10", "label11"], "label4", "label7"]
    model.save(tmp_path / "model")
    path.unlink()
    loaded = lw.load(tmp_path / "model")
    assert [row[0][0] for row in loaded.predict(TEXTS, k=1)] == [row[0] for row in LISTS]
    same = lw.train(TEXTS, LISTS, taxonomy=TREE)
    assert same.tree.leaves.tolist() == model.tree.leaves.tolist()


def test_the_taxonomy_is_part_of_the_data():
    data = from_lists(TEXTS, LISTS)
    keys = {prepare(d).data_key for d in (data, with_taxonomy(data, TREE), with_taxonomy(data, TREE | {"label3": "x"}))}
    assert len(keys) == 3


def test_asked_for_and_missing():
    with pytest.raises(lw.ConfigError, match="--taxonomy FILE"):
        lw.train(TEXTS, LISTS, settings={"tree.kind": "taxonomy"})
    with pytest.raises(lw.DataError, match="must map children to parents"):
        lw.train(TEXTS, LISTS, taxonomy=[("a", "b")])
    other = with_taxonomy(from_lists(["x"], [["label1"]]), TREE)
    with pytest.raises(lw.DataError, match="with_taxonomy"):
        lw.train(lw_dataset(other.taxonomy))


def lw_dataset(taxonomy):
    return dataclasses.replace(from_lists(TEXTS, LISTS), taxonomy=taxonomy)


def test_a_taxonomy_and_another_kind_of_tree_are_not_both_taken():
    texts, labels = keyword_set()
    parents = {labels[0][0]: "top"}
    with pytest.raises(lw.ConfigError, match=r"a taxonomy is given, but tree\.kind is set to 'flat'; leave out one"):
        lw.train(texts, labels, taxonomy=parents, settings={"tree.kind": "flat"})


@pytest.mark.parametrize(("value", "found"), [("3.5", "is a number"), ('{"x": 1}', "'parents' or 'parent'")])
def test_a_mistake_in_one_object_is_told_with_its_key(tmp_path, value, found):
    path = tmp_path / "t.json"
    path.write_text(f'{{"pear": "fruit", "apple": {value}}}')
    with pytest.raises(lw.DataError, match=found) as caught:
        read_taxonomy(path)
    assert str(caught.value).startswith(f"{path}, field 'apple': ")
