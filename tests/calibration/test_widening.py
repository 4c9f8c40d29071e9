"""Widening beyond what was learnt: hand-computed values and laws."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.linear_model import Ridge as ReferenceRidge

from qpignn.calibration.widening import (
    UNREACHABLE,
    Distances,
    Growth,
    Limits,
    Ridge,
    fit_growth,
    fit_slopes,
    widened,
)

Z90 = 1.6448536269514722


def distances(own: Any = 0.0, around: Any = 0.0, hops: Any = 1.0, unusual: Any = 0.0) -> Distances:
    columns = [
        np.atleast_1d(np.asarray(part, dtype=float)) for part in (own, around, hops, unusual)
    ]
    units = max(len(column) for column in columns)
    own, around, hops, unusual = (np.broadcast_to(column, units) for column in columns)
    features = (sp.csr_matrix(part.reshape(-1, 1)) for part in (own, around))
    return Distances(*features, hops.copy(), unusual.copy())


def test_widened_values_computed_by_hand() -> None:
    far = widened(np.array([3.0]), np.array([1.0]), np.array([4.0]), 0.9)
    assert far[0] == pytest.approx(max(np.hypot(3, Z90 * 4), 7))
    near = widened(np.array([3.0]), np.array([2.0]), np.array([0.5]), 0.9)
    assert near[0] == pytest.approx(6.5)  # a shift decides: √(36 + 0.68) = 6.06 is less


def test_widened_without_growth_is_bit_equal() -> None:
    half = np.array([0.1, 1 / 3, 7e-12])
    assert (widened(half, np.ones(3), np.zeros(3), 0.9) == half).all()


@given(st.floats(0.01, 10), st.lists(st.floats(0, 100), min_size=2, max_size=8))
@settings(max_examples=50)
def test_half_widths_never_fall_with_any_distance(half: float, numbers: list[float]) -> None:
    steps = np.sort(np.array(numbers))
    growth = Growth(np.array([[0.5], [0.2]]), 0.1, 2.0, (20.0, 30.0))
    limits = Limits(0.1, 2.0, 1.5)
    for kind in ("own", "around", "hops", "unusual"):
        far = distances(**{kind: steps})
        least = np.full(len(steps), half)
        wide = widened(least, growth.factor(far, limits), growth.left_out(far), 0.9)
        assert (np.diff(wide) >= 0).all()
        assert (wide >= half).all()


def test_limits_hold_the_usual_share_and_flag_one_unit_beyond() -> None:
    draw = np.random.default_rng(0)
    usual = distances(
        draw.exponential(0.01, 4000), 0.0, draw.integers(1, 3, 4000), draw.normal(1, 0.2, 4000)
    )
    limits = Limits.fit([usual])
    share = (limits.ratios(usual) > 1).mean(axis=1)
    assert (share <= 0.005).all()
    assert (limits.ratios(distances(5.0, hops=9.0, unusual=4.0)) > 1).all()


def test_limits_units_without_path_are_usual_only_if_they_were_held_out_so() -> None:
    apart = np.where(np.arange(100) < 5, UNREACHABLE, 1.0)
    some, none = Limits.fit([distances(hops=apart)]), Limits.fit([distances(hops=np.ones(100))])
    lost = distances(hops=UNREACHABLE)
    assert some.ratios(lost)[1] <= 1 < none.ratios(lost)[1]
    assert some.hops == none.hops == 1


def test_slopes_of_a_linear_move_are_found() -> None:
    draw = np.random.default_rng(1)
    own, around = draw.exponential(size=(200, 2)), draw.exponential(size=(200, 2))
    truth = np.array([[0.5, 0.0], [2.0, 1.0]])
    moves = np.sqrt(np.square(own) @ truth[0] + np.square(around) @ truth[1])
    far = Distances(sp.csr_matrix(own), sp.csr_matrix(around), np.ones(200), np.ones(200))
    np.testing.assert_allclose(fit_slopes(far, moves, shared=False), truth, atol=1e-9)
    shared = fit_slopes(far, moves, shared=True)
    assert (shared[:, 0] == shared[:, 1]).all()


def test_growth_of_planted_errors_is_found_and_never_negative() -> None:
    draw = np.random.default_rng(2)
    hops, unusual = draw.uniform(0, 10, 20_000), draw.uniform(0, 1, 20_000)
    usual = draw.normal(size=20_000)
    errors = draw.normal(size=20_000) * np.sqrt(1 + 0.3 * hops + 2 * unusual)
    growth = fit_growth(usual, errors, np.stack([hops, unusual]))
    assert growth == pytest.approx((0.3, 2.0), rel=0.2)
    assert fit_growth(usual, usual / 10, np.stack([hops, unusual])) == (0.0, 0.0)


def test_ridge_errors_on_left_out_rows_are_those_of_scikit_learn() -> None:
    draw = np.random.default_rng(3)
    design, y = draw.normal(size=(60, 7)), draw.normal(size=60)
    out = np.arange(60) % 4 == 1
    reference = ReferenceRidge(alpha=10.0, fit_intercept=False).fit(design[~out], y[~out])
    errors = Ridge(design, y, 10.0).errors_without(out)
    np.testing.assert_allclose(errors, y[out] - reference.predict(design[out]), rtol=1e-9)
    best, folds = Ridge.best(design, y, np.arange(60) % 5)
    np.testing.assert_allclose(
        folds[np.arange(60) % 5 == 2], best.errors_without(np.arange(60) % 5 == 2)
    )
