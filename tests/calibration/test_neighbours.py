"""Sums over neighbours: values computed by hand, and no sum that contains the own target."""

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st

from qpignn.calibration.neighbours import (
    KnownErrors,
    certain_gain,
    interval_scores,
    least_score,
    neighbour_columns,
    neighbour_sums,
    with_known_neighbours,
)

PATH = sp.csr_matrix(np.array([[0, 1, 0, 0], [1, 0, 1, 0], [0, 1, 0, 1], [0, 0, 1, 0.0]]))
"""Four units in a row."""


def path_sums(target: list[float]) -> np.ndarray:
    """Sums where the first and third of four units in a row are known, predicted as 1 ± 2."""
    errors = KnownErrors.of(np.array(target), np.ones(2), np.full(2, 2.0))
    return neighbour_sums(PATH, errors.spread(4, np.array([0, 2])))


def test_sums_on_a_path() -> None:
    """Errors are 3 and −1, their sizes 1.5 and 0.5, relative to the mean 1.5 and 0.5."""
    sums = path_sums([4.0, 0.0])
    n1, s1, z1, t1, n2, s2, z2 = sums.T
    assert n1.tolist() == [0, 2, 0, 1]
    assert s1.tolist() == [0, 2, 0, -1]
    assert z1.tolist() == [0, 4, 0, 0]
    assert t1.tolist() == [0, 2, 0, 0.5]
    # two steps away, and not back to itself: the third from the first, and the reverse
    assert n2.tolist() == [1, 0, 1, 0]
    assert s2.tolist() == [-1, 0, 3, 0]
    assert z2.tolist() == [0, 0, 4, 0]
    assert with_known_neighbours(sums).all()


def test_columns_on_a_path() -> None:
    value, half_width = np.full(4, 1.0), np.full(4, np.e)
    columns = neighbour_columns(value, half_width, path_sums([4.0, 0.0]))
    second = [1, 1, 2 / 3, 2 / 6, 2 / 3, 0, 0, np.log(6 / 6), 4 / 3, 0]
    assert columns[1] == pytest.approx(second)
    first = [1, 1, 0, 0, 0, -1 / 4, 1 / 4, 0, 0, 0]
    assert columns[0] == pytest.approx(first)


@given(st.integers(0, 2**32 - 1), st.floats(-1e6, 1e6))
def test_no_sum_contains_the_own_target(seed: int, moved: float) -> None:
    """Weights included: only units elsewhere see a target that moves."""
    draw = np.random.default_rng(seed)
    weights = np.triu(draw.random((12, 12)) * (draw.random((12, 12)) < 0.3), 1)
    adjacency = sp.csr_matrix(weights + weights.T)
    columns = draw.normal(size=(12, 4))
    columns[:, 0] = 1
    other = columns.copy()
    other[5, 1:3] += moved
    before, after = (neighbour_sums(adjacency, one)[5] for one in (columns, other))
    assert after == pytest.approx(before, abs=1e-9 * (1 + abs(moved)))


def test_own_rounding_is_not_left_in_sums() -> None:
    """A pair of units that know only each other's target: two steps lead back to itself."""
    pair = sp.csr_matrix(np.array([[0, 0.1], [0.1, 0]]))
    columns = np.array([[1, 1 / 3, 7.7, 1], [1, 0.7, 1e5, 1]])
    assert (neighbour_sums(pair, columns)[:, 4:] == 0).all()


def test_score_of_one_bound_is_its_pinball_loss() -> None:
    y, bound = np.array([0.0, 3.0]), np.array([1.0, 1.0])
    unbounded = np.full(2, np.inf)
    (below,) = interval_scores(y, bound, unbounded, 0.9, "lower")
    assert below == pytest.approx([0.9, 0.2])
    (above,) = interval_scores(-y, -unbounded, -bound, 0.9, "upper")
    assert above == pytest.approx([0.9, 0.2])


def test_scores_of_heavy_tails_have_logarithms_as_second_kind() -> None:
    """Widths are 2; the second target is missed by 1, which costs 2 / 0.1; 0 does not count."""
    y, bound = np.array([0.5, 2.0, 0.0]), np.array([1.0, 1.0, 1.0])
    scores, logarithms = interval_scores(y, -bound, bound, 0.9, "both", least=3.0)
    assert scores == pytest.approx([2, 22, 2])
    assert logarithms == pytest.approx([np.log(3), np.log(22), 0])


def test_least_score_is_a_thousandth_of_the_median_and_above_zero() -> None:
    assert least_score(np.array([0.0, 4.0, 9.0])) == pytest.approx(0.004)
    assert least_score(np.zeros(3)) > 0


def test_certain_gain_is_a_lower_bound_of_the_relative_gain() -> None:
    plain = np.array([[1.0, 3.0, 2.0, 2.0]])
    gain = np.array([[0.5, 0.1, 0.3, 0.3]])  # mean 0.3, deviation 0.1414
    bound = (0.3 - 1.645 * np.sqrt(0.02 / 4)) / 2
    assert certain_gain(plain - gain, plain) == pytest.approx(bound)


def test_certain_gain_needs_a_gain_that_is_worth_it() -> None:
    draw = np.random.default_rng(0)
    plain = 1 + draw.random((1, 400))
    assert certain_gain(plain, plain) == -np.inf
    assert certain_gain(plain - 0.005, plain) == -np.inf  # certain, but too small
    assert certain_gain(plain + 0.1, plain) == -np.inf
    noise = draw.normal(size=400)
    noise -= noise.mean()
    assert certain_gain(plain - 0.05 + 3 * noise, plain) < 0  # large, but not certain


def test_certain_gain_heavy_tails_need_a_typical_gain_and_no_loss_on_average() -> None:
    plain = np.append(np.ones(399), 1000.0)
    better, worst = np.append(0.9 * np.ones(399), 1000.0), np.append(0.9 * np.ones(399), 1100.0)

    def kinds(scores: np.ndarray) -> np.ndarray:
        return np.stack([scores, np.log(scores)])

    assert certain_gain(kinds(better), kinds(plain)) == pytest.approx(-np.log(0.9), rel=0.01)
    assert certain_gain(kinds(worst), kinds(plain)) == -np.inf
    assert certain_gain(kinds(0.999 * plain), kinds(plain)) == -np.inf
