"""HTML fragments: escaped text, numbers, tables, icons, sections and containers of charts."""

from __future__ import annotations

import html
import math
from collections.abc import Iterable, Mapping, Sequence
from importlib.resources import files
from string import Template
from typing import Any, NamedTuple

from qpignn.diagnostics.wording import format_number

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


def asset(name: str) -> str:
    """Return a file of ``assets/``.

    Args:
        name: name of the file.
    """
    return files("qpignn.reports").joinpath("assets", name).read_text(encoding="utf-8")


def fill_template(name: str, **values: str) -> str:
    """Return a template of ``assets/`` with its names filled in, without line breaks and indents.

    Args:
        name: name of the file.
        **values: what stands for each ``$name``, as HTML.
    """
    lines = (line.strip() for line in asset(name).splitlines())
    return Template("".join(lines)).substitute(values)


def escaped(value: Any) -> str:
    """Return a value as text that is safe in HTML.

    Args:
        value: any value. Lone surrogates, which UTF-8 cannot encode, become question marks.
    """
    return html.escape(str(value).encode("utf-8", "replace").decode("utf-8"))


def sentence(value: Any) -> str:
    """Return escaped prose with a capital letter, a full stop and unbroken percentages.

    Args:
        value: a sentence or phrase.
    """
    prose = unbroken(str(value).strip()).replace("± ", "±\u00a0")
    stop = "" if prose.endswith((".", "!", "?", "…", ":")) or not prose else "."
    return escaped(prose[:1].upper() + prose[1:] + stop)


def aligned(values: Sequence[float | None]) -> list[str]:
    """Return a column of numbers with the decimals that give the largest four digits.

    Args:
        values: the numbers of the column.
    """
    sizes = [abs(value) for value in values if value is not None and math.isfinite(value)]
    size = max(sizes, default=0.0)
    if not 1e-3 <= size < 1e9:
        return [format_number(value) for value in values]
    places = max(0, 3 - math.floor(math.log10(size)))
    return [
        f"{value:,.{places}f}".replace("-", "−")
        if value is not None and math.isfinite(value)
        else format_number(value)
        for value in values
    ]


def unbroken(text: str) -> str:
    """Return text with non-breaking spaces before per cent signs.

    Args:
        text: plain text.
    """
    return text.replace(" %", "\u00a0%")


def percent_range(shares: dict[str, Any]) -> str:
    """Return the ends of an error bar as percentages.

    Args:
        shares: a dictionary with the shares ``low`` and ``high``.
    """
    return unbroken(f"{100 * shares['low']:.1f} to {100 * shares['high']:.1f} %")


def icon(severity: str) -> str:
    """Return the icon of a severity; its name must stand next to it as text.

    Args:
        severity: ``good``, ``note`` or ``warning``.
    """
    return (
        f'<svg class="icon {severity}" viewBox="0 0 20 20" width="20" height="20" '
        f'aria-hidden="true" focusable="false">{ICONS[severity]}</svg>'
    )


def options(labels: Mapping[Any, str]) -> str:
    """Return the options of a choice.

    Args:
        labels: label of each value, as plain text.
    """
    return "".join(f'<option value="{v}">{escaped(text)}</option>' for v, text in labels.items())


def table(head: Sequence[str], rows: Iterable[Sequence[str]], name: str, kind: str = "") -> str:
    """Return a table whose rows begin with a header cell.

    Args:
        head: column headings, as HTML; empty for none.
        rows: cells of each row, as HTML.
        name: caption for screen readers, as plain text.
        kind: CSS class.
    """
    titles = "".join(f'<th scope="col">{cell}</th>' for cell in head)
    lines = "".join(
        f'<tr><th scope="row">{row[0]}</th>{"".join(f"<td>{cell}</td>" for cell in row[1:])}</tr>'
        for row in rows
    )
    top = f"<thead><tr>{titles}</tr></thead>" if head else ""
    caption = f'<caption class="unseen">{escaped(name)}</caption>'
    content = f"{caption}{top}<tbody>{lines}</tbody>"
    return f'<div class="scroll"><table class="{kind}">{content}</table></div>'


def details(title: str, body: str) -> str:
    """Return a collapsible part of the page.

    Args:
        title: its title, as plain text.
        body: its content, as HTML.
    """
    return f"<details><summary>{escaped(title)}</summary>{body}</details>"


def chart(name: str, label: str) -> str:
    """Return the container in which the browser draws a chart.

    Args:
        name: the chart, see ``assets/charts.js``.
        label: description for screen readers, as plain text.
    """
    return (
        f'<div class="chart js-only" data-chart="{escaped(name)}" role="img" tabindex="0" '
        f'aria-label="{escaped(label)} Arrow keys step through the points."></div>'
    )


def legend(entries: Iterable[tuple[str, str]]) -> str:
    """Return the legend of a chart.

    Args:
        entries: the marks, keys of ``SAMPLES``, each with its meaning as plain text.
    """
    items = "".join(
        f'<li><svg viewBox="0 0 18 14" width="18" height="14" aria-hidden="true">'
        f"{SAMPLES[sample]}</svg>{escaped(meaning)}</li>"
        for sample, meaning in entries
    )
    return f'<ul class="legend js-only">{items}</ul>'


def rounded(values: Any, digits: int = 9) -> list[float | None]:
    """Return numbers rounded to significant digits; non-finite ones as None.

    Args:
        values: the numbers.
        digits: number of significant digits.
    """
    return [float(f"{value:.{digits}g}") if math.isfinite(value) else None for value in values]


class Section(NamedTuple):
    """A section of the page.

    Attributes:
        anchor: its id.
        title: its title in the table of contents.
        html: the section as HTML.
    """

    anchor: str
    title: str
    html: str


def section(anchor: str, title: str, lead: str, body: str, kind: str = "") -> Section:
    """Return a section with a heading and an introduction.

    Args:
        anchor: its id.
        title: its title, as plain text.
        lead: how to read it, as plain text; empty for none.
        body: its content, as HTML.
        kind: further CSS class.
    """
    introduction = f'<p class="lead">{escaped(lead)}</p>' if lead else ""
    frame = (
        f'<section id="{anchor}" class="card {kind}" aria-labelledby="{anchor}-title">'
        f'<h2 id="{anchor}-title">{escaped(title)}</h2>{introduction}{body}</section>'
    )
    return Section(anchor, title, frame)
