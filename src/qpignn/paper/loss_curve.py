"""Coverage and width against λ, for the loss as printed, as published and self-calibrating."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure

from qpignn.plotting import INSIDE

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
    figure = Figure(figsize=(4.6 * len(datasets) + 0.6, 6.4), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.subplots(2, len(datasets), squeeze=False, sharex=True, sharey="row")
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
        for panel, metric in ((coverage, "picp"), (width, "mpiw")):
            value = own[metric].mean()
            label = "self-calibrating (no λ)"
            panel.axhline(value, color=INSIDE, linewidth=2.5, alpha=0.55, label=label)
            panel.axvline((1 - confidence_level) / 2, color="gray", linewidth=0.8, dashes=(6, 3))
            panel.spines[["top", "right"]].set_visible(False)
        coverage.set_title(dataset)
        coverage.annotate(
            "λ = α/2",
            ((1 - confidence_level) / 2, 0.02),
            xycoords=("data", "axes fraction"),
            xytext=(4, 0),
            textcoords="offset points",
            color="gray",
        )
        width.set_xscale("log")
        width.set_yscale("log")
        width.set_xlabel("λ")
    axes[0, 0].set_ylabel("coverage of test nodes (PICP)")
    axes[1, 0].set_ylabel("mean width (MPIW), in train ranges")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=2, frameon=False)
    return figure
