"""How long the sentences of a page are: `python tests/prose.py docs/reference/encoders.md …`.

Counted are paragraphs and the items of lists, without headings, tables, code blocks, pictures and comments. A span of
code is one word. A sentence ends with `.`, `?` or `!` before a space, and where its paragraph or item ends; a colon or
a semicolon does not end one.
"""

from __future__ import annotations

import re
import sys
from pathlib import Path

FENCE = re.compile(r"^( *)```.*?^\1```$", re.MULTILINE | re.DOTALL)
COMMENT = re.compile(r"<!--.*?-->", re.DOTALL)
ITEM = re.compile(r"^\s*(?:[-*]|\d+\.) ")
END = re.compile(r"(?<=[.?!])[)\"]?\s+(?=[^a-z\s])")
WORD = re.compile(r"[^\W_]")


def paragraphs(text: str) -> list[str]:
    """Paragraphs and items of lists, each on one line."""
    found: list[str] = []
    inside = False
    for line in COMMENT.sub("", FENCE.sub("", text)).splitlines():
        if not line.strip() or (line.startswith(("#", "|", "    ", "![", ">")) and not (inside and line[:4] == "    ")):
            inside = False
            continue
        if not inside or ITEM.match(line):
            found.append("")
            inside = True
        found[-1] += " " + ITEM.sub("", line).strip()
    return [plain(paragraph) for paragraph in found]


def plain(paragraph: str) -> str:
    """Words alone: code is one word, a link is its text."""
    text = re.sub(r"`[^`]*`", "Code", paragraph)
    text = re.sub(r"!?\[([^\]]*)\]\([^)]*\)", r"\1", text)
    text = text.replace("*", "")
    return re.sub(r"\b(eq|e\.g|i\.e)\.", r"\1", text).strip()


def sentences(text: str) -> list[str]:
    """The sentences of a page."""
    found = (part for paragraph in paragraphs(text) for part in END.split(paragraph))
    return [part for part in found if words(part)]


def words(sentence: str) -> int:
    """Words of a sentence; a lone sign is none."""
    return sum(1 for word in sentence.split() if WORD.search(word))


def mean_words(text: str) -> float:
    """Words in a sentence, on average over the page."""
    counts = [words(sentence) for sentence in sentences(text)]
    return sum(counts) / max(1, len(counts))


if __name__ == "__main__":
    for name in sys.argv[1:]:
        page = Path(name).read_text(encoding="utf-8")
        print(f"{mean_words(page):5.1f} words a sentence, {len(sentences(page)):4d} sentences  {name}")
