"""Metrics of prediction intervals: pure functions of (y, lower, upper) that return one number.

The definitions are those of the paper's appendix on evaluation metrics. Inputs are arrays, lists,
Series or tensors of shape (nodes,) and of equal length. Anything else raises
:class:`~qpignn.errors.ArrayError` instead of broadcasting: (N,) against (N, 1) would silently
average over N × N values.
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
    """Return the prediction interval coverage probability: the share of targets inside.

    PICP = 1/n · Σᵢ 1[lowerᵢ ≤ yᵢ ≤ upperᵢ]

    Args:
        y: targets, shape (nodes,).
        lower: lower bounds, shape (nodes,).
        upper: upper bounds, shape (nodes,).
    """
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    return float(covers(y, lower, upper).mean())


def coverage_gap(y: Any, lower: Any, upper: Any, *, confidence_level: float) -> float:
    """Return PICP − confidence level: negative where intervals cover too little.

    Args:
        y: targets, shape (nodes,).
        lower: lower bounds, shape (nodes,).
        upper: upper bounds, shape (nodes,).
        confidence_level: the wanted coverage.
    """
    return picp(y, lower, upper) - check_level(confidence_level)


def mpiw(y: Any, lower: Any, upper: Any) -> float:
    """Return the mean prediction interval width: MPIW = 1/n · Σᵢ (upperᵢ − lowerᵢ).

    Args:
        y: targets, shape (nodes,).
        lower: lower bounds, shape (nodes,).
        upper: upper bounds, shape (nodes,).
    """
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    return float((upper - lower).mean())


def nmpiw(y: Any, lower: Any, upper: Any) -> float:
    """Return the normalised mean width: NMPIW = MPIW / (max y − min y).

    Args:
        y: targets, shape (nodes,).
        lower: lower bounds, shape (nodes,).
        upper: upper bounds, shape (nodes,).

    Raises:
        ArrayError: if all targets are equal.
    """
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    span = y.max() - y.min()
    if span == 0:
        raise ArrayError("nmpiw: expected targets with a range, got one value only; use mpiw")
    return mpiw(y, lower, upper) / float(span)


def mpe(y: Any, lower: Any, upper: Any) -> float:
    """Return the mean prediction error: MPE = 1/n · Σᵢ |(lowerᵢ + upperᵢ)/2 − yᵢ|.

    Args:
        y: targets, shape (nodes,).
        lower: lower bounds, shape (nodes,).
        upper: upper bounds, shape (nodes,).
    """
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    return float(np.abs((lower + upper) / 2 - y).mean())


def sharpness(y: Any, lower: Any, upper: Any) -> float:
    """Return the mean squared width: 1/n · Σᵢ (upperᵢ − lowerᵢ)².

    Like :func:`mpiw`, but a single very wide interval has more weight.

    Args:
        y: targets, shape (nodes,).
        lower: lower bounds, shape (nodes,).
        upper: upper bounds, shape (nodes,).
    """
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    return float(((upper - lower) ** 2).mean())


def winkler_score(
    y: Any, lower: Any, upper: Any, *, confidence_level: float, per_unit: float | None = None
) -> float:
    """Return the mean Winkler (interval) score, a proper score: lower is better.

    1/n · Σᵢ [upperᵢ − lowerᵢ + 2/α · (lowerᵢ − yᵢ)⁺ + 2/α · (yᵢ − upperᵢ)⁺], α = 1 − level

    Its expectation is smallest for the α/2 and 1 − α/2 quantiles.

    Args:
        y: targets, shape (nodes,).
        lower: lower bounds, shape (nodes,).
        upper: upper bounds, shape (nodes,).
        confidence_level: the wanted coverage, 1 − α.
        per_unit: penalty per unit of distance, in place of 2/α. Any other value gives a score that
            is not proper.
    """
    return float(
        winkler_scores(y, lower, upper, confidence_level=confidence_level, per_unit=per_unit).mean()
    )


def winkler_scores(
    y: Any, lower: Any, upper: Any, *, confidence_level: float, per_unit: float | None = None
) -> Floats:
    """Return the Winkler score of each interval, shape (nodes,); see :func:`winkler_score`.

    Args:
        y: targets, shape (nodes,).
        lower: lower bounds, shape (nodes,).
        upper: upper bounds, shape (nodes,).
        confidence_level: the wanted coverage, 1 − α.
        per_unit: penalty per unit of distance, in place of 2/α.
    """
    alpha = 1 - check_level(confidence_level)
    price = 2 / alpha if per_unit is None else per_unit
    y, lower, upper = _aligned(y=y, lower=lower, upper=upper)
    missed = np.maximum(0.0, np.maximum(lower - y, y - upper))
    scores: Floats = upper - lower + price * missed
    return scores


def miss_rate(y: Any, lower: Any, upper: Any) -> float:
    """Return the share of targets outside their interval or beyond their bound: 1 − PICP.

    Args:
        y: targets, shape (nodes,).
        lower: lower bounds, shape (nodes,).
        upper: upper bounds, shape (nodes,).
    """
    return 1 - picp(y, lower, upper)


def mae(y: Any, prediction: Any) -> float:
    """Return the mean absolute error of point predictions: 1/n · Σᵢ |yᵢ − ŷᵢ|.

    Args:
        y: targets, shape (nodes,).
        prediction: point predictions ŷ, shape (nodes,).
    """
    y, prediction = _aligned(y=y, prediction=prediction)
    return float(np.abs(y - prediction).mean())


def rmse(y: Any, prediction: Any) -> float:
    """Return the root mean squared error of point predictions: √(1/n · Σᵢ (yᵢ − ŷᵢ)²).

    Args:
        y: targets, shape (nodes,).
        prediction: point predictions ŷ, shape (nodes,).
    """
    y, prediction = _aligned(y=y, prediction=prediction)
    error = np.abs(y - prediction)
    size = error.max()  # divided by, because squares of 1e200 would overflow
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
    """Return the coverage width-based criterion: NMPIW · (1 + γ·exp(−η·(PICP − level))).

    Args:
        y: targets, shape (nodes,).
        lower: lower bounds, shape (nodes,).
        upper: upper bounds, shape (nodes,).
        confidence_level: the wanted coverage.
        gamma: weight γ of the coverage penalty.
        eta: steepness η of the coverage penalty.
    """
    gap = coverage_gap(y, lower, upper, confidence_level=confidence_level)
    return nmpiw(y, lower, upper) * float(1 + gamma * np.exp(-eta * gap))


def summary(intervals: Intervals, y: Any, *, y_given: Any) -> dict[str, float | None]:
    """Return all metrics of a result, in the units that experiments report.

    ``mpiw``, ``mpe`` and ``winkler`` are in multiples of the range of ``y_given``, and
    ``sharpness`` in its square. ``nmpiw`` and ``cwc`` use the range of the evaluated targets.
    ``mpiw_raw`` is in the target's unit. ``winkler_one`` is the score with a
    penalty of 1 per unit. ``mae`` and ``rmse`` are errors of the point prediction, in the target's
    unit.

    A one-sided result (``intervals.side``) has three other metrics: ``mean_bound`` and ``pinball``
    (the pinball loss of the bound as a quantile, τ = level for an upper bound and 1 − level for a
    lower one), both in the target's unit, and ``miss_rate``, which should be 1 − level.

    A metric that is not defined for a result is None: metrics of widths for a one-sided result, the
    three others for a two-sided one, ``nmpiw`` and ``cwc`` if all evaluated targets are equal,
    ``mpe`` if an interval is infinite and so has no midpoint, and ``mean_bound`` and ``pinball`` if
    the bound is infinite on some node.

    Args:
        intervals: the result.
        y: targets of its nodes, shape (nodes,).
        y_given: targets that the method was given, shape (given nodes,).

    Raises:
        ArrayError: if all given targets are equal.
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
    """Return the metrics of widths; all are None for a one-sided result."""
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
    """Return the metrics of a one-sided result."""
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
    """Return the mean pinball loss of predicted quantiles q.

    1/n · Σᵢ max(τ·(yᵢ − qᵢ), (τ − 1)·(yᵢ − qᵢ))

    Args:
        y: targets, shape (nodes,).
        quantile: predicted quantiles q, shape (nodes,).
        tau: level τ of the quantiles, between 0 and 1.
    """
    tau = check_level(tau, "tau")
    y, quantile = _aligned(y=y, quantile=quantile)
    above = y - quantile
    return float(np.maximum(tau * above, (tau - 1) * above).mean())
