"""What the known targets of a unit's neighbours say about it, as numbers.

A unit's neighbours with known targets were predicted, too, and wrong by a known amount. Where
errors of neighbours are alike, theirs tell by how much this unit's prediction is off.
:func:`neighbour_columns` turns them into columns that a regression can use
(:mod:`qpignn.methods.known_neighbours` trains it), none of which contains the unit's own target:
matrices have no entries from a unit to itself, and from sums over neighbours of neighbours the way
there and back is subtracted. :func:`certain_gain` decides whether the outcome is used.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from qpignn.calibration.width_scaling import Floats, Masks
from qpignn.metrics import winkler_scores

CLIP = 5.0  # standard deviations of a column
WORTH = 0.99  # held-out score, over that without neighbours, up to which they are used
CERTAIN = 1.645  # standard errors of the mean gain: a one-sided bound of 95 %


@dataclass(frozen=True)
class KnownErrors:
    """What is known of units with given targets, (units,) each; 0 for all other units.

    Attributes:
        given: 1 for units with a given target.
        error: target minus prediction, r.
        target: z.
        size: |r| / w divided by its mean, a.
    """

    given: Floats
    error: Floats
    target: Floats
    size: Floats

    @classmethod
    def of(cls, target: Floats, value: Floats, half_width: Floats) -> KnownErrors:
        """Return what is known of given units.

        Args:
            target: (given,), z.
            value: (given,), their predictions by nets that were not trained on them, v.
            half_width: (given,), their half-widths by the same nets, w.
        """
        error = target - value
        size = np.abs(error) / half_width
        mean = float(size.mean())
        return cls(np.ones_like(error), error, target, size / mean if mean > 0 else size)

    def select(self, places: npt.NDArray[np.int64]) -> KnownErrors:
        """Return what is known of some of the units.

        Args:
            places: their positions.
        """
        return KnownErrors(*(part[places] for part in vars(self).values()))

    def spread(self, units: int, places: npt.NDArray[np.int64]) -> Floats:
        """Return the columns k, r, k·z, a over all units, (units, 4).

        Args:
            units: how many there are.
            places: (given,), positions of the given units.
        """
        columns = np.zeros((units, 4))
        columns[places] = np.stack([self.given, self.error, self.target, self.size], axis=1)
        return columns


def neighbour_sums(adjacency: Any, columns: Floats) -> Floats:
    """Return sums over neighbours and over their neighbours, without the unit itself, (units, 7).

    The columns are (n₁, s₁, z₁, t₁) = A·(k, r, k·z, a), then (n₂, s₂, z₂) = A·(n₁, s₁, z₁) minus
    the way there and back, Σⱼ aᵢⱼ² · (k, r, k·z).

    Args:
        adjacency: (units, units), SciPy CSR, symmetric, without entries on the diagonal: A.
        columns: (units, 4), k, r, k·z and a of :meth:`KnownErrors.spread`.
    """
    one = adjacency @ columns
    back = np.asarray(adjacency.multiply(adjacency).sum(axis=1)).reshape(-1, 1)
    two = adjacency @ one[:, :3] - back * columns[:, :3]
    two[(np.abs(two) < 1e-9 * np.abs(back * columns[:, :3]))] = 0  # rounding of the difference
    return np.hstack([one, two])


def neighbour_columns(value: Floats, half_width: Floats, sums: Floats) -> Floats:
    """Return the columns of a regression, (units, 10).

    Args:
        value: (units,), v.
        half_width: (units,), w.
        sums: (units, 7), as :func:`neighbour_sums` returns them.
    """
    n1, s1, z1, t1, n2, s2, z2 = sums.T
    return np.stack(
        [
            value,
            np.log(half_width),
            s1 / (n1 + 1),
            s1 / (n1 + 4),
            n1 / (n1 + 1),
            s2 / (n2 + 3),
            n2 / (n2 + 3),
            np.log((t1 + 4) / (n1 + 4)),
            z1 / (n1 + 1),
            z2 / (n2 + 3),
        ],
        axis=1,
    )


def interval_scores(
    y: Floats, lower: Floats, upper: Floats, level: float, side: str, *, least: float | None = None
) -> Floats:
    """Return the scores of each interval, (kinds, units): Winkler's, or the pinball of one bound.

    Where a few targets are far larger than the others, the logarithms of the scores are a second
    kind. Targets of 0, of which there may be many, do not count in it.

    Args:
        y: (units,), targets.
        lower: (units,), lower bounds.
        upper: (units,), upper bounds.
        level: wanted coverage.
        side: ``both``, ``lower`` or ``upper``.
        least: smallest score whose logarithm is taken; default no logarithms.
    """
    if side == "both":
        scores = winkler_scores(y, lower, upper, confidence_level=level)
    else:
        off = y - lower if side == "lower" else upper - y
        scores = np.where(off < 0, -level * off, (1 - level) * off)
    if least is None:
        return scores[None]
    return np.stack([scores, np.where(y == 0, 0.0, np.log(np.maximum(scores, least)))])


def least_score(scores: Floats) -> float:
    """Return the smallest score whose logarithm is taken: a thousandth of the median.

    Args:
        scores: (units,), of intervals.
    """
    return max(float(np.median(scores)) / 1000, float(np.finfo(np.float64).tiny))


def certain_gain(scores: Floats, plain: Floats) -> float:
    """Return how much lower held-out scores are with neighbours, at least: a lower 95 % bound.

    The bound is that of the mean of the last kind of scores, as a share of the plain mean; for
    logarithms, which a few far larger targets do not decide, it is their difference.

    Args:
        scores: (kinds, units), of the intervals with neighbours; see :func:`interval_scores`.
        plain: (kinds, units), of those without.

    Returns:
        The bound; −∞ where the gain itself is less than a hundredth, or where the mean score is
        higher.
    """
    gain = plain - scores
    heavy_tailed = len(gain) > 1
    unit = 1.0 if heavy_tailed else float(plain.mean())
    least = -math.log(WORTH) if heavy_tailed else 1 - WORTH
    mean, error = float(gain[-1].mean()), float(gain[-1].std()) / math.sqrt(gain.shape[1])
    if not (mean > least * unit and gain[0].mean() > 0):
        return -math.inf
    return (mean - CERTAIN * error) / unit


def with_known_neighbours(sums: Floats) -> Masks:
    """Whether a unit has a known neighbour, or a neighbour with one, (units,).

    Args:
        sums: (units, 7), as :func:`neighbour_sums` returns them.

    Returns:
        A mask.
    """
    reached: Masks = (sums[:, 0] > 0) | (sums[:, 4] > 0)
    return reached
