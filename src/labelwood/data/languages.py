"""Languages of a set of texts, by their shares: scripts, and the short words that every text of a language is full of.

    shares(texts)  # {"de": 0.91, "en": 0.07, "unknown": 0.02}

It looks at the beginning of evenly spaced texts and needs no model. A text that is too short, or that fits two
languages equally well, is "unknown". What it is for is to see a set in the wrong language, or one of several.
"""

from __future__ import annotations

import re
from collections import Counter

import numpy as np

from ..arrays.texts import Texts
from .language_words import ENDINGS, LETTERS, SCRIPTS, WORDS

UNKNOWN = "unknown"
MOST = 1000  # texts that are looked at
BYTES = 1200  # of each
LEAST = 1.0  # score of a language that is believed: a word that only it has, or a few that it shares …
DENSE = 0.05  # … and so much for each word: a text of many words has more of them
LEAD = 1.1  # how many times the score of the next one

_RUNS = re.compile(r"[^\W\d_]+")
_FOREIGN = re.compile(f"[{''.join(f'{first}-{last}' for first, last, _ in SCRIPTS)}]+")


def _signs() -> dict[str, tuple[tuple[str, float], ...]]:
    """Weights of each word, ending and letter, for the languages that have it."""
    found: dict[str, dict[str, float]] = {}
    for language, words in WORDS.items():
        for word in words.split():
            found.setdefault(word, {})[language] = 1.0 if len(word) > 1 else 0.5
    for language, endings in ENDINGS.items():
        for ending in endings.split():
            found.setdefault(f"-{ending[-4:]}", {})[language] = 0.5
    for letter, languages in LETTERS.items():
        for language in languages.split():
            found.setdefault(f" {letter}", {})[language] = 0.5
    return {
        sign: tuple((language, weight / len(weights) ** 0.5) for language, weight in weights.items())
        for sign, weights in found.items()
    }


_SIGNS = _signs()
_RARE = re.compile(f"[{''.join(LETTERS)}]")


def shares(texts: Texts, most: int = MOST) -> dict[str, float]:
    """Shares of the languages among up to `most` evenly spaced texts that hold a word; the largest first."""
    counts: Counter[str] = Counter()
    for row in np.unique(np.linspace(0, len(texts) - 1, min(most, len(texts))).astype(np.int64)).tolist():
        begin, end = texts.offsets[row], texts.offsets[row + 1]
        text = texts.arena[begin : min(end, begin + BYTES)].tobytes().decode("utf-8", errors="ignore")
        if not text.isspace() and text:
            counts[language_of(text)] += 1
    total = counts.total()
    return {language: count / total for language, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))}


def language_of(text: str) -> str:
    """The language of a text as a code of two letters, or "unknown"."""
    lower = text.lower()
    script = _script(lower)
    if script not in {None, "ar"}:
        return script
    scores = {} if script is None else {script: LEAST}
    words = list(dict.fromkeys(_RUNS.findall(lower)))  # each once: a list of norms says DIN in every line
    signs = [*words, *(f"-{word[-4:]}" for word in words), *(f" {letter}" for letter in _RARE.findall(lower))]
    for sign in signs:
        for language, weight in _SIGNS.get(sign, ()):
            scores[language] = scores.get(language, 0.0) + weight
    ranked = sorted(scores.items(), key=lambda item: (-item[1], item[0]))
    if not ranked or ranked[0][1] < max(LEAST, DENSE * len(words)):
        return UNKNOWN
    return ranked[0][0] if len(ranked) == 1 or ranked[0][1] >= LEAD * ranked[1][1] else UNKNOWN


def _script(lower: str) -> str | None:
    """The language of the script of many of the letters, where that settles it."""
    if lower.isascii():
        return None
    runs = "".join(_FOREIGN.findall(lower))
    if not runs or 4 * len(runs) < sum(map(len, _RUNS.findall(lower))):
        return None
    counts = [(sum(first <= c <= last for c in runs), language) for first, last, language in SCRIPTS]
    found = max(counts)[1]
    return "ja" if found == "zh" and any("ぁ" <= c <= "ヿ" for c in runs) else found
