from __future__ import annotations

from itertools import combinations

import numpy as np
import pytest
from sklearn.metrics import roc_auc_score
from threadpoolctl import threadpool_limits

from qpignn.diagnostics.column_test import column_test
from qpignn.diagnostics.sequential_test import (
    BLOCKS,
    COLUMNS,
    choose_columns,
    classifier_test,
    rank_sum,
    smoothing_test,
    training_blocks,
)


def test_rank_sum_variance_is_that_of_all_relabellings() -> None:
    scores = np.array([1.0, 1.0, 2.0, 3.0, 3.0, 3.0, 7.0])
    aucs = []
    for chosen in combinations(range(7), 3):
        positive = np.isin(np.arange(7), chosen)
        _, auc, _, null = rank_sum(scores, positive)
        assert auc == pytest.approx(roc_auc_score(positive, scores))
        aucs.append(auc)
    assert np.mean(aucs) == pytest.approx(0.5)
    assert np.var(aucs) == pytest.approx(null)


def test_rank_sum_without_ties_hand_computed() -> None:
    weight, auc, variance, null = rank_sum(
        np.array([1.0, 2.0, 3.0, 4.0]), np.array([False, True, False, True])
    )
    assert weight == pytest.approx(4 / 5)
    assert auc == pytest.approx(3 / 4)  # of the four pairs only (2, 3) is in the wrong order
    assert null == pytest.approx(5 / (12 * 4))  # (N + 1) / (12·m·n)
    # DeLong: shares below the positives are ½ and 1, above the others 1 and ½
    assert variance == pytest.approx(np.var([0.5, 1.0], ddof=1) / 2 * 2)


def test_rank_sum_of_equal_scores_is_half_and_certain() -> None:
    _, auc, _, null = rank_sum(np.ones(10), np.arange(10) < 4)
    assert (auc, null) == (0.5, 0.0)


def test_training_blocks_grow_and_hold_an_even_share_of_both_sets() -> None:
    label = np.arange(100) >= 80
    blocks = training_blocks(label, np.random.default_rng(0))
    assert len(blocks) == BLOCKS - 1
    for k, block in enumerate(blocks, start=1):
        assert (block & label).sum() == 5 * k
        assert (block & ~label).sum() == 20 * k
    assert (blocks[0] <= blocks[1]).all()
    assert (blocks[1] <= blocks[2]).all()


def test_choose_columns_takes_what_differs_or_else_the_largest() -> None:
    z = np.zeros(200)
    z[[3, 7]] = 9.0, 6.0
    assert list(choose_columns(z)) == [3, 7]
    z[:] = np.linspace(0, 1, 200)  # nothing differs
    assert set(choose_columns(z)) == set(range(200 - COLUMNS, 200))


def p_value(table: np.ndarray, label: np.ndarray, seed: int) -> float:
    rng = np.random.default_rng(seed)
    blocks = training_blocks(label, rng)
    statistics, _ = column_test(table, label, blocks, rng)
    return classifier_test(table, label, blocks, statistics[1:]).p_value


def test_classifier_test_keeps_its_rate_on_wide_noise() -> None:
    label, rare = np.arange(80) >= 40, 0
    with threadpool_limits(1):
        for seed in range(60):
            noise = np.random.default_rng(seed).normal(size=(80, 200))
            rare += p_value(noise, label, seed) < 0.1
    assert rare <= 6 + 3 * np.sqrt(60 * 0.1 * 0.9)


def test_classifier_test_finds_what_no_column_shows_alone() -> None:
    rng = np.random.default_rng(0)
    table = rng.normal(size=(800, 3))
    label = table[:, 0] * table[:, 1] > 0  # each column by itself is distributed alike
    assert p_value(table, label, 0) < 1e-6


def test_smoothing_test_finds_clusters_and_keeps_its_rate() -> None:
    cluster = np.arange(120) // 6
    member = (cluster[:, None] == cluster).astype(float)

    def smooth(labels: np.ndarray) -> np.ndarray:
        return member @ labels

    clustered = np.isin(cluster, np.arange(0, 20, 2))
    rare = 0
    for seed in range(300):
        rng = np.random.default_rng(seed)
        if seed < 5:
            assert smoothing_test(smooth, clustered, training_blocks(clustered, rng)).p_value < 1e-4
        label = rng.permutation(clustered)
        rare += smoothing_test(smooth, label, training_blocks(label, rng)).p_value < 0.1
    assert rare <= 30 + 3 * np.sqrt(300 * 0.1 * 0.9)
