"""Tables of the paper, from the rows of their cells: ours, and beside the paper's own."""

from __future__ import annotations

import math
from collections.abc import Mapping
from operator import itemgetter
from typing import Any

import pandas as pd

from qpignn.paper.plan import AXES, METRICS, Plan
from qpignn.paper.reference_figures import OWN_UNIT
from qpignn.paper.spec import read_facts
from qpignn.protocols import find_protocol
from qpignn.reports.metric_texts import metric_texts
from qpignn.reports.tables import Row, Shown, Table, seed_count

UNITS = {"mpiw": 1, "mpe": 1, "winkler": 1, "sharpness": 2}  # powers of the target's unit
NAMES = metric_texts("heading")
"""Headings of metrics; others have their name."""


def frame_of(plan: Plan, rows: Mapping[str, dict[str, Any]]) -> pd.DataFrame:
    """Return the rows that are there, with their place in the table.

    Under ``published`` figures are in the paper's units: CF-GNN's in the target's own, and one per
    unit missed in the Winkler score.

    Args:
        plan: the plan.
        rows: rows by key of their cells.
    """
    lines = [
        {**rows[planned.cell.key()], **{axis: getattr(planned, axis) for axis in AXES}}
        for planned in plan.cells
        if planned.cell.key() in rows
    ]
    frame = pd.DataFrame(lines)
    if frame.empty:
        return frame
    figures = frame.columns.intersection([*METRICS])
    frame[figures] = frame[figures].astype(float)  # not every row has every figure
    frame["coverage_error"] = (frame["picp"] - frame["confidence_level"]).abs()
    if plan.protocol == "published":
        frame["winkler"] = frame["winkler_one"]
        unit = (frame["mpiw_raw"] / frame["mpiw"]).where(frame["variant"].isin(OWN_UNIT), 1.0)
        for metric, power in UNITS.items():
            frame[metric] = frame[metric] * unit**power
    return frame


def make_table(plan: Plan, frame: pd.DataFrame) -> Table:
    """Return a spec's table, from whatever rows there are.

    Args:
        plan: the plan.
        frame: rows of :func:`frame_of`.
    """
    return TABLES[plan.spec.table](plan, frame)


def _grid(plan: Plan, frame: pd.DataFrame) -> Table:
    spec = plan.spec
    if spec.text:
        heading, *lines = spec.text
        return Table(_title(plan, frame), heading, tuple(lines), spec.note)
    (third,) = {*AXES} - {spec.rows, spec.columns}
    labels = [spec.rows, third] if len(set(frame[third])) > 1 else [spec.rows]
    figures = _figures(plan, frame)
    columns = [*dict.fromkeys(frame[spec.columns])]
    rows = []
    for place in dict.fromkeys(frame[labels].itertuples(index=False, name=None)):
        named = dict(zip(labels, place, strict=True))
        fixed = {third: next(iter(frame[third])), **named}
        points = ({**fixed, spec.columns: column} for column in columns)
        cells = (figures.get(itemgetter(*AXES)(point), ()) for point in points)
        rows.append((*place, *cells))
    shown = " / ".join(NAMES.get(metric, metric) for metric in spec.metrics)
    headings = (*labels, *(f"{column or 'QpiGNN'}" for column in columns))
    title = f"{_title(plan, frame)}: {shown}"
    return Table(title, headings, tuple(rows), spec.note)


def _title(plan: Plan, frame: pd.DataFrame) -> str:
    seeds = ""
    if not frame.empty:
        counts = frame.groupby([*AXES], sort=False)["seed"].nunique()
        seeds = f", {seed_count(counts)} {'seed' if counts.max() == 1 else 'seeds'}"
    return f"{plan.spec.title} (protocol {plan.protocol}{seeds})"


def _figures(plan: Plan, frame: pd.DataFrame) -> dict[tuple[str, ...], tuple[Shown, ...]]:
    """Mean and spread of every place, marked as the paper marks them."""
    metrics = list(plan.spec.metrics)
    groups = frame.groupby([*AXES], sort=False)[metrics]
    means, spreads = groups.mean(), groups.std()
    reached, best = _marks(plan, frame, means)

    def figure(place: Any, metric: str) -> Shown:
        mean, spread = (table.loc[place, metric] for table in (means, spreads))
        strong = metric == "picp" and place in reached
        return Shown(metric, mean, spread, strong, best=metric == "mpiw" and place in best)

    return {place: tuple(figure(place, metric) for metric in metrics) for place in means.index}


def _marks(plan: Plan, frame: pd.DataFrame, means: pd.DataFrame) -> tuple[set[Any], set[Any]]:
    """Places that reach the wanted coverage (to two digits), and the narrowest of each data set.

    What is in another unit does not compete.
    """
    if not {"picp", "mpiw"} <= {*means.columns}:
        return set(), set()
    wanted = frame.groupby([*AXES], sort=False)["confidence_level"].first()
    reached = means[means["picp"].round(2) >= wanted]
    other = reached.index.get_level_values("variant").isin(OWN_UNIT)
    compete = reached[~other] if plan.protocol == "published" else reached
    if len(set(means.index.get_level_values("variant"))) == 1:
        return {*reached.index}, set()
    narrowest = compete["mpiw"].dropna().groupby(level=["dataset", "condition"]).idxmin()
    return {*reached.index}, {*narrowest}


def _headline(plan: Plan, frame: pd.DataFrame) -> Table:
    """Gains in average coverage and width over each baseline, and over their means.

    An average is over the data sets both have. Under ``published`` the paper's own figures stand
    beside ours.
    """
    ours = frame.groupby(["variant", "dataset"], sort=False)[["picp", "mpiw"]].mean()
    columns = {name: ours for name in dict.fromkeys(frame["variant"]) if _is_ours(name)}
    rivals = [name for name in dict.fromkeys(frame["variant"]) if not _is_ours(name)]
    if plan.protocol == "published":
        facts = pd.DataFrame(read_facts("main")).astype({"value": float})
        paper = facts.pivot_table(index=["variant", "dataset"], columns="metric", values="value")
        columns |= {f"{name} (paper)": paper for name in columns}
    gains = {name: _gains(columns[name], name.removesuffix(" (paper)"), rivals) for name in columns}
    labels = dict.fromkeys(label for gain in gains.values() for label in gain)
    rows = tuple((label, *(gains[shown].get(label, "–") for shown in columns)) for label in labels)
    title = f"{_title(plan, frame)}: coverage / width"
    return Table(title, ("against", *columns), rows, plan.spec.note)


def _is_ours(variant: str) -> bool:
    return variant.startswith("QpiGNN")


def _gains(means: pd.DataFrame, name: str, rivals: list[str]) -> dict[str, str]:
    """Words for each rival, for the mean of them, and for that without the widest of them."""
    mine = means.loc[name]
    theirs: dict[str, Any] = {}
    gains: dict[str, str] = {}
    for rival in rivals:
        if rival in means.index.get_level_values("variant"):
            both = mine.index.intersection(means.loc[rival].index)
            theirs[rival] = means.loc[rival].loc[both].mean()
            gains[rival] = _gain(mine.loc[both].mean() / theirs[rival])
    pooled = pd.DataFrame(theirs).T.drop(index=list(OWN_UNIT), errors="ignore")
    gains["their mean, CF-GNN apart"] = _gain(mine.mean() / pooled.mean())
    others = pooled.drop(index=pooled["mpiw"].idxmax())
    gains["the same without the widest"] = _gain(mine.mean() / others.mean())
    return gains


def _gain(ratio: pd.Series[float]) -> str:
    parts = (100 * (float(ratio[metric]) - 1) for metric in ("picp", "mpiw"))
    shown = (f"{round(part):+d} %" if math.isfinite(part) else "–" for part in parts)
    return " / ".join(shown).replace("-", "−")


def _size(name: str, protocol: str, metric: str) -> float:
    return float(getattr(find_protocol(protocol).declared_size(name), metric))


def _statistics(plan: Plan, frame: pd.DataFrame) -> Table:
    rows: list[Row] = [
        (name, *((Shown(m, _size(name, plan.protocol, m)),) for m in plan.spec.metrics))
        for name in plan.spec.datasets
    ]
    headings = ("dataset", *plan.spec.metrics)
    return Table(_title(plan, frame), headings, tuple(rows), plan.spec.note)


TABLES = {"grid": _grid, "headline": _headline, "statistics": _statistics}


def against_paper(plan: Plan, frame: pd.DataFrame) -> pd.DataFrame:
    """Return ours, the paper's and the difference: a line per place and metric of the facts.

    Args:
        plan: the plan.
        frame: rows of :func:`frame_of`.
    """
    if plan.spec.facts is None:
        return pd.DataFrame(columns=[*AXES, "metric", "ours", "paper", "difference"])
    paper = pd.DataFrame(read_facts(plan.spec.facts)).rename(columns={"value": "paper"})
    paper["paper"] = paper["paper"].astype(float)
    if plan.spec.table == "statistics":
        places = zip(paper["dataset"], paper["metric"], strict=True)
        table = paper.assign(ours=[_size(name, plan.protocol, metric) for name, metric in places])
    else:
        metrics = list(plan.spec.metrics)
        long = frame[[*AXES, *metrics]].melt([*AXES], var_name="metric", value_name="ours")
        means = long.groupby([*AXES, "metric"], sort=False)["ours"].mean().reset_index()
        table = means.merge(paper, on=[*AXES, "metric"])
    table["difference"] = table["ours"] - table["paper"]
    return table[[*AXES, "metric", "ours", "paper", "difference"]]


def agreement(differences: pd.DataFrame) -> pd.DataFrame:
    """Return how near a variant comes to the paper: median and largest |difference|, by metric.

    Args:
        differences: lines of :func:`against_paper`.
    """
    size = differences.assign(difference=differences["difference"].abs())
    groups = size.groupby(["variant", "metric"], sort=False)["difference"]
    return groups.agg(["median", "max", "size"]).reset_index()


def difference_table(plan: Plan, frame: pd.DataFrame) -> Table:
    """Return the comparison as a table to show.

    Args:
        plan: the plan.
        frame: rows of :func:`frame_of`.
    """
    differences = against_paper(plan, frame)
    rows: list[Row] = []
    for line in differences.to_dict("records"):
        place, metric = (str(line[axis]) for axis in AXES), line["metric"]
        figures = ((Shown(metric, line[name]),) for name in ("ours", "paper", "difference"))
        rows.append((*place, NAMES.get(metric, metric), *figures))
    lines = [
        f"{line['variant'] or 'all'} {NAMES.get(line['metric'], line['metric'])} "
        f"{line['median']:.3f} (largest {line['max']:.3f}, {line['size']} figures)"
        for line in agreement(differences).to_dict("records")
    ]
    headings = (*AXES, "metric", "ours", "paper", "difference")
    note = f"Median difference without its sign: {'; '.join(lines)}. {plan.spec.note}"
    return Table(f"{_title(plan, frame)}, beside the paper", headings, tuple(rows), note)
