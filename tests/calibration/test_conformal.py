"""Split-conformal calibration: ranks, scores and widened bounds computed manually."""

from __future__ import annotations

import numpy as np
import pytest

from qpignn.calibration import (
    SplitConformal,
    conformal,
    conformal_quantile,
    conformal_rank,
    enough_for,
)
from qpignn.intervals import Intervals


@pytest.mark.parametrize(
    ("count", "level", "rank"),
    [(9, 0.9, 9), (8, 0.9, 9), (99, 0.9, 90), (100, 0.9, 91), (3, 0.5, 2)],
)
def test_conformal_rank_hand_computed(count: int, level: float, rank: int) -> None:
    assert conformal_rank(count, level) == rank


@pytest.mark.parametrize(("level", "count"), [(0.9, 9), (0.95, 19), (0.5, 1), (0.8, 4)])
def test_enough_for_is_the_smallest_count_with_a_rank(level: float, count: int) -> None:
    assert enough_for(level) == count
    assert conformal_rank(count, level) == count  # the largest score will do
    assert conformal_rank(count - 1, level) > count - 1  # no score will


def test_conformal_quantile_is_the_score_of_its_rank_or_infinite() -> None:
    scores = np.array([5.0, 1.0, 4.0, 2.0, 3.0])
    assert conformal_quantile(scores, 0.5) == 3.0  # rank 6 · 0.5
    assert conformal_quantile(scores, 5 / 6) == 5.0  # the last there is
    assert conformal_quantile(scores, 0.9) == np.inf
    many = np.random.default_rng(0).permutation(999).astype(float)  # ranks 10, 20, … of 0, 1, …
    for share in range(1, 100):
        assert conformal_quantile(many, share / 100) == 10 * share - 1


def intervals(side: str = "both", level: float = 0.5) -> Intervals:
    """Three units predicted as 1, 2 and 3, with half-widths 1, 2 and 4."""
    middle, half = np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 4.0])
    lower = np.full(3, -np.inf) if side == "upper" else middle - half
    upper = np.full(3, np.inf) if side == "lower" else middle + half
    return Intervals(middle, lower, upper, level, side=side)


ALL, ONES, TRUE = np.full(3, "all"), np.ones(3), np.ones(3, dtype=bool)


@pytest.mark.parametrize(
    ("score", "expected"),
    [("cqr", [-1.0, 2.0, -1.0]), ("absolute", [0.0, 4.0, 3.0]), ("normalised", [0.0, 2.0, 0.75])],
)
def test_scores_hand_computed(score: str, expected: list[float]) -> None:
    y = np.array([1.0, 6.0, 6.0])  # in the middle, 2 above the interval, 1 below its end
    assert SplitConformal(score).scores(intervals(), y).tolist() == expected


@pytest.mark.parametrize(("side", "expected"), [("lower", [-1, -6, -7]), ("upper", [-1, 2, -1])])
def test_scores_one_sided_measure_that_side_only(side: str, expected: list[float]) -> None:
    y = np.array([1.0, 6.0, 6.0])
    assert SplitConformal().scores(intervals(side), y).tolist() == expected


def test_fit_is_the_quantile_of_each_group_divided_by_difficulty() -> None:
    y = np.array([3.0, 6.0, 3.0])  # scores 1, 2 and −4
    groups, difficulty = np.array(["a", "a", "b"]), np.array([0.1, 1.0, 2.0])
    widenings = SplitConformal().fit(intervals(), y, groups, difficulty, TRUE)
    assert widenings == {"a": 10.0, "b": -2.0}  # rank 2 of 10 and 2; rank 1 of −2


def test_fit_unreachable_targets_count_as_missed() -> None:
    y = np.array([1.0, 2.0, 3.0])  # scores −1, −2 and −4, of which the second smallest counts
    assert SplitConformal().fit(intervals(), y, ALL, ONES, TRUE) == {"all": -2.0}
    reachable = np.array([True, False, False])
    assert SplitConformal().fit(intervals(), y, ALL, ONES, reachable) == {"all": np.inf}


def test_bounds_unknown_group_is_infinite() -> None:
    groups = np.array(["a", "b", "a"])
    lower, upper = SplitConformal().bounds(intervals(), {"a": 1.0}, groups, ONES)
    assert lower.tolist() == [-1.0, -np.inf, -2.0]
    assert upper.tolist() == [3.0, np.inf, 8.0]


def test_bounds_that_would_cross_meet_in_the_middle() -> None:
    lower, upper = SplitConformal().bounds(intervals(), {"all": -2.0}, ALL, ONES)
    assert lower.tolist() == [1.0, 2.0, 1.0]
    assert upper.tolist() == [1.0, 2.0, 5.0]


@pytest.mark.parametrize("score", ["cqr", "normalised", "absolute"])
def test_bounds_cover_the_calibration_units_at_the_level(score: str) -> None:
    rng = np.random.default_rng(0)
    middle, half, y = rng.normal(size=99), rng.exponential(size=99), rng.normal(size=99)
    given = Intervals(middle, middle - half, middle + half, 0.9)
    groups, ones = np.full(99, "all"), np.ones(99)
    calibrator = SplitConformal(score)
    widenings = calibrator.fit(given, y, groups, ones, np.ones(99, dtype=bool))
    lower, upper = calibrator.bounds(given, widenings, groups, ones)
    assert ((lower <= y) & (y <= upper)).sum() == 90  # rank ⌈100 · 0.9⌉ of 99 distinct scores


def test_scores_are_the_documented_names() -> None:
    assert conformal.SCORES == ("cqr", "normalised", "absolute")


def test_bounds_are_widened_by_the_difficulty_of_each_unit() -> None:
    difficulty = np.array([1.0, 2.0, 0.5])
    lower, upper = SplitConformal().bounds(intervals(), {"all": 2.0}, ALL, difficulty)
    assert lower.tolist() == [-2.0, -4.0, -2.0]
    assert upper.tolist() == [4.0, 8.0, 8.0]


def test_bounds_normalised_are_multiples_of_half_widths() -> None:
    lower, upper = SplitConformal("normalised").bounds(intervals(), {"all": 2.0}, ALL, ONES)
    assert lower.tolist() == [-1.0, -2.0, -5.0]
    assert upper.tolist() == [3.0, 6.0, 11.0]


@pytest.mark.parametrize(
    ("score", "expected"),
    [("cqr", [-2.0, -2.0, -3.0]), ("normalised", [-1.0, -2.0, -5.0]), ("absolute", [-1, 0, 1])],
)
def test_bounds_of_a_lower_result_move_its_lower_bound_only(
    score: str, expected: list[float]
) -> None:
    lower, upper = SplitConformal(score).bounds(intervals("lower"), {"all": 2.0}, ALL, ONES)
    assert lower.tolist() == expected
    assert upper.tolist() == [np.inf] * 3


@pytest.mark.parametrize(
    ("score", "expected"),
    [("cqr", [4.0, 6.0, 9.0]), ("normalised", [3.0, 6.0, 11.0]), ("absolute", [3, 4, 5])],
)
def test_bounds_of_an_upper_result_move_its_upper_bound_only(
    score: str, expected: list[float]
) -> None:
    lower, upper = SplitConformal(score).bounds(intervals("upper"), {"all": 2.0}, ALL, ONES)
    assert lower.tolist() == [-np.inf] * 3
    assert upper.tolist() == expected


def test_bounds_of_a_one_sided_result_do_not_pass_its_other_end() -> None:
    """With limits of the target both ends are finite, and still only one is a bound."""
    middle = np.array([2.0])
    low = Intervals(middle, np.array([1.0]), np.array([3.0]), 0.5, side="lower")
    lower, upper = SplitConformal().bounds(low, {"all": -5.0}, ALL[:1], ONES[:1])
    assert (lower.tolist(), upper.tolist()) == ([3.0], [3.0])
    high = Intervals(middle, np.array([1.0]), np.array([3.0]), 0.5, side="upper")
    lower, upper = SplitConformal().bounds(high, {"all": -5.0}, ALL[:1], ONES[:1])
    assert (lower.tolist(), upper.tolist()) == ([1.0], [1.0])


@pytest.mark.parametrize(
    ("score", "widening"),
    [
        ("cqr", -1.0),  # the other scores are distances, and no quantile of theirs is negative
        *((score, widening) for score in conformal.SCORES for widening in (0.0, 2.0, np.inf)),
    ],
)
def test_bounds_of_infinite_intervals_are_never_nan(score: str, widening: float) -> None:
    endless = Intervals(np.zeros(1), np.array([-np.inf]), np.array([np.inf]), 0.5)
    with np.errstate(all="raise"):
        lower, upper = SplitConformal(score).bounds(endless, {"all": widening}, ALL[:1], ONES[:1])
    assert not np.isnan([*lower, *upper]).any()
    half = widening if score == "absolute" else np.inf  # absolute: every unit has the same width
    assert (lower.tolist(), upper.tolist()) == ([-half], [half])


def test_scores_normalised_of_intervals_without_width_are_finite() -> None:
    flat = Intervals(np.zeros(1), np.zeros(1), np.zeros(1), 0.5)
    score = SplitConformal("normalised").scores(flat, np.array([2.0]))
    assert np.isfinite(score).all()
    assert score[0] > 1e100


def test_scores_normalised_of_unequal_sides_are_in_units_of_the_half_width() -> None:
    uneven = Intervals(np.array([1.0]), np.array([0.0]), np.array([6.0]), 0.5)
    assert SplitConformal("normalised").scores(uneven, np.array([4.0])).tolist() == [1.0]
