"""Pages for people: one file of HTML with its styles and figures in it, which asks nothing of a network.

A page reads in the dark and in the light, on paper, on a telephone, and by ear: headings are nested, tables have
headers and captions, figures have a text and their numbers in a table. All that comes from data is escaped by `text`.

    page("A title", [section("A heading", paragraph("…"), table(rows, header))])
"""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from typing import NewType

Html = NewType("Html", str)  # is safe to stand in a page

POLICY = "default-src 'none'; style-src 'unsafe-inline'"  # no script, no image, no font, no address
STYLE = """
:root{color-scheme:light dark;--ground:#fbfaf7;--sheet:#fff;--ink:#21201c;--soft:#6b675d;--line:#dcd8cd;--bar:#2f7d5b;
--error:#b3261e;--warning:#8a5a00;--note:#2b5f9e}
@media (prefers-color-scheme:dark){:root{--ground:#171714;--sheet:#20201c;--ink:#ebe8df;--soft:#a7a294;--line:#3b3932;
--bar:#5fbf94;--error:#ff8a80;--warning:#f0b357;--note:#8fbcf5}}
*{box-sizing:border-box}
body{margin:0;background:var(--ground);color:var(--ink);font:16px/1.55 system-ui,sans-serif;overflow-wrap:anywhere}
main{max-width:60rem;margin:0 auto;padding:1.5rem 1rem 4rem}
h1{font-size:1.7rem;line-height:1.25;margin:.5rem 0}
h2{font-size:1.25rem;margin:2.5rem 0 .75rem;border-bottom:1px solid var(--line);padding-bottom:.3rem}
h3{font-size:1rem;margin:0 0 .25rem}
p{margin:.4rem 0}.soft,caption,figcaption span{color:var(--soft)}
.scroll{overflow-x:auto;margin:.75rem 0}
table{border-collapse:collapse;font-variant-numeric:tabular-nums;min-width:50%}
caption{text-align:left;padding:.2rem 0;font-size:.9rem}
th,td{text-align:left;vertical-align:top;padding:.3rem 1.2rem .3rem 0;border-bottom:1px solid var(--line);
overflow-wrap:normal}
td:last-child{overflow-wrap:anywhere}
th{font-weight:600}tbody th{white-space:nowrap}
thead th{vertical-align:bottom}td.number,th.number{text-align:right}td.number{white-space:nowrap}
.cards{display:grid;grid-template-columns:repeat(auto-fit,minmax(17rem,1fr));gap:1rem;align-items:start;
margin-bottom:1rem}
figure{margin:0;background:var(--sheet);border:1px solid var(--line);border-radius:.5rem;padding:1rem}
figcaption{margin-bottom:.5rem;font-weight:600}figcaption span{display:block;font-weight:400;font-size:.9rem}
svg{display:block;width:100%;height:auto}svg text{fill:var(--ink);font:12px system-ui,sans-serif}
svg .count{fill:var(--soft)}svg rect{fill:var(--bar)}
details{margin-top:.5rem;font-size:.9rem}summary{cursor:pointer;color:var(--soft)}
summary:focus-visible,.scroll:focus-visible{outline:2px solid var(--note)}
article{background:var(--sheet);border:1px solid var(--line);border-left:.35rem solid var(--tone);border-radius:.5rem;
padding:.8rem 1rem;margin:.8rem 0}
article.error{--tone:var(--error)}article.warning{--tone:var(--warning)}article.note{--tone:var(--note)}
.badge{color:var(--tone);font-weight:700;font-size:.8rem;letter-spacing:.04em;text-transform:uppercase}
article ul{margin:.4rem 0;padding-left:1.2rem;font-size:.9rem}code{font:.9em ui-monospace,monospace}
@media print{:root{--ground:#fff;--sheet:#fff;--ink:#000;--soft:#444;--line:#bbb;--bar:#2f7d5b;--error:#b3261e;
--warning:#8a5a00;--note:#2b5f9e}body{background:#fff;color:#000;font-size:11pt}figure,article,tr{break-inside:avoid}h2{break-after:avoid}
main{max-width:none;padding:0}.scroll{overflow:visible}}
"""


def text(value: object) -> Html:
    """A value from anywhere, as text of a page: escaped, and without characters that HTML does not allow."""
    plain = "".join(c if c.isprintable() or c in "\n\t" else " " if c.isspace() else "\ufffd" for c in str(value))
    return Html(html.escape(plain))


def quote(value: object) -> Html:
    """Words of the data, kept from turning the direction of those around them."""
    return Html(f"<bdi>{text(value)}</bdi>")


def paragraph(value: object, *, soft: bool = False) -> Html:
    """A paragraph of plain text."""
    return Html(f'<p class="soft">{text(value)}</p>' if soft else f"<p>{text(value)}</p>")


def bullets(items: Iterable[object]) -> Html:
    """A list of words of the data; nothing if there are none."""
    rows = "".join(f"<li>{quote(item)}</li>" for item in items)
    return Html(f"<ul>{rows}</ul>" if rows else "")


def table(
    rows: Iterable[Sequence[object]], header: Sequence[str], *, right: Iterable[int] = (), caption: str = ""
) -> Html:
    """A table whose first cells name their rows; columns numbered in `right` are numbers."""
    numbers = set(right)

    def cell(column: int, value: object, tag: str, scope: str = "") -> str:
        look = ' class="number"' if column in numbers else ""
        return f"<{tag}{look}{scope}>{text(value)}</{tag}>"

    head = "".join(cell(i, name, "th", ' scope="col"') for i, name in enumerate(header))
    body = ""
    for first, *rest in rows:
        cells = [cell(0, first, "th", ' scope="row"'), *(cell(i, value, "td") for i, value in enumerate(rest, 1))]
        body += f"<tr>{''.join(cells)}</tr>\n"
    said = f"<caption>{text(caption)}</caption>" if caption else ""
    label = text(caption or ", ".join(header))
    inner = f"<table>{said}<thead><tr>{head}</tr></thead>\n<tbody>{body}</tbody></table>"
    return Html(f'<div class="scroll" role="region" tabindex="0" aria-label="{label}">{inner}</div>')


def bars(title: str, rows: Sequence[tuple[str, int]], unit: str, remark: str = "") -> Html:
    """A figure of horizontal bars, one for each (name, count), and the same as a table."""
    most, height = max([count for _, count in rows], default=0), 22
    wide = max([len(name) for name, _ in rows], default=0) * 7 + 8
    drawn = []
    for i, (name, count) in enumerate(rows):
        length = round((250 - wide) * count / most, 1) if most else 0
        y = i * height
        drawn.append(
            f'<text x="{wide - 8}" y="{y + 15}" text-anchor="end">{text(name)}</text>'
            f'<rect x="{wide}" y="{y + 4}" width="{max(length, 1.0 if count else 0.0)}" height="14" rx="2"/>'
            f'<text class="count" x="{round(wide + length + 5, 1)}" y="{y + 15}">{count:,}</text>'
        )
    said = text(f"{title}. {remark} " + "; ".join(f"{name}: {count:,}" for name, count in rows))
    picture = (
        f'<svg role="img" aria-label="{said}" viewBox="0 0 310 {max(1, len(rows)) * height}">{"".join(drawn)}</svg>'
    )
    caption = f"<figcaption>{text(title)}<span>{text(remark)}</span></figcaption>"
    numbers = table([(name, f"{count:,}") for name, count in rows], (unit, "count"), right=[1], caption=title)
    return Html(f"<figure>{caption}{picture}<details><summary>As a table</summary>{numbers}</details></figure>")


def cards(*parts: Html) -> Html:
    """Figures side by side, as many as there is room for."""
    return Html(f'<div class="cards">{"".join(part for part in parts if part)}</div>')


def notice(kind: str, badge: str, title: str, *parts: Html) -> Html:
    """A box of the kind error, warning or note."""
    return Html(
        f'<article class="{kind}"><p class="badge">{text(badge)}</p><h3>{text(title)}</h3>{"".join(parts)}</article>\n'
    )


def section(heading: str, *parts: Html) -> Html:
    """A heading and what stands below it."""
    return Html(f"<section><h2>{text(heading)}</h2>\n{''.join(parts)}</section>\n")


def page(title: str, lead: Sequence[Html], sections: Sequence[Html]) -> str:
    """The whole page."""
    return (
        '<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width,initial-scale=1">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f"<title>{text(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n<main>\n<header><h1>{text(title)}</h1>"
        f"{''.join(lead)}</header>\n{''.join(sections)}</main>\n</body>\n</html>\n"
    )
