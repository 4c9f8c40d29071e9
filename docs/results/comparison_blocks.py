"""Blocks that compare methods under the protocol ``corrected``: for the arena and the README."""

from __future__ import annotations

from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from measured import Measured
from qpignn.paper.spec import REAL, SYNTHETIC, read_facts
from qpignn.reports.comparison_pictures import (
    coverage_width_by_dataset,
    coverage_width_overall,
    ranks,
)
from qpignn.reports.paper import against_paper, agreement
from qpignn.reports.tables import (
    SHORT,
    first_places,
    mean_ranks,
    not_first,
    over_seeds,
    ranking,
)
from studies import Comparison, PaperTable
from words import counted, listed, markdown, paragraphs, percent_above, with_spread

OURS, LEVEL = "qpignn", 0.9
BEYOND_CHANCE = 3.0  # standard errors


def by_dataset(found: Measured, study: Comparison) -> str:
    """Coverage against width, a panel per data set."""
    rows = found.rows(study)
    picture = found.picture(
        "coverage_width",
        coverage_width_by_dataset(rows, LEVEL),
        "Coverage against mean width of every method, one panel per data set",
    )
    words = (
        f"Means over {counted(rows)}; bars are standard errors. On the dashed line a method "
        f"covers as much as it was asked to; of those that do, the leftmost is the narrowest."
    )
    return paragraphs(picture, words, found.exploded(study), found.command(study))


def overall(found: Measured, study: Comparison) -> str:
    """Coverage against relative width, over all data sets."""
    rows = found.rows(study)
    figure = coverage_width_overall(rows, LEVEL, OURS)
    about = "Mean coverage against relative width of every method, over all data sets"
    return paragraphs(found.picture("overall", figure, about), found.command(study))


def places(found: Measured, study: Comparison, picture: str) -> str:
    """Mean places with their intervals, and how often each method is first."""
    rows = found.rows(study)
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
        found.picture(picture, figure, about),
        f"Means over {counted(rows)}; lines are 95 % intervals over data sets.",
        found.command(study),
        markdown(headings, lines),
        found.exploded(study),
    )


def losses(found: Measured, study: Comparison) -> str:
    """Where the default is not first by Winkler score, and whether that is beyond chance."""
    rows = found.rows(study)
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


def _default(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the default's means and deviations, a line per data set."""
    table = over_seeds([row for row in rows if row["method"] == OURS])
    return table.set_index("dataset")


def paper_widths() -> dict[str, float]:
    """Return the mean widths of the paper's best-tuned QpiGNN, by data set."""
    return {
        fact["dataset"]: float(fact["value"])
        for fact in read_facts("main")
        if (fact["variant"], fact["metric"]) == ("QpiGNN λ tuned", "mpiw")
    }


def reaches(found: Measured, study: Comparison) -> str:
    """What the default reaches on every data set, for the README."""
    rows = found.rows(study)
    table, paper = _default(rows), paper_widths()

    values: dict[Any, dict[Any, Any]] = table.to_dict("index")

    def half(name: str | None) -> tuple[str, ...]:
        if name is None:
            return ("", "", "", "")
        line = values[name]
        ratio = line["limit"] if name in SYNTHETIC else line["mpiw_mean"] / paper[name]
        picp, mpiw = (with_spread(line[f"{m}_mean"], line[f"{m}_std"]) for m in ("picp", "mpiw"))
        return (name, picp, mpiw, f"{ratio:.2f}")

    drawn, real = ([name for name in names if name in table.index] for names in (SYNTHETIC, REAL))
    lines = [(*half(left), "", *half(right)) for left, right in zip_longest(drawn, real)]
    headings = ("data set", "PICP", "MPIW", "× limit", "", "data set", "PICP", "MPIW", "/ paper")
    return paragraphs(
        f"Default `QpiGNN()` at 90 %, whole graph visible, random 80/20 split, {counted(rows)}; "
        f'mean ± deviation over seeds; widths in units of the train targets\' range. "× limit" is '
        f"the mean width over the narrowest possible at the coverage attained, which the known "
        f'noise of the synthetic sets decides; "/ paper" is the mean width over that of the '
        f"paper's best-tuned QpiGNN.",
        markdown(headings, lines),
        reading_of_default(rows),
        found.command(Comparison((OURS,), study.seeds)),
    )


def reading_of_default(rows: list[dict[str, Any]]) -> str:
    """Coverage and width of the default over all data sets, in sentences."""
    table, paper = _default(rows), paper_widths()
    gap = (table["picp_mean"] - LEVEL).abs()
    words = [
        f"Mean coverage is within {gap.max():.3f} of the wanted one on every set, and "
        f"{gap.mean():.3f} away on average."
    ]
    ratios = table["mpiw_mean"] / pd.Series(paper).reindex(table.index)
    ratios = ratios[[name for name in REAL if name in table.index]]
    if len(ratios):
        middle = float(np.exp(np.log(ratios).mean()))
        words.append(
            f"On the real sets widths are {ratios.min():.2f} to {ratios.max():.2f} of the paper's "
            f"({middle:.2f} in the geometric mean)."
        )
    low = [str(name) for name in table.index[table["limit"] < 1]]
    if low:
        words.append(
            f"A ratio below 1 ({listed(low)}) is possible because all seeds share one draw of the "
            f"data, whose noise may be smaller than its law says."
        )
    return " ".join(words)


def standing(found: Measured, nine: Comparison, many: Comparison) -> str:
    """How often the default is first, in sentences."""
    ours, ours_of_many = (_first(found.rows(study)) for study in (nine, many))
    return (
        f"Against eight other methods under the same conditions (SQR, RQR, MC dropout, Bayesian, "
        f"evidential, deep ensemble, CQR, CF-GNN; {counted(found.rows(nine))}) the default is the "
        f"narrowest that covers (at least {LEVEL - SHORT:.2f}) on {ours['first_by_width']} of "
        f"{ours['data_sets']} data sets and has the best Winkler score on "
        f"{ours['first_by_winkler']}; its score is {percent_above(ours['winkler_over_best'])} "
        f"above the best on average. If every baseline may train five nets, it is first by Winkler "
        f"score on {ours_of_many['first_by_winkler']} of {ours_of_many['data_sets']} and "
        f"{percent_above(ours_of_many['winkler_over_best'])} above the best on average; the next "
        f"method there, `{ours_of_many['next']}`, is "
        f"{percent_above(ours_of_many['next_over_best'])} above it."
    )


def _first(rows: list[dict[str, Any]]) -> dict[Any, Any]:
    """Return how often the default is first, and which method comes next to it on average."""
    counts = first_places(ranking(rows)).set_index("method")
    own = counts.to_dict("index")[OURS]
    others = counts["winkler_over_best"].drop(OURS)
    return {**own, "next": others.idxmin(), "next_over_best": others.min()}


def readme_standing(found: Measured, nine: Comparison, many: Comparison) -> str:
    """How often the default is first, for the README."""
    more = "[docs/results](docs/results/index.md) has the tables, the losses and the reasons."
    return paragraphs(f"{standing(found, nine, many)} {more}", found.command(nine))


def readme_paper(found: Measured, study: PaperTable, variant: str) -> str:
    """Ours beside the paper's figures for one model, for the README."""
    plan, frame = found.table(study)
    table = against_paper(plan, frame[frame["variant"] == variant])
    values = {(line["dataset"], line["metric"]): line for line in table.to_dict("records")}

    def half(name: str | None) -> tuple[str, ...]:
        if name is None:
            return ("", "", "")
        picp, mpiw = (values[name, metric] for metric in ("picp", "mpiw"))
        return (name, *(f"{pair['ours']:.2f} / {pair['paper']:.2f}" for pair in (picp, mpiw)))

    names = [*dict.fromkeys(table["dataset"])]
    drawn, real = ([name for name in names if name in kind] for kind in (SYNTHETIC, REAL))
    lines = [(*half(left), "", *half(right)) for left, right in zip_longest(drawn, real)]
    columns = ("data set", "PICP ours / paper", "MPIW ours / paper")
    sentence = agreement_words(table)
    runs = counted(frame[frame["variant"] == variant].to_dict("records"), "run")
    return paragraphs(
        f"{variant}, {runs}, beside the same row of the paper's main table:",
        markdown((*columns, "", *columns), lines),
        f"{sentence} {len(names)} of {len(plan.spec.datasets)} data sets. All models: "
        f"[docs/results/published.md](docs/results/published.md).",
        found.command(study),
    )


def agreement_words(table: pd.DataFrame) -> str:
    """Median and largest difference to the paper of one model, in a sentence."""
    near = {line["metric"]: line for line in agreement(table).to_dict("records")}
    parts = []
    for metric, line in near.items():
        part = table[table["metric"] == metric].set_index("dataset")["difference"].abs()
        parts.append(
            f"{metric.upper()} median {line['median']:.3f}, largest {line['max']:.3f} "
            f"({part.idxmax()})"
        )
    return f"Differences without sign: {'; '.join(parts)}."
