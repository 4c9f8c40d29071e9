"""Pieces of Markdown text."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np


def markdown(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a Markdown table."""
    lines = [f"| {' | '.join(headings)} |", "|---" * len(headings) + "|"]
    return "\n".join([*lines, *(f"| {' | '.join(row)} |" for row in rows)])


def paragraphs(*parts: str) -> str:
    """Return those parts that are not empty, apart from each other."""
    return "\n\n".join(part for part in parts if part)


def listed(names: Sequence[str]) -> str:
    """Return names as they are listed in a sentence."""
    return " and ".join([", ".join(names[:-1]), names[-1]] if len(names) > 1 else names)


def counted(rows: Iterable[dict[Any, Any]], what: str = "seed") -> str:
    """Return how many seeds some rows have, in words for a sentence."""
    count = len({row["seed"] for row in rows})
    return f"{count} {what}{'s' * (count != 1)}"


def with_spread(mean: float, deviation: float) -> str:
    """Return a mean with its deviation over seeds, where there is one."""
    return f"{mean:.3f}" if np.isnan(deviation) else f"{mean:.3f} ± {deviation:.3f}"


def percent_above(ratio: float) -> str:
    """Return how much a ratio is above 1."""
    return f"{100 * (ratio - 1):.1f} %"


def signed(value: float) -> str:
    """Return a difference with its sign."""
    return f"{value:+.2f}".replace("-", "−")


def from_to(values: Iterable[float]) -> str:
    """Return the least and the greatest of some values."""
    every = [*values]
    return f"{min(every):.3f} to {max(every):.3f}"
