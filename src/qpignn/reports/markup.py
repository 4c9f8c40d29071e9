"""Pieces of HTML: escaped text, numbers, tables, icons and the places of charts."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

WORDS = {"good": "Good", "note": "Note", "warning": "Warning"}
ICONS = {
    "good": '<circle cx="10" cy="10" r="9"/><path d="M5.8 10.4l2.8 2.8 5.6-6"/>',
    "note": '<circle cx="10" cy="10" r="9"/><path d="M10 9.2v5M10 5.6v.8"/>',
    "warning": '<path class="shape" d="M10 1.8l8.8 16H1.2z"/><path d="M10 7.4v5M10 14.6v.7"/>',
}
SAMPLES = {
    "bar": '<path class="bar" d="M9 0v14"/>',
    "upper": '<path class="reach" d="M9 3v11"/><path class="bound" d="M3 3h12"/>',
    "lower": '<path class="reach" d="M9 11v-11"/><path class="bound" d="M3 11h12"/>',
    "tick": '<path class="tick" d="M4 7h10"/>',
    "dot": '<path class="dot" d="M9 7h0"/>',
    "cross": '<path class="cross" d="M5.5 3.5l7 7m0-7l-7 7"/>',
}


def text(value: Any) -> str:
    """Escape for HTML; halves of characters, which no file can hold, become question marks."""
    return html.escape(str(value).encode("utf-8", "replace").decode("utf-8"))


def sentence(value: Any) -> str:
    """Escape prose: a capital first, a full stop last, and no line break before a per cent sign."""
    words = str(value).strip().replace(" %", "\u00a0%").replace("± ", "±\u00a0")
    stop = "" if words.endswith((".", "!", "?", "…", ":")) or not words else "."
    return text(words[:1].upper() + words[1:] + stop)


def number(value: float | None) -> str:
    """About four significant digits, with a minus sign and thousands set apart."""
    if value is None or not math.isfinite(value):
        return "–" if value is None or math.isnan(value) else ("∞" if value > 0 else "−∞")
    size = abs(value)
    if size and not 1e-4 <= size < 1e9:
        words = f"{value:.3e}"
    elif size >= 1000:
        words = f"{value:,.0f}"
    else:
        words = f"{float(f'{value:.4g}'):.10f}".rstrip("0").rstrip(".")
    return words.replace("-", "−")


def aligned(values: Sequence[float | None]) -> list[str]:
    """Format a column with as many decimals as give its largest number four digits."""
    known = [abs(value) for value in values if value is not None and math.isfinite(value)]
    size = max(known, default=0.0)
    if not 1e-3 <= size < 1e9:
        return [number(value) for value in values]
    places = max(0, 3 - math.floor(math.log10(size)))
    return [
        f"{value:,.{places}f}".replace("-", "−")
        if value is not None and math.isfinite(value)
        else number(value)
        for value in values
    ]


def percentage(value: float | None, digits: int = 1) -> str:
    """A share as per cents."""
    if value is None or not math.isfinite(value):
        return "–"
    return f"{100 * value:.{digits}f}\u00a0%".replace("-", "−")


def percent_range(shares: dict[str, Any]) -> str:
    """The ends of an error bar as per cents."""
    low, high = (percentage(shares[end]) for end in ("low", "high"))
    return low.removesuffix("\u00a0%") + f" to {high}"


def nodes_in_words(count: int) -> str:
    """So many nodes."""
    return "1 node" if count == 1 else f"{count:,} nodes"


def icon(severity: str) -> str:
    """The sign of a severity; a word stands beside it."""
    return (
        f'<svg class="icon {severity}" viewBox="0 0 20 20" width="20" height="20" '
        f'aria-hidden="true" focusable="false">{ICONS[severity]}</svg>'
    )


def table(head: Sequence[str], rows: Iterable[Sequence[str]], name: str, kind: str = "") -> str:
    """Build a table of cells that are HTML already; the first of a row is its header."""
    titles = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    lines = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    top = f"<thead><tr>{titles}</tr></thead>" if head else ""
    return (
        f'<div class="scroll"><table class="{kind}"><caption class="unseen">{text(name)}</caption>'
        f"{top}<tbody>{lines}</tbody></table></div>"
    )


def details(title: str, body: str) -> str:
    """A part that is folded until asked for."""
    return f"<details><summary>{text(title)}</summary>{body}</details>"


def chart(name: str, label: str) -> str:
    """The place where the browser draws a chart; ``label`` says what it shows."""
    return (
        f'<div class="chart js-only" data-chart="{text(name)}" role="img" tabindex="0" '
        f'aria-label="{text(label)} Arrow keys step through the points."></div>'
    )


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """What the marks of a chart mean."""
    items = "".join(
        f'<li><svg viewBox="0 0 18 14" width="18" height="14" aria-hidden="true">'
        f"{SAMPLES[sample]}</svg>{text(words)}</li>"
        for sample, words in entries
    )
    return f'<ul class="legend js-only">{items}</ul>'


def rounded(values: Any, digits: int = 9) -> list[float | None]:
    """Return numbers of so many digits; infinite and unknown ones as null."""
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values]


class Section(NamedTuple):
    """A part of the page: its anchor, its name in the list of contents, and its HTML."""

    anchor: str
    title: str
    html: str


def section(anchor: str, title: str, lead: str, body: str, kind: str = "") -> Section:
    """Frame a part; ``lead`` is plain text that says how to read it."""
    words = f'<p class="lead">{text(lead)}</p>' if lead else ""
    frame = (
        f'<section id="{anchor}" class="card {kind}" aria-labelledby="{anchor}-title">'
        f'<h2 id="{anchor}-title">{text(title)}</h2>{words}{body}</section>'
    )
    return Section(anchor, title, frame)
