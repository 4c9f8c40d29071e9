"""What the pictures of results share: figures without a window, colours and markers."""

from __future__ import annotations

from typing import Any

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

# hues apart for the colour-blind (Okabe and Ito), each with a marker and a dash of its own
COLORS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#56b4e9", "#e69f00", "#000000", "#7f7f7f")
MARKERS = ("o", "s", "^", "D", "v", "P", "X", "*", "<", ">")
DASHES = ("-", "--", "-.", ":")
OF_METHODS = {
    "qpignn": ("#d55e00", "o"),
    "sqr": ("#0072b2", "s"),
    "rqr": ("#56b4e9", "^"),
    "mc_dropout": ("#e69f00", "v"),
    "bayesian": ("#cc79a7", "D"),
    "evidential": ("#009e73", "P"),
    "cfgnn": ("#000000", "X"),
    "deep_ensemble": ("#7f7f7f", "<"),
    "cqr": ("#8c510a", ">"),
}
"""A method looks the same in every picture; no two share both colour and marker."""
WIDTH_LABEL = "mean width (MPIW), in train ranges"


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure of a size in inches, drawn without a window."""
    figure = Figure(figsize=(width, height), layout="constrained")
    FigureCanvasAgg(figure)
    return figure


def style(i: int) -> dict[str, Any]:
    """Return the colour and marker of the i-th thing in a picture."""
    return {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)]}


def method_style(name: str, i: int = 0) -> dict[str, Any]:
    """Return a method's colour and marker: its own, or those of the i-th thing in a picture.

    A variant of a method (``ensemble:NAME``, ``conformal:NAME``, ``NAME_single``) looks like the
    method, with a hollow marker.
    """
    base = name.rpartition(":")[2].removesuffix("_single")
    if base not in OF_METHODS:
        return style(i)
    color, marker = OF_METHODS[base]
    look = {"color": color, "marker": marker}
    return look if base == name else {**look, "markerfacecolor": "white", "markeredgewidth": 1.5}


def bare(axes: Any) -> None:
    """Take away the upper and the right border."""
    axes.spines[["top", "right"]].set_visible(False)
