"""Words that are known before they become terms: those with stems in their places, and those that stay whole.

Stems are those of Snowball (PyStemmer, extra `stems`). The native tokeniser lists the distinct words of a text, each is
stemmed once and kept, and from then on the native core puts stems in the places of words by itself.
"""

from __future__ import annotations

import dataclasses
import hashlib
import threading
import warnings
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core
from ..arrays.texts import Texts
from ..errors import MissingExtraError

LANGUAGES = (
    "arabic", "armenian", "basque", "catalan", "czech", "danish", "dutch", "english", "esperanto", "estonian",
    "finnish", "french", "german", "greek", "hindi", "hungarian", "indonesian", "irish", "italian", "lithuanian",
    "nepali", "norwegian", "persian", "polish", "portuguese", "romanian", "russian", "serbian", "spanish", "swedish",
    "tamil", "turkish", "yiddish",
)  # fmt: skip
MOST_STEMS = 2_000_000  # words whose stems are kept
_NO_BYTES = np.zeros(0, np.uint8)
_NO_WORDS = np.zeros(1, np.int64)
_PROBE = (
    "libraries", "librarian", "running", "kirjastossa", "kirjastojen", "bibliotheken", "häusern", "lesung",
    "livres", "bibliothèques", "bibliotecas", "книги", "библиотека", "könyvtárak", "kitaplar", "bøger", "läsare",
)  # fmt: skip

Options = _core.TfidfOptions


@dataclasses.dataclass(frozen=True, eq=False)
class KnownWords:
    """Words that are not sliced, or a stemmer; by default neither."""

    whole_bytes: NDArray[np.uint8] = dataclasses.field(default_factory=lambda: _NO_BYTES)  # one after the other, UTF-8
    whole_offsets: NDArray[np.int64] = dataclasses.field(default_factory=lambda: _NO_WORDS)  # (words + 1,)
    stemmer: str | None = None
    probe: NDArray[np.uint8] = dataclasses.field(default_factory=lambda: _NO_BYTES)  # digest of stems at the training

    @staticmethod
    def common(texts: Texts, share: float, options: Options, threads: int) -> KnownWords:
        """The words in more than this share of the documents, which stay whole."""
        data, offsets, documents = _core.count_words(texts.parts, options, None, threads, None)
        count = int((documents > share * len(texts)).sum())  # the most frequent come first
        return KnownWords(data[: offsets[count]].copy(), offsets[: count + 1].copy())

    @staticmethod
    def stemmed(texts: Texts, language: str, options: Options, threads: int) -> KnownWords:
        """The stems of all words of the training texts."""
        known = KnownWords(stemmer=language, probe=Stems(language).probe)
        with known.looked_up(texts, options, threads):
            return known

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The words as the model folder keeps them; stems are made anew."""
        if self.stemmer is not None:
            return {"stems": self.probe}
        there = len(self.whole_offsets) > 1
        return {"whole_bytes": self.whole_bytes, "whole_offsets": self.whole_offsets} if there else {}

    @contextmanager
    def looked_up(self, texts: Texts, options: Options, threads: int) -> Iterator[_core.Words | None]:
        """The table of known words for native code, which knows those of these texts while the context is open."""
        if self.stemmer is None:
            yield self.whole
            return
        with self._stems.lock:  # one thread at a time: words may be added to the table while it is looked into
            self._stems.learn(texts, options, threads)
            yield self._stems.words

    @cached_property
    def whole(self) -> _core.Words | None:
        """The table of words that are not sliced."""
        if len(self.whole_offsets) == 1:
            return None
        words = _core.Words()
        words.keep_whole(self.whole_bytes, self.whole_offsets)
        return words

    @cached_property
    def _stems(self) -> Stems:
        assert self.stemmer is not None
        stems = Stems(self.stemmer)
        if not np.array_equal(stems.probe, self.probe):
            warnings.warn(
                f"the {self.stemmer} stemmer that is installed gives other stems than that of the training, so some "
                "words may not be found; install the PyStemmer of the training, or train anew.",
                stacklevel=2,
            )
        return stems


class Stems:
    """Stems of the words met so far."""

    def __init__(self, language: str) -> None:
        self._stemmer = _stemmer(language)
        self._count = 0
        self.lock = threading.Lock()
        self.words = _core.Words()
        digest = hashlib.sha256("\n".join(self.stem(_PROBE)).encode()).digest()
        self.probe: NDArray[np.uint8] = np.frombuffer(digest, np.uint8)

    def learn(self, texts: Texts, options: Options, threads: int) -> None:
        """Stem the words of the texts that are not known yet."""
        data, offsets, _ = _core.count_words(texts.parts, options, None, threads, None)
        if self._count > MOST_STEMS:
            self.words = _core.Words()
            self._count = 0
        known = self.words.knows(data, offsets).tolist()
        raw = data.tobytes()
        spans = zip(pairwise(offsets.tolist()), known, strict=True)
        fresh = [raw[begin:end].decode() for (begin, end), there in spans if not there]
        if fresh:
            self.words.add_stems(*_packed(fresh), *_packed(self.stem(fresh)))
            self._count += len(fresh)

    def stem(self, words: Sequence[str]) -> list[str]:
        """The stem of each word; a word that the stemmer makes nothing of stays."""
        stems: list[str] = self._stemmer.stemWords(list(words))
        return [stem or word for stem, word in zip(stems, words, strict=True)]


def _packed(words: list[str]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    packed = Texts.from_strings(words)
    return packed.arena, packed.offsets


def _stemmer(language: str) -> Any:
    try:
        import Stemmer
    except ImportError as error:
        way = "pip install 'labelwood[stems]'"
        raise MissingExtraError(f"stems need PyStemmer, which is not installed: {way}.") from error
    return Stemmer.Stemmer(language)
