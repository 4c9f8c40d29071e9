"""From held-out misses to interval bounds: numbers in, numbers out, no net in sight.

A net says a value and how far it thinks the truth may lie below and above it. Nodes it was not
trained on tell how far that really is. :func:`calibrate` finds the factors that make the intervals
of those nodes cover the wanted share, and among several ways to do so picks a narrow one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.stats import norm

from qpignn.metrics import mpiw, winkler_score

Floats = npt.NDArray[np.float64]
Masks = npt.NDArray[np.bool_]

TAILS = ("free", "equal", "symmetric")
POWERS = (1.0, 0.5, 0.0)
SHARES = (0.5, 0.25, 0.1, 0.0, 0.75, 0.9, 1.0)
FEW = 200  # held-out nodes below which forms do not compete: the winner would cover too little
SHRUNK = 100  # held-out nodes at which a power of 1/2 is used, where forms do not compete
TRUSTED = 200  # held-out nodes at which the effect of averaging is half trusted
WORTH = 0.9  # another form than the net's own must beat it by a tenth: less is mostly luck


@dataclass(frozen=True)
class Reach:
    """What nets say about some nodes: a value and half-widths below and above it, each > 0.

    Shapes:
        each (nodes,), or (members, nodes) for several nets
    """

    value: Floats
    below: Floats
    above: Floats

    def mean(self, chosen: Masks | None = None) -> Reach:
        """Average over the members, or over those chosen for each node."""
        parts = (self.value, self.below, self.above)
        return Reach(*(np.average(part, axis=0, weights=chosen) for part in parts))

    def select(self, nodes: Masks) -> Reach:
        """Return what is said about some nodes."""
        return Reach(self.value[:, nodes], self.below[:, nodes], self.above[:, nodes])


@dataclass(frozen=True)
class Stretch:
    """How half-widths become bounds: value − factor_below · belowᵖ, value + factor_above · aboveᵖ.

    Attributes:
        below, above: factors from 0 up; infinite for a side without a bound.
        power: 1 takes the net's half-widths as they are, 0 gives every node the same.
    """

    below: float
    above: float
    power: float = 1.0

    def bounds(self, reach: Reach) -> tuple[Floats, Floats]:
        """Return lower and upper."""
        return (
            reach.value - _times(self.below, reach.below**self.power),
            reach.value + _times(self.above, reach.above**self.power),
        )


def _times(factor: float, halves: Floats) -> Floats:
    """An infinite factor makes every half-width infinite, also one that has shrunk to nothing."""
    return np.full_like(halves, np.inf) if math.isinf(factor) else factor * halves


def conformal_rank(count: int, level: float) -> int:
    """Return which of so many sorted scores covers a new one with the wanted probability.

    For exchangeable scores the ⌈(n + 1)·level⌉-th smallest does; beyond n there is no such score.
    """
    return math.ceil((count + 1) * level - 1e-9)


def conformal_quantile(scores: Floats, level: float) -> float:
    """Return the score that a new one stays below with the wanted probability.

    Infinite where there are too few scores to say.
    """
    rank = conformal_rank(len(scores), level)
    if rank > len(scores):
        return math.inf
    return float(np.partition(scores, rank - 1)[rank - 1])


def enough_for(level: float) -> int:
    """Return how many held-out nodes a level needs at least, so that its rank is among them."""
    return math.ceil(level / (1 - level) - 1e-9)


def calibrate(
    reach: Reach,
    y: Floats,
    level: float,
    *,
    side: str = "both",
    tails: str = "free",
    unit: Callable[[Floats], Floats] = lambda z: z,
    heavy_tailed: bool = False,
) -> Form:
    """Choose the form of the intervals on nodes that were held out.

    The net's own half-widths, all stretched by one factor, are the first choice. Half-widths drawn
    towards their mean, and with ``free`` tails other shares of the miss between the two sides, are
    taken where they beat it clearly. What is compared is the :func:`price`, each form stretched to
    the wanted coverage.

    With n < 200 nodes forms do not compete. The winner's factor is fitted on the nodes that it won
    on, and would cover about two points too little (``benchmarks/few_labels.py``). One form is used
    that depends on n only: both sides stretched by one factor, power n / (n + 100), because few
    nodes train half-widths badly.

    Args:
        reach: what nets that did not train on a node say about it.
        y: the nodes' targets, in the net's units.
        level: wanted coverage.
        side: ``both``, or a bound on the ``lower`` or ``upper`` side only.
        tails: ``free``, or ``equal`` or ``symmetric`` to keep the shares the net was trained for.
        unit: from the net's units to those in which widths are compared.
        heavy_tailed: whether a few targets are far larger than the others; see :func:`price`.
    """
    own = Form(side, share=None, power=1.0)
    if side != "both":
        return own
    if len(y) < FEW:
        return Form(side, share=None, power=len(y) / (len(y) + SHRUNK))
    shares: tuple[float | None, ...] = (None,)
    if tails == "free" and conformal_rank(len(y), level) < len(y):  # two factors need one more
        shares += SHARES
    forms = [Form(side, share, power) for power in POWERS for share in shares]

    def of(form: Form) -> float:
        lower, upper = (unit(bound) for bound in form.fit(reach, y, level).bounds(reach))
        return price(unit(y), lower, upper, level=level, heavy_tailed=heavy_tailed)

    best = min(forms, key=of)
    return best if of(best) < WORTH * of(own) else own


def price(
    y: Floats, lower: Floats, upper: Floats, *, level: float, heavy_tailed: bool = False
) -> float:
    """Geometric mean of a typical width and Winkler score: narrow, but never by missing far.

    Args:
        y, lower, upper: targets and their bounds, in the target's unit.
        level: wanted coverage.
        heavy_tailed: whether a few targets are far larger than the others, and would decide the
            means. The median width and the geometric mean of the nodes' scores then stand in their
            places, over targets other than 0, of which there may be many.
    """
    if heavy_tailed:
        counted = (y != 0) | ~y.any()
        y, lower, upper = y[counted], lower[counted], upper[counted]
        width, score = float(np.median(upper - lower)), _geometric_score(y, lower, upper, level)
    else:
        width = mpiw(y, lower, upper)
        score = winkler_score(y, lower, upper, confidence_level=level)
    return math.sqrt(width) * math.sqrt(score)  # their product may be 10⁴⁰⁰


def _geometric_score(y: Floats, lower: Floats, upper: Floats, level: float) -> float:
    """Geometric mean of Winkler scores, each no less than a thousandth of their median."""
    scores = upper - lower + 2 / (1 - level) * np.maximum(0, np.maximum(lower - y, y - upper))
    least = max(float(np.median(scores)) / 1000, sys.float_info.min)
    return float(np.exp(np.log(np.maximum(scores, least)).mean()))


@dataclass(frozen=True)
class Form:
    """A family of stretches with one degree of freedom, which coverage decides.

    Attributes:
        side: ``both``, ``lower`` or ``upper``.
        share: the part of the miss allowed below; None stretches both sides by one factor.
        power: see :class:`Stretch`.
    """

    side: str
    share: float | None
    power: float

    def fit(self, reach: Reach, y: Floats, level: float) -> Stretch:
        """Return the narrowest stretch of this form that covers the wanted share of the nodes.

        The factors are infinite with fewer nodes than :func:`enough_for`.
        """
        # in units of half-widths drawn towards their mean
        unit_below, unit_above = (
            half.mean() ** (1 - self.power) for half in (reach.below, reach.above)
        )
        below = (reach.value - y) / (unit_below * reach.below**self.power)
        above = (y - reach.value) / (unit_above * reach.above**self.power)
        factor_below, factor_above = self._factors(below, above, level)
        return Stretch(factor_below * unit_below, factor_above * unit_above, self.power)

    def _factors(self, below: Floats, above: Floats, level: float) -> tuple[float, float]:
        count = len(below)
        rank = conformal_rank(count, level)
        if rank > count:
            return math.inf, math.inf
        if self.side == "lower":
            return _ranked(below, rank), math.inf
        if self.side == "upper":
            return math.inf, _ranked(above, rank)
        if self.share is None:
            factor = _ranked(np.maximum(below, above), rank)
            return factor, factor
        # between two fitted ends lies one gap less than there are nodes, so one node more
        rank = min(rank + 1, count)
        missed_below = math.floor((count - rank) * self.share + 1e-9)
        factor = _ranked(below, count - missed_below)
        return factor, _ranked(above[below <= factor], rank)


def _ranked(scores: Floats, rank: int) -> float:
    """Return the rank-th smallest score (counted from 1), but never a negative factor."""
    return max(float(np.partition(scores, rank - 1)[rank - 1]), 0.0)


def for_more_members(
    one: Stretch, several: Stretch, *, repeats: int, members: int, nodes: int
) -> Stretch:
    """Return the stretch for an average of more nets than the held-out one was made of.

    Averaging more nets leaves smaller errors. A held-out node has only ``repeats`` nets to average
    that did not see it, while a new node has all ``members``. Squared errors fall linearly in one
    over the number of nets, and so, to first order, do the factors. The slope is estimated badly on
    few nodes: it is used by a share n / (n + 200), and not at all below 200 nodes.

    Args:
        one: fitted on the word of one net that held each node out.
        several: fitted on the average of all ``repeats`` of them, in the same form.
        repeats, members: numbers of nets.
        nodes: how many nodes they were fitted on.
    """
    if repeats == 1 or nodes < FEW:
        return several
    further = (1 / repeats - 1 / members) / (1 - 1 / repeats) * nodes / (nodes + TRUSTED)

    def at(first: float, later: float) -> float:
        return later if math.isinf(first) else max(later - further * (first - later), later / 2)

    return Stretch(at(one.below, several.below), at(one.above, several.above), several.power)


def calibrate_members(
    reach: Reach,
    held_out: Masks,
    y: Floats,
    level: float,
    *,
    side: str = "both",
    tails: str = "free",
    unit: Callable[[Floats], Floats] = lambda z: z,
    heavy_tailed: bool = False,
) -> tuple[Stretch, float]:
    """Return the stretch for the average of several nets, and the held-out intervals' price.

    A single bound has no width, and so no price: it is 0.

    Args:
        reach: what each net says about each node.
        held_out: (members, nodes), the nodes a net was not trained on.
        y, level, side, tails, unit, heavy_tailed: see :func:`calibrate`.
    """
    judged: Masks = np.logical_or.reduce(held_out)
    reach, held_out, y = reach.select(judged), held_out[:, judged], y[judged]
    several = reach.mean(held_out)
    one = reach.mean(held_out & (held_out.cumsum(axis=0) == 1))
    compared: dict[str, Any] = {"unit": unit, "heavy_tailed": heavy_tailed}
    form = calibrate(several, y, level, side=side, tails=tails, **compared)
    stretch = form.fit(several, y, level)
    final = for_more_members(
        form.fit(one, y, level),
        stretch,
        repeats=int(held_out.sum(axis=0).min()),
        members=len(held_out),
        nodes=len(y),
    )
    if side != "both":
        return final, 0.0
    lower, upper = (unit(bound) for bound in stretch.bounds(several))
    return final, price(unit(y), lower, upper, level=level, heavy_tailed=heavy_tailed)


def disagreement(reach: Reach, level: float) -> Floats:
    """Return the share of each node's width that comes from the members' disagreement.

    Members that each see noise of variance s² and differ by a variance v say together s² + v, of
    which the width without disagreement is s: the share is 1 − s / √(s² + v). s is a member's half
    interval, read as that of a normal law at its level.
    """
    half = (reach.below + reach.above) / 2 / norm.ppf((1 + level) / 2)
    noise = np.square(half).mean(axis=0)
    share: Floats = 1 - np.sqrt(noise / (noise + reach.value.var(axis=0, ddof=1)))
    return share
