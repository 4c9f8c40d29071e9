"""Blocks on the default QpiGNN: coverage and width, at other levels and under shift."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import zip_longest
from typing import Any

import numpy as np
import pandas as pd

from measured import Measured
from qpignn.paper.spec import REAL, SYNTHETIC, read_facts
from qpignn.reports.tables import over_seeds
from studies import Comparison
from words import counted, listed, markdown, paragraphs, signed, with_spread

OURS, LEVEL = "qpignn", 0.9
NEAR = 0.02  # largest difference of mean coverage from a level that counts as near


def _default(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the default's means and deviations, one row per data set."""
    table = over_seeds([row for row in rows if row["method"] == OURS])
    return table.set_index("dataset")


def paper_widths() -> dict[str, float]:
    """Return the mean widths of the paper's best-tuned QpiGNN, by data set."""
    return {
        fact["dataset"]: float(fact["value"])
        for fact in read_facts("main")
        if (fact["variant"], fact["metric"]) == ("QpiGNN λ tuned", "mpiw")
    }


def reaches(measured: Measured, study: Comparison) -> str:
    """Coverage and width of the default on every data set, for the README."""
    rows = measured.rows(study)
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
        measured.command(Comparison((OURS,), study.seeds)),
    )


def reading_of_default(rows: list[dict[str, Any]]) -> str:
    """Coverage and width of the default over all data sets, in sentences."""
    table, paper = _default(rows), paper_widths()
    gap = (table["picp_mean"] - LEVEL).abs()
    sentences = [
        f"Mean coverage is within {gap.max():.3f} of the wanted one on every set, and "
        f"{gap.mean():.3f} away on average."
    ]
    ratios = table["mpiw_mean"] / pd.Series(paper).reindex(table.index)
    ratios = ratios[[name for name in REAL if name in table.index]]
    if len(ratios):
        middle = float(np.exp(np.log(ratios).mean()))
        sentences.append(
            f"On the real sets widths are {ratios.min():.2f} to {ratios.max():.2f} of the paper's "
            f"({middle:.2f} in the geometric mean)."
        )
    low = [str(name) for name in table.index[table["limit"] < 1]]
    if low:
        sentences.append(
            f"A ratio below 1 ({listed(low)}) is possible because all seeds share one draw of the "
            f"data, whose noise may be smaller than its distribution suggests."
        )
    return " ".join(sentences)


def _pairs(measured: Measured, studies: Mapping[str, Comparison], by: str = "") -> pd.DataFrame:
    """Return the default's mean coverage and width, with a column ``what`` for the table."""
    parts = []
    for name, study in studies.items():
        rows = [row for row in measured.rows(study) if row["method"] == OURS]
        frame = pd.DataFrame(rows)
        parts.append(frame.assign(what=frame[by] if by else name))
    groups = pd.concat(parts).groupby(["dataset", "what"], sort=False)
    return groups[["picp", "mpiw"]].mean().reset_index()


def _pair_table(pairs: pd.DataFrame, headings: Mapping[Any, str]) -> str:
    """Return a table of coverage / width: a line per data set, a column per condition."""
    values = {(line["dataset"], line["what"]): line for line in pairs.to_dict("records")}
    lines = []
    for name in dict.fromkeys(pairs["dataset"]):
        own = (values[name, what] for what in headings)
        lines.append((name, *(f"{line['picp']:.3f} / {line['mpiw']:.3f}" for line in own)))
    return markdown(("data set", *headings.values()), lines)


def other_levels(measured: Measured, study: Comparison) -> str:
    """Coverage and width of the default at other levels."""
    pairs = _pairs(measured, {"": study}, by="confidence_level")
    near = (pairs["picp"] - pairs["what"]).abs() <= NEAR
    total = pairs["dataset"].nunique()
    counts = [f"{int(near[pairs['what'] == level].sum())}" for level in study.levels]
    shown = {level: f"{100 * level:g} %" for level in study.levels}
    return paragraphs(
        f"PICP / MPIW, means over {counted(measured.rows(study))}. Mean coverage is within "
        f"{NEAR:g} of the level on {listed(counts)} of {total} data sets at "
        f"{listed([*shown.values()])}.",
        _pair_table(pairs, shown),
        measured.command(study),
    )


def unlike_nodes(measured: Measured, random: Comparison, others: Mapping[str, Comparison]) -> str:
    """Coverage and width of the default where test nodes differ from the given ones."""
    pairs = _pairs(measured, {"random": random, **others})
    means = pairs.pivot_table(index="dataset", columns="what", values="picp", sort=False)
    changes = []
    for name in others:
        change = means[name] - means["random"]
        changes.append(
            f"{name} {signed(change.min())} ({change.idxmin()}) to {signed(change.max())} "
            f"({change.idxmax()})"
        )
    first = next(iter(others.values()))
    return paragraphs(
        f"PICP / MPIW at 90 %, means over {counted(measured.rows(first))} (random: "
        f"{counted(measured.rows(random))}). Change of mean coverage against random: "
        f"{'; '.join(changes)}.",
        _pair_table(pairs, {name: name for name in ("random", *others)}),
        measured.command(*others.values()),
    )
