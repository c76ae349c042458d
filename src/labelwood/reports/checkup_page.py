"""A check of data as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ..data.language_words import NAMES
from ..errors import counted
from . import html
from .html import Html

if TYPE_CHECKING:
    from .doctor import Checkup, Examined, Histogram
    from .findings import Finding

SETS = ("training set", "test set")
_NAMES = {"train": SETS[0], "test": SETS[1], "both": "both sets"}


def page_of(checkup: Checkup) -> str:
    """The page."""
    sets = [one for one in (checkup.train, checkup.test) if one is not None]
    names = " and ".join(one.name for one in sets)
    sections = [
        html.section("Findings", *(_finding(found) for found in checkup.findings))
        if checkup.findings
        else html.section("Findings", html.paragraph("None: nothing odd was found.")),
        html.section("What was read", _read(sets)),
        html.section(
            "How it is spread",
            *(_spread(*each, len(sets) > 1) for each in zip(sets, SETS, strict=False)),
        ),
        html.section("Languages", _languages(sets)),
    ]
    if checkup.pieces is not None:
        sections.append(html.section("What an encoder will cut", *_cuts(checkup)))
    if checkup.methods:
        sections.append(html.section("Methods that suit, and what they cost", *_methods(checkup)))
    lead = [html.paragraph(summary(checkup)), html.paragraph("Written by labelwood doctor.", soft=True)]
    return html.page(f"Check of {names}", lead, sections)


def summary(checkup: Checkup) -> str:
    """A sentence with the number of findings."""
    kinds = [found.severity for found in checkup.findings]
    if not kinds:
        return "No findings."
    parts = [counted(kinds.count(kind), kind) for kind in ("error", "warning", "note") if kind in kinds]
    return f"Findings: {', '.join(parts)}."


def _finding(found: Finding) -> Html:
    what = found.what[0].upper() + found.what[1:]
    way = Html(f"<p><strong>Way out:</strong> {html.text(found.way_out)}</p>") if found.way_out else Html("")
    badge = f"{found.severity} · {_NAMES[found.set]}"
    return html.notice(found.severity, badge, what, html.bullets(found.examples), way)


def _read(sets: list[Examined]) -> Html:
    rows = [
        ("name", *(one.name for one in sets)),
        ("format", *(one.format or "–" for one in sets)),
        ("documents", *(f"{one.documents:,}" for one in sets)),
        ("labels", *(f"{one.labels:,}" for one in sets)),
        ("labels a document", *(f"{one.occurrences / max(1, one.documents):.2f}" for one in sets)),
        ("text from", *(fields_of(one) or "–" for one in sets)),
        ("fields not read", *(", ".join(one.left) or "–" for one in sets)),
        ("lines left out", *(f"{one.skipped:,}" for one in sets)),
    ]
    return html.table(rows, _header("", sets))


def _header(first: str, sets: list[Examined]) -> tuple[str, ...]:
    """The head of a table with a column for each set."""
    return (first, *SETS[: len(sets)])


def fields_of(one: Examined) -> str:
    """The fields that were read as text, with their weights."""
    read = []
    for name, weight, records in one.fields:
        some = f" (in {records:,})" if records < one.documents else ""
        read.append(f"{name}{f' × {weight}' if weight > 1 else ''}{some}")
    return ", ".join(read)


def _spread(one: Examined, which: str, several: bool) -> Html:
    of = f", {which}" if several else ""
    return html.cards(
        _histogram(f"Labels per document{of}", one.labels_per_document, "labels", "documents"),
        _histogram(f"Documents per label{of}", one.documents_per_label, "documents", "labels"),
        _histogram(f"Words per document{of}", one.words_per_document, "words", "documents"),
    )


def _histogram(title: str, found: Histogram | None, unit: str, what: str) -> Html:
    if found is None or not found.bars:
        return Html("")
    rows = [(span(bar.low, bar.high), bar.count) for bar in found.bars]
    remark = f"{what}; mean {found.mean:,.1f}, median {found.median:,.0f}, most {found.most:,}"
    return html.bars(title, rows, unit, remark)


def span(low: int, high: int) -> str:
    """A bar's name: 3–4."""
    return f"{low:,}" if low == high else f"{low:,}–{high:,}"


def _languages(sets: list[Examined]) -> Html:
    codes = list(dict.fromkeys(code for one in sets for code in one.languages))
    if not codes:
        return html.paragraph("There are no texts.")
    rows = [(NAMES[code], *(percent(one.languages.get(code, 0.0)) for one in sets)) for code in codes]
    caption = "Shares of texts, from up to 1,000 of them; too short or mixed ones are not told"
    return html.table(rows, _header("language", sets), right=range(1, len(sets) + 1), caption=caption)


def percent(share: float) -> str:
    """A share as per cent, so that little is not nothing."""
    return "< 0.1 %" if 0 < share < 0.0005 else f"{100 * share:.1f} %"


def _cuts(checkup: Checkup) -> list[Html]:
    assert checkup.pieces is not None
    rows = [(f"{cut.pieces:,}", percent(cut.documents), percent(cut.words)) for cut in checkup.cuts]
    header = ("pieces an encoder reads", "documents that are longer", "words not read")
    return [html.paragraph(pieces_note(checkup)), html.table(rows, header, right=[1, 2])]


def pieces_note(checkup: Checkup) -> str:
    """A sentence on the pieces of words, and how their number is known."""
    assert checkup.pieces is not None
    how = "by the tokenizer of the default encoder" if checkup.pieces.measured else "estimated from the language"
    return f"A word is {checkup.pieces.per_word:.2f} pieces on average, {how}. An encoder reads 128 of them by default."


def _methods(checkup: Checkup) -> list[Html]:
    rows = [(one.method, one.why, duration(one.cpu_seconds), memory(one.memory)) for one in checkup.methods]
    note = "Rough figures from the sizes of the data, within a factor of three; labelwood plan measures."
    return [html.table(rows, ("method", "why", "CPU time", "memory"), right=[2, 3]), html.paragraph(note, soft=True)]


def duration(seconds: float) -> str:
    """A time of two digits, for people."""
    for size, unit in ((86400, "days"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size:
            return f"{seconds / size:.2g} {unit}" if seconds < 100 * size else f"{seconds / size:,.0f} {unit}"
    return f"{seconds:.2g} s" if seconds < 100 else f"{seconds:.0f} s"


def memory(size: int) -> str:
    """Bytes, for people."""
    return f"{size / 1e9:.1f} GB" if size >= 1e9 else f"{size / 1e6:.0f} MB"
