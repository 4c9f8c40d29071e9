"""Relation between interval width and prediction error."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from qpignn.diagnostics.grouping import ROUNDING
from qpignn.intervals import Floats, Intervals

BINS = 8  # bins of width
UNITS = 8  # assumed rounding error of a bound, in units in the last place


@dataclass(frozen=True)
class ErrorBin:
    """Held-out nodes with intervals of similar width.

    Attributes:
        nodes: number of nodes.
        width: mean width of their intervals.
        error: mean absolute error of their predictions.
    """

    nodes: int
    width: float
    error: float


@dataclass(frozen=True)
class RankCorrelation:
    """Spearman's rank correlation between width and absolute error.

    Attributes:
        nodes: number of nodes.
        value: the correlation; None where all widths, or all errors, are equal up to rounding.
        p_value: probability of a value at least this large if there were no relation.
        high: upper end of its one-sided 95 % interval (Fisher's z, Bonett and Wright's variance).
    """

    nodes: int
    value: float | None
    p_value: float = 1.0
    high: float = 1.0


def distinct_widths(intervals: Intervals) -> Floats:
    """Return the widths, with those that differ only by rounding set to the smallest of them.

    A width is the difference of two rounded bounds. Intervals of equal width around different
    predictions therefore differ in the last digits.

    Args:
        intervals: intervals of all nodes.
    """
    width = intervals.width
    merged = width.copy()
    finite = np.flatnonzero(np.isfinite(width))
    order = finite[np.argsort(width[finite], kind="stable")]
    size = np.maximum(np.abs(intervals.lower[order]), np.abs(intervals.upper[order]))
    slack = np.maximum(ROUNDING * width[order], UNITS * np.finfo(np.float64).eps * size)
    apart = np.diff(width[order]) > np.maximum(slack[1:], slack[:-1])
    group = np.concatenate([[0], np.cumsum(apart)]) if len(order) else np.empty(0, dtype=np.int64)
    first = np.searchsorted(group, group)  # the smallest width of the group
    merged[order] = width[order][first]
    return merged


def error_bins(width: Floats, error: Floats) -> list[ErrorBin]:
    """Return mean errors in bins of increasing width; no bins if a width is infinite.

    Args:
        width: (nodes,), widths.
        error: (nodes,), absolute errors of the predictions.
    """
    if not np.isfinite(width).all():
        return []
    order = np.argsort(width, kind="stable")
    parts = np.array_split(order, min(BINS, max(1, len(order) // 5)))
    return [ErrorBin(len(p), float(width[p].mean()), float(error[p].mean())) for p in parts]


def rank_correlation(width: Floats, error: Floats) -> RankCorrelation:
    """Return the rank correlation between width and error, its test and its upper limit.

    Args:
        width: (nodes,), widths.
        error: (nodes,), absolute errors of the predictions.
    """
    from scipy.stats import norm, spearmanr

    nodes = len(width)
    if nodes < 4 or any(np.ptp(values) <= ROUNDING * values.max() for values in (width, error)):
        return RankCorrelation(nodes, None)
    test = spearmanr(width, error, alternative="greater")
    value = float(test.statistic)
    deviation = np.sqrt((1 + value**2 / 2) / (nodes - 3))
    high = np.tanh(np.arctanh(np.clip(value, -1 + 1e-9, 1 - 1e-9)) + norm.ppf(0.95) * deviation)
    return RankCorrelation(nodes, value, float(test.pvalue), float(high))
