"""Pictures of results."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from qpignn.intervals import Intervals, as_nodes

BAND, INSIDE, MISSED = "#9ecae1", "#08306b", "#d95f02"  # apart in lightness as well as in hue


def interval_band(y: Any, intervals: Intervals, title: str = "") -> Figure:
    """Draw targets in rising order with their intervals; missed ones are marked by shape too."""
    targets = as_nodes("y", y)
    order = np.argsort(targets, kind="stable")
    targets, shown = targets[order], intervals.select(order)
    hit = shown.covers(targets)
    rank = np.arange(len(targets))
    figure = Figure(figsize=(9, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    axes.vlines(rank, shown.lower, shown.upper, color=BAND, linewidth=_line_width(len(rank)))
    axes.plot(rank, shown.prediction, ".", color="#5a9bd4", markersize=2.5, label="prediction")
    axes.plot(rank[hit], targets[hit], ".", color=INSIDE, markersize=4, label="target, inside")
    missed = f"target, missed ({int((~hit).sum())} of {len(hit)})"
    axes.plot(rank[~hit], targets[~hit], "x", color=MISSED, markersize=6, label=missed)
    axes.set_xlabel("test nodes, by target")
    axes.set_ylabel("target")
    level = f"{100 * intervals.confidence_level:g} % intervals"
    axes.set_title(title or f"{level}: {100 * hit.mean():.1f} % of targets inside")
    handles, labels = axes.get_legend_handles_labels()
    band = axes.vlines([], [], [], color=BAND, linewidth=6)
    axes.legend([band, *handles], [level, *labels], loc="upper left", frameon=False)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.01)
    return figure


def _line_width(nodes: int) -> float:
    """Bars that touch but do not overlap in a nine-inch picture."""
    return float(np.clip(580 / max(nodes, 1), 0.4, 6))


def save_figure(figure: Figure, path: Path) -> None:
    """Write a figure to a file of the kind its name says."""
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=150)
