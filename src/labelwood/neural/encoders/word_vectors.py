"""Word vectors for a BiLSTM, and the tokeniser that numbers its words: a pretrained encoder's, or a file's as GloVe's.

With a file, or with neither, the words are those of the training texts: runs of letters, digits and `_`, lower-cased.
Kept are words that the file knows and those of two texts or more; vectors are the file's, else uniform in (-1, 1). A
pretrained encoder normalises its vectors after reading them and keeps them ten times as short: they are brought to the
length of random ones, at which an LSTM hears them.
"""

from __future__ import annotations

import dataclasses
import re
from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from ...base.digests import digest_tensors
from ...errors import ConfigError, needs
from ...recipes.encoder_settings import EncoderConfig
from . import pretrained
from .tokens import TextSequence

MOST, WIDTH = 500_000, 300  # words that are kept, the most frequent ones; numbers of a random vector
SPECIAL = ("[UNK]", "[SEP]")  # any other word; the end of every text, so that none is empty


@dataclasses.dataclass(frozen=True, eq=False)
class Words:
    """Vectors (V, e) and the tokenizer.json that numbers them."""

    table: NDArray[np.float32]
    spec: bytes

    @property
    def digest(self) -> str:
        """Names the content."""
        return digest_tensors(self.tensors())

    def tokeniser(self) -> bytes:
        return self.spec

    def tensors(self) -> dict[str, NDArray[Any]]:
        return {"table": self.table, "spec": np.frombuffer(self.spec, np.uint8)}


def find(config: EncoderConfig, texts: TextSequence, seed: int) -> Words | pretrained.Checkpoint:
    """Source of the recipe's encoder: a BiLSTM from word vectors, any other as a whole.

    ConfigError says what is wrong with it.
    """
    if config.engine != "bilstm":
        return pretrained.find(config.model)
    if config.vectors is None and config.model != "none":
        found = pretrained.find(config.model)
        return Words(_stretched(_pretrained(found)), found.tokeniser())
    counts = Counter(word for i in range(len(texts)) for word in set(re.findall(r"\w+", texts[i].lower())))
    given = {} if config.vectors is None else read(Path(config.vectors).expanduser(), counts)
    kept = sorted((w for w in counts if counts[w] > 1 or w in given), key=lambda w: (-counts[w], w))[:MOST]
    width = len(next(iter(given.values()))) if given else WIDTH
    draw = np.random.Generator(np.random.Philox(key=[seed, 11]))
    table = draw.uniform(-1, 1, (len(SPECIAL) + len(kept), width)).astype(np.float32)
    for i, word in enumerate(kept, len(SPECIAL)):
        table[i] = given.get(word, table[i])
    return Words(table, _tokeniser([*SPECIAL, *kept]))


def _stretched(table: NDArray[np.float32]) -> NDArray[np.float32]:
    """The vectors times one number, after which their mean square is that of random ones, 1/3."""
    square = float(np.mean(np.square(table, dtype=np.float64)))
    return table * np.float32((3 * square) ** -0.5) if square else table


def read(path: Path, wanted: Counter[str]) -> dict[str, NDArray[np.float32]]:
    """The vectors of the wanted words; ConfigError names the line that is none."""
    found: dict[str, NDArray[np.float32]] = {}
    try:
        with path.open(encoding="utf-8", errors="replace") as lines:
            width = 0
            for number, line in enumerate(lines, 1):
                word, _, rest = line.rstrip().partition(" ")
                if number == 1 and word.isdigit() and rest.isdigit():
                    continue  # word2vec's header: words and width
                columns = rest.count(" ") + 1 if rest else 0
                width = width or columns
                spaced = columns > width and not _number(rest.split(" ", 1)[0])  # GloVe has words with blanks
                if (columns != width and not spaced) or not width:
                    raise ConfigError(
                        f"{path}, line {number}: {columns} numbers follow the word, but {width or 'some'} should; "
                        "every line must be a word and as many numbers as the first line has."
                    )
                if not spaced and word in wanted and word not in found:
                    found[word] = _vector(path, number, rest)
    except OSError as error:
        raise ConfigError(f"encoder.vectors: {path} cannot be read: {error.strerror}; give a GloVe file.") from error
    if not width or not found:
        what = "is empty" if not width else "knows no word of the training texts"
        raise ConfigError(f"encoder.vectors: {path} {what}; give a GloVe file in the language of the texts.")
    return found


def _vector(path: Path, number: int, text: str) -> NDArray[np.float32]:
    try:
        found = np.array(text.split(" "), np.float32)
    except ValueError:
        found = np.full(1, np.nan, np.float32)
    if not np.isfinite(found).all():
        raise ConfigError(f"{path}, line {number}: what follows the word must be finite numbers, but is {text[:40]!r}.")
    return found


def _number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def _tokeniser(words: list[str]) -> bytes:
    """tokenizer.json of whole words."""
    with needs("an encoder", "neural"):
        from tokenizers import Regex, Tokenizer, models, normalizers, pre_tokenizers, processors
    made = Tokenizer(models.WordLevel({word: i for i, word in enumerate(words)}, unk_token=SPECIAL[0]))
    made.normalizer = normalizers.Lowercase()
    made.pre_tokenizer = pre_tokenizers.Split(Regex(r"\W+"), "removed")
    made.post_processor = processors.TemplateProcessing(single=f"$A {SPECIAL[1]}", special_tokens=[(SPECIAL[1], 1)])
    return bytes(made.to_str().encode("utf-8"))


def _pretrained(source: pretrained.Checkpoint) -> NDArray[np.float32]:
    """The table of word pieces of a pretrained encoder: the matrix that has a row for each."""
    with needs("an encoder", "neural"):
        from safetensors import SafetensorError, safe_open
    try:
        for path in source.weight_files:
            with safe_open(path, "pt") as file:
                for name in sorted(file.keys()):
                    shape = file.get_slice(name).get_shape()
                    if len(shape) == 2 and shape[0] == source.config.get("vocab_size"):
                        return np.asarray(file.get_tensor(name).float().numpy())
    except (OSError, SafetensorError) as error:
        raise ConfigError(f"the encoder {source.folder} cannot be opened: {error}") from error
    raise ConfigError(f"the encoder {source.folder} has no table of word vectors; give encoder.vectors a GloVe file.")
