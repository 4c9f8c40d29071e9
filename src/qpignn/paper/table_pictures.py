"""Pictures of the paper's tables: the same figures, to be seen at a glance."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from qpignn.paper.pictures import LABELS, LARGE, SMALL
from qpignn.paper.plan import Plan
from qpignn.paper.tables import against_paper
from qpignn.reports.plotting import DASHES, THIN, legend_of, method_style, only_ticks, panels

LOOKS = {  # of models with settings of their own
    "QpiGNN λ=0.5": ("#d55e00", "*"),
    "QpiGNN λ=0.1": ("#009e73", "h"),
    "QpiGNN λ tuned": ("#8c510a", "d"),
    "CF-GNN tuned": ("#7f7f7f", "p"),
}


def _look(label: str, i: int) -> dict[str, Any]:
    if label in LOOKS:
        return dict(zip(("color", "marker"), LOOKS[label], strict=True))
    method = label.lower().replace(" ", "_").replace("-", "")  # MC dropout: mc_dropout
    return method_style(method, i)


def _level(frame: pd.DataFrame) -> float:
    return float(frame["confidence_level"].iloc[0])


def _ruled(axes: Any) -> None:
    """Draw a thin line behind each row of marks."""
    for panel in axes:
        panel.grid(axis="y", color="gray", alpha=0.2)


def models(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Draw a line per model: coverage on each data set, and width over that of a reference.

    The reference is the default QpiGNN, or the first model where it is not among them. Small marks
    are data sets, large ones the mean (of widths the geometric one).

    Args:
        plan: the plan.
        frame: rows of :func:`qpignn.paper.tables.frame_of`.

    Returns:
        The figure.
    """
    means = frame.groupby(["variant", "dataset"], sort=False)[["picp", "mpiw"]].mean()
    names = [*dict.fromkeys(frame["variant"])]
    reference = "QpiGNN" if "QpiGNN" in names else names[0]
    order = np.arange(len(names))[::-1]
    figure, (left, right) = panels(9.5, 0.34 * len(names) + 1.2, 1, 2, sharey=True)
    for i, (place, name) in enumerate(zip(order, names, strict=True)):
        part, look = means.loc[name], _look(name, i)
        ratio = (part["mpiw"] / means.loc[reference]["mpiw"]).dropna()
        middle = np.exp(np.log(ratio.clip(lower=1e-3)).mean())
        both = ((left, part["picp"], part["picp"].mean()), (right, ratio, middle))
        for panel, dots, mean in both:
            panel.plot(dots, np.full(len(dots), place), **SMALL, **look)
            panel.plot(mean, place, **LARGE, **look)
    left.set_yticks(order, names)
    left.set_xlabel("coverage (PICP)")
    right.set_xlabel(f"mean width over that of {reference}")
    right.set_xscale("symlog", linthresh=0.1)
    only_ticks(right.xaxis, [0, 0.1, 0.2, 0.5, 1, 2, 5, 10])
    right.set_xlim(left=-0.02)
    left.axvline(_level(frame), **THIN)
    right.axvline(1, **THIN)
    _ruled((left, right))
    return figure


def damage(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Draw coverage and width against the strength of each kind of damage; bars are deviations.

    Args:
        plan: the plan.
        frame: rows of :func:`qpignn.paper.tables.frame_of`.

    Returns:
        The figure.
    """
    named = frame["condition"].str.rpartition(" ")
    frame = frame.assign(kind=named[0], strength=named[2].astype(float))
    kinds = [*dict.fromkeys(frame["kind"])]
    groups = frame.groupby(["kind", "variant", "strength"], sort=True)[["picp", "mpiw"]]
    means, spreads = groups.mean(), groups.std().fillna(0)
    figure, axes = panels(9.5, 5, 2, len(kinds), squeeze=False, sharex="col", sharey="row")
    for column, kind in enumerate(kinds):
        for i, name in enumerate(dict.fromkeys(frame["variant"])):
            part, spread = means.loc[kind, name], spreads.loc[kind, name]
            for panel, metric in zip(axes[:, column], LABELS, strict=True):
                line = {"linestyle": DASHES[i % len(DASHES)], "capsize": 3, "label": name}
                errors = spread[metric].to_numpy()
                panel.errorbar(part.index, part[metric], yerr=errors, **line, **_look(name, i))
        axes[0, column].axhline(_level(frame), **THIN)
        axes[0, column].set_title(kind)
        axes[1, column].set_xlabel("strength")
    axes[0, 0].set_ylabel("coverage (PICP)")
    axes[1, 0].set_ylabel("mean width (MPIW)")
    legend_of(figure, axes[0, 0], 6)
    return figure


def conditions(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Draw coverage and width of one model on each data set under several conditions.

    Args:
        plan: the plan.
        frame: rows of :func:`qpignn.paper.tables.frame_of`.

    Returns:
        The figure.
    """
    groups = frame.groupby(["condition", "dataset"], sort=False)[["picp", "mpiw"]]
    means, spreads = groups.mean(), groups.std().fillna(0)
    names, datasets = ([*dict.fromkeys(frame[axis])] for axis in ("condition", "dataset"))
    order = np.arange(len(datasets))[::-1]
    figure, axes = panels(9.5, 0.42 * len(datasets) + 1.4, 1, 2, sharey=True)
    for i, name in enumerate(names):
        part, spread = (table.loc[name].reindex(datasets) for table in (means, spreads))
        places = order + 0.22 * ((len(names) - 1) / 2 - i)
        for panel, (metric, label) in zip(axes, LABELS.items(), strict=True):
            bars = {"xerr": spread[metric].to_numpy(), "linestyle": "", "elinewidth": 1}
            panel.errorbar(part[metric], places, label=name, markersize=6, **bars, **_look(name, i))
            panel.set_xlabel(label)
    axes[0].set_yticks(order, datasets)
    axes[1].set_xlim(left=0)
    axes[0].axvline(_level(frame), **THIN)
    _ruled(axes)
    legend_of(figure, axes[0], 6)
    return figure


def matrix(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Draw coverage and width as coloured matrices: conditions in rows, data sets in columns.

    Args:
        plan: the plan.
        frame: rows of :func:`qpignn.paper.tables.frame_of`.

    Returns:
        The figure.
    """
    names, datasets = ([*dict.fromkeys(frame[axis])] for axis in ("condition", "dataset"))
    figure, axes = panels(9.5, 0.6 * len(names) + 1.4, 1, 2, sharey=True)
    for panel, (metric, title) in zip(axes, LABELS.items(), strict=True):
        table = frame.pivot_table(index="condition", columns="dataset", values=metric)
        values = table.reindex(index=names, columns=datasets).to_numpy(dtype=float)
        shown = values if metric == "picp" else np.log(values.clip(min=0.01))
        image = panel.imshow(shown, cmap="cividis", vmin=0 if metric == "picp" else None)
        middle = float(np.mean(image.get_clim()))
        for (i, j), value in np.ndenumerate(values):
            color = "white" if shown[i, j] < middle else "black"
            panel.text(j, i, f"{value:.2f}", ha="center", va="center", color=color)
        panel.set_xticks(range(len(datasets)), [f"on {name}" for name in datasets])
        panel.set_yticks(range(len(names)), names)
        panel.set_title(title, fontsize="medium")
        panel.spines[:].set_visible(True)
    return figure


def levels(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Draw coverage attained minus coverage wanted, by level: a dot per data set, and the mean.

    Args:
        plan: the plan.
        frame: rows of :func:`qpignn.paper.tables.frame_of`.

    Returns:
        The figure.
    """
    gap = frame.assign(gap=frame["picp"] - frame["confidence_level"])
    means = gap.groupby(["variant", "confidence_level", "dataset"], sort=True)["gap"].mean()
    names = [*dict.fromkeys(frame["variant"])]
    wanted = sorted(set(frame["confidence_level"]))
    figure, axes = panels(8, 3.8)
    axes.axhline(0, **THIN)
    for i, name in enumerate(names):
        places = np.arange(len(wanted)) + 0.2 * (i - (len(names) - 1) / 2)
        dots = [means.loc[name, level] for level in wanted]
        for place, part in zip(places, dots, strict=True):
            axes.plot(np.full(len(part), place), part, **SMALL, **_look(name, i))
        axes.plot(places, [part.mean() for part in dots], label=name, **LARGE, **_look(name, i))
    axes.set_xticks(range(len(wanted)), [f"{100 * level:g} % wanted" for level in wanted])
    axes.set_ylabel("coverage attained − wanted")
    figure.legend(loc="outside right center", frameon=False)
    return figure


def beside_paper(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Draw our figures against the paper's: what reproduces is on the diagonal.

    Args:
        plan: the plan.
        frame: rows of :func:`qpignn.paper.tables.frame_of`.

    Returns:
        The figure.
    """
    table = against_paper(plan, frame)
    figure, axes = panels(9.5, 4.4, 1, 2)
    titles = {"picp": "coverage (PICP)", "mpiw": "mean width (MPIW)"}
    for panel, (metric, title) in zip(axes, titles.items(), strict=True):
        part = table[table["metric"] == metric]
        for i, (name, points) in enumerate(part.groupby("variant", sort=False)):
            dots = {"linestyle": "", "markersize": 5, "alpha": 0.75, "label": name}
            panel.plot(points["paper"], points["ours"], **dots, **_look(str(name), i))
        ends = [part[["paper", "ours"]].min().min(), part[["paper", "ours"]].max().max()]
        panel.plot(ends, ends, **THIN)
        panel.set(xlabel=f"{title}, the paper", ylabel=f"{title}, ours")
    axes[1].set(xscale="log", yscale="log")
    legend_of(figure, axes[0], 5)
    return figure
