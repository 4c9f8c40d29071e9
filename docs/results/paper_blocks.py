"""Blocks of the paper's tables and figures: picture, sentences, command and table."""

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
    """Return a function that makes the block of one table or figure.

    Args:
        study: the table or figure.
        picture: draws the picture; None uses the spec's own picture, if it has one.
        about: alternative text of the picture.
        reading: computes sentences about the figures.
        table: whether the table is shown.
    """

    def made(measured: Measured) -> str:
        plan, frame = measured.table(study)
        shown = ""
        if picture is not None or plan.spec.picture is not None:
            figure = (picture or draw)(plan, frame)
            shown = measured.picture(f"{study.name}.{study.protocol}", figure, about)
        text = reading(plan, frame) if reading is not None else ""
        lines = to_markdown(make_table(plan, frame)).strip() if table else ""
        return paragraphs(shown, text, measured.exploded(study), measured.command(study), lines)

    return made


def tables(*studies: PaperTable) -> Callable[[Measured], str]:
    """Return a function that makes a block of tables, each with its command."""

    def made(measured: Measured) -> str:
        parts = []
        for study in studies:
            table = make_table(*measured.table(study))
            parts += [measured.command(study), to_markdown(table).strip()]
        return paragraphs(*parts)

    return made


def coverage_ranges(plan: Plan, frame: pd.DataFrame) -> str:
    """Lowest and highest mean coverage of each variant."""
    means = frame.groupby([*("variant", "dataset", "condition")], sort=False)["picp"].mean()
    parts = []
    for name in dict.fromkeys(frame["variant"]):
        part = means.loc[name]
        parts.append(f"{name or 'QpiGNN'} ({from_to(part)})")
    return f"Mean coverage, lowest to highest: {', '.join(parts)}."


def split_losses(plan: Plan, frame: pd.DataFrame) -> str:
    """Change of coverage under splits other than the random one."""
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
    text = f"Mean coverage on the kind of graph it was fitted on: {from_to(at_home)}"
    return f"{text}; on another kind: {from_to(away)}." if len(away) else f"{text}."


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
    """How far coverage is from 1 − 2λ below the collapse, and its value at λ = 0.5."""
    means = frame.groupby("lambda_found")["picp"].mean()
    below = means[means.index < 0.5]
    gap = below - (1 - 2 * below.index.to_numpy(dtype=float))
    worst = gap.abs().idxmax()
    text = (
        f"Below λ = 0.5 mean coverage differs from 1 − 2λ by {signed(gap.min())} to "
        f"{signed(gap.max())}, most at λ = {worst:g}"
    )
    return f"{text}; at λ = 0.5 it is {means[0.5]:.3f}." if 0.5 in means.index else f"{text}."


def lambda_cliff(plan: Plan, frame: pd.DataFrame) -> str:
    """Coverage below and above λ = 0.5 under the published loss."""
    means = frame.groupby("lambda_found")["picp"].mean()
    below, above = means[means.index < 0.5], means[means.index > 0.5]
    text = f"Mean coverage below λ = 0.5: {from_to(below)}"
    return f"{text}; above it: {from_to(above)}." if len(above) else f"{text}."


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
    """Return a function that makes a list of sentences, each with a link to its page."""

    def made(measured: Measured) -> str:
        return "\n".join(
            f"- {reading(*measured.table(study))} ({link})" for study, reading, link in parts
        )

    return made
