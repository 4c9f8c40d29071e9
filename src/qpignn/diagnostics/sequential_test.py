"""Two sets of rows compared by a rule that is trained on some rows and scores others.

Rows are assigned to blocks at random. A rule trained on the first k blocks scores block k + 1, for
k = 1, 2, …; everything the rule depends on (the classifier's columns, for example) is chosen on the
first k blocks as well. Under the null hypothesis every relabelling of block k + 1 is equally likely
given the earlier blocks, so its rank sum has the permutation mean and variance of the Wilcoxon
test, and the rank sums of the blocks are uncorrelated. They are added with van Elteren's weights
and compared with the normal distribution. The AUC of ordinary cross-validation has no such
distribution, because its folds share training rows.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from qpignn.data.structure import Integers
from qpignn.diagnostics.column_test import Singles, dense_columns, standard_ranks, standardised
from qpignn.diagnostics.grouping import Mask
from qpignn.intervals import Floats

BLOCKS = 4  # the first is used for training only, the others are scored
COLUMNS = 50  # columns that the classifier uses, at most
DISCOVERY = 0.01  # false discovery rate at which columns are chosen by their own differences

Smoother = Callable[[Floats], Floats]
"""Maps labels of rows (0 for unknown) to a score of every row from the labels of nearby rows."""


@dataclass(frozen=True)
class SequentialTest:
    """Result of a sequential test.

    Attributes:
        auc: AUC on rows that were not used for training.
        error: standard error of ``auc``.
        p_value: one-sided p-value of ``auc`` > ½.
    """

    auc: float
    error: float
    p_value: float


def training_blocks(is_compared: Mask, rng: np.random.Generator) -> list[Mask]:
    """Return masks of the rows of the first block, the first two, …, all blocks but the last.

    The rows of each set are distributed evenly over the blocks, at random.

    Args:
        is_compared: (rows,), True for rows of the compared set, False for the reference set.
        rng: draws the blocks.
    """
    block = np.empty(len(is_compared), dtype=np.int64)
    for rows in (np.flatnonzero(~is_compared), np.flatnonzero(is_compared)):
        block[rng.permutation(rows)] = np.arange(len(rows)) % BLOCKS
    return [block < k for k in range(1, BLOCKS)]


def classifier_test(
    table: Any, is_compared: Mask, blocks: list[Mask], statistics: Floats
) -> SequentialTest:
    """Test whether a classifier can distinguish the two sets by their columns.

    Args:
        table: (rows, columns), an array or a SciPy CSC matrix.
        is_compared: (rows,), True for rows of the compared set, False for the reference set.
        blocks: result of :func:`training_blocks`.
        statistics: (blocks, columns), statistic of each column on each of the blocks.

    Returns:
        The test on the rows that were not used for training.
    """
    scores = [
        _scores(dense_columns(table, choose_columns(differences)), is_compared, train, test)
        for (train, test), differences in zip(_steps(blocks), statistics, strict=True)
    ]
    return _summed(scores, is_compared, blocks)


def smoothing_test(smooth: Smoother, is_compared: Mask, blocks: list[Mask]) -> SequentialTest:
    """Test whether rows near rows of one set tend to belong to that set.

    Args:
        smooth: scores each row by the labels of nearby rows.
        is_compared: (rows,), True for rows of the compared set, False for the reference set.
        blocks: result of :func:`training_blocks`.

    Returns:
        The test on the rows that were not used for training.
    """
    scores = []
    for train, test in _steps(blocks):
        labels = np.where(train, is_compared - is_compared[train].mean(), 0.0)
        scores.append(smooth(labels)[test])
    return _summed(scores, is_compared, blocks)


def _steps(blocks: list[Mask]) -> list[tuple[Mask, Mask]]:
    """Return the masks of training rows and of scored rows for each step."""
    ends = [*blocks[1:], np.ones_like(blocks[0])]
    return [(train, end & ~train) for train, end in zip(blocks, ends, strict=True)]


def _summed(scores: list[Floats], is_compared: Mask, blocks: list[Mask]) -> SequentialTest:
    from scipy.stats import norm

    tests = (test for _, test in _steps(blocks))
    sums = [rank_sum(one, is_compared[test]) for one, test in zip(scores, tests, strict=True)]
    weight, auc, variance, null = np.array(sums).T
    share = weight / weight.sum()
    deviation = float(np.sqrt((share**2 * null).sum()))
    mean = float((share * auc).sum())
    z = (mean - 0.5) / deviation if deviation > 0 else 0.0
    return SequentialTest(mean, float(np.sqrt((share**2 * variance).sum())), float(norm.sf(z)))


def choose_columns(z: Floats) -> Integers:
    """Return the columns that differ significantly, or else the 50 that differ most.

    Significance is by the procedure of Benjamini and Hochberg at a false discovery rate of 1 %.

    Args:
        z: (columns,), absolute z-statistic of each column.
    """
    from scipy.stats import norm

    order = np.argsort(-z, kind="stable")[:COLUMNS]
    p_values = 4 * norm.sf(z[order])  # two tails, of location and of spread
    passed = np.flatnonzero(p_values <= DISCOVERY * np.arange(1, len(order) + 1) / len(z))
    return order[: passed[-1] + 1] if len(passed) else order


def _scores(columns: Floats, is_compared: Mask, train: Mask, test: Mask) -> Floats:
    """Score test rows by a classifier fitted on the training rows: compared rows rank high.

    The sum of three ranks: of a ridge logistic regression on the columns' ranks and their squares,
    sensitive to small differences in many columns; of boosted trees, sensitive to thresholds in a
    few columns; and of a difference of kernel densities, sensitive to interactions.
    """
    from scipy.stats import rankdata
    from sklearn.ensemble import HistGradientBoostingClassifier
    from sklearn.linear_model import LogisticRegression

    ranks = standard_ranks(columns)
    squares = np.concatenate([ranks, standardised(ranks**2)])
    labels = is_compared[train]
    fewer = int(min(labels.sum(), (~labels).sum()))
    linear = LogisticRegression(C=0.01, class_weight="balanced", max_iter=1_000)
    trees = HistGradientBoostingClassifier(
        max_iter=25,
        max_leaf_nodes=4,
        min_samples_leaf=max(3, min(20, fewer // 5)),
        early_stopping=False,
        random_state=0,
    )
    scores: Floats = rankdata(_density_difference(ranks.T[train], labels, ranks.T[test]))
    for model, inputs in ((linear, squares.T), (trees, ranks.T)):
        model.fit(inputs[train], labels)
        scores += rankdata(model.decision_function(inputs[test]))
    return scores


def _density_difference(train: Singles, labels: Mask, test: Singles) -> Floats:
    """Return the mean Gaussian kernel with training rows of one set minus that of the other.

    This is the witness function of the maximum mean discrepancy; the squared bandwidth is half of
    the number of columns, a quarter of the mean squared distance of two rows.
    """
    from sklearn.metrics.pairwise import rbf_kernel

    weight = np.where(labels, 1 / labels.sum(), -1 / (~labels).sum())
    difference: Floats = rbf_kernel(test, train, gamma=1 / train.shape[1]) @ weight
    return difference


def rank_sum(scores: Floats, positive: Mask) -> tuple[float, float, float, float]:
    """Return van Elteren's weight, the AUC, its variance (DeLong) and its variance by permutation.

    With m positives and n others among N = m + n scores, the weight is m·n / (N + 1) and the
    variance over all relabellings is S² / (N·m·n), where S² is the sample variance of the
    mid-ranks, (N² + N) / 12 without ties.

    Args:
        scores: (N,), the scores.
        positive: (N,), mask of the positives.
    """
    from scipy.stats import rankdata

    ones, zeros = int(positive.sum()), int((~positive).sum())
    ranks = rankdata(scores)
    below = (ranks[positive] - rankdata(scores[positive])) / zeros  # share of others below each
    above = (ranks[~positive] - rankdata(scores[~positive])) / ones
    variance = below.var(ddof=1) / ones + above.var(ddof=1) / zeros
    null = ranks.var(ddof=1) / (len(scores) * ones * zeros)
    return ones * zeros / (ones + zeros + 1), float(below.mean()), float(variance), float(null)
