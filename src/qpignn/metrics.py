"""How good intervals are: pure functions over (y, lower, upper), one number each.

Definitions are those of the paper's appendix on evaluation metrics. Inputs may be arrays, lists,
Series or tensors of one dimension and one length; anything else raises instead of broadcasting
(a silent (N,) against (N, 1) is what made some published coverages N×N averages).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qpignn.errors import ArrayError
from qpignn.intervals import Floats, Intervals, as_nodes, check_level, covers


def _aligned(**columns: Any) -> tuple[Floats, ...]:
    arrays = {name: as_nodes(name, values) for name, values in columns.items()}
    lengths = {name: len(array) for name, array in arrays.items()}
    if len(set(lengths.values())) > 1:
        raise ArrayError(f"expected columns of one length, got {lengths}")
    if 0 in lengths.values():
        raise ArrayError("expected at least one node, got none")
    for name, array in arrays.items():
        if np.isnan(array).any():
            raise ArrayError(
                f"{name}: expected a number for every node, got NaN; pass only labelled nodes"
            )
    return tuple(arrays.values())


def picp(y: Any, lower: Any, upper: Any) -> float:
    """Prediction interval coverage probability: the share of targets inside their interval."""
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    return float(covers(y, lower, upper).mean())


def coverage_gap(y: Any, lower: Any, upper: Any, *, confidence_level: float) -> float:
    """Attained minus wanted coverage: negative where intervals promise too much."""
    return picp(y, lower, upper) - check_level(confidence_level)


def mpiw(y: Any, lower: Any, upper: Any) -> float:
    """Mean prediction interval width."""
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    return float((upper - lower).mean())


def nmpiw(y: Any, lower: Any, upper: Any) -> float:
    """Mean width divided by the range of the evaluated targets."""
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    span = y.max() - y.min()
    if span == 0:
        raise ArrayError("nmpiw: expected targets with a range, got one value only; use mpiw")
    return mpiw(y, lower, upper) / float(span)


def mpe(y: Any, lower: Any, upper: Any) -> float:
    """Mean prediction error: mean distance from the middle of the interval to the target."""
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    return float(np.abs((lower + upper) / 2 - y).mean())


def sharpness(y: Any, lower: Any, upper: Any) -> float:
    """Mean squared width: like ``mpiw``, but one very wide interval weighs more."""
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    return float(((upper - lower) ** 2).mean())


def winkler_score(
    y: Any, lower: Any, upper: Any, *, confidence_level: float, per_unit: float | None = None
) -> float:
    """Width plus 2/α per unit missed: a proper score, smallest for the true quantiles.

    ``per_unit`` is another price of a unit missed, such as the 1 of the published code, which is
    no proper score.
    """
    alpha = 1 - check_level(confidence_level)
    price = 2 / alpha if per_unit is None else per_unit
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    missed = np.maximum(0.0, np.maximum(lower - y, y - upper))
    return float((upper - lower + price * missed).mean())


def cwc(
    y: Any,
    lower: Any,
    upper: Any,
    *,
    confidence_level: float,
    gamma: float = 1.0,
    eta: float = 10.0,
) -> float:
    """Coverage width-based criterion: NMPIW · (1 + γ·exp(−η·(PICP − wanted coverage)))."""
    gap = coverage_gap(y, lower, upper, confidence_level=confidence_level)
    return nmpiw(y, lower, upper) * float(1 + gamma * np.exp(-eta * gap))


def summary(intervals: Intervals, y: Any, *, y_given: Any) -> dict[str, float | None]:
    """Return all metrics of a result, in the units an experiment reports.

    ``mpiw``, ``mpe`` and ``winkler`` are in multiples of the range of ``y_given``, the targets the
    method was given, and ``sharpness`` in its square; ``nmpiw`` and ``cwc`` use the range of the
    evaluated targets (None where those do not vary); ``mpiw_raw`` is in the target's own unit;
    ``winkler_one`` counts a unit missed once, as the published code does. Infinite intervals have
    no middle, so no ``mpe``.
    """
    (given,) = _aligned(y_given=y_given)
    unit = given.max() - given.min()
    if unit == 0:
        raise ArrayError("y_given: expected targets with a range, got one value only")
    raw = _aligned(y=y, lower=intervals.lower, upper=intervals.upper)
    scaled = tuple(column / unit for column in raw)
    level = intervals.confidence_level
    vary = bool((raw[0] != raw[0][0]).any())
    return {
        "picp": picp(*raw),
        "mpiw": mpiw(*scaled),
        "mpiw_raw": mpiw(*raw),
        "nmpiw": nmpiw(*raw) if vary else None,
        "mpe": mpe(*scaled) if bool(np.isfinite(intervals.width).all()) else None,
        "sharpness": sharpness(*scaled),
        "winkler": winkler_score(*scaled, confidence_level=level),
        "winkler_one": winkler_score(*scaled, confidence_level=level, per_unit=1),
        "cwc": cwc(*raw, confidence_level=level) if vary else None,
    }


def pinball_loss(y: Any, quantile: Any, *, tau: float) -> float:
    """Mean pinball loss of predicted ``tau``-quantiles."""
    tau = check_level(tau, "tau")
    y, quantile = _aligned(y=y, quantile=quantile)
    above = y - quantile
    return float(np.maximum(tau * above, (tau - 1) * above).mean())
