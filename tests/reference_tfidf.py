"""The slow twin of native/text/tokenise.cpp and tfidf.cpp: the rules of docs/reference/tokenising.md, word by word."""

from __future__ import annotations

import math
import unicodedata
from collections import Counter
from collections.abc import Sequence
from itertools import pairwise

import numpy as np

from labelwood.parts.tfidf import TfidfConfig

UNSPACED = (
    "CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "IDEOGRAPHIC NUMBER ZERO", "IDEOGRAPHIC ITERATION",
    "VERTICAL IDEOGRAPHIC ITERATION", "HIRAGANA", "HENTAIGANA", "KATAKANA", "HALFWIDTH KATAKANA", "VERTICAL KANA",
    "THAI", "LAO", "KHMER", "MYANMAR",
)  # fmt: skip


def is_word(c: str) -> bool:
    return unicodedata.category(c)[0] in "LN" or unicodedata.category(c) == "Pc"


def is_mark(c: str) -> bool:
    return unicodedata.category(c)[0] == "M"


def is_unspaced(c: str) -> bool:
    letter = unicodedata.category(c) in {"Lu", "Ll", "Lt", "Lm", "Lo", "Nl"}
    return letter and unicodedata.name(c, "").startswith(UNSPACED)


def is_accent(c: str) -> bool:
    order = unicodedata.combining(c)
    return order == 1 or 10 <= order <= 36 or order >= 200


def fold(c: str, config: TfidfConfig) -> str:
    """One character to one, or to nothing."""
    if config.lowercase:
        small = {"İ": "i", "ς": "σ"}.get(c, c.lower())
        c = small if len(small) == 1 else c
    if config.accents == "strip":
        base, *marks = unicodedata.normalize("NFD", c)
        if is_accent(base):
            return ""
        if marks and all(is_accent(m) for m in marks):
            return base
    return c


def tokens(text: str, config: TfidfConfig) -> list[str]:
    """The tokens of a text, in order."""
    runs: list[tuple[bool, list[str]]] = []  # (unspaced?, characters)
    open_run = False
    for c in text:
        if is_unspaced(c) or is_word(c):
            unspaced = is_unspaced(c)
            if not open_run or runs[-1][0] != unspaced:
                runs.append((unspaced, []))
            open_run = True
            runs[-1][1].append(fold(c, config))
        elif is_mark(c):
            if open_run and fold(c, config):
                runs[-1][1].append(fold(c, config))
        else:
            open_run = False
    found = []
    for unspaced, characters in runs:
        if unspaced:
            found += ["".join(p) for p in pairwise(characters)] or characters
        elif len(characters) >= config.min_chars:
            found.append("".join(characters))
    return [t for t in found if len(t.encode()) <= 256]


def terms(text: str, config: TfidfConfig) -> list[str]:
    """All n-grams of a text."""
    words = tokens(text, config)
    found = []
    if config.words is not None:
        for n in range(config.words[0], config.words[1] + 1):
            found += [" ".join(words[i : i + n]) for i in range(len(words) - n + 1)]
    if config.chars is not None:
        for word in words:
            padded = f" {word} "
            for n in range(config.chars[0], config.chars[1] + 1):
                found += ["#" + padded[i : i + n] for i in range(len(padded) - n + 1)]
    return found


def vocabulary(texts: Sequence[str], config: TfidfConfig) -> tuple[list[str], list[float]]:
    """Terms in their order, and their idf."""
    df = Counter(t for text in texts for t in set(terms(text, config)))
    n = len(texts)
    kept = [t for t, count in df.items() if config.min_df <= count <= config.max_df * n]
    kept = sorted(kept, key=lambda t: (-df[t], t.encode()))[: config.max_features]
    idf = {
        "none": lambda count: 1.0,
        "plain": lambda count: math.log(n / count) + 1,
        "smooth": lambda count: math.log((1 + n) / (1 + count)) + 1,
    }[config.idf]
    return kept, [float(np.float32(idf(df[t]))) for t in kept]


def matrix(texts: Sequence[str], kept: Sequence[str], idf: Sequence[float], config: TfidfConfig) -> np.ndarray:
    """Dense (n, size), float64."""
    where = {t: i for i, t in enumerate(kept)}
    found = np.zeros((len(texts), len(kept)))
    for row, text in enumerate(texts):
        for term, tf in Counter(t for t in terms(text, config) if t in where).items():
            found[row, where[term]] = (1 + math.log(tf) if config.sublinear else tf) * idf[where[term]]
        length = math.sqrt(float((found[row] ** 2).sum()))
        if config.norm == "l2" and length:
            found[row] /= length
    return found
