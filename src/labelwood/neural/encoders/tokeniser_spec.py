"""Allow-list of what a tokenizer.json may say, with limits, so that no text costs more than its length.

The package tokenizers trusts what it reads: six replacements inside each other fill the memory, a pattern can take for
ever, a word list without a word for unknown ones fails at the first text. A file is held against this page before the
package sees it, and what only pads, cuts or writes text is left out.
"""

from __future__ import annotations

import base64
import json
import math
import re
from collections.abc import Iterable
from typing import Any

from ... import limits
from ...errors import ModelFileError

Table = dict[str, Any]

DEPTH = 4  # sequences inside sequences
PARTS = 32  # of one sequence, all that is nested counted
SHORT = 64  # bytes of a text that is put in or looked for
EXPANSION = 8  # times that replacements may lengthen a text
LONGEST_WORD = 1000  # characters: longer words are unknown ones
LONGEST_TOKEN = 4096  # bytes

NORMALIZERS = {
    "BertNormalizer", "Lowercase", "NFC", "NFD", "NFKC", "NFKD", "Nmt", "StripAccents", "Strip", "ByteLevel",
    "Replace", "Prepend", "Precompiled",
}  # fmt: skip
PRE_TOKENIZERS = {
    "BertPreTokenizer", "Whitespace", "WhitespaceSplit", "Metaspace", "ByteLevel", "Punctuation", "Digits", "Split",
    "CharDelimiterSplit", "UnicodeScripts",
}  # fmt: skip
POST_PROCESSORS = {"TemplateProcessing", "BertProcessing", "RobertaProcessing", "ByteLevel"}
MODELS = {"WordPiece", "BPE", "Unigram", "WordLevel"}
LEFT_OUT = ("truncation", "padding", "decoder")
KEYS = {"version", "added_tokens", "normalizer", "pre_tokenizer", "post_processor", "model", *LEFT_OUT}

# One character or class, and how often: it cannot go back and forth. Beside it the patterns of GPT-2 and its followers.
ATOM = re.compile(r"(?:\\?[^\\\[\](){}|*+?^$]|\\[\\\[\](){}|*+?^$.]|\[[^\[\]\\]*\])(?:[+*?]|\{\d{1,3}(?:,\d{0,3})?\})?")
KNOWN = {
    r"'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+",
    *(
        r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}"
        + digits
        + r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
        for digits in ("", "{1,3}")
    ),
}


def checked(spec: bytes, vocabulary: int | None) -> str:
    """The file without what is left out, for the package to read; ModelFileError names the part that is not sound.

    Ids must be below `vocabulary`, the tokens that the encoder knows.
    """
    table = _parsed(spec)
    if not set(table) <= KEYS or not {"version", "model"} <= set(table):
        raise _wrong("the file", f"it must have version and model, and nothing but {', '.join(sorted(KEYS))}")
    most = limits.MAX_INDEX if vocabulary is None else vocabulary
    _check_model(_typed(table["model"], "model", MODELS), most)
    _check_added(table.get("added_tokens") or [], most)
    _check_normalizers(table.get("normalizer"))
    for part in _flat(table.get("pre_tokenizer"), "pre_tokenizer", "pretokenizers", PRE_TOKENIZERS):
        _check_pattern(part, "pre_tokenizer", needed=part["type"] == "Split")
    for part in _flat(table.get("post_processor"), "post_processor", "processors", POST_PROCESSORS):
        _check_frame(part, most)
    return json.dumps({**table, **dict.fromkeys(LEFT_OUT)}, ensure_ascii=False)


def _parsed(spec: bytes) -> Table:
    if len(spec) > limits.MAX_TOKENISER_BYTES:
        raise _wrong("the file", f"it has {len(spec)} bytes; at most {limits.MAX_TOKENISER_BYTES} are allowed")
    items = spec.count(b",") + spec.count(b"[") + spec.count(b"{")
    if items > limits.MAX_TOKENISER_ITEMS:
        raise _wrong("the file", f"it has more than {limits.MAX_TOKENISER_ITEMS} values")
    try:
        text = spec.decode("utf-8")
        found = json.loads(text)
        json.dumps(found, ensure_ascii=False, allow_nan=False).encode("utf-8")
    except (ValueError, RecursionError) as error:
        raise _wrong("the file", f"it is no valid JSON: {str(error)[:200]}") from error
    if not isinstance(found, dict):
        raise _wrong("the file", "it is no table")
    return found


def _typed(part: Any, where: str, allowed: set[str]) -> Table:
    kind = part.get("type") if isinstance(part, dict) else None
    if where == "model" and isinstance(part, dict) and kind is None:  # older files do not name it
        kind = part["type"] = _guessed(part)
    if not isinstance(kind, str) or kind not in allowed:
        raise _wrong(where, f"its type must be one of {', '.join(sorted(allowed))}, but is {str(kind)[:40]!r}")
    return dict(part)


def _guessed(model: Table) -> str | None:
    """The type of a model by what it has."""
    if "merges" in model:
        return "BPE"
    if "continuing_subword_prefix" in model:
        return "WordPiece"
    return "Unigram" if "unk_id" in model else "WordLevel"


def _flat(part: Any, where: str, inner: str, allowed: set[str], depth: int = 0) -> list[Table]:
    """The parts of a sequence, those of sequences inside it among them."""
    if part is None:
        return []
    if not isinstance(part, dict) or part.get("type") != "Sequence":
        return [_typed(part, where, allowed)]
    parts = part.get(inner)
    if not isinstance(parts, list) or depth == DEPTH:
        raise _wrong(where, f"a Sequence must have a list of {inner}, nested at most {DEPTH} times")
    found: list[Table] = []
    for one in parts[: PARTS + 1]:
        found += _flat(one, where, inner, allowed, depth + 1)
    if len(found) > PARTS or len(parts) > PARTS:
        raise _wrong(where, f"at most {PARTS} parts are allowed")
    return found


def _check_normalizers(part: Any) -> None:
    longer, maps = 1.0, 0
    for one in _flat(part, "normalizer", "normalizers", NORMALIZERS):
        kind = one["type"]
        if kind == "Replace":
            longer *= _check_replace(one)
        elif kind == "Prepend":
            _short(one.get("prepend"), "normalizer", "what Prepend puts before a text")
        elif kind == "Precompiled":
            _check_precompiled(one)
            maps += 1
        if longer > EXPANSION or maps > 1:
            raise _wrong("normalizer", f"it may make a text more than {EXPANSION} times as long")


def _check_replace(part: Table) -> float:
    """Times that a replacement makes a text longer, at most."""
    content = _short(part.get("content"), "normalizer", "what Replace puts in")
    least = _check_pattern(part, "normalizer", needed=True)
    return max(1.0, len(content.encode("utf-8")) / least)


def _check_pattern(part: Table, where: str, *, needed: bool) -> int:
    """Bytes that a pattern finds, at least 1; ModelFileError for one that may take long or find nothing."""
    pattern = part.get("pattern")
    if pattern is None and not needed:
        return 1
    kind, text = next(iter(pattern.items())) if isinstance(pattern, dict) and len(pattern) == 1 else (None, None)
    if kind == "String":
        found = _short(text, where, "what is looked for")
        if not found:
            raise _wrong(where, "what is looked for is empty")
        return len(found.encode("utf-8"))
    if kind != "Regex" or not isinstance(text, str) or not (text in KNOWN or ATOM.fullmatch(text)):
        raise _wrong(
            where, f"a pattern must be a String, or a Regex of one character or class, but is {str(pattern)[:80]!r}"
        )
    if re.search(r"(?:[*?]|\{0+(?:,\d*)?\})$", text) and text not in KNOWN:
        raise _wrong(where, f"the pattern {text[:80]!r} finds nothing at all, too")
    return 1


def _check_precompiled(part: Table) -> None:
    """A map of characters as SentencePiece writes it: a trie, then texts that end with a NUL."""
    held = part.get("precompiled_charsmap")
    try:
        data = base64.b64decode(held, validate=True) if isinstance(held, str) else b""
    except ValueError:
        data = b""
    size = int.from_bytes(data[:4], "little")
    if len(data) < 4 or size % 4 or size > len(data) - 4:
        raise _wrong("normalizer", "the map of Precompiled is not sound")
    if max(map(len, data[4 + size :].split(b"\0"))) > SHORT:
        raise _wrong("normalizer", f"the map of Precompiled puts in more than {SHORT} bytes")


def _check_model(model: Table, most: int) -> None:
    kind, words = model["type"], model.get("vocab")
    if kind == "Unigram":
        _check_unigram(model, words, most)
        return
    if not isinstance(words, dict) or not words:
        raise _wrong("model", "its vocab must be a table of tokens with their ids")
    _check_tokens(words, "model")
    for word, token in words.items():
        _check_id(token, most, "model", word)
    unknown = model.get("unk_token")
    if not (unknown in words if isinstance(unknown, str) else kind == "BPE" and unknown is None):
        raise _wrong("model", f"its unk_token must be a word of its vocab, but is {str(unknown)[:40]!r}")
    if kind == "WordPiece":
        longest = model.get("max_input_chars_per_word", 100)
        if type(longest) is not int or not 0 < longest <= LONGEST_WORD:
            raise _wrong("model", f"max_input_chars_per_word must be 1 to {LONGEST_WORD}, but is {str(longest)[:40]}")
    if model.get("dropout"):
        raise _wrong("model", "it has a dropout, by which equal texts get other tokens")
    for name in ("continuing_subword_prefix", "end_of_word_suffix"):
        if model.get(name) is not None:
            _short(model[name], "model", name)


def _check_unigram(model: Table, words: Any, most: int) -> None:
    if not isinstance(words, list) or not 0 < len(words) <= most:
        raise _wrong("model", f"its vocab must be a list of 1 to {most} pieces with their scores")
    for piece in words:
        if not isinstance(piece, list) or len(piece) != 2 or not _is_number(piece[1]):
            raise _wrong("model", f"a piece must be a text with a score, but one is {str(piece)[:80]}")
    _check_tokens((piece[0] for piece in words), "model")
    unknown = model.get("unk_id")
    if type(unknown) is not int or not 0 <= unknown < len(words):
        raise _wrong("model", f"its unk_id must be the number of a piece, but is {str(unknown)[:40]}")


def _check_tokens(words: Iterable[Any], where: str) -> None:
    for word in words:
        if not isinstance(word, str) or len(word) > LONGEST_TOKEN:
            raise _wrong(where, f"a token must be a text of at most {LONGEST_TOKEN} characters")


def _check_added(added: Any, most: int) -> None:
    if not isinstance(added, list) or not all(isinstance(token, dict) for token in added):
        raise _wrong("added_tokens", "they must be a list of tables")
    for token in added:
        content = token.get("content")
        if not isinstance(content, str) or not 0 < len(content) <= LONGEST_TOKEN:
            raise _wrong("added_tokens", f"a token must be a text of 1 to {LONGEST_TOKEN} characters")
        _check_id(token.get("id"), most, "added_tokens", content)


def _check_frame(part: Table, most: int) -> None:
    """Check what a post-processor puts around a text."""
    ids: list[Any] = []
    if part["type"] == "TemplateProcessing":
        special = part.get("special_tokens")
        if not isinstance(special, dict) or not isinstance(part.get("single"), list) or len(part["single"]) > PARTS:
            raise _wrong(
                "post_processor", f"a template must have at most {PARTS} pieces, and a table of special_tokens"
            )
        for token in special.values():
            found = token.get("ids") if isinstance(token, dict) else None
            if not isinstance(found, list) or len(found) > PARTS:
                raise _wrong("post_processor", f"a special token must have a list of at most {PARTS} ids")
            ids += found
    for name in ("sep", "cls"):
        pair = part.get(name)
        if pair is not None:
            ids.append(pair[1] if isinstance(pair, list) and len(pair) == 2 else None)
    for token in ids:
        _check_id(token, most, "post_processor", "a special token")


def _check_id(token: Any, most: int, where: str, word: str) -> None:
    if type(token) is not int or not 0 <= token < most:
        raise _wrong(where, f"the id of {word[:40]!r} is {str(token)[:40]}, but the encoder knows 0 to {most - 1}")


def _short(text: Any, where: str, what: str) -> str:
    if not isinstance(text, str) or len(text.encode("utf-8")) > SHORT:
        raise _wrong(where, f"{what} must be a text of at most {SHORT} bytes")
    return text


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def _wrong(part: str, why: str) -> ModelFileError:
    return ModelFileError(f"the encoder's tokenizer.json, {part}: {why}.")
