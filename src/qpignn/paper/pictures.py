"""Pictures of the paper from the rows of their cells, readable in print without colour."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pandas as pd
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from qpignn.errors import SettingError, check_choice
from qpignn.intervals import Intervals
from qpignn.paper.plan import Plan
from qpignn.paper.spec import Spec, read_facts
from qpignn.paper.tables import TABLES, against_paper
from qpignn.reports.plotting import (
    COLORS,
    DASHES,
    MARKERS,
    WIDTH_LABEL,
    bare,
    new_figure,
    style,
)

NEEDS = {"bands": "intervals", "trajectories": "history"}  # data that the cells must keep


def check_shown(spec: Spec) -> None:
    """Check that the table, picture and facts of a spec exist.

    Args:
        spec: the spec.

    Raises:
        SettingError: if the cells do not keep the data that the picture needs.
    """
    check_choice("table", spec.table, TABLES)
    if spec.facts is not None:
        read_facts(spec.facts)
    if spec.picture is None:
        return
    needed = NEEDS.get(check_choice("picture", spec.picture, PICTURES))
    if needed is not None and needed not in spec.keep:
        raise SettingError(
            f'{spec.name}: expected keep=("{needed}",) for the picture {spec.picture}, '
            f"got {spec.keep}"
        )


def draw(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Return the picture of a spec.

    Args:
        plan: the plan of the spec.
        frame: the rows of its cells, see :func:`qpignn.paper.tables.frame_of`.
    """
    assert plan.spec.picture is not None
    figure = PICTURES[plan.spec.picture](plan, frame)
    figure.suptitle(f"{plan.spec.title} (protocol {plan.protocol})", fontsize="medium")
    return figure


def _bands(plan: Plan, frame: pd.DataFrame) -> Figure:
    """One row per data set, one column per model: test intervals in order of prediction."""
    datasets, variants = ([*dict.fromkeys(frame[axis])] for axis in ("dataset", "variant"))
    figure = new_figure(2.6 * len(variants), 1.9 * len(datasets) + 0.5)
    axes = figure.subplots(len(datasets), len(variants), squeeze=False, sharey="row")
    places = frame.drop_duplicates(["dataset", "variant"]).set_index(["dataset", "variant"])
    for (i, dataset), (j, variant) in itertools.product(enumerate(datasets), enumerate(variants)):
        panel = axes[i, j]
        if (dataset, variant) in places.index:
            row = places.loc[(dataset, variant)]
            nodes = {name: np.array(values) for name, values in row["intervals"].items()}
            truth = nodes["y"]
            intervals = Intervals(
                nodes["prediction"], nodes["lower"], nodes["upper"], row["confidence_level"]
            )
            intervals.plot(truth, axes=panel)
            margin = 0.6 * (truth.max() - truth.min())  # extreme widths would hide the others
            panel.set_ylim(truth.min() - margin, truth.max() + margin)
            width = "" if pd.isna(row["mpiw"]) else f", MPIW {row['mpiw']:.2f}"
            panel.set_xlabel(f"PICP {row['picp']:.2f}{width}", fontsize="small")
        panel.set_xticks([])
        panel.tick_params(labelsize="small")
        if i == 0:
            panel.set_title(variant, fontsize="medium")
        if j == 0:
            panel.set_ylabel(dataset)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=4, frameon=False)
    return figure


def _radar(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Radar charts of coverage and width, with one line per training graph."""
    spokes = [*dict.fromkeys(frame["dataset"])]
    angles = np.linspace(0, 2 * np.pi, len(spokes), endpoint=False)
    means = frame.groupby(["condition", "dataset"], sort=False)[["picp", "mpiw"]].mean()
    figure = new_figure(10, 5.2)
    for place, metric in enumerate(("picp", "mpiw")):
        panel: Any = figure.add_subplot(1, 2, place + 1, projection="polar")
        for i, source in enumerate(dict.fromkeys(frame["condition"])):
            values = means.loc[source].reindex(spokes)[metric].to_numpy()
            around = np.append(angles, angles[0]), np.append(values, values[0])
            panel.plot(*around, linestyle=DASHES[i % 4], label=source, **style(i))
        panel.set_xticks(angles, [f"on {name}" for name in spokes])
        panel.set_ylim(bottom=0)
        if metric == "mpiw":  # widths on other graphs may be extreme: logarithmic above 0.5
            panel.set_rscale("symlog", linthresh=0.5)
            panel.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
        titles = {"picp": "coverage (PICP)", "mpiw": WIDTH_LABEL}
        panel.set_title(titles[metric], pad=18)
        if metric == "picp":
            panel.set_ylim(top=1)
            circle = np.linspace(0, 2 * np.pi, 200)
            panel.plot(circle, np.full(200, 0.9), color="gray", linewidth=0.8, label="nominal")
            handles, labels = panel.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=6, frameon=False)
    return figure


def _scatter(plan: Plan, frame: pd.DataFrame) -> Figure:
    """One point per variant and data set, and a large one for the variant's mean."""
    figure = new_figure(8.5, 5.5)
    axes = figure.add_subplot()
    for i, (variant, part) in enumerate(frame.groupby("variant", sort=False)):
        points = part.groupby("dataset", sort=False)[["picp", "mpiw"]].mean()
        look = style(i)
        axes.plot(points["mpiw"], points["picp"], linestyle="", markersize=4, alpha=0.45, **look)
        middle = points.mean()
        axes.plot(
            *(middle["mpiw"], middle["picp"]),
            linestyle="",
            markersize=11,
            markeredgecolor="black",
            label=variant,
            **look,
        )
    axes.axhline(0.9, color="gray", linewidth=0.8, dashes=(6, 3))
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_xlim(left=-0.005)
    axes.set_xlabel(WIDTH_LABEL)
    axes.set_ylabel("coverage (PICP)")
    bare(axes)
    figure.legend(loc="outside right center", frameon=False)
    return figure


def _trajectories(plan: Plan, frame: pd.DataFrame) -> Figure:
    """One path per data set through coverage, width and loss, from a cross to a marker."""
    figure = new_figure(9, 6.5)
    axes = figure.add_subplot(projection="3d", computed_zorder=False)  # ends above all paths
    for i, row in enumerate(frame.drop_duplicates("dataset").to_dict("records")):
        path = row["history"]
        width, loss = np.array(path["width"]), np.array(path["loss"])
        loss = loss / max(abs(loss[0]), 1e-12)  # losses of several members are sums
        color = COLORS[i % len(COLORS)]
        dash = DASHES[(i // len(COLORS) + 1) % len(DASHES)]
        axes.plot(path["coverage"], width, loss, dash, color=color, linewidth=0.8)
        start, end = (path["coverage"][k] for k in (0, -1))
        axes.plot([start], [width[0]], [loss[0]], "x", color=color)
        axes.plot(
            *([end], [width[-1]], [loss[-1]]),
            marker=MARKERS[i % len(MARKERS)],
            color=color,
            markeredgecolor="black",
            markersize=8,
            zorder=3,
            linestyle="",
            label=row["dataset"],
        )
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_major_locator(MaxNLocator(5))
        axis.labelpad = 9
    axes.tick_params(labelsize="small")
    axes.set_xlabel("coverage")
    axes.set_ylabel("width, in scaled units")
    axes.set_zlabel("loss / first loss")
    figure.legend(loc="outside right center", frameon=False)
    return figure


def _lambda_curve(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Coverage and width against λ, with their spread and the theoretical coverage."""
    figure = new_figure(9, 3.8)
    panels = figure.subplots(1, 2)
    groups = frame.groupby("lambda_found")[["picp", "mpiw"]]
    means, spreads = groups.mean(), groups.std().fillna(0)
    level = frame["confidence_level"].iloc[0]
    for panel, metric in zip(panels, ("picp", "mpiw"), strict=True):
        low, high = (means[metric] + sign * spreads[metric] for sign in (-1, 1))
        panel.fill_between(means.index, low, high, color=COLORS[0], alpha=0.2)
        panel.plot(means.index, means[metric], label="measured", **style(0))
        panel.set_xlabel("λ")
        bare(panel)
    if plan.protocol == "corrected":
        lambdas = np.linspace(0, 0.5, 50)
        panels[0].plot(lambdas, 1 - 2 * lambdas, ":", color="black", label="1 − 2λ (theory)")
    panels[0].axhline(level, color="gray", linewidth=0.8, dashes=(6, 3), label="nominal")
    panels[0].set_ylabel("coverage (PICP)")
    panels[1].set_ylabel(WIDTH_LABEL)
    panels[0].legend(frameon=False)
    return figure


def _best_lambda(plan: Plan, frame: pd.DataFrame) -> Figure:
    """λ of each data set, with its spread, and the paper's value."""
    groups = frame.assign(lam=frame["lambda_found"].astype(float)).groupby("dataset", sort=False)
    means, spreads = groups["lam"].mean(), groups["lam"].std().fillna(0)
    place = np.arange(len(means))
    figure = new_figure(9, 4)
    axes = figure.add_subplot()
    axes.errorbar(place, means, yerr=spreads, linestyle="", capsize=3, label="ours", **style(0))
    facts = against_paper(plan, frame)
    paper = facts[facts["metric"] == "lambda_found"].set_index("dataset")["paper"]
    axes.plot(place, paper.reindex(means.index), linestyle="", label="paper", **style(1))
    axes.axhline(0.05, color="gray", linewidth=0.8, dashes=(6, 3), label="α/2")
    axes.set_xticks(place, means.index, rotation=45, ha="right")
    axes.set_yscale("log")
    axes.set_yticks(
        [0.01, 0.02, 0.05, 0.1, 0.2, 0.5], ["0.01", "0.02", "0.05", "0.1", "0.2", "0.5"]
    )
    axes.minorticks_off()
    axes.set_ylabel("λ")
    bare(axes)
    figure.legend(loc="outside right center", frameon=False)
    return figure


def _coverage_error(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Mean coverage error against number of nodes, log-log, with a line of slope −1/2."""
    sizes = frame["options"].map(lambda options: options["nodes"])
    means = frame.assign(nodes=sizes).groupby(["dataset", "nodes"], sort=True)["coverage_error"]
    errors = means.mean()
    figure = new_figure(7.5, 4.5)
    axes = figure.add_subplot()
    for i, dataset in enumerate(dict.fromkeys(frame["dataset"])):
        part = errors.loc[dataset]
        axes.plot(part.index, part, linestyle=DASHES[i % 4], label=dataset, **style(i))
    nodes = np.array(sorted(set(sizes)), dtype=float)
    first = float(errors.groupby(level="nodes").mean().iloc[0])
    axes.plot(nodes, first * (nodes / nodes[0]) ** -0.5, color="gray", label="slope −1/2")
    # expected error of a method with exactly the nominal coverage on as many test nodes
    level = float(frame["confidence_level"].iloc[0])
    chance = np.sqrt(2 / np.pi * level * (1 - level) / (0.2 * nodes))
    axes.plot(nodes, chance, ":", color="black", label="sampling error of the test nodes")
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("nodes")
    axes.set_ylabel("mean |PICP − nominal|")
    bare(axes)
    figure.legend(loc="outside right center", frameon=False)
    return figure


PICTURES: dict[str, Callable[[Plan, pd.DataFrame], Figure]] = {
    "bands": _bands,
    "radar": _radar,
    "scatter": _scatter,
    "trajectories": _trajectories,
    "lambda_curve": _lambda_curve,
    "best_lambda": _best_lambda,
    "coverage_error": _coverage_error,
}
