"""Split-conformal calibration: from the scores of held-out units to widened intervals.

Units that a method was not fitted on are scored by how far outside its interval they lie; the
interval of a new unit is widened by the ⌈(n + 1)·level⌉-th smallest score. If those units and the
new one are exchangeable, it then covers with at least the wanted probability, for any method.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Literal, get_args

import numpy as np
import numpy.typing as npt

from qpignn.intervals import Intervals

Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.bool_]
Labels = npt.NDArray[np.str_]
Score = Literal["cqr", "normalised", "absolute"]
SCORES: tuple[str, ...] = get_args(Score)
SMALLEST = 1e-150  # half-width: a net with one output per unit has none


def conformal_rank(count: int, level: float) -> int:
    """Return which of ``count`` sorted scores covers a new one with the wanted probability.

    For exchangeable scores the ⌈(n + 1)·level⌉-th smallest does; beyond n there is no such score.

    Args:
        count: number of scores n.
        level: wanted coverage.
    """
    return math.ceil((count + 1) * level - 1e-9)


def conformal_quantile(scores: Floats, level: float) -> float:
    """Return the score that a new one stays below with the wanted probability.

    Args:
        scores: (units,), of held-out units.
        level: wanted coverage.

    Returns:
        The score of rank :func:`conformal_rank`; infinite with too few scores for the level.
    """
    rank = conformal_rank(len(scores), level)
    if rank > len(scores):
        return math.inf
    return float(np.partition(scores, rank - 1)[rank - 1])


def enough_for(level: float) -> int:
    """Return the smallest number of held-out units for which the level's rank exists.

    Args:
        level: wanted coverage.
    """
    return math.ceil(level / (1 - level) - 1e-9)


@dataclass(frozen=True)
class SplitConformal:
    """Widens intervals by conformal quantiles of their scores, per group of units.

    With bounds l, u and a unit of measurement s, a target y has the score
    max(l − y, y − u) / s (one-sided results: of their side only), and the bounds become
    l − q·s and u + q·s, where q is the conformal quantile of the group's scores.

    Attributes:
        score: ``cqr``: bounds of the method, s = 1. ``normalised``: l = u = prediction and s the
            half-width. ``absolute``: l = u = prediction, s = 1.
    """

    score: Score = "cqr"

    def fit(
        self,
        intervals: Intervals,
        y: Floats,
        groups: Labels,
        difficulty: Floats,
        reachable: Masks,
    ) -> dict[str, float]:
        """Return the widening of every group at the intervals' level.

        Args:
            intervals: predictions for units not used for fitting.
            y: (units,), their targets.
            groups: (units,), the label of each unit's group.
            difficulty: (units,), scores are divided by it.
            reachable: (units,), False where no widening can cover the target.
        """
        scores = self.scores(intervals, y) / difficulty
        scores[~reachable] = np.inf
        return {
            label: conformal_quantile(scores[groups == label], intervals.confidence_level)
            for label in sorted(set(groups))
        }

    def scores(self, intervals: Intervals, y: Floats) -> Floats:
        """Return how far each target lies beyond its bounds, in the score's unit.

        Args:
            intervals: predictions for the units.
            y: (units,), their targets.
        """
        low, high, unit = self._unwidened(intervals)
        below, above = (low - y) / unit, (y - high) / unit
        return {"both": np.maximum(below, above), "lower": below, "upper": above}[intervals.side]

    def bounds(
        self,
        intervals: Intervals,
        widenings: Mapping[str, float],
        groups: Labels,
        difficulty: Floats,
    ) -> tuple[Floats, Floats]:
        """Return lower and upper bounds moved outwards; infinite bounds stay infinite.

        Args:
            intervals: predictions for any units.
            widenings: of each group, from :meth:`fit`; units of other groups get infinite bounds.
            groups: (units,), the label of each unit's group.
            difficulty: (units,), widenings are multiplied by it.
        """
        widening = np.array([widenings.get(label, np.inf) for label in groups]) * difficulty
        low, high, unit = self._unwidened(intervals)
        with np.errstate(invalid="ignore"):  # ∞ − ∞ and 0 · ∞: infinite bounds
            low, high = low - widening * unit, high + widening * unit
        endless = np.isinf(unit)
        lower, upper = intervals.lower, intervals.upper
        low = np.where(np.isneginf(lower) & (endless | np.isnan(low)), -np.inf, low)
        high = np.where(np.isposinf(upper) & (endless | np.isnan(high)), np.inf, high)
        if intervals.side == "lower":  # the result has no upper bound to move
            return np.minimum(low, upper), upper
        if intervals.side == "upper":
            return lower, np.maximum(high, lower)
        with np.errstate(invalid="ignore"):
            middle = (lower + upper) / 2  # where bounds moved inwards until they crossed
        return np.where(low > high, middle, low), np.where(low > high, middle, high)

    def _unwidened(self, intervals: Intervals) -> tuple[Floats, Floats, Floats | float]:
        """Return the bounds that are widened, and the unit that scores are measured in."""
        if self.score == "cqr":
            return intervals.lower, intervals.upper, 1.0
        unit = 1.0 if self.score == "absolute" else _half_widths(intervals)
        return intervals.prediction, intervals.prediction, unit


def _half_widths(intervals: Intervals) -> Floats:
    """Return half-widths, or for one bound its distance from the prediction.

    Never so near to zero that a distance divided by one would be infinite.
    """
    if intervals.side == "both":
        half = intervals.width / 2
    else:
        bound = intervals.lower if intervals.side == "lower" else intervals.upper
        half = np.abs(intervals.prediction - bound)
    return np.maximum(half, SMALLEST)
