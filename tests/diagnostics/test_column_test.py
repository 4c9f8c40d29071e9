from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.stats import mannwhitneyu, norm

from qpignn.diagnostics.column_test import (
    RELABELLINGS,
    adjusted_p_values,
    column_test,
    standard_ranks,
)


def halves(rows: int) -> np.ndarray:
    return np.arange(rows) >= rows // 2


def test_adjusted_p_values_hand_computed() -> None:
    largest = np.array([1.0, 4.0, 2.0, 3.0])
    p_values = adjusted_p_values(np.array([3.5, 1.0, 9.0]), largest)
    np.testing.assert_allclose(p_values, [2 / 5, 5 / 5, 1 / 5])


@pytest.mark.parametrize("decimals", [8, 0])  # without and with ties
def test_column_test_location_agrees_with_mann_whitney(decimals: int) -> None:
    rng = np.random.default_rng(0)
    column = rng.normal(size=60).round(decimals) + 0.7 * halves(60)
    (statistic,), largest = column_test(column[:, None], halves(60), [], rng)
    expected = mannwhitneyu(
        column[halves(60)], column[~halves(60)], use_continuity=False, method="asymptotic"
    )
    z = norm.isf(expected.pvalue / 2)
    assert statistic[0] == pytest.approx(z * np.sqrt(60 / 59), rel=1e-5)
    assert largest.shape == (RELABELLINGS,)


def test_column_test_sees_spread_where_location_is_equal() -> None:
    narrow, wide = np.linspace(-1, 1, 40), np.linspace(-9, 9, 40)
    table = np.concatenate([narrow, wide])[:, None]
    (statistic,), largest = column_test(table, halves(80), [], np.random.default_rng(0))
    assert statistic[0] > largest.max()


def test_column_test_constant_column_has_no_statistic() -> None:
    (statistic,), largest = column_test(
        np.full((40, 2), 3.0), halves(40), [], np.random.default_rng(0)
    )
    assert (statistic == 0).all()
    assert (largest == 0).all()


def test_column_test_sparse_and_dense_tables_agree() -> None:
    rng = np.random.default_rng(0)
    dense = (rng.random((200, 30)) < 0.3).astype(float)
    results = [
        column_test(table, halves(200), [np.ones(200, dtype=bool)], np.random.default_rng(1))
        for table in (dense, sp.csc_matrix(dense))
    ]
    np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-5)
    np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-5)


def test_column_test_rare_sparse_columns_are_compared_by_their_shares() -> None:
    dense = np.zeros((1000, 2))
    dense[:30, 0] = 7.5  # 30 of the first 500 rows, none of the others
    dense[:9, 1] = 1.0  # too few nonzeros to be looked at
    (statistic,), _ = column_test(sp.csc_matrix(dense), halves(1000), [], np.random.default_rng(0))
    share = 0.03  # z of two proportions: (0.06 − 0) / sqrt(0.03·0.97·(1/500 + 1/500))
    z = 0.06 / np.sqrt(share * (1 - share) * 2 / 500)
    assert statistic[0] == pytest.approx(z, rel=1e-5)
    assert statistic[1] == 0


def test_column_test_blocks_use_their_own_rows_only() -> None:
    rng = np.random.default_rng(0)
    table, label = rng.normal(size=(80, 3)), halves(80)
    block = np.arange(80) % 2 == 0
    first, _ = column_test(table, label, [block], np.random.default_rng(1))
    swapped = label.copy()
    swapped[~block] = ~swapped[~block]  # labels outside the block
    second, _ = column_test(table, swapped, [block], np.random.default_rng(1))
    np.testing.assert_allclose(first[1], second[1])
    assert not np.allclose(first[0], second[0])


def test_column_test_keeps_its_rate_with_skewed_and_tied_columns() -> None:
    rare = 0
    for seed in range(200):
        rng = np.random.default_rng(seed)
        table = np.column_stack(
            [
                rng.poisson(0.1, (60, 20)),
                rng.pareto(0.5, (60, 5)),
                np.eye(3)[rng.integers(3, size=60)],
            ]
        )
        (statistic,), largest = column_test(table, np.arange(60) >= 50, [], rng)
        rare += adjusted_p_values(statistic, largest).min() <= 0.1
    assert rare <= 20 + 3 * np.sqrt(200 * 0.1 * 0.9)


def test_standard_ranks_of_ties_are_their_means() -> None:
    standardised = standard_ranks(
        np.array([[5.0], [1.0], [5.0], [9.0]])
    )  # mid-ranks 2.5, 1, 2.5, 4
    ranks = np.array([2.5, 1.0, 2.5, 4.0])
    np.testing.assert_allclose(standardised[0], (ranks - ranks.mean()) / ranks.std(), rtol=1e-6)
