"""Cross-fitting calibration: from units that each net held out to interval bounds.

Several nets are trained, each without another part of the given units. Every unit is predicted by
the nets that did not see it; :class:`CrossFit` finds the factors of half-widths with which those
intervals cover the wanted share, and chooses among several forms a narrow one.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, Protocol, get_args

import numpy as np

from qpignn.calibration.conformal import conformal_rank
from qpignn.calibration.width_scaling import (
    Floats,
    Masks,
    MemberOutputs,
    WidthScaling,
)
from qpignn.intervals import Side
from qpignn.metrics import mpiw, winkler_score

Tails = Literal["free", "equal", "symmetric"]
TAILS: tuple[str, ...] = get_args(Tails)
POWERS = (1.0, 0.5, 0.0)
SHARES = (0.5, 0.25, 0.1, 0.0, 0.75, 0.9, 1.0)
FEW = 200  # held-out units below which forms do not compete: the winner would cover too little
SHRUNK = 100  # held-out units at which a power of 1/2 is used, where forms do not compete
TRUSTED = 200  # held-out units at which the effect of averaging is half trusted
WORTH = 0.9  # another form than the net's own must beat it by a tenth: less is mostly luck


class Calibrator(Protocol):
    """Turns outputs for held-out units into a scaling of widths. Numbers in, numbers out.

    A method that trains cross-fitted members has one (``NetMethod.calibrator``); a new calibrator
    is a class with these members.

    """

    @property
    def side(self) -> Side:
        """``both``, or the only bound that is calibrated: ``lower`` or ``upper``."""

    def fit(
        self,
        outputs: MemberOutputs,
        held_out: Masks,
        y: Floats,
        level: float,
        *,
        unit: Callable[[Floats], Floats] = ...,
        heavy_tailed: bool = ...,
    ) -> tuple[WidthScaling, float]:
        """Return the scaling for the average over all members, and the held-out intervals' price.

        Args:
            outputs: of each member for each unit, (members, units).
            held_out: (members, units), the units that a member was not trained on.
            y: (units,), targets in the net's units.
            level: wanted coverage.
            unit: from the net's units to those in which widths are compared.
            heavy_tailed: whether a few targets are far larger than the others.
        """


@dataclass(frozen=True)
class CrossFit(Calibrator):
    """Scales half-widths until the units that members held out are covered.

    The form of the intervals is chosen by :meth:`choose_form` and its one degree of freedom by
    conformal ranks (:meth:`Form.fit`) of the averages over the members that held a unit out. The
    factors are carried over to the average over all members by :func:`for_more_members`. Units that
    no member held out do not count.

    Attributes:
        side: ``both``, or a bound on the ``lower`` or ``upper`` side only, whose price is 0.
        tails: ``free``, or ``equal`` or ``symmetric`` to keep the shares the nets were trained for.
    """

    side: Side = "both"
    tails: Tails = "free"

    def fit(
        self,
        outputs: MemberOutputs,
        held_out: Masks,
        y: Floats,
        level: float,
        *,
        unit: Callable[[Floats], Floats] = lambda z: z,
        heavy_tailed: bool = False,
        single: MemberOutputs | None = None,
    ) -> tuple[WidthScaling, float]:
        """Return scaling and price; see :meth:`Calibrator.fit`.

        Args:
            outputs, held_out, y, level, unit, heavy_tailed: as there.
            single: the same outputs where each unit's first member that held it out stands alone
                in all they are made of; default ``outputs``.
        """
        single = outputs if single is None else single
        scored: Masks = np.logical_or.reduce(held_out)
        outputs, held_out, y = outputs.select(scored), held_out[:, scored], y[scored]
        single = single.select(scored)
        several = outputs.mean(held_out)
        one = single.mean(first_of(held_out))
        form = self.choose_form(several, y, level, unit=unit, heavy_tailed=heavy_tailed)
        scaling = form.fit(several, y, level)
        first, repeats = form.fit(one, y, level), int(held_out.sum(axis=0).min())
        members, units = held_out.shape
        final = for_more_members(first, scaling, repeats=repeats, members=members, units=units)
        if self.side != "both":
            return final, 0.0
        lower, upper = (unit(bound) for bound in scaling.bounds(several))
        return final, price(unit(y), lower, upper, level=level, heavy_tailed=heavy_tailed)

    def choose_form(
        self,
        outputs: MemberOutputs,
        y: Floats,
        level: float,
        *,
        unit: Callable[[Floats], Floats] = lambda z: z,
        heavy_tailed: bool = False,
    ) -> Form:
        """Return the form of intervals that is best on held-out units.

        The nets' own half-widths, all multiplied by one factor, are the first choice. Half-widths
        drawn towards their mean, and with ``free`` tails other shares of the misses between the two
        sides, are taken where they are clearly better. What is compared is the :func:`price`, each
        form scaled to the wanted coverage.

        With n < 200 units forms do not compete. The winner's factor is fitted on the units that it
        won on, and would cover about two points too little (``benchmarks/few_labels.py``). One form
        is used that depends on n only: both sides scaled by one factor, power n / (n + 100),
        because few units train half-widths badly.

        Args:
            outputs: (units,), averages over nets that were not trained on the unit.
            y: (units,), targets in the net's units.
            level: wanted coverage.
            unit: from the net's units to those in which widths are compared.
            heavy_tailed: whether a few targets are far larger than the others; see :func:`price`.
        """
        own = Form(self.side, share=None, power=1.0)
        if self.side != "both":
            return own
        if len(y) < FEW:
            return Form(self.side, share=None, power=len(y) / (len(y) + SHRUNK))
        shares: tuple[float | None, ...] = (None,)
        # two factors need one unit more
        if self.tails == "free" and conformal_rank(len(y), level) < len(y):
            shares += SHARES
        forms = [Form(self.side, share, power) for power in POWERS for share in shares]

        def price_of(form: Form) -> float:
            lower, upper = (unit(bound) for bound in form.fit(outputs, y, level).bounds(outputs))
            return price(unit(y), lower, upper, level=level, heavy_tailed=heavy_tailed)

        best = min(forms, key=price_of)
        return best if price_of(best) < WORTH * price_of(own) else own


def first_of(held_out: Masks) -> Masks:
    """Return for each unit only the first member that held it out, (members, units).

    Args:
        held_out: (members, units), the units that a member was not trained on.
    """
    first: Masks = held_out & (held_out.cumsum(axis=0) == 1)
    return first


def price(
    y: Floats, lower: Floats, upper: Floats, *, level: float, heavy_tailed: bool = False
) -> float:
    """Return the geometric mean of a typical width and a typical Winkler score.

    It prefers narrow intervals, but not at the expense of far misses.

    Args:
        y: (units,), targets, in the target's unit.
        lower: (units,), lower bounds.
        upper: (units,), upper bounds.
        level: wanted coverage.
        heavy_tailed: whether a few targets are far larger than the others, and would decide the
            means. The median width and the geometric mean of the units' scores, each no less than
            a thousandth of their median, then replace them, over targets other than 0, of which
            there may be many.
    """
    if heavy_tailed:
        counted = (y != 0) | ~y.any()
        y, lower, upper = y[counted], lower[counted], upper[counted]
        scores = upper - lower + 2 / (1 - level) * np.maximum(0, np.maximum(lower - y, y - upper))
        least = max(float(np.median(scores)) / 1000, sys.float_info.min)
        width = float(np.median(upper - lower))
        score = float(np.exp(np.log(np.maximum(scores, least)).mean()))
    else:
        width = mpiw(y, lower, upper)
        score = winkler_score(y, lower, upper, confidence_level=level)
    return math.sqrt(width) * math.sqrt(score)  # their product may be 10⁴⁰⁰


@dataclass(frozen=True)
class Form:
    """A family of scalings with one degree of freedom, which coverage decides.

    Attributes:
        side: ``both``, ``lower`` or ``upper``.
        share: the part of the misses allowed below; None scales both sides by one factor.
        power: see :class:`WidthScaling`.
    """

    side: str
    share: float | None
    power: float

    def fit(self, outputs: MemberOutputs, y: Floats, level: float) -> WidthScaling:
        """Return the narrowest scaling of this form that covers the wanted share of the units.

        The factors are infinite with too few units for the level
        (:func:`~qpignn.calibration.conformal.enough_for`).

        Args:
            outputs: (units,), averages over nets that were not trained on the unit.
            y: (units,), targets in the net's units.
            level: wanted coverage.
        """
        # in units of half-widths drawn towards their mean
        unit_below, unit_above = (
            half.mean() ** (1 - self.power) for half in (outputs.below, outputs.above)
        )
        below = (outputs.value - y) / (unit_below * outputs.below**self.power)
        above = (y - outputs.value) / (unit_above * outputs.above**self.power)
        factor_below, factor_above = self._factors(below, above, level)
        return WidthScaling(factor_below * unit_below, factor_above * unit_above, self.power)

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
        # between two fitted ends lies one gap less than there are units, so one unit more
        rank = min(rank + 1, count)
        missed_below = math.floor((count - rank) * self.share + 1e-9)
        factor = _ranked(below, count - missed_below)
        return factor, _ranked(above[below <= factor], rank)


def _ranked(scores: Floats, rank: int) -> float:
    """Return the rank-th smallest score (counted from 1), but never a negative factor."""
    place = rank - 1
    return max(float(np.partition(scores, place)[place]), 0.0)


def further(repeats: int, members: int) -> float:
    """Return how much farther all members lead, in steps from one member to several.

    This is for what is linear in one over the number of averaged members.

    Args:
        repeats: number of several.
        members: number of all.
    """
    return 0.0 if repeats == 1 else (1 / repeats - 1 / members) / (1 - 1 / repeats)


def for_more_members(
    one: WidthScaling, several: WidthScaling, *, repeats: int, members: int, units: int
) -> WidthScaling:
    """Return the scaling for an average of more nets than the held-out one was made of.

    Averaging more nets leaves smaller errors. A held-out unit has only ``repeats`` nets to average
    that did not see it, while a new unit has all ``members``. Squared errors fall linearly in one
    over the number of nets, and so, to first order, do the factors. The slope is estimated badly on
    few units: it is used by a share n / (n + 200), and not at all below 200 units.

    Args:
        one: fitted on the outputs of one net that held each unit out.
        several: fitted on the average of all ``repeats`` of them, in the same form.
        repeats: number of nets that held a unit out.
        members: number of nets.
        units: number of units they were fitted on.
    """
    if repeats == 1 or units < FEW:
        return several
    step = further(repeats, members) * units / (units + TRUSTED)

    def at(first: float, later: float) -> float:
        return later if math.isinf(first) else max(later - step * (first - later), later / 2)

    return WidthScaling(at(one.below, several.below), at(one.above, several.above), several.power)
