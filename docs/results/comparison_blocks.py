"""Blocks that compare methods by coverage, width and Winkler score."""

from __future__ import annotations

from typing import Any

import numpy as np
import pandas as pd

from measured import Measured
from qpignn.reports.comparison_pictures import (
    coverage_width_by_dataset,
    coverage_width_overall,
    ranks,
)
from qpignn.reports.tables import (
    SHORT,
    first_places,
    mean_ranks,
    not_first,
    ranking,
)
from studies import Comparison
from words import counted, listed, markdown, paragraphs, percent_above

OURS, LEVEL = "qpignn", 0.9
BEYOND_CHANCE = 3.0  # standard errors


def by_dataset(measured: Measured, study: Comparison) -> str:
    """Coverage against width, one panel per data set."""
    rows = measured.rows(study)
    picture = measured.picture(
        "coverage_width",
        coverage_width_by_dataset(rows, LEVEL),
        "Coverage against mean width of every method, one panel per data set",
    )
    text = (
        f"Means over {counted(rows)}; bars are standard errors. On the dashed line "
        f"attained and wanted coverage agree; of the methods that cover, the leftmost is narrowest."
    )
    return paragraphs(picture, text, measured.exploded(study), measured.command(study))


def overall(measured: Measured, study: Comparison) -> str:
    """Coverage against relative width, over all data sets."""
    rows = measured.rows(study)
    figure = coverage_width_overall(rows, LEVEL, OURS)
    about = "Mean coverage against relative width of every method, over all data sets"
    return paragraphs(measured.picture("overall", figure, about), measured.command(study))


def places(measured: Measured, study: Comparison, picture: str) -> str:
    """Mean places with their intervals, and how often each method is first."""
    rows = measured.rows(study)
    table = ranking(rows)
    figure = ranks(mean_ranks(table))
    about = "Mean place by Winkler score and mean score over the best, of every method"
    counts = first_places(table)
    order = mean_ranks(table).set_index("method")
    lines = [
        (
            f"`{line['method']}`",
            f"{order.loc[line['method'], 'rank']:.1f}",
            str(line["first_by_winkler"]),
            f"{line['winkler_over_best']:.3f}",
            str(line["first_by_width"]),
            f"{line['covers']} of {line['data_sets']}",
            f"{line['seconds']:.1f}",
        )
        for line in counts.to_dict("records")
    ]
    headings = (
        *("method", "mean place", "first by Winkler", "Winkler / best", "first by width"),
        *("covers", "seconds"),
    )
    return paragraphs(
        measured.picture(picture, figure, about),
        f"Means over {counted(rows)}; lines are 95 % intervals over data sets.",
        measured.command(study),
        markdown(headings, lines),
        measured.exploded(study),
    )


def losses(measured: Measured, study: Comparison) -> str:
    """Where the default is not first by Winkler score, and whether that is beyond chance."""
    rows = measured.rows(study)
    table = not_first(rows, OURS)
    total = len({row["dataset"] for row in rows})
    if table.empty:
        return f"`{OURS}` has the best mean Winkler score on all {total} data sets."
    sure = table[table["standard_errors"] >= BEYOND_CHANCE]["dataset"].tolist()
    verdict = (
        f"By {BEYOND_CHANCE:g} standard errors or more it is behind on {listed(sure)}."
        if sure
        else f"Nowhere is the difference {BEYOND_CHANCE:g} standard errors or more."
    )
    lines = [
        (
            line["dataset"],
            f"`{line['first']}`",
            f"{100 * line['excess']:.1f} %",
            "–" if np.isnan(line["standard_errors"]) else f"{line['standard_errors']:.1f}",
        )
        for line in table.to_dict("records")
    ]
    headings = ("data set", "first", f"`{OURS}` is worse by", "standard errors")
    return paragraphs(
        f"`{OURS}` has the best mean Winkler score on {total - len(table)} of {total} data sets. "
        f"{verdict}",
        markdown(headings, lines),
    )


def paired(measured: Measured, study: Comparison, rival: str) -> str:
    """The default's Winkler score beside that of one other method, paired by seed."""
    frame = pd.DataFrame(measured.rows(study))
    lines = []
    for name, part in frame.groupby("dataset", sort=False):
        scores = part.pivot_table(index="seed", columns="method", values="winkler")
        ours, theirs = (scores[method] for method in (OURS, rival))
        gap = theirs - ours
        error = gap.std() / len(gap) ** 0.5
        lines.append(
            (
                str(name),
                f"{ours.mean():.3f}",
                f"{theirs.mean():.3f}",
                f"{100 * (ours.mean() / theirs.mean() - 1):+.1f} %",
                f"{gap.mean() / error:+.1f}" if error > 0 else "–",
                f"{int((gap > 0).sum())} of {len(gap)}",
            )
        )
    headings = (
        *("data set", f"`{OURS}`", f"`{rival}`", "difference", "standard errors"),
        f"seeds on which `{OURS}` is better",
    )
    return markdown(headings, lines)


def standing(measured: Measured, each: Comparison, sharing: Comparison) -> str:
    """How often the default is first, in sentences."""
    ours, among = (_first(measured.rows(study)) for study in (each, sharing))
    return (
        f"Against nine other methods under the same conditions (SQR, RQR, MC dropout, Bayesian, "
        f"evidential, deep ensemble, CQR, CF-GNN, boosted trees; {counted(measured.rows(each))}) "
        f"the default is the narrowest that covers (at least {LEVEL - SHORT:.2f}) on "
        f"{ours['first_by_width']} of {ours['data_sets']} data sets and has the best Winkler score "
        f"on {ours['first_by_winkler']}; its score is {percent_above(ours['winkler_over_best'])} "
        f"above the best on average. If every baseline that can use the known targets of "
        f"neighbours does ({counted(measured.rows(sharing))}), it is first by Winkler score on "
        f"{among['first_by_winkler']} of {among['data_sets']} and "
        f"{percent_above(among['winkler_over_best'])} above the best on average; of the others "
        f"`{among['next']}` is nearest to the best, {percent_above(among['next_over_best'])} "
        f"above it."
    )


def _first(rows: list[dict[str, Any]]) -> dict[Any, Any]:
    """Return how often the default is first, and which method comes next to it on average."""
    counts = first_places(ranking(rows)).set_index("method")
    own = counts.to_dict("index")[OURS]
    others = counts["winkler_over_best"].drop(OURS)
    return {**own, "next": others.idxmin(), "next_over_best": others.min()}


def readme_standing(measured: Measured, each: Comparison, sharing: Comparison) -> str:
    """How often the default is first, for the README."""
    more = "[docs/results](docs/results/index.md) has the tables, the losses and the reasons."
    return paragraphs(f"{standing(measured, each, sharing)} {more}", measured.command(each))
