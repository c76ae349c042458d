"""Writes native/text/unicode_tables.h from Python's unicodedata: the header is what this prints.

The header is committed, so that tokens depend on neither the Python nor the machine a model runs on. Regenerating it
with another Unicode version changes tokens and needs a new TOKENISER_VERSION (docs/reference/tokenising.md).
"""

from __future__ import annotations

import sys
import unicodedata
from collections.abc import Callable, Iterable

WORD, MARK, UNSPACED = 1, 2, 3
UNSPACED_NAMES = (
    "CJK UNIFIED IDEOGRAPH-",
    "CJK COMPATIBILITY IDEOGRAPH-",
    "IDEOGRAPHIC NUMBER ZERO",
    "IDEOGRAPHIC ITERATION MARK",
    "VERTICAL IDEOGRAPHIC ITERATION MARK",
    "HIRAGANA ",
    "HENTAIGANA ",
    "KATAKANA ",
    "KATAKANA-HIRAGANA ",
    "HALFWIDTH KATAKANA",
    "VERTICAL KANA ",
    "THAI ",
    "LAO ",
    "KHMER ",
    "MYANMAR ",
)
CODES = range(0x110000)


def kind(code: int) -> int:
    """0 separator, WORD, MARK, or UNSPACED: a letter of a script written without spaces."""
    category = unicodedata.category(chr(code))
    if category[0] == "M":
        return MARK
    if category[0] not in "LN" and category != "Pc":
        return 0
    letter = category[0] == "L" or category == "Nl"
    return UNSPACED if letter and unicodedata.name(chr(code), "").startswith(UNSPACED_NAMES) else WORD


def lower(code: int) -> int:
    """One character to one: U+0130 becomes i, both small sigmas are σ."""
    special = {0x0130: ord("i"), 0x03C2: 0x03C3}
    text = chr(code).lower()
    return special.get(code, ord(text) if len(text) == 1 else code)


def is_accent(mark: str) -> bool:
    """Diacritics. Nukta (7), kana voicing (8), virama (9) and vowel signs (0, 84-132) are parts of a letter."""
    combining = unicodedata.combining(mark)
    return combining == 1 or 10 <= combining <= 36 or combining >= 200


def strip(code: int) -> int:
    """The base letter when all else in the canonical decomposition is accents; 0 for an accent itself."""
    base, *marks = unicodedata.normalize("NFD", chr(code))
    if is_accent(base):
        return 0
    return ord(base) if marks and all(is_accent(m) for m in marks) else code


def runs(value: Callable[[int], int], codes: Iterable[int], step: Callable[[int, int], bool]) -> list[list[int]]:
    """[first, last, value] for stretches of consecutive codes whose values agree by `step`."""
    found: list[list[int]] = []
    for code in codes:
        if found and code == found[-1][1] + 1 and step(value(code), found[-1][2]):
            found[-1][1] = code
        else:
            found.append([code, code, value(code)])
    return found


def table(name: str, comment: str, rows: list[list[int]]) -> str:
    cells = ["{" + f"0x{a:X}, 0x{b:X}, {v}" + "}," for a, b, v in rows]
    lines, line = [], " "
    for cell in cells:
        if len(line) + 1 + len(cell) > 118:
            lines, line = [*lines, line], " "
        line += " " + cell
    body = "\n".join([*lines, line])
    return f"// {comment}\ninline constexpr Run {name}[] = {{\n{body}\n}};\n"


def main() -> None:
    same: Callable[[int, int], bool] = int.__eq__
    kinds = runs(kind, (c for c in CODES if kind(c)), same)
    lowered = runs(lambda c: lower(c) - c, (c for c in CODES if kind(c) and lower(c) != c), same)
    stripped = runs(lambda c: strip(c) - c, (c for c in CODES if kind(c) and strip(c) != c), same)
    sys.stdout.write(
        "// Written by tools/unicode_tables.py; do not edit.\n#pragma once\n#include <cstdint>\n\n// clang-format off\n"
        "namespace lw::unicode {\n\nstruct Run {\n  uint32_t first, last;\n  int32_t value;\n};\n\n"
        f'inline constexpr char version[] = "{unicodedata.unidata_version}";\n'
        + table("kinds", "1 word, 2 mark, 3 letter of a script written without spaces; the rest separates.", kinds)
        + table("lower", "What to add for the lower-case character.", lowered)
        + table("strip", "What to add for the base letter; a mark that becomes 0 is dropped.", stripped)
        + "\n}  // namespace lw::unicode\n// clang-format on\n"
    )


if __name__ == "__main__":
    main()
