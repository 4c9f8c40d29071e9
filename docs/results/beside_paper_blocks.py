"""Blocks that show our figures under the protocol ``published`` beside the paper's own."""

from __future__ import annotations

import itertools
from collections.abc import Callable

import numpy as np
import pandas as pd

from measured import Measured
from qpignn.paper.plan import Plan
from qpignn.paper.tables import NAMES, against_paper, agreement
from qpignn.reports.render import digits
from studies import PaperTable
from words import markdown, paragraphs

FAR = 0.05  # differences above this are listed


def near_paper(plan: Plan, frame: pd.DataFrame) -> str:
    """Median and largest difference to the paper without sign, as a table by model."""
    near = agreement(against_paper(plan, frame)).to_dict("records")
    values = {(line["variant"], line["metric"]): line for line in near}
    metrics = [*dict.fromkeys(line["metric"] for line in near)]
    lines = []
    for model in dict.fromkeys(line["variant"] for line in near):
        own = [values[model, metric] for metric in metrics]
        pairs = [(digits(line["median"]), digits(line["max"])) for line in own]
        lines.append((model or "all", *itertools.chain(*pairs), str(own[0]["size"])))
    names = [NAMES.get(metric, metric) for metric in metrics]
    columns = [f"{name}, {what}" for name in names for what in ("median", "largest")]
    return paragraphs(
        "Difference to the paper, without sign:",
        markdown(("model", *columns, "figures compared"), lines),
    )


def agreement_table(study: PaperTable) -> Callable[[Measured], str]:
    """Return a function that makes the table of differences to the paper, one row per model."""
    return lambda measured: near_paper(*measured.table(study))


def beside_paper_table(study: PaperTable, metric: str) -> Callable[[Measured], str]:
    """Return a function that makes a table of one metric: ours / the paper's."""

    def made(measured: Measured) -> str:
        table = against_paper(*measured.table(study))
        part = table[table["metric"] == metric].to_dict("records")
        pairs = {(line["dataset"], line["variant"]): line for line in part}
        names, variants = ([*dict.fromkeys(table[axis])] for axis in ("dataset", "variant"))

        def pair(place: tuple[str, str]) -> str:
            if place not in pairs:
                return "–"
            return " / ".join(f"{pairs[place][who]:.2f}" for who in ("ours", "paper"))

        lines = [(name, *(pair((name, variant)) for variant in variants)) for name in names]
        return markdown(("data set", *variants), lines)

    return made


def far_from_paper(study: PaperTable) -> Callable[[Measured], str]:
    """Return a function that makes the table of all differences above :data:`FAR`."""

    def made(measured: Measured) -> str:
        plan, frame = measured.table(study)
        table = against_paper(plan, frame)
        far = table[table["difference"].abs() > FAR]
        spreads = frame.groupby(["variant", "dataset"], sort=False)[["picp", "mpiw"]].std()
        lines = []
        for line in far.sort_values(["variant", "metric"], kind="stable").to_dict("records"):
            deviation = spreads.loc[(line["variant"], line["dataset"]), line["metric"]]
            lines.append(
                (
                    *(line["variant"], line["dataset"], NAMES[line["metric"]]),
                    *(f"{line['ours']:.2f}", f"{line['paper']:.2f}"),
                    "–" if np.isnan(deviation) else f"{deviation:.2f}",
                )
            )
        headings = ("model", "data set", "metric", "ours", "paper", "deviation of our runs")
        return paragraphs(
            f"{len(far)} of {len(table)} figures differ by more than {FAR:g}.",
            markdown(headings, lines) if lines else "",
        )

    return made
