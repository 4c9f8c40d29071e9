"""Shared parts of the pictures of results: figures without a window, colours and markers."""

from __future__ import annotations

from typing import Any

from matplotlib.figure import Figure

# colour-blind safe palette (Okabe and Ito); markers and dashes distinguish lines in print
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
"""Colour and marker of each method, the same in every picture and different for any two."""
WIDTH_LABEL = "mean width (MPIW), in train ranges"


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that is drawn without a window.

    Args:
        width, height: size in inches.
    """
    return Figure(figsize=(width, height), layout="constrained")


def style(i: int) -> dict[str, Any]:
    """Return colour and marker of the i-th series of a picture.

    Args:
        i: position of the series.
    """
    return {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)]}


def method_style(name: str, i: int = 0) -> dict[str, Any]:
    """Return colour and marker of a method.

    Variants of a method (``ensemble:NAME``, ``conformal:NAME``, ``NAME_single``) have its colour
    and a hollow marker.

    Args:
        name: name of the method.
        i: position of the series, for methods without a style of their own.
    """
    base = name.rpartition(":")[2].removesuffix("_single")
    if base not in OF_METHODS:
        return style(i)
    color, marker = OF_METHODS[base]
    look = {"color": color, "marker": marker}
    return look if base == name else {**look, "markerfacecolor": "white", "markeredgewidth": 1.5}


def bare(axes: Any) -> None:
    """Hide the upper and the right border of a plot.

    Args:
        axes: the Matplotlib axes.
    """
    axes.spines[["top", "right"]].set_visible(False)
