"""Shared parts of the pictures of results: figures, axes and legends, colours and markers."""

from __future__ import annotations

from typing import Any

from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

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
    "boosting": ("#117733", "*"),
}
"""Colour and marker of each method, the same in every picture and different for any two."""
WIDTH_LABEL = "mean width (MPIW), in train ranges"
THIN: dict[str, Any] = {"color": "gray", "linewidth": 0.8, "dashes": (6, 3)}
"""Lines of nominal values."""


def new_figure(width: float, height: float) -> Figure:
    """Return an empty figure that is drawn without a window.

    Args:
        width, height: size in inches.
    """
    return Figure(figsize=(width, height), layout="constrained")


def panels(
    width: float, height: float, rows: int = 1, columns: int = 1, **options: Any
) -> tuple[Figure, Any]:
    """Return a figure and its axes, which have no upper and no right border.

    Args:
        width, height: size in inches.
        rows, columns: number of axes.
        **options: further arguments of :meth:`matplotlib.figure.Figure.subplots`.
    """
    figure = new_figure(width, height)
    with rc_context({"axes.spines.top": False, "axes.spines.right": False}):
        return figure, figure.subplots(rows, columns, **options)


def legend_of(figure: Figure, axes: Any, columns: int, place: str = "outside lower center") -> None:
    """Add a legend of the lines of one of the axes to a figure.

    Args:
        figure: the figure.
        axes: the axes whose lines are named.
        columns: number of columns of the legend.
        place: where it is, see :meth:`matplotlib.figure.Figure.legend`.
    """
    handles, labels = axes.get_legend_handles_labels()
    figure.legend(handles, labels, loc=place, ncols=columns, frameon=False)


def style(i: int) -> dict[str, Any]:
    """Return colour and marker of the i-th series of a picture.

    Args:
        i: position of the series.
    """
    return {"color": COLORS[i % len(COLORS)], "marker": MARKERS[i % len(MARKERS)]}


def method_style(name: str, i: int = 0) -> dict[str, Any]:
    """Return colour and marker of a method.

    Variants of a method (``ensemble:NAME``, ``conformal:NAME``, ``neighbours:NAME``,
    ``NAME_single``) have its colour and a hollow marker.

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


def only_ticks(axis: Any, ticks: Any) -> None:
    """Let an axis have some ticks only, labelled by plain numbers.

    Args:
        axis: the Matplotlib axis.
        ticks: positions of the ticks.
    """
    axis.set_major_locator(FixedLocator(ticks))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda tick, _: f"{tick:g}"))
