"""Rendering of tables as Markdown, LaTeX or JSON."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import asdict
from math import isnan

from qpignn.io.files import json_safe
from qpignn.reports.tables import NUMBERS, Place, Table

WIDE = 6  # columns; wider LaTeX tables are scaled to the page (graphicx)

SPECIAL = {letter: f"\\{letter}" for letter in "%_&#${}"}
SPECIAL |= {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}"}
SPECIAL |= {"±": r"$\pm$", "−": "$-$", "λ": r"$\lambda$", "α": r"$\alpha$", "|": "$|$"}
SPECIAL |= {"√": r"$\surd$", "×": r"$\times$", "–": "--"}


def to_markdown(table: Table) -> str:
    """Return a table as Markdown.

    Bold means that the nominal coverage is reached, underlined the narrowest of those.

    Args:
        table: the table.
    """
    lines = [f"**{table.title}**", "", _bar(table.headings), _bar(["---"] * len(table.headings))]
    lines += [_bar([_cell(place, "<u>{}</u>", "**{}**") for place in row]) for row in table.rows]
    return "\n".join([*lines, *(["", table.note] if table.note else [])]) + "\n"


def _bar(places: list[str] | tuple[str, ...]) -> str:
    return f"| {' | '.join(place.replace('|', chr(92) + '|') for place in places)} |"


def to_latex(table: Table) -> str:
    """Return a table as LaTeX for the booktabs package, with the marks of :func:`to_markdown`.

    Args:
        table: the table.
    """
    wide = len(table.headings) > WIDE
    lines = [
        r"\begin{table}",
        r"\centering",
        rf"\caption{{{_latex(table.title)}}}",
        *([r"\resizebox{\textwidth}{!}{%"] if wide else []),
        rf"\begin{{tabular}}{{{'l' * len(table.headings)}}}",
        r"\toprule",
        " & ".join(_latex(heading) for heading in table.headings) + r" \\",
        r"\midrule",
    ]
    marks = r"\underline{{{}}}", r"\textbf{{{}}}"
    for row in table.rows:
        lines.append(" & ".join(_cell(place, *marks, _latex) for place in row) + r" \\")
    lines += [r"\bottomrule", r"\end{tabular}" + "}" * wide]
    lines += [rf"\par {_latex(table.note)}"] if table.note else []
    return "\n".join([*lines, r"\end{table}"]) + "\n"


def to_json(table: Table) -> str:
    """Return a table as JSON, with unrounded values and their marks.

    Args:
        table: the table.
    """
    document = json_safe(asdict(table))
    return json.dumps(document, indent=2, ensure_ascii=False, allow_nan=False) + "\n"


FORMATS = {"md": to_markdown, "latex": to_latex, "json": to_json}
ENDINGS = {".md": to_markdown, ".tex": to_latex, ".json": to_json}
"""How a table is written, by the name of the format and by the ending of its file."""


def _cell(place: Place, best: str, strong: str, plain: Callable[[str], str] = str) -> str:
    """Return text, or figures with the marks ``best`` and ``strong``: {} stands for the figure."""
    if isinstance(place, str):
        return plain(place)
    figures = []
    for part in place:
        figure = plain(digits(part.mean, part.metric))
        figure = best.format(figure) if part.best else figure
        figure = strong.format(figure) if part.strong else figure
        if not isnan(part.spread):
            figure += plain(f" ± {digits(part.spread, part.metric)}")
        figures.append(figure)
    return " / ".join(figures) or "–"


def digits(value: float, metric: str = "") -> str:
    """Return a number with three decimals, fewer for large numbers, none for counts.

    Args:
        value: the number; NaN becomes a dash.
        metric: its metric; names in ``NUMBERS`` are counts.
    """
    if isnan(value):
        return "–"
    whole = metric in NUMBERS or abs(value) >= 1000
    text = f"{value:,.0f}" if whole else f"{value:.{1 if abs(value) >= 10 else 3}f}"
    return text.replace("-", "−")


def _latex(text: str) -> str:
    return "".join(SPECIAL.get(letter, letter) for letter in text)
