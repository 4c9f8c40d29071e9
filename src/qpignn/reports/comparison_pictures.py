"""Pictures of a comparison of methods: coverage against width, and places."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from qpignn.reports.plotting import THIN, WIDTH_LABEL, legend_of, method_style, only_ticks, panels

COLUMNS = 6  # panels beside each other
STEPS = (1, 1.5, 2, 3, 4, 5, 6, 8)
TICKS = tuple(step * 10.0**power for power in (-3, -2, -1, 0, 1) for step in STEPS)
"""Round widths on a logarithmic axis."""
MOST_TICKS = 4
DOTTED = {**THIN, "dashes": (1, 3)}
"""Lines of reference values."""


def coverage_width_by_dataset(rows: list[dict[str, Any]], confidence_level: float) -> Figure:
    """Draw a panel per data set with each method's mean coverage and width.

    Bars are standard errors over seeds. Widths are on a logarithmic axis.

    Args:
        rows: results of several methods on several data sets.
        confidence_level: the wanted coverage.

    Returns:
        The figure.
    """
    frame = pd.DataFrame(rows)
    datasets, methods = ([*dict.fromkeys(frame[name])] for name in ("dataset", "method"))
    lines = -(-len(datasets) // COLUMNS)
    columns = min(COLUMNS, len(datasets))
    size = 2.0 * columns + 0.4, 1.9 * lines + 0.8
    figure, axes = panels(*size, lines, columns, squeeze=False, sharey=True)
    groups = frame.groupby(["dataset", "method"], sort=False)[["picp", "mpiw"]]
    means, errors = groups.mean(), groups.sem().fillna(0)
    low = float(means["picp"].min())
    for panel, dataset in zip(axes.flat, datasets, strict=False):
        panel.axhline(confidence_level, **THIN)
        for i, method in enumerate(methods):
            if (dataset, method) in means.index:
                place, error = means.loc[(dataset, method)], errors.loc[(dataset, method)]
                bars = {"xerr": error["mpiw"], "yerr": error["picp"], "elinewidth": 0.8}
                look = {**method_style(method, i), "markersize": 5, "linestyle": ""}
                panel.errorbar(place["mpiw"], place["picp"], label=method, **bars, **look)
        panel.set_title(dataset, fontsize="medium")
        panel.set_ylim(min(low - 0.02, confidence_level - 0.1), 1.02)
        _log_widths(panel, means.loc[dataset]["mpiw"])
    for panel in axes.flat[len(datasets) :]:
        panel.set_axis_off()
    figure.supxlabel(f"{WIDTH_LABEL}; further left is narrower", fontsize="medium")
    figure.supylabel("coverage (PICP)", fontsize="medium")
    legend_of(figure, axes[0, 0], 9, "outside upper center")
    return figure


def _log_widths(panel: Any, widths: pd.Series[float]) -> None:
    """Let widths be on a logarithmic axis with a few round ticks."""
    low, high = 0.85 * float(widths.min()), 1.18 * float(widths.max())
    panel.set_xscale("log")
    panel.set_xlim(low, high)
    inside = [tick for tick in TICKS if low <= tick <= high]
    few = inside[:: -(-len(inside) // MOST_TICKS) or 1]
    only_ticks(panel.xaxis, few)
    panel.tick_params(labelsize="small")


def coverage_width_overall(
    rows: list[dict[str, Any]], confidence_level: float, reference: str
) -> Figure:
    """Draw each method's coverage and relative width, over all data sets.

    A dot is the mean coverage and the geometric mean of width over the reference's width; the
    line reaches from the data set with the least coverage to the one with the most.

    Args:
        rows: results of several methods on several data sets.
        confidence_level: the wanted coverage.
        reference: the method whose widths count as 1.

    Returns:
        The figure.
    """
    frame = pd.DataFrame(rows)
    means = frame.groupby(["method", "dataset"], sort=False)[["picp", "mpiw"]].mean()
    figure, axes = panels(8.5, 4.6)
    axes.axhline(confidence_level, **THIN)
    axes.axvline(1, **DOTTED)
    for i, method in enumerate(dict.fromkeys(frame["method"])):
        part = means.loc[method]
        ratio = part["mpiw"] / means.loc[reference]["mpiw"]
        width = float(np.exp(np.log(ratio.dropna()).mean()))
        ends = [part["picp"].min(), part["picp"].max()]
        look = method_style(str(method), i)
        axes.plot([width, width], ends, color=look["color"], linewidth=1, alpha=0.6)
        axes.plot(width, part["picp"].mean(), label=method, linestyle="", markersize=9, **look)
    axes.set_xlabel(f"mean width over that of {reference} (geometric mean over data sets)")
    axes.set_ylabel("coverage (PICP): mean, least and most of a data set")
    figure.legend(loc="outside right center", frameon=False)
    return figure


def ranks(table: pd.DataFrame) -> Figure:
    """Draw mean places and mean Winkler scores over the best, with 95 % intervals.

    Args:
        table: as :func:`qpignn.reports.tables.mean_ranks` returns it.

    Returns:
        The figure.
    """
    order = np.arange(len(table))[::-1]
    figure, (left, right) = panels(9.5, 0.28 * len(table) + 1.2, 1, 2, sharey=True)
    for place, (i, line) in zip(order, enumerate(table.to_dict("records")), strict=True):
        look = method_style(line["method"], i)
        for panel, name in ((left, "rank"), (right, "ratio")):
            ends = [line[f"{name}_low"], line[f"{name}_high"]]
            panel.plot(ends, [place, place], color=look["color"], linewidth=2, alpha=0.5)
            panel.plot(line[name], place, linestyle="", markersize=7, **look)
    left.set_yticks(order, table["method"])
    left.set_xlabel("mean place by Winkler score (1 is best)")
    right.set_xlabel("Winkler score over the best (geometric mean)")
    for panel in (left, right):
        panel.axvline(1, **DOTTED)
        panel.grid(axis="y", color="gray", alpha=0.2)
    return figure
