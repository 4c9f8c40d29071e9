from __future__ import annotations

import numpy as np
import pytest

from qpignn.diagnostics.width_error import distinct_widths, error_bins, rank_correlation
from qpignn.intervals import Intervals


def around(middle: np.ndarray, half: np.ndarray | float) -> Intervals:
    return Intervals(middle, middle - half, middle + half, 0.9)


@pytest.mark.parametrize("size", [1e-3, 1.0, 1e9])
def test_distinct_widths_equal_up_to_rounding_become_equal(size: float) -> None:
    middle = size * np.random.default_rng(0).normal(size=500)
    intervals = around(middle, 1.7)
    assert len(np.unique(distinct_widths(intervals))) == 1
    if size >= 1:
        assert len(np.unique(intervals.width)) > 1  # rounding does make them differ


def test_distinct_widths_two_groups_stay_two() -> None:
    rng = np.random.default_rng(0)
    group = rng.random(500) < 0.3
    widths = distinct_widths(around(100 * rng.normal(size=500), np.where(group, 1.0, 1.001)))
    assert len(np.unique(widths)) == 2
    assert len(np.unique(widths[group])) == 1


def test_distinct_widths_that_differ_stay_as_they_are() -> None:
    rng = np.random.default_rng(0)
    intervals = around(rng.normal(size=10_000), np.exp(rng.normal(size=10_000)))
    np.testing.assert_array_equal(distinct_widths(intervals), intervals.width)


def test_distinct_widths_infinite_ones_stay_infinite() -> None:
    intervals = Intervals(np.zeros(3), [-np.inf, -1.0, -np.inf], [np.inf, 1.0, 2.0], 0.9)
    np.testing.assert_array_equal(distinct_widths(intervals), [np.inf, 2.0, np.inf])


def test_error_bins_hand_computed() -> None:
    width = np.array([3.0, 1.0, 2.0, 5.0, 4.0, 6.0, 7.0, 8.0, 9.0, 10.0])
    first, second = error_bins(width, width * 2)
    assert (first.nodes, first.width, first.error) == (5, 3.0, 6.0)
    assert (second.nodes, second.width, second.error) == (5, 8.0, 16.0)
    assert error_bins(np.array([1.0, np.inf]), np.ones(2)) == []


def test_rank_correlation_hand_computed() -> None:
    correlation = rank_correlation(np.arange(5.0), np.array([1.0, 0.0, 2.0, 4.0, 3.0]))
    assert correlation.value == pytest.approx(1 - 6 * 4 / (5 * 24))  # 1 − 6·Σd² / (n·(n² − 1))
    deviation = np.sqrt((1 + 0.8**2 / 2) / 2)
    assert correlation.high == pytest.approx(
        np.tanh(np.arctanh(0.8) + 1.6449 * deviation), abs=1e-4
    )
    assert correlation.nodes == 5


@pytest.mark.parametrize("rounding", [0.0, 1e-15])
@pytest.mark.parametrize("equal", ["width", "error"])
def test_rank_correlation_of_equal_values_is_none(equal: str, rounding: float) -> None:
    columns = {"width": np.arange(20.0), "error": np.arange(20.0)}
    columns[equal] = 1 + rounding * np.arange(20)
    assert rank_correlation(**columns).value is None


def test_rank_correlation_upper_limit_has_its_nominal_coverage() -> None:
    rng, below = np.random.default_rng(0), 0
    for _ in range(400):
        width = np.exp(rng.normal(size=80))
        below += rank_correlation(width, rng.normal(size=80) ** 2).high < 0
    assert below <= 20 + 3 * np.sqrt(400 * 0.05 * 0.95)
