"""The slow twin of native/text/sketch.cpp, word by word."""

from __future__ import annotations

import re

from labelwood.parts.tfidf import TfidfConfig
from reference_tfidf import tokens

MASK = 2**64 - 1
START, STEP, END = 0x9E3779B97F4A7C15, 0xD6E8FEB86659FD93, 0xA0761D6478BD642F
PLACES = (0x8EBC6AF09C88C6E3, 0x589965CC75374CC3, 0x1D8E4E27C47D124F)
SLOTS, NO_VALUE = 64, 0xFFFFFFFF
WORDS = TfidfConfig(min_chars=1)


def fold(a: int, b: int) -> int:
    product = (a & MASK) * (b & MASK)
    return (product & MASK) ^ (product >> 64)


def word_hash(word: str) -> int:
    data = word.encode()
    found = START ^ len(data)
    for start in range(0, len(data), 8):
        found = fold(found ^ int.from_bytes(data[start : start + 8], "little"), STEP)
    return found ^ END


def signs(text: str) -> int:
    found = 1 if "\ufffd" in text else 0
    found |= 2 if re.search("[ÂÃ][\x80-\xbf]|â€", text) else 0
    found |= 4 if re.search(r"</[A-Za-z]|&#[0-9]|&[A-Za-z]{2,7};", text) else 0
    found |= 8 if re.search(r"[\x00-\x08\x0b\x0e-\x1f\x7f]", text) else 0
    return found


def slots_of(hashes: list[int]) -> list[int]:
    slots = [NO_VALUE] * SLOTS
    for a, b, c in zip(hashes, hashes[1:], hashes[2:], strict=False):
        shingle = fold(a * PLACES[0] + b * PLACES[1] + c * PLACES[2], STEP)
        slots[shingle >> 58] = min(slots[shingle >> 58], shingle & 0xFFFFFFFF, NO_VALUE - 1)
    if len(hashes) < 3:
        return slots
    filled = list(slots)
    for slot in range(SLOTS):
        tries = 0
        while slots[slot] == NO_VALUE:
            slots[slot] = filled[fold(slot + 1 + SLOTS * tries, STEP) >> 58]
            tries += 1
    return slots


def sketch(text: str) -> tuple[int, int, int, int, list[int]]:
    """Words, characters, signs, digest and slots of a text."""
    hashes = [word_hash(word) for word in tokens(text, WORDS)]
    digest = START
    for found in hashes:
        digest = fold(digest ^ found, STEP)
    return len(hashes), len(text), signs(text), digest, slots_of(hashes)
