"""Output of the commands, and its place: results and summaries on stdout, warnings, errors and progress on stderr.

Tables are aligned text that fits 80 columns, the same in a pipe; colour only on a terminal.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from typing import Any

from ..data import Dataset, ReadReport
from ..errors import counted
from ..metrics.ranking import Evaluation
from ..models.predictor import Predictor
from ..parts.inflection import FEWEST, inflection, stemmer_of
from ..recipes.recipe import Recipe

JOINERS = "\u200c\u200d"  # they shape letters, and steer nothing
WIDE_ENOUGH = 80  # columns: on a narrower terminal a line is better folded than numbers cut


def complain(kind: str, message: str) -> None:
    """`error: …` or `warning: …` on stderr, on one line."""
    with suppress(OSError, ValueError):
        print(f"{kind}: {_printable(' '.join(message.split()))}", file=sys.stderr, flush=True)


def say(*lines: object) -> None:
    """Lines on stdout as they are: never wrapped, never styled."""
    _write("".join(f"{_printable(str(line))}\n" for line in lines))


def heading(text: str, *, first: bool = False) -> None:
    """A line of its own, after a blank one unless it is the first; bold on a terminal."""
    from rich.text import Text

    _write("" if first else "\n")
    _print(Text(_printable(text), style="bold", no_wrap=True, overflow="ignore"))


def table(
    rows: Iterable[Sequence[str]], header: Sequence[str] = (), *, right: Iterable[int] = (), indent: int = 0
) -> None:
    """Aligned columns; those numbered in `right` are numbers. Long text wraps within its column."""
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    columns: Any = Table(box=None, show_header=bool(header), pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    body = [list(row) for row in rows]
    width, numbers = max(map(len, [header, *body])), set(right)
    for i in range(width):
        name = header[i] if header else ""
        last = i == width - 1
        columns.add_column(
            Text(name), justify="right" if i in numbers else "left", no_wrap=not last, overflow="fold" if last else None
        )
    for row in body:
        columns.add_row(*(Text(_printable(cell)) for cell in row))
    _print(Padding(columns, (0, 0, 0, indent)) if indent else columns)


def metrics(evaluation: Evaluation) -> None:
    """A line of values for each metric and, dimmed below it, a line of intervals."""
    from rich.table import Table
    from rich.text import Text

    header, *rows = evaluation.table()
    columns = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0), header_style="bold")
    columns.add_column(header[0], no_wrap=True)
    for name in header[1:]:
        columns.add_column(name, justify="right", no_wrap=True)
    for name, *cells in rows:
        values, spans = zip(*(cell.partition(" ")[::2] for cell in cells), strict=True)
        columns.add_row(name, *values)
        if any(spans):
            columns.add_row("", *(_span(span) for span in spans), style="dim")
    _print(columns)
    documents = counted(evaluation.counts["rows_evaluated"], "document")
    level = f"; ranges: {evaluation.config.level:g} % bootstrap intervals" if evaluation.intervals else ""
    _print(Text(f"in percent, {documents}{level}. {evaluation.note()}"))


def _span(text: str) -> str:
    return text.strip("[]").replace(", ", "–")


def _print(renderable: Any) -> None:
    """Without the blanks that pad every line to the last column."""
    from rich.console import Console  # late: most commands print little

    console = Console(file=sys.stdout, highlight=False, markup=False, emoji=False)
    console.width = max(console.width, WIDE_ENOUGH)
    with console.capture() as captured:
        console.print(renderable, crop=False)
    _write("".join(f"{line.rstrip()}\n" for line in captured.get().splitlines()))


def _write(text: str) -> None:
    sys.stdout.write(text)
    sys.stdout.flush()  # a log shows it while training goes on


def _printable(text: str) -> str:
    """Control characters of somebody's data must not steer the terminal, nor the direction of what is read there."""
    return "".join(
        c if c.isprintable() or c in JOINERS else " " if c.isspace() else "\N{REPLACEMENT CHARACTER}" for c in text
    )


def dataset(name: str, data: Dataset) -> None:
    """Show what was read: documents, labels, and what was odd."""
    if data.labels is None:
        say(f"{name}: {counted(len(data), 'document')}")
        text_fields(data.report)
    else:
        labelled(name, data.report, len(data.names), data.labels.nnz)


def labelled(name: str, report: ReadReport, labels: int, occurrences: int) -> None:
    """The same of documents with labels, from their numbers."""
    mean = f"{occurrences / max(1, report.rows):.2f} labels per document"
    say(f"{name}: {counted(report.rows, 'document')}, {counted(labels, 'label')}, {mean}")
    text_fields(report)
    odd = []
    if report.no_labels:
        odd.append(f"{counted(report.no_labels, 'document')} without a label")
    if report.duplicate_labels:
        odd.append(f"{counted(report.duplicate_labels, 'repeated label')} merged")
    if odd:
        say(f"  {'; '.join(odd)}")


def text_fields(report: ReadReport) -> None:
    """Show which fields were read as text, and which were not read; nothing for formats without fields."""
    read = []
    for field, weight, records in report.fields:
        if not records:
            continue
        times = f" × {weight}" if weight > 1 else ""
        some = f" (in {records:,} of {report.rows:,})" if records < report.rows else ""
        read.append(f"{field}{times}{some}")
    if read:
        left = f"; not read: {_listed(report.left)}" if report.left else ""
        say(f"  text from {' and '.join(read)}{left}")


def analyser(recipe: Recipe, data: Dataset, *, others: bool = False) -> None:
    """Show what a text is cut into, where that is left to the training text, and why; and what else could be."""
    config = recipe.tfidf
    if data.texts is None or not recipe.reads_words or config.analyser != "auto" or config.chars is not None:
        return
    found = inflection(data.texts)
    what = "words and slices of rarer words" if found.strong else "words"
    why = f"{100 * found.share:.0f} % of the words are unknown forms of known ones"
    if found.words < FEWEST:
        why = "too few to tell how much the language inflects"
    say(f"  read as {what}: {why}")
    stemmer = stemmer_of(data.texts) if found.strong and others else None
    if stemmer is not None:
        say(f"  also worth a try: --set tfidf.analyser=stems --set tfidf.stemmer={stemmer}")


def absent_fields(name: str, report: ReadReport, model: Predictor) -> None:
    """Warn where a model has learned from fields that no record has."""
    wanted = model.record_fields.fields
    absent = [field.name for field in report.fields if not field.records]
    if wanted and absent and len(absent) < len(report.fields):
        complain(
            "warning",
            f"{name}: the model reads {' and '.join(field.name for field in wanted)}, but no record has "
            f"{' or '.join(absent)}; if a field has another name here, repeat --text-field for each, in that order.",
        )


def _listed(names: Sequence[str], most: int = 8) -> str:
    more = f" and {len(names) - most} more" if len(names) > most else ""
    return ", ".join(name[:40] for name in names[:most]) + more


def label_texts(name: str, texts: Mapping[str, str], data: Dataset) -> None:
    """Show how the texts of labels fit the labels of the data."""
    with_text = sum(map(bool, data.label_texts))
    say(f"{name}: texts for {with_text:,} of {counted(len(data.names), 'label')}")
    odd = []
    if with_text < len(data.names):
        odd.append(f"{counted(len(data.names) - with_text, 'label')} without a text")
    if others := len(texts.keys() - set(data.names)):
        odd.append(f"{counted(others, 'text')} for labels that are not in the data, ignored")
    if odd:
        say(f"  {'; '.join(odd)}")


def taxonomy(name: str, data: Dataset) -> None:
    """Show how a taxonomy fits the labels of the data."""
    assert data.taxonomy is not None
    inside = int(data.taxonomy.inside.sum())
    nodes = data.taxonomy.nodes - (len(data.names) - inside)
    say(f"{name}: a taxonomy of {counted(nodes, 'node')}, {inside:,} of {counted(len(data.names), 'label')} in it")


def bad_lines(name: str, report: ReadReport) -> None:
    """Tell what --on-bad skip or replace did, on stderr; nothing if all was well."""
    if report.skipped:
        lost = counted(report.skipped, "bad line")
        complain("warning", f"{name}: {lost} {'was' if report.skipped == 1 else 'were'} skipped; the first:")
        for example in report.examples:
            with suppress(OSError):
                print(f"  {_printable(example)}", file=sys.stderr, flush=True)
    if report.replaced:
        complain("warning", f"{name}: bad bytes were replaced in {counted(report.replaced, 'line')}.")


def size(count: int) -> str:
    """Bytes for people."""
    value, unit = float(count), "bytes"
    for larger in ("kB", "MB", "GB", "TB"):
        if value < 1000:
            break
        value, unit = value / 1000, larger
    return f"{count:,} bytes" if unit == "bytes" else f"{value:.1f} {unit}"


def seconds(value: float) -> str:
    """A time for people."""
    return f"{value:.2f} s" if value < 60 else f"{int(value // 60)} min {value % 60:.0f} s"
