"""Tables of results: their content, and mean and spread over seeds."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from math import nan
from typing import Any

import numpy as np
import pandas as pd
from scipy import stats

NUMBERS = ("nodes", "edges", "features", "parameters")
"""Metrics that are counts, shown without decimals."""
SHOWN = ("picp", "mpiw", "winkler", "fit_seconds")


@dataclass(frozen=True)
class Shown:
    """One figure of a table.

    Attributes:
        metric: name of the metric.
        mean: mean over seeds; NaN where there is no value.
        spread: standard deviation over seeds; NaN for a single seed.
        strong: whether the wanted coverage is reached.
        best: whether it is the narrowest of those that reach it.
    """

    metric: str
    mean: float
    spread: float = nan
    strong: bool = False
    best: bool = False


Place = str | tuple[Shown, ...]
"""A label, or the figures of several metrics."""
Row = tuple[Place, ...]


@dataclass(frozen=True)
class Table:
    """Figures in rows and columns; a cell holds the figures of several metrics, or text.

    Attributes:
        title: text above the table.
        headings: headings of the label columns, then of the others.
        rows: labels, then tuples of figures.
        note: text below the table.
    """

    title: str
    headings: tuple[str, ...]
    rows: tuple[Row, ...]
    note: str = ""


def seed_count(counts: Iterable[int]) -> str:
    """Return over how many seeds the places of a table average, such as ``5`` or ``3 to 5``.

    Args:
        counts: number of seeds of every place.
    """
    every = {int(count) for count in counts}
    return f"{min(every)} to {max(every)}" if len(every) > 1 else str(*every)


def over_seeds(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return mean and standard deviation over seeds, one line per data set, method and level.

    ``limit`` is mean width over mean narrowest possible width, where that is known.

    Args:
        rows: results.
    """
    frame = pd.DataFrame(rows)
    frame[list(SHOWN)] = frame[list(SHOWN)].astype(float)  # one-sided results have no widths
    by = ["dataset", "method", "confidence_level"]
    groups = frame.groupby(by, sort=False)
    means, spreads = groups[list(SHOWN)].mean(), groups[list(SHOWN)].std()
    table = means.add_suffix("_mean").join(spreads.add_suffix("_std"))
    possible = groups["mpiw_limit"].agg(lambda limits: limits.astype(float).mean())
    return table.assign(seeds=groups.size(), limit=means["mpiw"] / possible).reset_index()


SHORT = 0.01  # coverage a method may lack and still be ranked by width


def ranking(rows: list[dict[str, Any]]) -> pd.DataFrame:
    """Return the methods' places on each data set, by width and by Winkler score.

    By width only methods compete whose mean coverage is at most a point below the wanted one; the
    others have no place there (NaN).

    Args:
        rows: results.
    """
    table = over_seeds(rows)
    covers = table["picp_mean"] >= table["confidence_level"] - SHORT - 1e-9
    table["by_width"] = table["mpiw_mean"].where(covers)
    groups = table.groupby(["dataset", "confidence_level"], sort=False)
    return table.assign(
        by_width=groups["by_width"].rank(method="min"),
        by_winkler=groups["winkler_mean"].rank(method="min"),
        over_best=table["winkler_mean"] / groups["winkler_mean"].transform("min"),
    )


def first_places(ranks: pd.DataFrame) -> pd.DataFrame:
    """Return for each method how often it is first, and how far from the best it is on average.

    One line per level and method.

    Args:
        ranks: lines of :func:`ranking`.
    """
    groups = ranks.groupby(["confidence_level", "method"], sort=False)
    return pd.DataFrame(
        {
            "data_sets": groups.size(),
            "first_by_width": groups["by_width"].agg(lambda places: int((places == 1).sum())),
            "first_by_winkler": groups["by_winkler"].agg(lambda places: int((places == 1).sum())),
            "covers": groups["by_width"].agg(lambda places: int(places.notna().sum())),
            "winkler_over_best": groups["over_best"].agg(lambda r: float(np.exp(np.log(r).mean()))),
            "seconds": groups["fit_seconds_mean"].mean(),
        }
    ).reset_index()


def mean_ranks(ranks: pd.DataFrame, confidence: float = 0.95) -> pd.DataFrame:
    """Return the methods' mean place by Winkler score, and their mean score over the best one.

    The intervals are t-intervals over data sets; those of the ratio (a geometric mean) are taken
    of its logarithm. One line per method, best first.

    Args:
        ranks: as :func:`ranking` returns it, of one level.
        confidence: of the intervals; NaN where there is one data set only.
    """
    lines = []
    for method, part in ranks.groupby("method", sort=False):
        place = _t_interval(part["by_winkler"], confidence)
        ratio = np.exp(_t_interval(np.log(part["over_best"]), confidence))
        lines.append([method, len(part), *place, *ratio])
    columns = ["rank", "rank_low", "rank_high", "ratio", "ratio_low", "ratio_high"]
    table = pd.DataFrame(lines, columns=["method", "data_sets", *columns])
    return table.sort_values(["rank", "ratio"], kind="stable").reset_index(drop=True)


def _t_interval(values: pd.Series[float], confidence: float) -> tuple[float, float, float]:
    """Return the mean and the ends of its interval, which are NaN for a single value."""
    mean, error = float(values.mean()), float(values.std()) / len(values) ** 0.5
    reach = float(stats.t.ppf((1 + confidence) / 2, len(values) - 1)) * error
    return mean, mean - reach, mean + reach


def not_first(rows: list[dict[str, Any]], method: str) -> pd.DataFrame:
    """Return where a method does not have the best mean Winkler score, and by how much.

    Methods on the same seed see the same split, so differences are paired by seed.

    Returns:
        A line per such data set: the first method (``first``), the relative excess of this
        method's score (``excess``) and the mean difference in its standard errors
        (``standard_errors``; NaN with one seed).

    Args:
        rows: results.
        method: name of a method.
    """
    lines = []
    for dataset, part in pd.DataFrame(rows).groupby("dataset", sort=False):
        scores = part.pivot_table(index="seed", columns="method", values="winkler", sort=False)
        means = scores.mean()
        first = str(means.idxmin())
        if method not in scores or first == method:
            continue
        difference = (scores[method] - scores[first]).dropna()
        error = difference.std() / len(difference) ** 0.5
        excess = means[method] / means[first] - 1
        lines.append([dataset, first, excess, difference.mean() / error if error > 0 else np.nan])
    return pd.DataFrame(lines, columns=["dataset", "first", "excess", "standard_errors"])


EXPLODED = 5.0
"""A seed has exploded if its mean width is more than so many times the median of the others'."""
WIDE = 0.05
"""Widths below this part of the targets' range have not exploded, whatever the others are."""


def exploded_seeds(frame: pd.DataFrame, by: list[str]) -> pd.DataFrame:
    """Return the seeds whose intervals are absurdly wide beside those of the other seeds.

    A seed is named if its mean width is more than :data:`EXPLODED` times the median of the other
    seeds' and above :data:`WIDE`, or if it is not finite. Fewer than three seeds tell nothing.

    Args:
        frame: rows with ``seed`` and ``mpiw``.
        by: columns that name what is averaged over seeds.

    Returns:
        A line per seed: ``by``, ``seed``, its width, the median of the others' (``median``), the
        mean of all (``mean``) and of the others (``mean_without``).
    """
    lines = []
    for place, part in () if frame.empty else frame.groupby(by, sort=False):
        widths = part.drop_duplicates("seed").set_index("seed")["mpiw"].astype(float)
        if len(widths) < 3 or widths.max() <= EXPLODED * widths.min():
            continue
        for seed, width in widths.items():
            others = widths.drop(seed)
            median = float(others.median())
            if not np.isfinite(width) or (width > WIDE and width > EXPLODED * median):
                figures = (width, median, widths.mean(), others.mean())
                lines.append([*place, seed, *map(float, figures)])
    return pd.DataFrame(lines, columns=[*by, "seed", "mpiw", "median", "mean", "mean_without"])
