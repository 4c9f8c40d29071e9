"""How good intervals are: pure functions over (y, lower, upper), one number each.

Definitions are those of the paper's appendix on evaluation metrics. Inputs may be arrays, lists,
Series or tensors of one dimension and one length; anything else raises instead of broadcasting
(a silent (N,) against (N, 1) would average over N×N pairs).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from qpignn.errors import ArrayError
from qpignn.intervals import Floats, Intervals, as_values, check_level, covers

WIDTH_FIGURES = (
    *("mpiw", "mpiw_raw", "nmpiw", "mpe", "sharpness", "winkler", "winkler_one", "cwc"),
)
BOUND_FIGURES = ("mean_bound", "miss_rate", "pinball")


def _aligned(**columns: Any) -> tuple[Floats, ...]:
    arrays = {name: as_values(name, values) for name, values in columns.items()}
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

    ``per_unit`` is another price of a unit missed, such as 1, which makes
    the score improper.
    """
    alpha = 1 - check_level(confidence_level)
    price = 2 / alpha if per_unit is None else per_unit
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    missed = np.maximum(0.0, np.maximum(lower - y, y - upper))
    return float((upper - lower + price * missed).mean())


def miss_rate(y: Any, lower: Any, upper: Any) -> float:
    """Return the share of targets outside their interval or beyond their bound: 1 − PICP."""
    return 1 - picp(y, lower, upper)


def mae(y: Any, prediction: Any) -> float:
    """Return the mean absolute error of point predictions."""
    y, prediction = _aligned(y=y, prediction=prediction)
    return float(np.abs(y - prediction).mean())


def rmse(y: Any, prediction: Any) -> float:
    """Return the root mean squared error of point predictions."""
    y, prediction = _aligned(y=y, prediction=prediction)
    error = np.abs(y - prediction)
    size = error.max()  # squares of 1e200 would overflow
    return float(size * np.sqrt(((error / size) ** 2).mean())) if size > 0 else 0.0


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
    ``winkler_one`` counts a unit missed once. ``mae`` and ``rmse`` are
    the errors of the point prediction, in the target's own unit.

    A one-sided result (``intervals.side``) has figures of its own: ``mean_bound`` and ``pinball``,
    the pinball loss of the bound as a quantile (τ = level for an upper bound, 1 − level for a
    lower one), both in the target's own unit, and ``miss_rate``, which should be 1 − level.

    Figures that do not exist for a result are None: widths and scores of widths for a one-sided
    result, its own three figures for any other, ``mpe`` where an interval is infinite and so has
    no middle, and figures of bounds where a one-sided result lacks the bound on some node.
    """
    (given,) = _aligned(y_given=y_given)
    unit = given.max() - given.min()
    if unit == 0:
        raise ArrayError("y_given: expected targets with a range, got one value only")
    raw = _aligned(y=y, lower=intervals.lower, upper=intervals.upper)
    errors = {"mae": mae(y, intervals.prediction), "rmse": rmse(y, intervals.prediction)}
    widths, bounds = _width_figures(intervals, raw, unit), _bound_figures(intervals, raw)
    return {"picp": picp(*raw), **widths, **errors, **bounds}


def _width_figures(
    intervals: Intervals, raw: tuple[Floats, ...], unit: float
) -> dict[str, float | None]:
    """Return the figures of widths, which a one-sided result has none of."""
    if intervals.side != "both":
        return dict.fromkeys(WIDTH_FIGURES)
    scaled = tuple(column / unit for column in raw)
    level = intervals.confidence_level
    vary = bool((raw[0] != raw[0][0]).any())
    return {
        "mpiw": mpiw(*scaled),
        "mpiw_raw": mpiw(*raw),
        "nmpiw": nmpiw(*raw) if vary else None,
        "mpe": mpe(*scaled) if bool(np.isfinite(intervals.width).all()) else None,
        "sharpness": sharpness(*scaled),
        "winkler": winkler_score(*scaled, confidence_level=level),
        "winkler_one": winkler_score(*scaled, confidence_level=level, per_unit=1),
        "cwc": cwc(*raw, confidence_level=level) if vary else None,
    }


def _bound_figures(intervals: Intervals, raw: tuple[Floats, ...]) -> dict[str, float | None]:
    """Return the figures of a one-sided result."""
    bound, level = intervals.bound, intervals.confidence_level
    if bound is None:
        return dict.fromkeys(BOUND_FIGURES)
    finite = bool(np.isfinite(bound).all())
    tau = level if intervals.side == "upper" else 1 - level
    return {
        "mean_bound": float(bound.mean()) if finite else None,
        "miss_rate": miss_rate(*raw),
        "pinball": pinball_loss(raw[0], bound, tau=tau) if finite else None,
    }


def pinball_loss(y: Any, quantile: Any, *, tau: float) -> float:
    """Mean pinball loss of predicted ``tau``-quantiles."""
    tau = check_level(tau, "tau")
    y, quantile = _aligned(y=y, quantile=quantile)
    above = y - quantile
    return float(np.maximum(tau * above, (tau - 1) * above).mean())
