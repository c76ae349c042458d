"""Pieces of words that an encoder reads in place of words: how many there are to a word of a set.

Where the default encoder is installed its own tokenizer is asked, on a sample; else it is estimated from the language.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Mapping

import numpy as np

from ..arrays.texts import Texts
from ..data.sketches import Sketches
from ..errors import LabelwoodError

ENGLISH, OTHER = 1.45, 2.9  # of MiniLM: 1.3 to 1.6 in English sets, 2.7 in German, 3.5 in Finnish
SAMPLE, BYTES, MOST = 200, 2000, 8192  # texts that are tokenised, how much of each, and pieces that are more


@dataclasses.dataclass(frozen=True)
class Pieces:
    """Pieces of a word, and how that is known."""

    per_word: float
    measured: bool  # by the tokenizer of the default encoder; else estimated from the language


def pieces_of(texts: Texts, languages: Mapping[str, float]) -> Pieces:
    """Number of pieces to a word of these texts."""
    rows = np.unique(np.linspace(0, len(texts) - 1, min(SAMPLE, len(texts))).astype(np.int64))
    some = Texts.from_strings([_beginning(texts, int(row)) for row in rows])
    words = int(Sketches.of(some).words.sum())
    found = _measured(some) if words else None
    if found is not None and words:
        return Pieces(round(max(0.1, found / words), 4), True)
    told = 1.0 - languages.get("unknown", 0.0)
    english = languages.get("en", 0.0) / told if told else 1.0
    return Pieces(round(english * ENGLISH + (1.0 - english) * OTHER, 4), False)


def _beginning(texts: Texts, row: int) -> str:
    begin, end = texts.offsets[row], texts.offsets[row + 1]
    return texts.arena[begin : min(end, begin + BYTES)].tobytes().decode("utf-8", errors="ignore")


def _measured(texts: Texts) -> int | None:
    """Pieces of the texts by the tokenizer of the default encoder, if it is here; nothing is fetched."""
    from ..neural.encoders.pretrained import folder_here
    from ..neural.encoders.tokens import Tokeniser

    folder = folder_here("minilm")
    if folder is None or importlib.util.find_spec("tokenizers") is None:
        return None
    try:
        tokens = Tokeniser((folder / "tokenizer.json").read_bytes(), MOST)(texts)
    except (OSError, LabelwoodError):
        return None
    return int((tokens.lengths - tokens.frame).sum())
