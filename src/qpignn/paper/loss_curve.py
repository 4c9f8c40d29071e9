"""Coverage and width against λ, for the loss as printed, as published and self-calibrating."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from qpignn.plotting import INSIDE
from qpignn.reports.plotting import THIN, WIDTH_LABEL, legend_of, panels

VIOLATIONS = {"printed": "all", "published": "violated"}
"""The setting ``violation`` of each form of the loss."""
LOSSES = {"printed": ("#08306b", "o", "-"), "published": ("#d95f02", "s", "--")}


def lambda_curve(rows: list[dict[str, Any]], confidence_level: float) -> Figure:
    """Draw mean coverage and width against λ, a column a data set, a line a loss.

    Args:
        rows: results with ``loss`` (printed, published or self-calibrating) beside their figures.
        confidence_level: the wanted coverage.

    Returns:
        The figure.
    """
    frame = pd.DataFrame(rows)
    datasets = list(dict.fromkeys(frame["dataset"]))
    size = 4.6 * len(datasets) + 0.6, 6.4
    shared: dict[str, Any] = {"squeeze": False, "sharex": True, "sharey": "row"}
    figure, axes = panels(*size, 2, len(datasets), **shared)
    for column, dataset in enumerate(datasets):
        part = frame[frame["dataset"] == dataset]
        coverage, width = axes[:, column]
        fixed = part[part["loss"] != "self-calibrating"]
        own = part[part["loss"] == "self-calibrating"]
        lambdas = np.geomspace(fixed["lambda_width"].min(), 0.5, 200)
        coverage.plot(lambdas, 1 - 2 * lambdas, ":", color="black", label="1 − 2λ (theory)")
        for loss, (color, marker, dash) in LOSSES.items():
            means = fixed[fixed["loss"] == loss].groupby("lambda_width")[["picp", "mpiw"]].mean()
            style = {"color": color, "marker": marker, "linestyle": dash, "markersize": 5}
            coverage.plot(means.index, means["picp"], label=f"{loss} loss", **style)
            width.plot(means.index, means["mpiw"], **style)
        half = (1 - confidence_level) / 2
        line = {"color": INSIDE, "linewidth": 2.5, "alpha": 0.55}
        for panel, metric in ((coverage, "picp"), (width, "mpiw")):
            panel.axhline(own[metric].mean(), label="self-calibrating (no λ)", **line)
            panel.axvline(half, **THIN)
        coverage.set_title(dataset)
        offset: dict[str, Any] = {"xytext": (4, 0), "textcoords": "offset points"}
        place = ("data", "axes fraction")
        coverage.annotate("λ = α/2", (half, 0.02), xycoords=place, color="gray", **offset)
        width.set(xscale="log", yscale="log", xlabel="λ")
    axes[0, 0].set_ylabel("coverage of test nodes (PICP)")
    axes[1, 0].set_ylabel(WIDTH_LABEL)
    legend_of(figure, axes[0, 0], 2)
    return figure
