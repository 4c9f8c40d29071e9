"""Two-sample test for tables: do two sets of rows come from the same population?

Up to three tests share the nominal significance level, so that different kinds of differences are
detected: each column alone, and products of two columns (:mod:`qpignn.diagnostics.column_test`);
all columns together, and rows near each other (both :mod:`qpignn.diagnostics.sequential_test`).
They are valid for any number of columns and any dependence between rows or columns, because only
the labels are random: under the null hypothesis every assignment of the rows to the two sets is
equally likely.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any, ClassVar

import numpy as np
from threadpoolctl import threadpool_limits

from qpignn.diagnostics import column_test, sequential_test
from qpignn.diagnostics.coverage import RenamedFields
from qpignn.diagnostics.grouping import Mask
from qpignn.errors import ArrayError
from qpignn.intervals import Floats

FEWEST = 20  # rows of each set that the test needs
NOMINAL = 0.02  # significance level
NOTABLE = 0.1  # distance between the two distributions from which there is a warning
NAMED = 20  # columns whose gap is computed, at most
NEARBY = "place in the graph"


@dataclass(frozen=True)
class Shift(RenamedFields):
    """Difference between two sets of nodes and its significance.

    Attributes:
        reference: number of reference nodes: the labelled nodes, or those of the training graph.
        compared: number of nodes compared with them.
        auc: probability that a classifier ranks a compared node above a reference node, on nodes
            it was not trained on; 0.5 means that it cannot distinguish them.
        error: standard error of ``auc``.
        p_value: p-value of the null hypothesis that both sets come from the same population.
        columns: columns that differ significantly by themselves, corrected for the number of
            columns, with the largest gap between their two distribution functions (0 to 1),
            largest first. "place in the graph" is among them if nodes near compared nodes tend to
            be compared nodes too, with 2·AUC − 1 of that rule.
    """

    _renamed: ClassVar[Mapping[str, str]] = {"found": "notable"}

    reference: int
    compared: int
    auc: float
    error: float
    p_value: float
    columns: list[tuple[str, float]]

    @property
    def significant(self) -> bool:
        """Whether the difference is significant at 2 %."""
        return self.p_value < NOMINAL

    @property
    def distance(self) -> float:
        """Lower estimate of the total variation distance between the two sets (0 to 1).

        The largest gap of a column that differs, or 2·AUC − 1 of the classifier. Coverage differs
        by at most the total variation distance, and usually by less.
        """
        return max(2 * self.auc - 1, 0.0, *(gap for _, gap in self.columns))

    @property
    def notable(self) -> bool:
        """Whether the difference is significant and its distance at least 0.1."""
        return self.significant and self.distance >= NOTABLE


def compare_rows(
    reference: Any,
    compared: Any,
    names: Sequence[str],
    rng: np.random.Generator,
    *,
    paired: int = 0,
    smooth: sequential_test.Smoother | None = None,
) -> Shift | None:
    """Test whether two sets of rows come from the same population.

    Args:
        reference, compared: (rows, columns) arrays or SciPy sparse matrices of finite numbers, with
            the same columns. Time and memory grow with the rows: pass at most a few thousand.
        names: names of the columns.
        rng: draws the blocks and the relabellings.
        paired: number of leading columns that are compared in pairs as well, by the products of
            their standardised ranks, which show a change of their dependence; 0 for sparse tables.
        smooth: maps labels of rows (0 for unknown) to a score of each row from nearby rows,
            reference rows first; None if rows have no neighbours.

    Returns:
        The comparison, or None if a set has fewer than 20 rows.

    Raises:
        ArrayError: if the columns of the two tables or the names do not match.
    """
    widths = (reference.shape[1], compared.shape[1], len(names))
    if len(set(widths)) > 1:
        raise ArrayError(
            f"expected two tables with the same columns and a name for each, got {widths[0]} and "
            f"{widths[1]} columns and {widths[2]} names"
        )
    counts = reference.shape[0], compared.shape[0]
    if min(counts) < FEWEST:
        return None
    table = _stacked([reference, compared])
    extended, named = _with_products(table, names, paired)
    is_compared = np.arange(table.shape[0]) >= reference.shape[0]
    with threadpool_limits(1):  # more threads are slower on a table this small
        blocks = sequential_test.training_blocks(is_compared, rng)
        statistics, largest = column_test.column_test(extended, is_compared, blocks, rng)
        adjusted = column_test.adjusted_p_values(statistics[0], largest)
        own = statistics[1:, : len(names)]  # without the products
        together = sequential_test.classifier_test(table, is_compared, blocks, own)
    nearby = smooth and sequential_test.smoothing_test(smooth, is_compared, blocks)
    p_values = [float(adjusted.min(initial=1.0)), together.p_value]
    p_values += [] if nearby is None else [nearby.p_value]
    rate = NOMINAL / len(p_values)
    columns = _differing(extended, named, is_compared, statistics[0], adjusted < rate)
    if nearby is not None and nearby.p_value < rate:
        columns.append((NEARBY, 2 * nearby.auc - 1))
    p_value = min(1.0, len(p_values) * min(p_values))
    columns.sort(key=lambda named: -named[1])
    auc, error = together.auc, together.error
    return Shift(*counts, auc=auc, error=error, p_value=p_value, columns=columns)


def _stacked(tables: list[Any]) -> Any:
    import scipy.sparse as sp

    if any(sp.issparse(table) for table in tables):
        return sp.vstack([sp.csr_matrix(table) for table in tables]).tocsc()
    return np.concatenate([np.asarray(table) for table in tables])


def _with_products(table: Any, names: Sequence[str], paired: int) -> tuple[Any, list[str]]:
    """Append the products of standardised ranks of each pair of the first columns."""
    pairs = list(combinations(range(paired), 2))
    if not pairs:
        return table, list(names)
    ranks = column_test.standard_ranks(column_test.dense_columns(table, slice(paired)))
    products = np.stack([ranks[i] * ranks[j] for i, j in pairs], axis=1)  # (rows, pairs)
    named = [f"{names[i]} × {names[j]}" for i, j in pairs]
    return np.column_stack([table, products]), [*names, *named]


def _differing(
    table: Any, names: Sequence[str], is_compared: Mask, statistic: Floats, differs: Mask
) -> list[tuple[str, float]]:
    """Return the columns that differ most, with the gap between their distribution functions."""
    from scipy.stats import ks_2samp

    chosen = np.flatnonzero(differs)
    gaps = []
    for i in chosen[np.argsort(-statistic[chosen], kind="stable")][:NAMED]:
        column = column_test.dense_columns(table, [i])[:, 0]
        gap = ks_2samp(column[is_compared], column[~is_compared], method="asymp").statistic
        gaps.append((names[i], float(gap)))
    return gaps
