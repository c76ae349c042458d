"""Sketches of texts beside their slow twin, and the duplicates that are found by them."""

from __future__ import annotations

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from labelwood.arrays.texts import Texts
from labelwood.data.duplicates import ALIKE, duplicates
from labelwood.data.sketches import CONTROL, MARKUP, REPLACED, SLOTS, TWICE, Sketches
from reference_sketch import sketch

PIECES = [
    "a",
    "Wald",
    "ÄPFEL",
    "機械学習",
    " ",
    "\n",
    ", ",
    "Ã¤",
    "â€™",
    "\ufffd",
    "</p>",
    "&amp;",
    "&#39",
    "\x00",
    "x" * 300,
    "<",
    "&",
]


def sketches(*texts: str, threads: int = 1) -> Sketches:
    return Sketches.of(Texts.from_strings(list(texts)), threads=threads)


@given(st.lists(st.lists(st.sampled_from(PIECES), max_size=30).map("".join) | st.text(max_size=40), max_size=6))
def test_a_sketch_is_that_of_its_slow_twin(texts):
    texts = [text for text in texts if text.isprintable() or text.isascii() or text == ""]
    found = sketches(*texts)
    for row, text in enumerate(texts):
        words, characters, signs, digest, slots = sketch(text)
        assert (found.words[row], found.characters[row]) == (words, characters)
        assert (found.signs[row], found.digests[row]) == (signs, digest)
        assert found.slots[row].tolist() == slots


def test_threads_change_nothing():
    words = [f"word{i}" for i in range(500)]
    draw = random.Random(0)
    texts = [" ".join(draw.choices(words, k=200)) for _ in range(800)]
    one, four = sketches(*texts, threads=1), sketches(*texts, threads=4)
    for field in ("words", "characters", "signs", "digests", "slots"):
        np.testing.assert_array_equal(getattr(one, field), getattr(four, field))


@pytest.mark.parametrize(
    ("text", "sign"),
    [("plain naïve Ämter, N° 3 & more < less", 0), ("b\ufffdd", REPLACED), ("NÂ° 3", TWICE), ("donâ€™t", TWICE),
     ("<p>a</p>", MARKUP), ("R&amp;D", MARKUP), ("don&#39;t", MARKUP), ("a\x00b", CONTROL), ("tab\tline\r\nfeed\f", 0)],
)  # fmt: skip
def test_signs_of_damage(text, sign):
    assert sketches(text).signs.tolist() == [sign]


def text_of(draw: random.Random, count: int = 100) -> list[str]:
    return [f"w{draw.randrange(100_000)}" for _ in range(count)]


def jaccard(a: list[str], b: list[str]) -> float:
    one, two = (set(zip(words, words[1:], words[2:], strict=False)) for words in (a, b))
    return len(one & two) / len(one | two)


def test_agreement_is_about_the_share_of_triples():
    """The error of 64 slots is 0.06 at most; the mean of 200 pairs is within 0.02 of the truth."""
    draw = random.Random(1)
    errors = []
    for _ in range(200):
        a = text_of(draw)
        b = a[: draw.randrange(100)] + text_of(draw, 20)
        found = sketches(" ".join(a), " ".join(b)).slots
        errors.append((found[0] == found[1]).mean() - jaccard(a, b))
    assert abs(np.mean(errors)) < 0.02
    assert np.std(errors) < 0.08


def test_the_same_words_are_the_same_text():
    found = duplicates(sketches("A red apple.", "green", "a  RED apple", "", "  ", "!!", "a red apple pie"))
    assert found.same.tolist() == [-1, -1, 0, -1, -1, -1, -1]
    assert found.near.tolist() == [-1] * 7


def test_a_near_duplicate_is_found_and_a_far_one_is_not():
    draw = random.Random(2)
    first, other = text_of(draw), text_of(draw)
    changed = [*first[:50], "new", *first[51:]]  # 3 of 98 triples on either side: 95 of 101 in common
    half = first[:50] + other[:50]
    found = duplicates(sketches(*map(" ".join, (first, other, changed, half))))
    assert found.near.tolist() == [-1, -1, 0, -1]
    assert found.shared[2] >= ALIKE


def test_all_versions_of_one_text_are_found():
    draw = random.Random(3)
    first = text_of(draw)
    texts = [" ".join([*first, f"number{i}"]) for i in range(300)]
    found = duplicates(sketches(*texts))
    assert (found.near[1:] >= 0).all()
    assert found.near[0] == -1
    assert (found.near[1:] < np.arange(1, 300)).all()


def test_texts_of_the_other_set_alone_are_looked_for():
    draw = random.Random(4)
    a, b = text_of(draw), text_of(draw)
    train = sketches(" ".join(a), " ".join(a), "short one")
    test = sketches(" ".join([*a[:60], "x", *a[61:]]), " ".join(b), " ".join(b), "Short one!")
    found = duplicates(train + test, len(train))
    assert found.same.tolist() == [-1] * 6 + [2]
    assert found.near[:3].tolist() == [-1] * 3
    assert found.near[3] in (0, 1)
    assert found.near[4:].tolist() == [-1] * 3


@pytest.mark.parametrize("texts", [[], [""], ["one"]])
def test_few_texts(texts):
    found = duplicates(sketches(*texts))
    assert found.same.tolist() == found.near.tolist() == [-1] * len(texts)
    assert sketches(*texts).slots.shape == (len(texts), SLOTS)
