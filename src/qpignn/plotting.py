"""Plots of intervals or one-sided bounds: one mark per node, in the order of predictions."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from qpignn.intervals import Intervals

BAND, INSIDE, MISSED = "#9ecae1", "#08306b", "#d95f02"  # differ in lightness and in hue
PREDICTED, BOUND = "#5a9bd4", "#3182bd"
WITHIN = {"both": "inside", "upper": "below", "lower": "above"}
"""Where targets should lie: within the interval, or on one side of the bound."""


class Picture(Figure):
    """A figure that a notebook shows by itself, whether pyplot is in use or not."""

    def _repr_png_(self) -> bytes:
        content = BytesIO()
        self.savefig(content, format="png", dpi=100)
        return content.getvalue()


def band_figure(intervals: Intervals, y: Any = None, title: str = "") -> Picture:
    """Draw intervals, or one-sided bounds, in the order of predictions.

    Args:
        intervals: the result to draw.
        y: targets, shape (nodes,), if they are known.
        title: title; by default the level and, with targets, the share of targets inside.

    Returns:
        The figure.
    """
    figure = Picture(figsize=(9, 4.5), layout="constrained")
    axes = figure.add_subplot()
    hit = draw_band(axes, intervals, y, size=1.6)
    side = intervals.side
    level = f"{100 * intervals.confidence_level:g} % "
    level += "intervals" if side == "both" else f"{side} bounds"
    if hit is not None:
        level += f": {100 * hit.mean():.1f} % of targets {WITHIN[side]}"
    axes.set_xlabel("nodes, by prediction")
    axes.set_title(title or level)
    axes.set_ylabel("target")
    handles, labels = axes.get_legend_handles_labels()
    if hit is not None:
        labels[-1] += f" ({int((~hit).sum())} of {len(hit)})"
    place = "lower right" if side == "lower" else "upper left"  # the empty corner
    axes.legend(handles, labels, loc=place, frameon=False)
    return figure


def draw_band(axes: Any, intervals: Intervals, y: Any = None, *, size: float = 1.0) -> Any:
    """Draw intervals or one-sided bounds into axes, in the order of predictions.

    Intervals are bars. A bound is a mark, with a line to the side on which targets should lie.
    Missed targets differ from the others in shape and in colour.

    Args:
        axes: matplotlib axes.
        intervals: the result to draw.
        y: targets, shape (nodes,), if they are known.
        size: scale of marks and lines.

    Returns:
        Which targets are inside, in the order drawn; None without targets.
    """
    order = np.argsort(intervals.prediction, kind="stable")
    shown = intervals.select(order)
    rank = np.arange(len(shown))
    touching = float(np.clip(580 / max(len(rank), 1), 0.4, 6))  # bars in a nine-inch figure
    bar = size / 1.6 * touching
    if shown.bound is None:
        axes.vlines(rank, *_drawn_ends(shown, y), color=BAND, linewidth=bar)
        axes.vlines([], [], [], color=BAND, linewidth=6, label="interval")
    else:
        axes.vlines(rank, *_drawn_ends(shown, y), color=BAND, linewidth=bar / 4, alpha=0.6)
        mark = {"color": BOUND, "markersize": bar, "markeredgewidth": size}
        axes.plot(rank, shown.bound, "_", **mark, label=f"{shown.side} bound")
    dots = {"color": PREDICTED, "markersize": 1.5 * size, "label": "prediction"}
    axes.plot(rank, shown.prediction, ".", **dots)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.01)
    if y is None:
        return None
    targets = np.asarray(y)[order]
    hit = shown.covers(targets)
    for chosen, marker, color, factor, label in (
        (hit, ".", INSIDE, 2.5, f"target, {WITHIN[shown.side]}"),
        (~hit, "x", MISSED, 3.7, "target, missed"),
    ):
        style = {"color": color, "markersize": factor * size, "label": label}
        axes.plot(rank[chosen], targets[chosen], marker, **style)
    return hit


def _drawn_ends(shown: Intervals, y: Any) -> tuple[Any, Any]:
    """Return finite bounds: infinite ones end slightly beyond all finite values."""
    every = [shown.lower, shown.upper, shown.prediction, *([] if y is None else [np.asarray(y)])]
    seen = np.concatenate(every)
    seen = seen[np.isfinite(seen)]
    low, high = (seen.min(), seen.max()) if len(seen) else (0.0, 0.0)
    margin = 0.05 * (high - low) or 1.0
    return np.maximum(shown.lower, low - margin), np.minimum(shown.upper, high + margin)
