"""The picture of intervals: one bar a node, in rising order."""

from __future__ import annotations

from io import BytesIO
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

if TYPE_CHECKING:
    from qpignn.intervals import Intervals

BAND, INSIDE, MISSED = "#9ecae1", "#08306b", "#d95f02"  # apart in lightness as well as in hue
PREDICTED = "#5a9bd4"


class Picture(Figure):
    """A figure that a notebook shows by itself, whether pyplot is in use or not."""

    def _repr_png_(self) -> bytes:
        content = BytesIO()
        self.savefig(content, format="png", dpi=100)
        return content.getvalue()


def band_figure(intervals: Intervals, y: Any = None, title: str = "") -> Picture:
    """Draw intervals by rising target, or by rising prediction where no targets are given."""
    figure = Picture(figsize=(9, 4.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    hit = draw_band(axes, intervals, y, size=1.6)
    level = f"{100 * intervals.confidence_level:g} % intervals"
    if hit is None:
        axes.set_xlabel("nodes, by prediction")
        axes.set_title(title or level)
    else:
        axes.set_xlabel("nodes, by target")
        axes.set_title(title or f"{level}: {100 * hit.mean():.1f} % of targets inside")
    axes.set_ylabel("target")
    handles, labels = axes.get_legend_handles_labels()
    if hit is not None:
        labels[-1] += f" ({int((~hit).sum())} of {len(hit)})"
    axes.legend(handles, labels, loc="upper left", frameon=False)
    return figure


def draw_band(axes: Any, intervals: Intervals, y: Any = None, *, size: float = 1.0) -> Any:
    """Draw intervals into axes; return which targets are inside, where targets are given.

    Missed targets are marked by shape as well as by colour.
    """
    order = np.argsort(intervals.prediction if y is None else np.asarray(y), kind="stable")
    shown = intervals.select(order)
    rank = np.arange(len(shown))
    line = {"color": BAND, "linewidth": size / 1.6 * _line_width(len(rank))}
    axes.vlines(rank, *_drawn_ends(shown, y), **line)
    axes.vlines([], [], [], color=BAND, linewidth=6, label="interval")
    dots = {"color": PREDICTED, "markersize": 1.5 * size, "label": "prediction"}
    axes.plot(rank, shown.prediction, ".", **dots)
    axes.spines[["top", "right"]].set_visible(False)
    axes.margins(x=0.01)
    if y is None:
        return None
    targets = np.asarray(y)[order]
    hit = shown.covers(targets)
    for chosen, marker, color, factor, label in (
        (hit, ".", INSIDE, 2.5, "target, inside"),
        (~hit, "x", MISSED, 3.7, "target, missed"),
    ):
        style = {"color": color, "markersize": factor * size, "label": label}
        axes.plot(rank[chosen], targets[chosen], marker, **style)
    return hit


def _drawn_ends(shown: Intervals, y: Any) -> tuple[Any, Any]:
    """Return bounds that can be drawn: one that is infinite ends a little beyond all that is."""
    every = [shown.lower, shown.upper, shown.prediction, *([] if y is None else [np.asarray(y)])]
    seen = np.concatenate(every)
    seen = seen[np.isfinite(seen)]
    low, high = (seen.min(), seen.max()) if len(seen) else (0.0, 0.0)
    room = 0.05 * (high - low) or 1.0
    return np.maximum(shown.lower, low - room), np.minimum(shown.upper, high + room)


def _line_width(nodes: int) -> float:
    """Bars that touch but do not overlap in a nine-inch picture."""
    return float(np.clip(580 / max(nodes, 1), 0.4, 6))
