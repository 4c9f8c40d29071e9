"""Values worked out by hand, then the same quantities from scikit-learn and MAPIE."""

from __future__ import annotations

import math

import numpy as np
import pytest
import torch
from hypothesis import given
from hypothesis import strategies as st
from mapie.metrics import regression as mapie
from scipy import optimize, stats
from sklearn.metrics import mean_absolute_error, mean_pinball_loss, mean_squared_error

from qpignn import Intervals, metrics
from qpignn.errors import ArrayError, SettingError

# inside; on the bound; 1 below; 2 above
Y = [1.0, 3.0, -1.0, 9.0]
LOWER = [0.0, 1.0, 0.0, 3.0]
UPPER = [2.0, 3.0, 4.0, 7.0]  # widths 2, 2, 4, 4; middles 1, 2, 2, 5


def test_metrics_hand_computed() -> None:
    assert metrics.picp(Y, LOWER, UPPER) == 0.5
    assert metrics.mpiw(Y, LOWER, UPPER) == 3.0
    assert metrics.nmpiw(Y, LOWER, UPPER) == pytest.approx(3 / 10)  # targets span −1 to 9
    assert metrics.mpe(Y, LOWER, UPPER) == pytest.approx((0 + 1 + 3 + 4) / 4)
    assert metrics.sharpness(Y, LOWER, UPPER) == pytest.approx((4 + 4 + 16 + 16) / 4)
    # α = 0.2, so 10 per unit missed: widths 12 + 10·(1 + 2), over 4
    assert metrics.winkler_score(Y, LOWER, UPPER, confidence_level=0.8) == pytest.approx(42 / 4)
    assert metrics.coverage_gap(Y, LOWER, UPPER, confidence_level=0.8) == pytest.approx(-0.3)
    # 0.3·(1 + e³); with the coverage reached exactly the factor is 2
    assert metrics.cwc(Y, LOWER, UPPER, confidence_level=0.8) == pytest.approx(0.3 * 21.0855369)
    assert metrics.cwc(Y, LOWER, UPPER, confidence_level=0.5) == pytest.approx(0.6)
    # at τ = 0.9: one 2 above (1.8), one 1 below (0.1)
    assert metrics.pinball_loss([5.0, 1.0], [3.0, 2.0], tau=0.9) == pytest.approx(0.95)


def test_metrics_equal_those_of_independent_libraries() -> None:
    rng = np.random.default_rng(0)
    y, lower = rng.normal(size=200), rng.normal(size=200) - 1
    upper = lower + rng.exponential(2, size=200)
    bounds = np.stack([lower, upper], axis=1)[:, :, None]
    assert metrics.picp(y, lower, upper) == pytest.approx(
        float(mapie.regression_coverage_score(y, bounds)[0])
    )
    width = float(mapie.regression_mean_width_score(bounds)[0])
    assert metrics.mpiw(y, lower, upper) == pytest.approx(width)
    assert metrics.nmpiw(y, lower, upper) == pytest.approx(width / float(np.ptp(y)))
    assert metrics.winkler_score(y, lower, upper, confidence_level=0.9) == pytest.approx(
        float(mapie.regression_mwi_score(y, bounds, confidence_level=0.9))
    )
    assert metrics.mpe(y, lower, upper) == pytest.approx(
        mean_absolute_error(y, (lower + upper) / 2)
    )
    assert metrics.sharpness(y, lower, upper) == pytest.approx(mean_squared_error(upper, lower))
    assert metrics.pinball_loss(y, lower, tau=0.3) == pytest.approx(
        mean_pinball_loss(y, lower, alpha=0.3)
    )


def test_winkler_is_proper_and_is_two_pinballs_over_alpha() -> None:
    y = stats.norm.ppf((np.arange(4000) + 0.5) / 4000)

    def score(half_width: float) -> float:
        lower, upper = np.full(4000, -half_width), np.full(4000, half_width)
        return metrics.winkler_score(y, lower, upper, confidence_level=0.9)

    best = optimize.minimize_scalar(score, bounds=(0.1, 4), method="bounded").x
    assert best == pytest.approx(stats.norm.ppf(0.95), abs=0.01)  # the true 5 % and 95 % quantiles
    low, high = np.full(4000, -1.0), np.full(4000, 2.0)
    pinballs = metrics.pinball_loss(y, low, tau=0.05) + metrics.pinball_loss(y, high, tau=0.95)
    got = metrics.winkler_score(y, low, high, confidence_level=0.9)
    assert got == pytest.approx(pinballs * 2 / 0.1)


@given(st.floats(-1e3, 1e3), st.floats(0.01, 100), st.integers(0, 2**32 - 1))
def test_metrics_scale_with_shift_and_scale_of_the_target(
    shift: float, scale: float, seed: int
) -> None:
    rng = np.random.default_rng(seed)
    y, lower = rng.normal(size=20), rng.normal(size=20)
    upper = lower + rng.uniform(0.1, 2, size=20)
    moved = [scale * column + shift for column in (y, lower, upper)]
    for linear in (metrics.mpiw, metrics.mpe):
        assert linear(*moved) == pytest.approx(scale * linear(y, lower, upper), rel=1e-6)
    assert metrics.nmpiw(*moved) == pytest.approx(metrics.nmpiw(y, lower, upper), rel=1e-6)
    got = metrics.winkler_score(*moved, confidence_level=0.8)
    assert got == pytest.approx(
        scale * metrics.winkler_score(y, lower, upper, confidence_level=0.8)
    )


def test_unequal_shapes_raise_instead_of_broadcasting() -> None:
    column = np.zeros((4, 1))
    with pytest.raises(ArrayError, match=r"y: expected one number per node .* got shape \(4, 1\)"):
        metrics.picp(column, LOWER, UPPER)
    with pytest.raises(ArrayError, match="one length"):
        metrics.mpiw(Y[:1], LOWER, UPPER)
    for error in (metrics.mae, metrics.rmse):
        assert error(Y, LOWER) > 0  # lists are welcome
        with pytest.raises(ArrayError, match="one length"):
            error(Y[:1], LOWER)


def test_no_nodes_nan_targets_and_flat_targets_raise() -> None:
    with pytest.raises(ArrayError, match="at least one node"):
        metrics.picp([], [], [])
    with pytest.raises(ArrayError, match="only labelled nodes"):
        metrics.picp([1.0, float("nan")], [0.0, 0.0], [1.0, 1.0])
    with pytest.raises(ArrayError, match="one value only; use mpiw"):
        metrics.nmpiw([1.0, 1.0], [0.0, 0.0], [1.0, 1.0])


def test_levels_are_checked_under_their_own_name() -> None:
    with pytest.raises(SettingError, match=r"^confidence_level"):
        metrics.winkler_score(Y, LOWER, UPPER, confidence_level=90)
    with pytest.raises(SettingError, match=r"^tau"):
        metrics.pinball_loss(Y, LOWER, tau=1.0)


def test_summary_is_in_units_of_the_given_targets() -> None:
    intervals = Intervals([1, 2, 2, 5], LOWER, UPPER, 0.8)
    got = metrics.summary(intervals, Y, y_given=[0.0, 3.0, 5.0])  # a range of 5
    assert got["picp"] == 0.5
    assert got["mpiw_raw"] == 3.0
    assert got["mpiw"] == pytest.approx(3 / 5)
    assert got["mpe"] == pytest.approx(2 / 5)
    assert got["sharpness"] == pytest.approx(10 / 25)
    assert got["winkler"] == pytest.approx(42 / 4 / 5)
    assert got["winkler_one"] == pytest.approx((12 + 1 + 2) / 4 / 5)  # a unit missed counts once
    assert got["nmpiw"] == pytest.approx(3 / 10)  # of the evaluated targets' range
    assert got["cwc"] == pytest.approx(0.3 * 21.0855369)
    # predictions 1, 2, 2, 5 are 0, 1, 3 and 4 away: the target's unit, not the range's
    assert got["mae"] == pytest.approx(2.0)
    assert got["rmse"] == pytest.approx(math.sqrt((0 + 1 + 9 + 16) / 4))
    assert [got[name] for name in metrics.BOUND_FIGURES] == [None, None, None]


def test_summary_upper_bound_gives_its_own_three_figures() -> None:
    bound = [2.0, 3.0, 4.0, 7.0]
    upper = Intervals([1, 2, 2, 5], [-np.inf] * 4, bound, 0.8)
    got = metrics.summary(upper, Y, y_given=[0.0, 5.0])
    assert got["picp"] == 0.75  # only 9 is above its 7
    assert got["miss_rate"] == 0.25
    assert got["mean_bound"] == 4.0
    # τ = 0.8: 0.2 per unit below the bound (1 + 0 + 5 units), 0.8 per unit above it (2 units)
    assert got["pinball"] == pytest.approx((0.2 * 6 + 0.8 * 2) / 4)
    assert got["pinball"] == pytest.approx(mean_pinball_loss(Y, bound, alpha=0.8))
    assert {got[name] for name in metrics.WIDTH_FIGURES} == {None}
    assert got["mae"] == pytest.approx(2.0)


def test_summary_lower_bound_is_the_quantile_one_minus_level() -> None:
    bound = [0.0, 1.0, 0.0, 3.0]
    lower = Intervals([1, 2, 2, 5], bound, [np.inf] * 4, 0.8)
    got = metrics.summary(lower, Y, y_given=[0.0, 5.0])
    assert (got["miss_rate"], got["mean_bound"]) == (0.25, 1.0)  # −1 is below its 0
    # τ = 0.2: 0.2 per unit above the bound (1 + 2 + 6 units), 0.8 per unit below it (1 unit)
    assert got["pinball"] == pytest.approx((0.2 * 9 + 0.8) / 4)


def test_summary_bound_cut_at_the_limit_of_the_target_stays_one_sided() -> None:
    cut = Intervals([1, 2, 2, 5], [-1.0] * 4, UPPER, 0.8, side="upper")
    got = metrics.summary(cut, Y, y_given=[0.0, 5.0])
    assert got["mean_bound"] == 4.0
    assert got["mpiw"] is None


def test_summary_one_sided_result_without_some_bound_has_no_mean_bound() -> None:
    upper = Intervals([1.0, 2.0], [-np.inf] * 2, [2.0, np.inf], 0.9)
    got = metrics.summary(upper, [1.0, 3.0], y_given=[0.0, 4.0])
    assert (got["miss_rate"], got["mean_bound"], got["pinball"]) == (0.0, None, None)


def test_summary_every_figure_is_declared_as_one_of_widths_or_bounds() -> None:
    got = metrics.summary(Intervals([1, 2, 2, 5], LOWER, UPPER, 0.8), Y, y_given=[0.0, 5.0])
    widths = ["mpiw", "mpiw_raw", "nmpiw", "mpe", "sharpness", "winkler", "winkler_one", "cwc"]
    bounds = ["mean_bound", "miss_rate", "pinball"]
    assert list(got) == ["picp", *widths, "mae", "rmse", *bounds]
    assert (tuple(widths), tuple(bounds)) == (metrics.WIDTH_FIGURES, metrics.BOUND_FIGURES)


@pytest.mark.parametrize("size", [1.0, 1e-200, 1e200])
def test_rmse_of_extreme_sizes_is_that_of_scikit_learn(size: float) -> None:
    y, prediction = np.array([1.0, 2.0, 4.0]), np.array([1.5, 0.0, 4.0])
    wanted = size * math.sqrt(mean_squared_error(y, prediction))
    assert metrics.rmse(size * y, size * prediction) == pytest.approx(wanted, rel=1e-12, abs=0)
    assert metrics.mae(size * y, size * prediction) == pytest.approx(
        size * mean_absolute_error(y, prediction), rel=1e-12, abs=0
    )
    assert metrics.rmse(y, y) == 0.0


def test_summary_of_one_node_has_no_figures_divided_by_its_range() -> None:
    got = metrics.summary(Intervals([1], [0], [2], 0.9), [1.0], y_given=[0.0, 4.0])
    assert (got["picp"], got["mpiw"], got["nmpiw"], got["cwc"]) == (1.0, 0.5, None, None)
    with pytest.raises(ArrayError, match="y_given: expected targets with a range"):
        metrics.summary(Intervals([1], [0], [2], 0.9), [1.0], y_given=[4.0, 4.0])


def test_infinite_bounds_cover_and_have_infinite_width() -> None:
    assert metrics.picp([5.0], [-np.inf], [np.inf]) == 1.0
    assert metrics.mpiw([5.0], [-np.inf], [np.inf]) == np.inf


def test_float32_columns_give_the_figures_of_the_same_numbers_in_float64() -> None:
    """Everything is computed in float64: a mean over 10⁶ nodes loses no digit to its type."""
    rng = np.random.default_rng(7)
    lower = rng.normal(size=10**6).astype(np.float32)
    upper = lower + rng.exponential(size=10**6).astype(np.float32)
    y = rng.normal(size=10**6).astype(np.float32)
    single = (torch.from_numpy(y), lower, upper)
    double = tuple(column.astype(np.float64) for column in (y, lower, upper))
    for metric in (metrics.picp, metrics.mpiw, metrics.nmpiw, metrics.mpe, metrics.sharpness):
        assert metric(*single) == metric(*double)
    for priced in (metrics.winkler_score, metrics.cwc):
        assert priced(*single, confidence_level=0.9) == priced(*double, confidence_level=0.9)
    assert metrics.mpiw(*single) == pytest.approx(math.fsum(double[2] - double[1]) / 10**6)


@pytest.mark.parametrize("size", [1e-200, 1e-30, 1e30, 1e200])
def test_summary_does_not_depend_on_the_unit_of_the_target(size: float) -> None:
    """Also where squares are beyond float64: figures are taken after division by the range."""
    columns = [size * np.array(column) for column in ([1.0, 2, 2, 5], LOWER, UPPER)]
    actual = metrics.summary(Intervals(*columns, 0.8), size * np.array(Y), y_given=[0.0, 5 * size])
    wanted = metrics.summary(Intervals([1, 2, 2, 5], LOWER, UPPER, 0.8), Y, y_given=[0.0, 5.0])
    for name in ("mpiw_raw", "mae", "rmse"):  # in the target's unit
        assert actual.pop(name) == pytest.approx(size * wanted.pop(name), rel=1e-12)
    actual, wanted = ({k: v for k, v in one.items() if v is not None} for one in (actual, wanted))
    assert len(wanted) == 8
    assert actual == pytest.approx(wanted, rel=1e-12)


def test_summary_with_an_infinite_interval_has_no_mpe() -> None:
    half_open = Intervals([1.0, 2.0], [0.0, 0.0], [2.0, np.inf], 0.9)
    got = metrics.summary(half_open, [1.0, 3.0], y_given=[0.0, 4.0])
    assert (got["picp"], got["mpiw"], got["mpe"]) == (1.0, np.inf, None)
