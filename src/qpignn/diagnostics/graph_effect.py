"""Does the graph help? A model compared with the same method fitted without edges."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from qpignn.diagnostics.findings import Finding
from qpignn.errors import ArrayError, SettingError, plural
from qpignn.intervals import Intervals
from qpignn.metrics import winkler_scores

FEWEST = 10  # held-out units below which the standard error is not trusted
CLEAR = 2.0  # standard errors from which a difference is reported as one


@dataclass(frozen=True)
class GraphEffect:
    r"""How the Winkler score changes with the graph, on the same held-out units.

    With the scores :math:`s_i` of the model and :math:`t_i` of the same method without edges, the
    change is :math:`r = \sum_i s_i / \sum_i t_i - 1`. Its standard error is that of a ratio of
    means, :math:`\sqrt{\operatorname{var}(s_i - (1 + r)\, t_i) / n} \,/\, \bar t`, which treats
    units as independent.

    Attributes:
        change: relative change of the mean Winkler score; below 0 the graph helps.
        standard_error: of ``change``.
        units: number of held-out units compared.
    """

    change: float
    standard_error: float
    units: int

    def finding(self) -> Finding:
        """Return the answer as a sentence with its error bar."""
        figure = f"{100 * self.change:+.1f} ± {100 * self.standard_error:.1f} %"
        compared = (
            f"Winkler score {figure} on {plural(self.units, 'held-out node')}, against the same "
            f"method fitted without edges (± one standard error)"
        )
        severity, answer, advice = "note", "no clear effect of the graph", ""
        if self.units < FEWEST:
            answer = "too few nodes to tell whether the graph helps"
        elif abs(self.change) >= CLEAR * self.standard_error and self.change < 0:
            severity, answer = "good", "the graph helps"
        elif abs(self.change) >= CLEAR * self.standard_error:
            severity, answer = "warning", "the graph does not help"
            advice = "; are the edges right, and do neighbours have similar targets? "
            advice += "encoder='mlp' fits without them"
        return Finding("graph", severity, f"{answer}: {compared}{advice}")


def graph_effect(with_graph: Intervals, without_graph: Intervals, y: Any) -> GraphEffect:
    """Compare the intervals of two fits on the same units.

    Args:
        with_graph: intervals of the model.
        without_graph: intervals of the same method without edges, for the same units.
        y: (units,), their targets.

    Returns:
        The relative change of the mean Winkler score and its standard error.

    Raises:
        SettingError: if the intervals are one-sided or of different levels.
        ArrayError: if a bound is infinite, or the scores without edges are all zero.
    """
    level = with_graph.confidence_level
    if {with_graph.side, without_graph.side} != {"both"} or without_graph.confidence_level != level:
        raise SettingError(
            "expected two-sided intervals of one level, got one-sided intervals or different "
            "levels; compare without the graph at a level that both fits have"
        )
    scores, plain = (
        winkler_scores(y, intervals.lower, intervals.upper, confidence_level=level)
        for intervals in (with_graph, without_graph)
    )
    if not (np.isfinite(scores).all() and np.isfinite(plain).all() and plain.sum() > 0):
        raise ArrayError(
            "expected finite intervals to compare, got infinite ones or scores that are all zero; "
            "label more nodes"
        )
    change = float(scores.mean() / plain.mean() - 1)
    if len(scores) < 2:
        return GraphEffect(change, float("inf"), len(scores))
    spread = float(np.std(scores - (1 + change) * plain, ddof=1) / np.sqrt(len(scores)))
    return GraphEffect(change, spread / float(plain.mean()), len(scores))
