from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from qpignn.diagnostics.coverage import by_group, count_coverage, holm, percent
from qpignn.diagnostics.grouping import Grouping


def test_count_coverage_81_of_100_equals_wilson_by_formula() -> None:
    coverage = count_coverage(np.array([True] * 81 + [False] * 19), 0.9)
    assert (coverage.nodes, coverage.covered, coverage.share) == (100, 81, 0.81)
    # Wilson: (p + z²/2n ± z·sqrt(p(1−p)/n + z²/4n²)) / (1 + z²/n), z = 1.96
    z, p, n = 1.959964, 0.81, 100
    middle, reach = p + z**2 / (2 * n), z * np.sqrt(p * (1 - p) / n + z**2 / (4 * n**2))
    assert coverage.low == pytest.approx((middle - reach) / (1 + z**2 / n), abs=1e-6)
    assert coverage.high == pytest.approx((middle + reach) / (1 + z**2 / n), abs=1e-6)
    assert coverage.low == pytest.approx(0.7222, abs=1e-3)
    assert str(coverage) == "81 % ± 9 %"  # to the further end
    assert coverage.short


@given(st.integers(1, 400), st.floats(0.05, 0.95), st.data())
def test_count_coverage_any_count_has_consistent_p_values(
    nodes: int, level: float, data: st.DataObject
) -> None:
    covered = data.draw(st.integers(0, nodes))
    coverage = count_coverage(np.arange(nodes) < covered, level)
    assert 0 <= coverage.low <= coverage.share + 1e-12
    assert coverage.share - 1e-12 <= coverage.high <= 1
    both = coverage.too_few + coverage.too_many - binom.pmf(covered, nodes, level)
    assert both == pytest.approx(1, abs=1e-9)  # the observed count is in both tails


def test_count_coverage_true_level_rejects_at_the_nominal_rate() -> None:
    rng = np.random.default_rng(0)
    rejected = [count_coverage(rng.random(200) < 0.9, 0.9).too_few < 0.05 for _ in range(1000)]
    assert np.mean(rejected) < 0.05 + 3 * np.sqrt(0.05 * 0.95 / 1000)


def test_holm_hand_computed() -> None:
    assert holm([0.001, 0.04, 0.02, 0.6]) == [True, False, False, False]
    # 0.001 ≤ 0.05/4; 0.012 ≤ 0.05/3; 0.03 > 0.05/2
    assert holm([0.03, 0.001, 0.6, 0.012]) == [False, True, False, True]
    assert holm([]) == []


def test_by_group_counts_held_out_nodes_only() -> None:
    member = np.array([0, 0, 0, 1, 1, 1])
    held_out = np.array([True, True, False, True, True, True])
    hits = np.array([True, False, True, True, True, True])
    width = np.array([1.0, 3.0, 100.0, 2.0, 2.0, 5.0])
    halves = Grouping("half", ["a", "b"], ["the first", "the second"], member, column=True)
    alone = Grouping("one", ["all"], ["all"], np.zeros(6, dtype=int))
    (division,) = by_group([halves, alone], hits, width, held_out, 0.5)
    first, second = division.groups
    assert (first.coverage.nodes, first.coverage.covered, first.width) == (2, 1, 2.0)
    assert (second.coverage.nodes, second.coverage.covered, second.width) == (3, 3, 3.0)
    assert division.worst is first
    assert (first.bound, second.bound) == (None, None)
    (one_sided,) = by_group([halves], hits, None, held_out, 0.5, bound=width)
    assert [(group.width, group.bound) for group in one_sided.groups] == [(None, 2.0), (None, 3.0)]


def test_percent_has_given_digits() -> None:
    assert percent(0.9) == "90 %"
    assert percent(0.975) == "97.5 %"
    assert percent(0.8134, 0) == "81 %"
