"""Texts to X (n, d): tf-idf over word and character n-grams. The counting is native (native/text/tfidf.cpp).

Features are numbered by document frequency, falling, ties by the term's bytes: frequent terms share cache lines, and
`max_features` is a prefix. docs/reference/tokenising.md says what a token is; TOKENISER_VERSION is its version.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cached_property
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from .. import _core, limits
from ..arrays.sparse import Csr, Features, unit_rows
from ..arrays.texts import Texts
from ..base.config import Acts, setting
from ..base.progress import Tick
from ..errors import ConfigError, DataError, ModelFileError
from .inflection import inflection
from .known_words import LANGUAGES, KnownWords

TOKENISER_VERSION: int = _core.TOKENISER_VERSION
ANALYSERS = ("auto", "words", "slices", "stems")
SLICES = (4, 4)  # what `slices` are where nobody says otherwise: the best of 3 to 5 in Finnish and in German
RARER = 0.006  # share of the documents up to which words are sliced then …
FEW = 100  # … and as many documents at least
_IDF = ("none", "plain", "smooth")  # positions are the native codes
_SLICES_KNOWN = Acts(
    lambda own, _: own.analyser == "slices" or (own.analyser == "auto" and own.chars is not None),
    "with tfidf.analyser = slices, or with tfidf.chars",
)
_SLICED = Acts(lambda own, _: own.analyser in {"auto", "slices"}, "with tfidf.analyser = auto or slices")


@dataclasses.dataclass(frozen=True)
class TfidfConfig:
    """Choice of what becomes a feature, and of its weight."""

    analyser: str = setting(
        "auto",
        "what a text is cut into: words; slices, which are words and the characters of the rarer ones; stems; or auto, "
        "which looks how much the training text inflects and takes words or slices",
        choices=ANALYSERS, rank=1,
    )  # fmt: skip
    lowercase: bool = setting(
        True, "fold upper case to lower case; turn it off where case carries meaning, as in product codes", rank=6
    )
    accents: str = setting(
        "keep", "keep accents, or strip them (é becomes e); strip where writers often leave them out",
        choices=("keep", "strip"), rank=6,
    )  # fmt: skip
    min_chars: int = setting(
        2, "drop tokens of fewer characters; a higher value drops more short words, 1 keeps all", low=1, high=64, rank=6
    )
    words: tuple[int, ...] | None = setting(
        (1, 1),
        "shortest and longest word n-gram; 1,2 adds pairs of neighbouring words, for a larger and slower model",
        low=1, high=limits.MAX_WORD_GRAM, rank=1,
    )  # fmt: skip
    chars: tuple[int, ...] | None = setting(
        None,
        "shortest and longest character n-gram within a word; set 4,4 or 3,5 for inflected languages, compounds and "
        "misspelt text",
        low=1, high=limits.MAX_CHAR_GRAM, acts=_SLICED, rank=1,
    )  # fmt: skip
    slice_below: float | None = setting(
        None,
        "slice only words in at most this share of the documents; a lower share is faster and spares common words, "
        "none slices all",
        above=0, high=1, acts=_SLICES_KNOWN, rank=2,
    )  # fmt: skip
    stemmer: str | None = setting(
        None, "language of the stems, as Snowball names it, such as german; each word is replaced by its stem",
        choices=LANGUAGES, acts=Acts(lambda own, _: own.analyser == "stems", "with tfidf.analyser = stems"), rank=2,
    )  # fmt: skip
    min_df: int = setting(
        2, "drop terms in fewer documents than this; a higher value gives a smaller model, 1 keeps rare names",
        low=1, high=limits.MAX_INDEX,
    )  # fmt: skip
    max_df: float = setting(
        1.0, "drop terms in more than this share of the documents; lower it to drop very common words", above=0, high=1
    )
    max_features: int | None = setting(
        None, "keep only this many terms, those in most documents; set it to bound the size of the model",
        low=1, high=limits.MAX_INDEX,
    )  # fmt: skip
    sublinear: bool = setting(
        True, "weigh a word said c times as 1 + ln c; turn it off where repetition should count in full"
    )
    idf: str = setting(
        "smooth",
        "weight of a term in df of n documents: ln((1+n)/(1+df)) + 1 (smooth), ln(n/df) + 1 (plain), or 1 (none); "
        "seldom worth a change",
        choices=_IDF, rank=7,
    )  # fmt: skip
    norm: str = setting(
        "l2", "scale every document to length one (l2), or leave long documents larger (none)", choices=("l2", "none"),
        rank=7,
    )  # fmt: skip

    def __post_init__(self) -> None:
        for name, pair, high in (
            ("words", self.words, limits.MAX_WORD_GRAM),
            ("chars", self.chars, limits.MAX_CHAR_GRAM),
        ):
            if pair is not None and not (len(pair) == 2 and 1 <= pair[0] <= pair[1] <= high):
                raise ConfigError(f"{name} must be two lengths low ≤ high within 1..{high}, but is {pair}.")
        if self.words is None and self.chars is None:
            raise ConfigError("words and chars are both none, which leaves no features; set one, e.g. words = [1, 1].")

    def settled(self, texts: Texts) -> TfidfConfig:
        """The same with an analyser that no longer depends on the texts."""
        if self.analyser == "auto" and self.chars is None:
            sliced = inflection(texts).strong
            return dataclasses.replace(self, analyser="slices" if sliced else "words").settled(texts)
        if self.analyser == "auto":
            return dataclasses.replace(self, analyser="slices")
        if self.analyser == "slices" and self.chars is None:
            rarer = min(1.0, max(RARER, FEW / max(1, len(texts.offsets) - 1)))
            return dataclasses.replace(self, chars=SLICES, slice_below=self.slice_below or rarer)
        return self

    def native(self) -> _core.TfidfOptions:
        """The same settings for the native core."""
        return _core.TfidfOptions(
            lowercase=self.lowercase,
            strip=self.accents == "strip",
            min_chars=self.min_chars,
            words=_pair(self.words),
            chars=_pair(self.chars if self.analyser in {"auto", "slices"} else None),
            min_df=self.min_df,
            max_df=self.max_df,
            max_features=-1 if self.max_features is None else self.max_features,
            sublinear=self.sublinear,
            idf=_IDF.index(self.idf),
            l2=self.norm == "l2",
        )

    def known_words(self, texts: Texts, threads: int) -> KnownWords:
        """Words of the training texts that are known before they become terms."""
        if self.analyser == "stems":
            assert self.stemmer is not None
            return KnownWords.stemmed(texts, self.stemmer, self.native(), threads)
        if self.analyser == "slices" and self.slice_below is not None:
            return KnownWords.common(texts, self.slice_below, self.native(), threads)
        return KnownWords()


@dataclasses.dataclass(frozen=True)
class FeaturesConfig:
    """Treatment of the user's own features; those of a text are the business of `TfidfConfig`."""

    norm: str = setting(
        "l2",
        "scale each row of your own features to length one (l2), or take it as it is (none); set none where the length "
        "of a row matters",
        choices=("none", "l2"),
    )

    def scaled(self, x: Features) -> Features:
        """X as training and search see it."""
        return unit_rows(x) if self.norm == "l2" else x


@dataclasses.dataclass(frozen=True, eq=False)
class Tfidf:
    """A fitted vectoriser. Make one with `fit` or `from_tensors`; it never changes, and threads may share it."""

    config: TfidfConfig
    term_bytes: NDArray[np.uint8]  # all terms, one after the other, UTF-8
    term_offsets: NDArray[np.int64]  # (size + 1,)
    idf: NDArray[np.float32]  # (size,)
    known: KnownWords = dataclasses.field(default_factory=KnownWords)  # words that are not sliced, or that have stems

    @staticmethod
    def fit(
        texts: Texts, config: TfidfConfig | None = None, *, threads: int, progress: Tick | None = None
    ) -> tuple[Tfidf, Csr]:
        """The vocabulary of the texts and their matrix X (n, size).

        One pass over the text, and one more where its words have to be known before: for stems, and for slices of the
        rarer ones.
        """
        _check(texts, threads)
        config = (TfidfConfig() if config is None else config).settled(texts)
        try:
            known = config.known_words(texts, threads)
            with known.looked_up(texts, config.native(), threads) as words:
                terms, parts, distinct = _core.tfidf_fit(texts.parts, config.native(), words, threads, progress)
        except ValueError as error:
            raise DataError(f"the texts cannot be used: {error}.") from error
        if not len(terms[2]):
            raise DataError(_no_terms(len(texts), distinct, config))
        return Tfidf(config, *terms, known), Csr(*parts, len(terms[2]))

    def transform(self, texts: Texts, *, threads: int, progress: Tick | None = None) -> Csr:
        """X (n, size). A document without known terms is a row without entries."""
        _check(texts, threads)
        try:
            if self.known.stemmer is None:
                parts = self._native.transform(texts.parts, self.known.whole, threads, progress)
            else:
                with self.known.looked_up(texts, self.config.native(), threads) as words:
                    parts = self._native.transform(texts.parts, words, threads, progress)
        except ValueError as error:
            raise DataError(f"the texts cannot be used: {error}.") from error
        return Csr(*parts, self.size)

    @property
    def size(self) -> int:
        return len(self.idf)

    def terms(self) -> list[str]:
        """The term of every feature; words of an n-gram are joined by a space, character n-grams start with '#'."""
        data, ends = self.term_bytes.tobytes(), self.term_offsets.tolist()
        return [data[a:b].decode("utf-8") for a, b in pairwise(ends)]

    def tensors(self) -> dict[str, NDArray[Any]]:
        """The fitted state as the model folder keeps it."""
        terms: dict[str, NDArray[Any]] = {
            "term_bytes": self.term_bytes,
            "term_offsets": self.term_offsets,
            "idf": self.idf,
        }
        return terms | self.known.tensors()

    @staticmethod
    def from_tensors(config: TfidfConfig, tensors: Mapping[str, NDArray[Any]]) -> Tfidf:
        """Undo `tensors`; whatever is not a sound vocabulary is a ModelFileError."""
        kinds = {"term_bytes": np.uint8, "term_offsets": np.int64, "idf": np.float32}
        found = {name: _tensor(tensors, name, kind) for name, kind in kinds.items()}
        _check_terms(found["term_bytes"], found["term_offsets"])
        idf = found["idf"]
        if len(idf) != len(found["term_offsets"]) - 1:
            raise _damaged(f"{len(idf)} idf values for {len(found['term_offsets']) - 1} terms")
        if not len(idf) or not (np.isfinite(idf) & (idf > 0)).all():
            raise _damaged("the idf values must be at least one, finite and above 0")
        tfidf = Tfidf(config, **found, known=_known_words(config, tensors))
        try:
            _ = tfidf._native  # builds the look-up table, which notices a term that stands twice
        except ValueError as error:
            raise _damaged(str(error)) from error
        return tfidf

    @cached_property
    def _native(self) -> _core.Vectoriser:
        return _core.Vectoriser(self.config.native(), self.term_bytes, self.term_offsets, self.idf)


def _pair(grams: tuple[int, ...] | None) -> tuple[int, int]:
    return (0, 0) if grams is None else (grams[0], grams[1])


def _check(texts: Texts, threads: int) -> None:
    """Check what the native core does not: it refuses offsets that fall or leave the arena."""
    if not 1 <= threads <= limits.MAX_THREADS:
        raise ConfigError(f"threads must be within 1..{limits.MAX_THREADS}, but is {threads}.")
    if len(texts.offsets) - 1 > limits.MAX_INDEX:
        raise DataError(f"there are {len(texts)} texts; at most {limits.MAX_INDEX} fit into one matrix.")
    if len(texts.arena) > limits.MAX_TEXT_BYTES:
        sizes = np.diff(texts.offsets)
        if int(sizes.max(initial=0)) > limits.MAX_TEXT_BYTES:
            raise DataError(
                f"the text has {sizes.max()} bytes; at most {limits.MAX_TEXT_BYTES} are allowed. Split it.",
                row=int(sizes.argmax()),
            )


def _no_terms(texts: int, distinct: int, config: TfidfConfig) -> str:
    if not distinct:
        return f"none of the {texts} texts holds a word of {config.min_chars} or more characters; is the text empty?"
    rules = f"min_df={config.min_df}, max_df={config.max_df:g}"
    return (
        f"no term is left: the {texts} texts hold {distinct} distinct terms, and none passes {rules}; "
        "lower min_df (1 keeps every term), raise max_df, or give more texts."
    )


def _known_words(config: TfidfConfig, tensors: Mapping[str, NDArray[Any]]) -> KnownWords:
    """The words that a fitted vectoriser knows beside its terms."""
    if config.analyser == "stems":
        return KnownWords(stemmer=config.stemmer, probe=_tensor(tensors, "stems", np.uint8))
    if "whole_bytes" not in tensors:
        return KnownWords()
    whole = _tensor(tensors, "whole_bytes", np.uint8)
    offsets = _tensor(tensors, "whole_offsets", np.int64)
    _check_terms(whole, offsets)
    return KnownWords(whole, offsets)


def _tensor(tensors: Mapping[str, NDArray[Any]], name: str, kind: type[Any]) -> NDArray[Any]:
    array = tensors.get(name)
    if array is None:
        raise _damaged(f"the tensor {name} is missing")
    if array.dtype != kind or array.ndim != 1:
        raise _damaged(f"{name} must be a list of {kind.__name__}, but is {array.dtype} of shape {array.shape}")
    return np.ascontiguousarray(array)


def _check_terms(data: NDArray[np.uint8], offsets: NDArray[np.int64]) -> None:
    if not len(offsets) or offsets[0] != 0 or offsets[-1] != len(data) or len(offsets) - 1 > limits.MAX_INDEX:
        raise _damaged(f"the term offsets must run from 0 to {len(data)}")
    sizes = np.diff(offsets)
    if len(sizes) and (int(sizes.min()) < 1 or int(sizes.max()) > limits.MAX_TERM_BYTES):
        raise _damaged(f"a term must have 1..{limits.MAX_TERM_BYTES} bytes")
    if not data.all():
        raise _damaged("a term holds a NUL byte")
    try:
        data.tobytes().decode("utf-8")
    except UnicodeDecodeError as error:
        raise _damaged(f"the terms are not UTF-8 (byte {error.start})") from error
    if (data[offsets[:-1]] & 0xC0 == 0x80).any():
        raise _damaged("a term offset lies inside a character")


def _damaged(what: str) -> ModelFileError:
    return ModelFileError(f"the tf-idf vocabulary is damaged: {what}. Copy the model again, or train it anew.")
