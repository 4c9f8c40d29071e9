"""A two-sample test for tables: are two sets of rows draws from one population?

Up to three tests share the nominal rate of false alarms, so that differences of different kinds are
found: each column alone, and products of two columns (:mod:`qpignn.diagnostics.column_test`); all
columns together, and rows that are near each other (both
:mod:`qpignn.diagnostics.sequential_test`). They hold for any number of columns and any dependence
between rows or columns, because only the labels are taken as random: under the null hypothesis
every assignment of the rows to the two sets is equally likely.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np
from threadpoolctl import threadpool_limits

from qpignn.diagnostics.column_test import (
    adjusted_p_values,
    column_test,
    dense_columns,
    standard_ranks,
)
from qpignn.diagnostics.coverage import Mask
from qpignn.diagnostics.sequential_test import (
    Smoother,
    classifier_test,
    smoothing_test,
    training_blocks,
)
from qpignn.errors import ArrayError
from qpignn.intervals import Floats

FEWEST = 20  # rows of each set, below which there is no test
NOMINAL = 0.02  # rate of false alarms
NOTABLE = 0.1  # distance between the two distributions that is worth a warning
NAMED = 20  # columns whose gap is computed, at most
NEARBY = "place in the graph"


@dataclass(frozen=True)
class Shift:
    """How far two sets of nodes differ, and whether that is beyond chance.

    Attributes:
        reference: number of nodes the intervals were judged on: labelled ones, or those of the fit.
        compared: number of nodes compared with them.
        auc: probability that a classifier ranks a compared node above a reference node, on nodes
            it was not trained on; 0.5 means that it cannot tell them apart.
        error: standard error of ``auc``.
        p_value: probability of a difference at least this large if there were none.
        columns: columns that differ by themselves, beyond chance for the number of columns looked
            at, with the largest gap between their two distribution functions (0 to 1), the widest
            first; empty where no single column does. Among them "place in the graph" where nodes
            near compared ones are rather compared ones too, with 2·AUC − 1 of that rule.
    """

    reference: int
    compared: int
    auc: float
    error: float
    p_value: float
    columns: list[tuple[str, float]]

    @property
    def significant(self) -> bool:
        """Whether the difference is beyond chance, at a nominal rate of 2 %."""
        return self.p_value < NOMINAL

    @property
    def distance(self) -> float:
        """Lower estimate of the total variation distance between the two sets (0 to 1).

        The widest gap of a column that differs, or 2·AUC − 1 of the classifier. Coverage can
        differ by as much as the total variation distance; mostly it differs by less.
        """
        return max(2 * self.auc - 1, 0.0, *(gap for _, gap in self.columns))

    @property
    def found(self) -> bool:
        """Whether the two sets differ, beyond chance and by enough to matter."""
        return self.significant and self.distance >= NOTABLE


def compare_rows(
    reference: Any,
    compared: Any,
    names: Sequence[str],
    rng: np.random.Generator,
    *,
    paired: int = 0,
    smooth: Smoother | None = None,
) -> Shift | None:
    """Test whether two sets of rows are draws from one population.

    Args:
        reference, compared: (rows, columns) arrays or SciPy sparse matrices of finite numbers, with
            the same columns. Time and memory grow with the rows: pass a few thousand of them.
        names: of the columns.
        rng: draws the blocks and the relabellings.
        paired: how many of the first columns are compared two by two as well, by the products of
            their standardised ranks, which show a change of their dependence; 0 for sparse tables.
        smooth: from labels of rows (0 where unknown) to a score of each row by the rows near it,
            reference rows first; None where rows have no neighbours.

    Returns:
        The comparison, or None where a set has fewer than 20 rows.

    Raises:
        ArrayError: where the columns of the two tables or the names do not match.
    """
    widths = (reference.shape[1], compared.shape[1], len(names))
    if len(set(widths)) > 1:
        raise ArrayError(
            f"expected two tables with the same columns and a name for each, got {widths[0]} and "
            f"{widths[1]} columns and {widths[2]} names"
        )
    if min(reference.shape[0], compared.shape[0]) < FEWEST:
        return None
    table = _stacked([reference, compared])
    extended, named = _with_products(table, names, paired)
    is_compared = np.arange(table.shape[0]) >= reference.shape[0]
    with threadpool_limits(1):  # more threads cost more than they save on so small a table
        blocks = training_blocks(is_compared, rng)
        statistics, largest = column_test(extended, is_compared, blocks, rng)
        adjusted = adjusted_p_values(statistics[0], largest)
        together = classifier_test(table, is_compared, blocks, statistics[1:, : len(names)])
    nearby = None if smooth is None else smoothing_test(smooth, is_compared, blocks)
    p_values = [float(adjusted.min(initial=1.0)), together.p_value]
    p_values += [] if nearby is None else [nearby.p_value]
    rate = NOMINAL / len(p_values)
    columns = _differing(extended, named, is_compared, statistics[0], adjusted < rate)
    if nearby is not None and nearby.p_value < rate:
        columns.append((NEARBY, 2 * nearby.auc - 1))
    return Shift(
        reference=reference.shape[0],
        compared=compared.shape[0],
        auc=together.auc,
        error=together.error,
        p_value=min(1.0, len(p_values) * min(p_values)),
        columns=sorted(columns, key=lambda named: -named[1]),
    )


def _stacked(tables: list[Any]) -> Any:
    import scipy.sparse as sp

    if any(sp.issparse(table) for table in tables):
        return sp.vstack([sp.csr_matrix(table) for table in tables]).tocsc()
    return np.concatenate([np.asarray(table) for table in tables])


def _with_products(table: Any, names: Sequence[str], paired: int) -> tuple[Any, list[str]]:
    """Return the columns and the products of the standardised ranks of each two of the first."""
    pairs = list(combinations(range(paired), 2))
    if not pairs:
        return table, list(names)
    ranks = standard_ranks(dense_columns(table, slice(paired)))
    products = np.stack([ranks[i] * ranks[j] for i, j in pairs], axis=1)  # (rows, pairs)
    return np.column_stack([table, products]), [
        *names,
        *(f"{names[i]} × {names[j]}" for i, j in pairs),
    ]


def _differing(
    table: Any, names: Sequence[str], is_compared: Mask, statistic: Floats, differs: Mask
) -> list[tuple[str, float]]:
    """Return the columns that differ most with the gap between their distribution functions."""
    from scipy.stats import ks_2samp

    chosen = np.flatnonzero(differs)
    gaps = []
    for i in chosen[np.argsort(-statistic[chosen], kind="stable")][:NAMED]:
        column = dense_columns(table, [i])[:, 0]
        gap = ks_2samp(column[is_compared], column[~is_compared], method="asymp").statistic
        gaps.append((names[i], float(gap)))
    return gaps
