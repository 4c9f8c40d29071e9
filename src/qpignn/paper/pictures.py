"""Pictures of the paper from the rows of their cells, readable in print without colour."""

from __future__ import annotations

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
from qpignn.reports.plotting import COLORS, DASHES, THIN, WIDTH_LABEL, legend_of, panels, style

NEEDS = {"bands": "intervals", "trajectories": "history"}  # data that the cells must keep
LABELS = {"picp": "coverage (PICP)", "mpiw": WIDTH_LABEL}
"""The two metrics that most pictures show, with the labels of their axes."""
SMALL: dict[str, Any] = {"linestyle": "", "markersize": 4, "alpha": 0.35}
LARGE: dict[str, Any] = {"linestyle": "", "markersize": 9, "markeredgecolor": "black"}
"""Marks of single data sets, and of the mean over them."""


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
    shape = len(datasets), len(variants)
    size = 2.6 * shape[1], 1.9 * shape[0] + 0.5
    figure, axes = panels(*size, *shape, squeeze=False, sharey="row")
    for row in frame.drop_duplicates(["dataset", "variant"]).to_dict("records"):
        panel = axes[datasets.index(row["dataset"]), variants.index(row["variant"])]
        columns = ("prediction", "lower", "upper", "y")
        prediction, lower, upper, truth = (np.array(row["intervals"][name]) for name in columns)
        Intervals(prediction, lower, upper, row["confidence_level"]).plot(truth, axes=panel)
        margin = 0.6 * (truth.max() - truth.min())  # extreme widths would hide the others
        panel.set_ylim(truth.min() - margin, truth.max() + margin)
        width = "" if pd.isna(row["mpiw"]) else f", MPIW {row['mpiw']:.2f}"
        panel.set_xlabel(f"PICP {row['picp']:.2f}{width}", fontsize="small")
    for panel in axes.flat:
        panel.set_xticks([])
        panel.tick_params(labelsize="small")
    for panel, variant in zip(axes[0], variants, strict=True):
        panel.set_title(variant, fontsize="medium")
    for panel, dataset in zip(axes[:, 0], datasets, strict=True):
        panel.set_ylabel(dataset)
    legend_of(figure, axes[0, 0], 4)
    return figure


def _radar(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Radar charts of coverage and width, with one line per training graph."""
    spokes = [*dict.fromkeys(frame["dataset"])]
    angles = np.linspace(0, 2 * np.pi, len(spokes), endpoint=False)
    means = frame.groupby(["condition", "dataset"], sort=False)[["picp", "mpiw"]].mean()
    figure, (coverage, width) = panels(10, 5.2, 1, 2, subplot_kw={"projection": "polar"})
    for panel, (metric, title) in zip((coverage, width), LABELS.items(), strict=True):
        for i, source in enumerate(dict.fromkeys(frame["condition"])):
            values = means.loc[source].reindex(spokes)[metric].to_numpy()
            around = np.append(angles, angles[0]), np.append(values, values[0])
            panel.plot(*around, linestyle=DASHES[i % 4], label=source, **style(i))
        panel.set_xticks(angles, [f"on {name}" for name in spokes])
        panel.set_ylim(bottom=0)
        panel.set_title(title, pad=18)
    width.set_rscale("symlog", linthresh=0.5)  # widths on other graphs may be extreme
    width.set_yticks([0.2, 0.5, 1, 2, 5], ["0.2", "0.5", "1", "2", "5"])
    coverage.set_ylim(top=1)
    circle = np.linspace(0, 2 * np.pi, 200)
    coverage.plot(circle, np.full(200, 0.9), color="gray", linewidth=0.8, label="nominal")
    legend_of(figure, coverage, 6)
    return figure


def _scatter(plan: Plan, frame: pd.DataFrame) -> Figure:
    """One point per variant and data set, and a large one for the variant's mean."""
    figure, axes = panels(8.5, 5.5)
    for i, (variant, part) in enumerate(frame.groupby("variant", sort=False)):
        points = part.groupby("dataset", sort=False)[["mpiw", "picp"]].mean()
        axes.plot(points["mpiw"], points["picp"], **{**SMALL, "alpha": 0.45}, **style(i))
        axes.plot(*points.mean(), label=variant, **{**LARGE, "markersize": 11}, **style(i))
    axes.axhline(0.9, **THIN)
    axes.set_xscale("symlog", linthresh=0.1)
    axes.set_xlim(left=-0.005)
    axes.set(xlabel=WIDTH_LABEL, ylabel="coverage (PICP)")
    figure.legend(loc="outside right center", frameon=False)
    return figure


def _trajectories(plan: Plan, frame: pd.DataFrame) -> Figure:
    """One path per data set through coverage, width and loss, from a cross to a marker."""
    # the order of drawing is ours: ends above all paths
    figure, axes = panels(9, 6.5, subplot_kw={"projection": "3d", "computed_zorder": False})
    for i, row in enumerate(frame.drop_duplicates("dataset").to_dict("records")):
        path = np.array([row["history"][name] for name in ("coverage", "width", "loss")])
        path[2] /= max(abs(path[2, 0]), 1e-12)  # losses of several members are sums
        color = COLORS[i % len(COLORS)]
        dash = DASHES[(i // len(COLORS) + 1) % len(DASHES)]
        axes.plot(*path, dash, color=color, linewidth=0.8)
        axes.plot(*path[:, :1], "x", color=color)
        end = {**LARGE, "markersize": 8, "zorder": 3, "label": row["dataset"]}
        axes.plot(*path[:, -1:], **end, **style(i))
    for axis in (axes.xaxis, axes.yaxis, axes.zaxis):
        axis.set_major_locator(MaxNLocator(5))
        axis.labelpad = 9
    axes.tick_params(labelsize="small")
    axes.set(xlabel="coverage", ylabel="width, in scaled units", zlabel="loss / first loss")
    figure.legend(loc="outside right center", frameon=False)
    return figure


def _lambda_curve(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Coverage and width against λ, with their spread and the theoretical coverage."""
    figure, axes = panels(9, 3.8, 1, 2)
    groups = frame.groupby("lambda_found")[["picp", "mpiw"]]
    means, spreads = groups.mean(), groups.std().fillna(0)
    for panel, (metric, label) in zip(axes, LABELS.items(), strict=True):
        low, high = (means[metric] + sign * spreads[metric] for sign in (-1, 1))
        panel.fill_between(means.index, low, high, color=COLORS[0], alpha=0.2)
        panel.plot(means.index, means[metric], label="measured", **style(0))
        panel.set(xlabel="λ", ylabel=label)
    if plan.protocol == "corrected":
        lambdas = np.linspace(0, 0.5, 50)
        axes[0].plot(lambdas, 1 - 2 * lambdas, ":", color="black", label="1 − 2λ (theory)")
    axes[0].axhline(frame["confidence_level"].iloc[0], label="nominal", **THIN)
    axes[0].legend(frameon=False)
    return figure


def _best_lambda(plan: Plan, frame: pd.DataFrame) -> Figure:
    """λ of each data set, with its spread, and the paper's value."""
    groups = frame["lambda_found"].groupby(frame["dataset"], sort=False)
    means, spreads = groups.mean(), groups.std().fillna(0)
    place = np.arange(len(means))
    figure, axes = panels(9, 4)
    axes.errorbar(place, means, yerr=spreads, linestyle="", capsize=3, label="ours", **style(0))
    facts = against_paper(plan, frame)
    paper = facts[facts["metric"] == "lambda_found"].set_index("dataset")["paper"]
    axes.plot(place, paper.reindex(means.index), linestyle="", label="paper", **style(1))
    axes.axhline(0.05, label="α/2", **THIN)
    axes.set_xticks(place, means.index, rotation=45, ha="right")
    axes.set(yscale="log", ylabel="λ")
    ticks = [0.01, 0.02, 0.05, 0.1, 0.2, 0.5]
    axes.set_yticks(ticks, [f"{tick:g}" for tick in ticks])
    axes.minorticks_off()
    figure.legend(loc="outside right center", frameon=False)
    return figure


def _coverage_error(plan: Plan, frame: pd.DataFrame) -> Figure:
    """Mean coverage error against number of nodes, log-log, with a line of slope −1/2."""
    sizes = frame["options"].map(lambda options: options["nodes"])
    groups = frame.assign(nodes=sizes).groupby(["dataset", "nodes"], sort=True)
    errors = groups["coverage_error"].mean()
    figure, axes = panels(7.5, 4.5)
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
    axes.set(xscale="log", yscale="log", xlabel="nodes", ylabel="mean |PICP − nominal|")
    figure.legend(loc="outside right center", frameon=False)
    return figure


DRAWN = (_bands, _radar, _scatter, _trajectories, _lambda_curve, _best_lambda, _coverage_error)
PICTURES = {picture.__name__.removeprefix("_"): picture for picture in DRAWN}
"""How each picture is drawn, by its name in a spec."""
