"""Texts to token ids: one flat array with the bounds of each document, made once, and batches without padding.

Tokenising a long text only to throw most of it away is what costs: texts are cut to `CHARACTERS` for each wanted token
first, and the few that give too few tokens then are read whole, so the result is that of the whole text.
"""

from __future__ import annotations

import dataclasses
import importlib.util
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import cached_property
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from ...arrays.sparse import pointers
from ...arrays.tokens import Tokens
from ...base.progress import Tick
from ...errors import ConfigError, LabelwoodError, ModelFileError, needs
from . import tokeniser_spec

CHARACTERS = 7
BLOCK = 4096  # texts tokenised between two reports


class TextSequence(Protocol):
    """Texts by number: a list, or `Texts`."""

    def __len__(self) -> int: ...
    def __getitem__(self, i: int, /) -> str: ...


@dataclasses.dataclass(frozen=True, eq=False)
class Tokeniser:
    """A tokenizer.json with its limit."""

    spec: bytes
    max_tokens: int
    vocabulary: int | None = None  # tokens that the encoder knows, where its config says so
    extra: str = "neural"  # what installs the package that reads it

    @cached_property
    def _native(self) -> Any:
        with needs("an encoder", self.extra):
            from tokenizers import Tokenizer
        spec = tokeniser_spec.checked(self.spec, self.vocabulary)
        with _sound("cannot be read"):
            native = Tokenizer.from_str(spec)
            native.no_padding()
            native.no_truncation()
        return native

    def check(self) -> None:
        """ModelFileError unless it is sound; without the package that reads it, its table alone is checked."""
        if importlib.util.find_spec("tokenizers") is None:
            tokeniser_spec.checked(self.spec, self.vocabulary)
            return
        try:
            _ = self.frame
        except ConfigError as error:
            raise ModelFileError(f"the model's recipe does not fit its tokeniser: {error}") from error

    @cached_property
    def frame(self) -> tuple[list[int], list[int]]:
        """The special tokens before and after a text."""
        native = self._native
        with _sound("cannot read a text"):
            native.no_truncation()
            bare = native.encode("a", add_special_tokens=False).ids
            framed = native.encode("a", add_special_tokens=True).ids
        at = next((i for i in range(len(framed)) if framed[i : i + len(bare)] == bare), 0)
        before, after = framed[:at], framed[at + len(bare) :]
        if len(before) + len(after) >= self.max_tokens:
            raise ConfigError(
                f"encoder.max_tokens is {self.max_tokens}, but {len(before) + len(after)} special tokens frame every "
                "text; allow more."
            )
        return before, after

    def __call__(self, texts: TextSequence, progress: Tick | None = None) -> Tokens:
        """Ids of all texts, each at most `max_tokens` long with its frame."""
        ids, lengths = [np.zeros(0, np.int32)], [np.zeros(0, np.int64)]
        for start in range(0, len(texts), BLOCK):
            block = self._block([texts[i] for i in range(start, min(start + BLOCK, len(texts)))])
            ids.append(np.fromiter((i for part in block for i in part), np.int32))
            lengths.append(np.array([len(part) for part in block], np.int64))
            if progress is not None:
                progress(min(start + BLOCK, len(texts)), len(texts))
        return Tokens(np.concatenate(ids), pointers(np.concatenate(lengths)), sum(map(len, self.frame)))

    def _block(self, texts: Sequence[str]) -> list[list[int]]:
        before, after = self.frame
        body = self.max_tokens - len(before) - len(after)
        most = CHARACTERS * self.max_tokens
        self._native.enable_truncation(body + 1)  # one more tells that the cut cost nothing
        found = self._ids([_cut(text, most) for text in texts])
        short = [i for i, text in enumerate(texts) if len(text) > most and len(found[i]) <= body]
        for i, ids in zip(short, self._ids([texts[i] for i in short]), strict=True):
            found[i] = ids
        # A text without any token is one of the first word of the vocabulary, mostly the padding.
        return [[*before, *ids[:body], *after] or [0] for ids in found]

    def _ids(self, texts: list[str]) -> list[list[int]]:
        with _sound("cannot read these texts"):
            return [e.ids for e in self._native.encode_batch_fast(texts, add_special_tokens=False)]


@contextmanager
def _sound(what: str) -> Iterator[None]:
    """ModelFileError for all that the package runs into: bare Exceptions, and panics that are not even that."""
    try:
        yield
    except (KeyboardInterrupt, SystemExit, GeneratorExit, LabelwoodError):
        raise
    except BaseException as error:
        raise ModelFileError(f"the encoder's tokenizer.json {what}: {str(error)[:300]}") from error


def _cut(text: str, most: int) -> str:
    """Cut to at most so many characters, whole words; all of a text that has no blank there."""
    if len(text) <= most:
        return text
    end = max(text.rfind(blank, 0, most) for blank in " \n\t")
    return text[:end] if end > 0 else text


def by_length(tokens: Tokens, budget: int) -> Iterator[NDArray[np.int64]]:
    """Documents of similar length together, up to `budget` tokens: rows of each batch, longest first."""
    order = np.argsort(-tokens.lengths, kind="stable")
    start, total = 0, 0
    for i, row in enumerate(order):
        total += int(tokens.lengths[row])
        if total > budget and i > start:
            yield order[start:i]
            start, total = i, int(tokens.lengths[row])
    if start < len(order):
        yield order[start:]
