"""Blocks of the paper's tables and figures: a picture, what it says, its command, its table."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pandas as pd
from matplotlib.figure import Figure

from measured import Measured
from qpignn.paper.pictures import draw
from qpignn.paper.plan import Plan
from qpignn.paper.spec import REAL, SYNTHETIC
from qpignn.paper.tables import make_table
from qpignn.reports.render import to_markdown
from studies import PaperTable
from words import from_to, listed, paragraphs, signed

Reading = Callable[[Plan, pd.DataFrame], str]
Picture = Callable[[Plan, pd.DataFrame], Figure]


def section(
    study: PaperTable,
    picture: Picture | None = None,
    about: str = "",
    reading: Reading | None = None,
    *,
    table: bool = True,
) -> Callable[[Measured], str]:
    """Return what makes the block of one table or figure.

    Args:
        study: which.
        picture: what is drawn; None takes the spec's own picture, if it has one.
        about: what the picture shows, for those who cannot see it.
        reading: computes sentences about the figures.
        table: whether the table is shown.
    """

    def made(found: Measured) -> str:
        plan, frame = found.table(study)
        shown = ""
        if picture is not None or plan.spec.picture is not None:
            figure = (picture or draw)(plan, frame)
            shown = found.picture(f"{study.name}.{study.protocol}", figure, about)
        words = reading(plan, frame) if reading is not None else ""
        lines = to_markdown(make_table(plan, frame)).strip() if table else ""
        return paragraphs(shown, words, found.exploded(study), found.command(study), lines)

    return made


def tables(*studies: PaperTable) -> Callable[[Measured], str]:
    """Return what makes a block of tables, each with its command."""

    def made(found: Measured) -> str:
        parts = []
        for study in studies:
            table = make_table(*found.table(study))
            parts += [found.command(study), to_markdown(table).strip()]
        return paragraphs(*parts)

    return made


def coverage_ranges(plan: Plan, frame: pd.DataFrame) -> str:
    """Least and most mean coverage of each variant."""
    means = frame.groupby([*("variant", "dataset", "condition")], sort=False)["picp"].mean()
    parts = []
    for name in dict.fromkeys(frame["variant"]):
        part = means.loc[name]
        parts.append(f"{name or 'QpiGNN'} ({from_to(part)})")
    return f"Mean coverage, from least to most: {', '.join(parts)}."


def split_losses(plan: Plan, frame: pd.DataFrame) -> str:
    """What other splits than the random one change in coverage."""
    means = frame.pivot_table(index="dataset", columns="condition", values="picp", sort=False)
    parts = []
    for name in (name for name in means.columns if name != "random"):
        change = means[name] - means["random"]
        parts.append(
            f"a {name} split {signed(change.min())} ({change.idxmin()}) to "
            f"{signed(change.max())} ({change.idxmax()})"
        )
    return f"Change of mean coverage against a random split: {'; '.join(parts)}."


def shift_losses(plan: Plan, frame: pd.DataFrame) -> str:
    """Coverage on the kind of graph that was fitted on, and on others."""
    means = frame.groupby(["source", "dataset"], sort=False)["picp"].mean().reset_index()
    same = means["source"] == means["dataset"]
    at_home, away = means[same]["picp"], means[~same]["picp"]
    words = f"Mean coverage on the kind of graph it was fitted on: {from_to(at_home)}"
    return f"{words}; on another kind: {from_to(away)}." if len(away) else f"{words}."


def level_gaps(plan: Plan, frame: pd.DataFrame) -> str:
    """Coverage attained minus wanted of each variant at each level, over data sets."""
    gap = frame.assign(gap=frame["picp"] - frame["confidence_level"])
    means = gap.groupby(["variant", "condition"], sort=False)["gap"].mean()
    parts = []
    for name in dict.fromkeys(frame["variant"]):
        levels = [f"{signed(value)} at {level}" for level, value in means.loc[name].items()]
        parts.append(f"{name} {listed(levels)}")
    return f"Coverage attained minus wanted, mean over data sets: {'; '.join(parts)}."


def lambda_and_theory(plan: Plan, frame: pd.DataFrame) -> str:
    """How far coverage is from 1 − 2λ below the collapse, and what is left at λ = 0.5."""
    means = frame.groupby("lambda_found")["picp"].mean()
    below = means[means.index < 0.5]
    gap = below - (1 - 2 * below.index.to_numpy(dtype=float))
    worst = gap.abs().idxmax()
    words = (
        f"Below λ = 0.5 mean coverage differs from 1 − 2λ by {signed(gap.min())} to "
        f"{signed(gap.max())}, most at λ = {worst:g}"
    )
    return f"{words}; at λ = 0.5 it is {means[0.5]:.3f}." if 0.5 in means.index else f"{words}."


def lambda_cliff(plan: Plan, frame: pd.DataFrame) -> str:
    """Coverage below and above λ = 0.5 under the published loss."""
    means = frame.groupby("lambda_found")["picp"].mean()
    below, above = means[means.index < 0.5], means[means.index > 0.5]
    words = f"Mean coverage below λ = 0.5: {from_to(below)}"
    return f"{words}; above it: {from_to(above)}." if len(above) else f"{words}."


def best_lambdas_found(plan: Plan, frame: pd.DataFrame) -> str:
    """Where the λ found on held-out nodes lies."""
    means = frame.groupby("dataset", sort=False)["lambda_found"].mean()
    parts = []
    for kind, names in (("real", REAL), ("synthetic", SYNTHETIC)):
        part = means[[name for name in names if name in means.index]]
        parts += [f"{from_to(part)} on the {kind} sets"] if len(part) else []
    return f"The mean λ found is {listed(parts)}; α/2 is 0.05."


def error_slope(plan: Plan, frame: pd.DataFrame) -> str:
    """How fast the error of coverage falls with the number of nodes."""
    nodes = frame["options"].map(lambda options: options["nodes"]).astype(float)
    groups = frame.assign(nodes=nodes).groupby(["dataset", "nodes"])["coverage_error"]
    means = groups.mean().reset_index()
    means = means[means["coverage_error"] > 0]
    if means["nodes"].nunique() < 2:
        return ""
    x, y = np.log(means["nodes"]), np.log(means["coverage_error"])
    (slope, _), covariance = np.polyfit(x, y, 1, cov=True)
    return (
        f"On logarithmic axes the mean error falls with a slope of {signed(slope)} ± "
        f"{covariance[0, 0] ** 0.5:.2f} (standard error); 1/√N would be −0.50."
    )


def headline_gain(plan: Plan, frame: pd.DataFrame) -> str:
    """What the default gains on average over the baselines."""
    table = make_table(plan, frame)
    ours = table.headings.index("QpiGNN")
    gains = {row[0]: row[ours] for row in table.rows}
    return (
        f"Coverage / width of the default against the mean of the baselines, CF-GNN apart: "
        f"{gains['their mean, CF-GNN apart']}."
    )


def sentences(*parts: tuple[PaperTable, Reading, str]) -> Callable[[Measured], str]:
    """Return what makes a list of readings, each with a link to where it is shown."""

    def made(found: Measured) -> str:
        return "\n".join(
            f"- {reading(*found.table(study))} ({link})" for study, reading, link in parts
        )

    return made
