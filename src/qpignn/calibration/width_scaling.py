"""Scaled half-widths: from the outputs of several nets to interval bounds."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.bool_]


@dataclass(frozen=True)
class MemberOutputs:
    """Outputs of nets for some units: a value and half-widths below and above it, each > 0.

    Attributes:
        value: (units,), or (members, units) for several nets.
        below: half-widths below the value, of the same shape.
        above: half-widths above the value, of the same shape.
    """

    value: Floats
    below: Floats
    above: Floats

    def mean(self, chosen: Masks | None = None) -> MemberOutputs:
        """Return the average over the members, (units,).

        Args:
            chosen: (members, units), the members to average over for each unit; default all.
        """
        parts = (self.value, self.below, self.above)
        return MemberOutputs(*(np.average(part, axis=0, weights=chosen) for part in parts))

    def select(self, units: Masks | npt.NDArray[np.int64]) -> MemberOutputs:
        """Return the outputs for some units.

        Args:
            units: a mask or positions.
        """
        return MemberOutputs(self.value[:, units], self.below[:, units], self.above[:, units])

    def disagreement(self, level: float) -> Floats:
        """Return the share of each unit's width that comes from the members' disagreement.

        Members that each predict noise of variance s² and whose values differ by a variance v
        predict s² + v together, of which s is the width without disagreement: the share is
        1 − s / √(s² + v). s is a member's half interval, read as that of a normal law at its level.

        Args:
            level: coverage that the half-widths were trained for.
        """
        half = (self.below + self.above) / 2 / norm.ppf((1 + level) / 2)
        noise = np.square(half).mean(axis=0)
        share: Floats = 1 - np.sqrt(noise / (noise + self.value.var(axis=0, ddof=1)))
        return share


@dataclass(frozen=True)
class WidthScaling:
    """How half-widths become bounds: value − factor_below · belowᵖ, value + factor_above · aboveᵖ.

    Attributes:
        below: factor from 0 up; infinite for a side without a bound.
        above: the same for the upper bound.
        power: 1 takes the nets' half-widths as they are, 0 gives every unit the same.
    """

    below: float
    above: float
    power: float = 1.0

    def bounds(self, outputs: MemberOutputs) -> tuple[Floats, Floats]:
        """Return lower and upper bounds.

        Args:
            outputs: averaged over members, (units,).
        """
        return (
            outputs.value - _times(self.below, outputs.below**self.power),
            outputs.value + _times(self.above, outputs.above**self.power),
        )


AS_TRAINED = WidthScaling(1.0, 1.0)
UNBOUNDED = WidthScaling(math.inf, math.inf)


def _times(factor: float, half_widths: Floats) -> Floats:
    """An infinite factor makes every half-width infinite, also one that is zero."""
    return np.full_like(half_widths, np.inf) if math.isinf(factor) else factor * half_widths


def nested_bounds(
    outputs: Mapping[float, MemberOutputs], scalings: Mapping[float, WidthScaling], *, side: str
) -> tuple[Floats, Floats, Floats, Floats | None]:
    """Return the bounds of the highest level; they contain those of all lower levels.

    Args:
        outputs: of the members, by level, rising; values are the same at all levels.
        scalings: by level.
        side: ``both``, ``lower`` or ``upper``; only two-sided bounds have a disagreement.

    Returns:
        The mean of the members' values, lower and upper bounds, and the share of the width that
        comes from the members' disagreement, or None: each (units,).
    """
    level = max(outputs)
    value = outputs[level].value.mean(axis=0)
    lower = upper = value
    for inner, members in outputs.items():
        low, high = scalings[inner].bounds(members.mean())
        lower, upper = np.minimum(lower, low), np.maximum(upper, high)
    several = len(outputs[level].value) > 1
    bounded = several and side == "both" and scalings[level] != UNBOUNDED
    return value, lower, upper, outputs[level].disagreement(level) if bounded else None
