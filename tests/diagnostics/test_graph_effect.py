from __future__ import annotations

import numpy as np
import pytest

from qpignn.diagnostics.graph_effect import GraphEffect, graph_effect
from qpignn.errors import ArrayError, SettingError
from qpignn.intervals import Intervals


def intervals(half: np.ndarray | float, level: float = 0.9, side: str = "both") -> Intervals:
    value = np.zeros(np.size(half)) if np.ndim(half) else np.zeros(4)
    return Intervals(value, value - half, value + half, level, np.arange(len(value)), side=side)


def test_graph_effect_of_hand_computed_scores_is_a_ratio_of_means() -> None:
    with_graph = intervals(np.array([1.0, 2.0, 1.0, 2.0]))  # widths 2, 4, 2, 4; none missed
    without = intervals(np.array([2.0, 2.0, 2.0, 2.0]))
    effect = graph_effect(with_graph, without, np.zeros(4))
    assert effect.change == pytest.approx(3 / 4 - 1)
    # residuals −1, 1, −1, 1: standard deviation √(4/3), over √4, over the mean 4
    assert effect.standard_error == pytest.approx(np.sqrt(4 / 3) / 2 / 4)


def test_graph_effect_of_missed_targets_counts_two_over_alpha() -> None:
    y = np.array([0.0, 0.0, 0.0, 2.0])
    effect = graph_effect(intervals(1.0), intervals(2.0), y)
    assert effect.change == pytest.approx((4 * 2 + 20) / 16 - 1)


def test_graph_effect_error_bar_covers_the_truth() -> None:
    """Over many draws of equal fits, two standard errors hold 0 about 95 % of the time."""
    draw, hits = np.random.default_rng(0), 0
    for _ in range(400):
        first, second = (intervals(draw.gamma(4.0, size=200)) for _ in range(2))
        effect = graph_effect(first, second, np.zeros(200))
        hits += abs(effect.change) < 2 * effect.standard_error
    assert 0.92 < hits / 400 < 0.98


@pytest.mark.parametrize(
    ("change", "error", "units", "severity", "phrase"),
    [
        (-0.2, 0.02, 100, "good", "the graph helps"),
        (0.2, 0.02, 100, "warning", "does not help"),
        (-0.02, 0.02, 100, "note", "no clear effect"),
        (-0.2, 0.02, 5, "note", "too few nodes"),
    ],
)
def test_graph_effect_finding_has_severity_text_and_error_bar(
    change: float, error: float, units: int, severity: str, phrase: str
) -> None:
    finding = GraphEffect(change, error, units).finding()
    assert finding.severity == severity
    assert phrase in finding.text
    assert f"{100 * change:+.1f} ± 2.0 %" in finding.text


def test_graph_effect_of_other_levels_or_sides_raises() -> None:
    with pytest.raises(SettingError, match="one level"):
        graph_effect(intervals(1.0), intervals(1.0, level=0.8), np.zeros(4))
    with pytest.raises(SettingError, match="one-sided"):
        graph_effect(intervals(1.0, side="upper"), intervals(1.0), np.zeros(4))


def test_graph_effect_of_infinite_intervals_raises() -> None:
    with pytest.raises(ArrayError, match="finite intervals"):
        graph_effect(intervals(np.inf), intervals(1.0), np.zeros(4))
