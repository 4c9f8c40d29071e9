"""Outputs of members and scaled half-widths, on hand-computed numbers."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy import stats

from qpignn.calibration import width_scaling
from qpignn.calibration.width_scaling import MemberOutputs, WidthScaling, nested_bounds


def two_members() -> MemberOutputs:
    value = np.array([[0.0, 2.0], [4.0, 6.0]])
    return MemberOutputs(value, np.array([[1.0, 2.0], [3.0, 4.0]]), value + 1)


def test_mean_of_all_members_is_their_average() -> None:
    mean = two_members().mean()
    assert mean.value.tolist() == [2.0, 4.0]
    assert mean.below.tolist() == [2.0, 3.0]
    assert mean.above.tolist() == [3.0, 5.0]


def test_mean_of_chosen_members_differs_by_unit() -> None:
    mean = two_members().mean(np.array([[True, False], [True, True]]))
    assert mean.value.tolist() == [2.0, 6.0]
    assert mean.below.tolist() == [2.0, 4.0]


def test_select_keeps_all_members_of_some_units() -> None:
    some = two_members().select(np.array([False, True]))
    assert some.value.tolist() == [[2.0], [6.0]]
    assert some.below.tolist() == [[2.0], [4.0]]
    assert some.above.tolist() == [[3.0], [7.0]]


def test_disagreement_is_one_less_the_share_of_the_noise() -> None:
    z = stats.norm.ppf(0.95)
    deviations = np.array([[2.0, 1.0], [4.0, 1.0]])  # of two members, at level 0.9
    values = np.array([[0.0, 3.0], [2.0, 9.0]])  # variances 2 and 18, with n − 1
    members = MemberOutputs(values, z * deviations / 2, 3 * z * deviations / 2)
    expected = [1 - math.sqrt(10 / (10 + 2)), 1 - math.sqrt(1 / (1 + 18))]
    assert members.disagreement(0.9) == pytest.approx(expected)


def test_disagreement_of_equal_members_is_zero() -> None:
    members = MemberOutputs(np.ones((3, 2)), np.ones((3, 2)), np.ones((3, 2)))
    assert members.disagreement(0.5).tolist() == [0.0, 0.0]


def test_bounds_scale_each_side_by_its_factor_and_power() -> None:
    outputs = MemberOutputs(np.array([10.0]), np.array([16.0]), np.array([9.0]))
    lower, upper = WidthScaling(2.0, 3.0, 0.5).bounds(outputs)
    assert lower.tolist() == [10 - 2 * 4]
    assert upper.tolist() == [10 + 3 * 3]
    lower, upper = width_scaling.AS_TRAINED.bounds(outputs)
    assert (lower.tolist(), upper.tolist()) == ([-6.0], [19.0])


def test_bounds_of_an_infinite_factor_are_infinite_where_half_widths_vanish() -> None:
    zero = np.zeros(2)
    lower, upper = width_scaling.UNBOUNDED.bounds(MemberOutputs(zero, zero, zero))
    assert lower.tolist() == [-math.inf] * 2
    assert upper.tolist() == [math.inf] * 2


def levels(inner: float, outer: float) -> dict[float, MemberOutputs]:
    value = np.array([[1.0], [3.0]])
    return {
        level: MemberOutputs(value, np.full((2, 1), half), np.full((2, 1), 2 * half))
        for level, half in ((0.5, inner), (0.9, outer))
    }


def test_nested_bounds_are_those_of_the_highest_level() -> None:
    scalings = {0.5: width_scaling.AS_TRAINED, 0.9: WidthScaling(2.0, 1.0)}
    value, lower, upper, disagreement = nested_bounds(levels(1.0, 3.0), scalings, side="both")
    assert value.tolist() == [2.0]
    assert lower.tolist() == [2 - 2 * 3]
    assert upper.tolist() == [2 + 6]
    assert disagreement is not None
    assert disagreement == pytest.approx(levels(1.0, 3.0)[0.9].disagreement(0.9))


def test_nested_bounds_contain_wider_inner_levels_and_the_value() -> None:
    scalings = {0.5: width_scaling.AS_TRAINED, 0.9: width_scaling.AS_TRAINED}
    _, lower, upper, _ = nested_bounds(levels(3.0, 1.0), scalings, side="both")
    assert (lower.tolist(), upper.tolist()) == ([-1.0], [8.0])
    none = WidthScaling(-1.0, -1.0)  # would leave the value outside
    _, lower, upper, _ = nested_bounds(levels(1.0, 1.0), {0.5: none, 0.9: none}, side="both")
    assert (lower.tolist(), upper.tolist()) == ([2.0], [2.0])


@pytest.mark.parametrize("side", ["lower", "upper"])
def test_nested_bounds_of_one_side_have_no_disagreement(side: str) -> None:
    scalings = {0.5: width_scaling.AS_TRAINED, 0.9: width_scaling.AS_TRAINED}
    assert nested_bounds(levels(1.0, 2.0), scalings, side=side)[3] is None


def test_nested_bounds_of_one_member_or_without_bounds_have_no_disagreement() -> None:
    one = {0.9: MemberOutputs(np.zeros((1, 2)), np.ones((1, 2)), np.ones((1, 2)))}
    assert nested_bounds(one, {0.9: width_scaling.AS_TRAINED}, side="both")[3] is None
    scalings = {0.5: width_scaling.AS_TRAINED, 0.9: width_scaling.UNBOUNDED}
    _, _, upper, disagreement = nested_bounds(levels(1.0, 2.0), scalings, side="both")
    assert disagreement is None
    assert upper.tolist() == [math.inf]
