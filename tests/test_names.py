"""Names: a tuple of strings to whoever looks at it, an arena with offsets inside."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import reference
from labelwood import _core
from labelwood.arrays.names import Names
from labelwood.errors import DataError, ModelFileError

STRINGS = st.lists(st.text(st.characters(exclude_categories=["Cs"]), max_size=4), max_size=30)


@given(STRINGS)
def test_it_is_the_tuple(strings):
    names, plain = Names.of(strings), tuple(strings)
    assert (tuple(names), len(names), bool(names)) == (plain, len(plain), bool(plain))
    assert names == plain
    assert plain == names
    assert names == Names.of(iter(strings))
    assert hash(names) == hash(plain)
    assert names != (*plain, "more")
    assert names != Names.of((*plain, "more"))
    assert names != list(plain)
    assert [names[i] for i in range(-len(plain), len(plain))] == [plain[i] for i in range(-len(plain), len(plain))]
    assert names[1:-1] == plain[1:-1]
    assert names[::-2] == plain[::-2]
    for outside in (len(plain), -len(plain) - 1):
        with pytest.raises(IndexError):
            names[outside]
    assert Names.of(names) is names
    assert Names.read(names.arena, names.offsets, len(plain), "names") == plain


def test_bytes_that_are_equal_are_no_equal_names():
    assert Names.of(["ab", "c"]) != Names.of(["a", "bc"])
    assert Names.of(["a", ""]) != Names.of(["", "a"])


def test_more_than_one_stretch():
    assert list(Names.of(map(str, range(70000)))) == [str(i) for i in range(70000)]


def test_repr_shows_a_few():
    assert repr(Names.of("abcdefg")) == "<Names 'a', 'b', 'c', 'd', 'e', and 2 more>"
    assert repr(Names.of(["x"])) == "<Names 'x'>"


@given(STRINGS)
def test_repeats_are_found(strings):
    assert Names.of(strings).repeated() == reference.repeated(strings)
    unique = sorted(set(strings))
    assert Names.of(unique).repeated() == -1
    assert Names.of(sorted(unique, key=lambda s: (len(s.encode()), s))).repeated() == -1
    if unique:
        assert Names.of([*unique, unique[0]]).repeated() == len(unique)


def test_pairs():
    names = Names.of(["zero", "één", "zwei"])
    ids, scores = (
        np.array([[2, 0, -1], [-1, -1, -1], [1, 1, 1]], np.int32),
        np.arange(9, dtype=np.float32).reshape(3, 3),
    )
    assert names.pairs(ids, scores) == [[("zwei", 0.0), ("zero", 1.0)], [], [("één", 6.0), ("één", 7.0), ("één", 8.0)]]
    assert names.pairs(ids.T, scores.T)[0] == [("zwei", 0.0), ("één", 6.0)]
    with pytest.raises(IndexError):
        names.pairs(np.array([[3]], np.int32), np.zeros((1, 1), np.float32))
    with pytest.raises(ValueError, match="score"):
        names.pairs(ids, scores[:2])


@pytest.mark.parametrize("offsets", [[], [1, 3], [0, 2], [0, 4], [0, 3, 2, 3], [0, -1, 3]])
def test_offsets_out_of_order(offsets):
    arena, found = np.zeros(3, np.uint8), np.array(offsets, np.int64)
    with pytest.raises(ValueError, match="offsets"):
        _core.Names(arena, found)
    with pytest.raises(ModelFileError):
        Names.read(arena, found, len(offsets) - 1, "names")


@pytest.mark.parametrize(
    ("text", "offsets"),
    [
        (b"a\xff", [0, 1, 2]),
        (b"\xc3\xa9", [0, 1, 2]),  # a name ends inside a character
        (b"\xed\xa0\x80", [0, 3]),  # a surrogate
        (b"\xc0\x80", [0, 2]),  # NUL in two bytes
        (b"x\xc3", [0, 2]),
    ],
)
def test_not_utf8(text, offsets):
    arena = np.frombuffer(text, np.uint8)
    with pytest.raises(ModelFileError, match="one of the names is not valid UTF-8"):
        Names.read(arena, np.array(offsets), len(offsets) - 1, "names")


@pytest.mark.parametrize("count", [2, 0, "1", None, True])
def test_another_number_of_names(count):
    with pytest.raises(ModelFileError, match="do not fit the model"):
        Names.read(np.zeros(3, np.uint8), np.array([0, 3]), count, "names")


def test_a_lone_surrogate():
    with pytest.raises(DataError, match="lone surrogate"):
        Names.of(["\ud800"])
