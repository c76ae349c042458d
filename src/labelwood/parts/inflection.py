"""Inflection of a language, read off the training text: what `tfidf.analyser = auto` decides by.

Two equal samples of words are drawn. A word of the second is a *relative* if the first lacks it, but has another word
with the same first six letters: an unknown form of a known word. Where eight words in a hundred are relatives, slices
of characters tell what words alone cannot. The share hardly depends on the size of the samples: it was 17 in Finnish,
13 in German, and 1 to 5 on seven English sets.
"""

from __future__ import annotations

import re
from typing import NamedTuple

import numpy as np

from ..arrays.texts import Texts
from ..data.language_words import NAMES
from ..data.languages import UNKNOWN, shares
from .known_words import LANGUAGES

INFLECTED = 0.08  # share of relatives from which on words are sliced
BEGINNING = 6  # letters that relatives have in common
FEWEST, MOST = 2_000, 25_000  # words of each sample
MOSTLY = 0.6  # share of the texts from which on they are of one language
A_DOCUMENT = 100  # words that a document gives at most
_BYTES = 4_000  # of a document that are looked at
_DOCUMENTS = 20_000  # that are looked at
_WORD = re.compile(r"[^\W\d_]{2,}")
# Thai, Lao, Burmese, Khmer, kana and Han: scripts without spaces, whose words nobody can tell by looking for spaces.
_UNSPACED = re.compile("[\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u9fff\uf900-\ufaff]+")


class Inflection(NamedTuple):
    """Share of unknown forms of known words, and the words of each sample; too few words tell nothing."""

    share: float
    words: int

    @property
    def strong(self) -> bool:
        """Do the texts inflect so much that slices of words are worth their time?"""
        return self.words >= FEWEST and self.share >= INFLECTED


def inflection(texts: Texts) -> Inflection:
    """Inflection of the texts, by a sample of documents that depends on their number alone."""
    words = _sample(texts)
    half = len(words) // 2
    known = set(words[:half])
    beginnings = {word[:BEGINNING] for word in known if len(word) >= BEGINNING}
    relatives = 0
    for word in words[half : 2 * half]:
        relatives += len(word) > BEGINNING and word not in known and word[:BEGINNING] in beginnings
    return Inflection(relatives / max(1, half), half)


def stemmer_of(texts: Texts) -> str | None:
    """The stemmer for the language that most of the texts are in, if there is one."""
    language, share = next(iter(shares(texts).items()), (UNKNOWN, 0.0))
    name = NAMES[language].lower()
    return name if share > MOSTLY and name in LANGUAGES else None


def _sample(texts: Texts) -> list[str]:
    """Words of documents in a fixed random order, in lower case, without digits."""
    found: list[str] = []
    for row in np.random.default_rng(0).permutation(max(0, len(texts.offsets) - 1))[:_DOCUMENTS]:
        begin = int(texts.offsets[row])
        end = min(int(texts.offsets[row + 1]), begin + _BYTES)
        text = texts.arena[begin:end].tobytes().decode("utf-8", errors="ignore").lower()
        found += _WORD.findall(_UNSPACED.sub(" ", text))[:A_DOCUMENT]
        if len(found) >= 2 * MOST:
            return found[: 2 * MOST]
    return found
