from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from qpignn.reports.comparison_pictures import (
    coverage_width_by_dataset,
    coverage_width_overall,
    ranks,
)
from qpignn.reports.plotting import COLORS, MARKERS, OF_METHODS, method_style
from qpignn.reports.tables import mean_ranks, ranking

WIDTHS = {"qpignn": {"er": 0.1, "ba": 0.2}, "sqr": {"er": 0.2, "ba": 0.1}}
COVERAGE = {"qpignn": 0.9, "sqr": 0.7}


def rows() -> list[dict[str, Any]]:
    """Two seeds, a hundredth apart on either side in coverage."""
    return [
        {
            "dataset": dataset,
            "method": method,
            "seed": seed,
            "confidence_level": 0.9,
            "picp": COVERAGE[method] + 0.02 * seed - 0.01,
            "mpiw": width,
            "mpiw_limit": None,
            "winkler": width * (2 if method == "sqr" else 1),
            "fit_seconds": 1.0,
        }
        for method, widths in WIDTHS.items()
        for dataset, width in widths.items()
        for seed in range(2)
    ]


def test_coverage_width_by_dataset_has_a_panel_per_data_set_and_a_mark_per_method() -> None:
    figure = coverage_width_by_dataset(rows(), 0.9)
    titles = [panel.get_title() for panel in figure.axes]
    assert titles[:2] == ["er", "ba"]
    wanted, *marks = (line for line in figure.axes[0].lines if len(line.get_xdata()) > 0)
    assert set(wanted.get_ydata()) == {0.9}
    points = {(float(mark.get_xdata()[0]), float(mark.get_ydata()[0])) for mark in marks}
    assert {(round(x, 6), round(y, 6)) for x, y in points} == {(0.1, 0.9), (0.2, 0.7)}
    # the standard error of two values 0.02 apart is 0.01
    bars = [
        segment[:, 1]
        for collection in figure.axes[0].collections
        for segment in collection.get_segments()
    ]
    assert max(bar.max() - bar.min() for bar in bars) == pytest.approx(0.02)
    for panel in figure.axes[:2]:
        assert len(panel.get_xticks()) >= 2
    (legend,) = figure.legends
    assert [text.get_text() for text in legend.get_texts()] == ["qpignn", "sqr"]


def test_coverage_width_overall_has_geometric_means_of_relative_widths() -> None:
    (axes,) = coverage_width_overall(rows(), 0.9, "qpignn").axes
    dots = {line.get_label(): line for line in axes.lines if line.get_linestyle() == "None"}
    # sqr is twice as wide on er and half as wide on ba
    assert float(dots["sqr"].get_xdata()[0]) == pytest.approx(1.0)
    assert float(dots["sqr"].get_ydata()[0]) == pytest.approx(0.7)
    assert float(dots["qpignn"].get_xdata()[0]) == pytest.approx(1.0)


def test_ranks_are_drawn_best_first_with_their_intervals() -> None:
    table = mean_ranks(ranking(rows()))
    left, right = ranks(table).axes
    labels = {text.get_position()[1]: text.get_text() for text in left.get_yticklabels()}
    assert labels[max(labels)] == table["method"][0] == "qpignn"
    dots = [line for line in left.lines if line.get_linestyle() == "None"]
    assert [float(dot.get_xdata()[0]) for dot in dots] == pytest.approx(table["rank"].tolist())
    spans = [line.get_xdata() for line in left.lines if line.get_linewidth() == 2]
    assert np.allclose(spans, table[["rank_low", "rank_high"]].to_numpy())
    assert len(right.lines) == len(left.lines)


def test_methods_look_alike_in_no_two_cases() -> None:
    assert len({*OF_METHODS.values()}) == len(OF_METHODS)
    assert len({color for color, _ in OF_METHODS.values()}) == len(OF_METHODS)
    assert method_style("sqr") == {"color": OF_METHODS["sqr"][0], "marker": OF_METHODS["sqr"][1]}
    assert method_style("other", 1) == {"color": COLORS[1], "marker": MARKERS[1]}
    for variant in ("ensemble:sqr", "conformal:sqr", "sqr_single"):
        look = method_style(variant)
        assert {**method_style("sqr"), **look} == look  # the same, and hollow
        assert look["markerfacecolor"] == "white"


def test_coverage_width_leaves_out_missing_data_sets_of_a_method() -> None:
    some = [row for row in rows() if (row["dataset"], row["method"]) != ("ba", "sqr")]
    panels = coverage_width_by_dataset(some, 0.9).axes
    assert len(panels[0].containers) == 2
    assert len(panels[1].containers) == 1
    (axes,) = coverage_width_overall(some, 0.9, "qpignn").axes
    dots = {line.get_label(): line for line in axes.lines if line.get_linestyle() == "None"}
    assert float(dots["sqr"].get_xdata()[0]) == pytest.approx(2.0)
