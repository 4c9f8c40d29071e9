"""The noise of the synthetic sets is known, and so is the narrowest interval anyone could give.

A net that knew the noiseless target exactly would still need, for a given coverage, an interval
as wide as the narrowest that holds that share of the noise.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import lru_cache

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from qpignn.data.sources.synthetic import NOISE_LEVEL, OUTLIER_SHARE

Floats = npt.NDArray[np.float64]
BASE = 0.1  # every set of the basic family has U(0, 0.1); the centrality graphs have N(0, 0.1²)


def _base(x: Floats) -> Floats:
    return np.clip(x / BASE, 0, 1)


def _base_plus_normal(x: Floats, mean: float, deviation: float) -> Floats:
    """Distribution function of U(0, BASE) + N(mean, deviation²)."""

    def integral(t: Floats) -> Floats:  # of the normal distribution function
        return np.asarray(t * norm.cdf(t) + norm.pdf(t))

    high, low = (x - mean) / deviation, (x - mean - BASE) / deviation
    return (integral(high) - integral(low)) * deviation / BASE


def _base_plus_uniform(x: Floats) -> Floats:
    """Distribution function of U(0, BASE) + U(−NOISE_LEVEL, NOISE_LEVEL)."""

    def integral(t: Floats) -> Floats:  # of clip(t, 0, 1)
        return np.where(t < 0, 0, np.where(t > 1, t - 0.5, t**2 / 2))

    span = 2 * NOISE_LEVEL
    high, low = (x + NOISE_LEVEL) / span, (x - BASE + NOISE_LEVEL) / span
    return (integral(high) - integral(low)) * span / BASE


def _outlier(x: Floats) -> Floats:
    return (1 - OUTLIER_SHARE) * _base(x) + OUTLIER_SHARE * _base_plus_normal(x, 3, 1)


NOISE: dict[str, Callable[[Floats], Floats]] = {
    "basic": _base,
    "edge": _base,
    "gaussian": lambda x: _base_plus_normal(x, 0, NOISE_LEVEL),
    "uniform": _base_plus_uniform,
    "outlier": _outlier,
    **dict.fromkeys(("ba", "er", "grid", "tree"), lambda x: norm.cdf(x / BASE)),
}
"""Distribution functions of the targets' noise, by data set."""


def narrowest_width(dataset: str, coverage: float) -> float:
    """Return the width of the narrowest interval that holds such a share of a set's noise.

    Infinite at full coverage of noise that has no end.

    Args:
        dataset: one of :data:`NOISE`.
        coverage: share of the nodes that are covered.
    """
    if coverage == 1 and dataset not in ("basic", "edge", "uniform"):
        return math.inf
    places, shares = _curve(dataset)
    start = np.linspace(0, 1 - coverage, 4001)
    lower, upper = (np.interp(share, shares, places) for share in (start, start + coverage))
    return float((upper - lower).min())


@lru_cache
def _curve(dataset: str) -> tuple[Floats, Floats]:
    """Places and the share of the noise below each, fine where most of the noise is."""
    places = np.unique(np.concatenate([np.linspace(-0.5, 0.6, 44_001), np.linspace(-2, 8, 40_001)]))
    shares = NOISE[dataset](places)
    steps = np.diff(shares) > 1e-12  # without the flat ends of laws that have some
    rising = np.append(steps, False) | np.append(False, steps)
    return places[rising], shares[rising]
