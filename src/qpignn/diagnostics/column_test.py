"""Two sets of rows compared column by column, corrected for the number of columns.

For every column: the difference of the mean ranks (location) and of the mean squared centred ranks
(spread) between the two sets, in standard errors. The largest over all columns is compared with its
values under random relabellings of the rows (Westfall and Young's single-step maxT), which is
exact for any number of columns and any dependence between them.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from qpignn.diagnostics.grouping import Mask
from qpignn.intervals import Floats

Singles = npt.NDArray[np.float32]

RELABELLINGS = 499
SPARSE_SHARE = 0.05  # columns with a smaller share of nonzeros are tested by their nonzeros only
NONZEROS = 10  # sparse columns with fewer nonzeros are not tested
CHUNK = 256  # columns ranked at a time


def column_test(
    table: Any, is_compared: Mask, blocks: list[Mask], rng: np.random.Generator
) -> tuple[Floats, Floats]:
    """Return each column's statistic and the largest one of each relabelling.

    Args:
        table: (rows, columns), an array or a SciPy CSC matrix.
        is_compared: (rows,), True for rows of the compared set, False for the reference set.
        blocks: masks of the rows on which columns are selected.
        rng: draws the relabellings.

    Returns:
        The larger |z| of location and spread, (1 + blocks, columns): on all rows, then on each of
        the blocks; and the largest over the columns for each relabelling of all rows.
    """
    contrasts = _contrasts(is_compared, blocks, rng)
    observed, columns = 1 + len(blocks), table.shape[1]
    statistics, largest = np.zeros((observed, columns)), np.zeros(RELABELLINGS)
    nonzeros = np.diff(table.indptr) if sp.issparse(table) else np.full(columns, np.inf)
    is_sparse = nonzeros < SPARSE_SHARE * table.shape[0]
    for chosen, z_statistics in (
        (np.flatnonzero(~is_sparse), _rank_statistics),
        (np.flatnonzero(is_sparse & (nonzeros >= NONZEROS)), _nonzero_statistics),
    ):
        for start in range(0, len(chosen), CHUNK):
            part = chosen[start : start + CHUNK]
            z = z_statistics(table[:, part], contrasts)  # (contrasts, columns)
            statistics[:, part] = z[:observed]
            largest = np.maximum(largest, z[observed:].max(axis=1))
    return statistics, largest


def adjusted_p_values(statistic: Floats, largest: Floats) -> Floats:
    """Return each column's p-value, corrected for the number of columns (maxT).

    p = (1 + number of relabellings whose largest statistic is at least the column's) /
    (1 + number of relabellings)

    Args:
        statistic: (columns,), each column's statistic.
        largest: (relabellings,), the largest statistic of each relabelling.
    """
    above = len(largest) - np.searchsorted(np.sort(largest), statistic)
    return (1 + above) / (1 + len(largest))


def _contrasts(is_compared: Mask, blocks: list[Mask], rng: np.random.Generator) -> Singles:
    """Return weights (contrasts, rows) of norm 1 that turn a standardised column into a z.

    First all rows, then each block, then the relabellings of all rows.
    """
    label = is_compared.astype(np.float64)
    parts = [np.ones_like(is_compared), *blocks]
    weights = [np.where(part, label - label[part].mean(), 0.0) for part in parts]
    weights += [weights[0][rng.permutation(len(label))] for _ in range(RELABELLINGS)]
    matrix = np.stack(weights)
    scaled: Singles = (matrix / np.linalg.norm(matrix, axis=1, keepdims=True)).astype(np.float32)
    return scaled


def _rank_statistics(part: Any, contrasts: Singles) -> Singles:
    location = standard_ranks(dense_columns(part))
    spread = standardised(location**2)
    z: Singles = np.maximum(np.abs(contrasts @ location.T), np.abs(contrasts @ spread.T))
    return z


def _nonzero_statistics(part: Any, contrasts: Singles) -> Singles:
    share = np.diff(part.indptr) / part.shape[0]
    pattern = part.astype(np.float32)
    pattern.data[:] = 1.0
    deviation = np.sqrt(share * (1 - share)).astype(np.float32)
    z: Singles = np.abs(pattern.T @ contrasts.T).T / deviation
    return z


def dense_columns(table: Any, columns: Any = slice(None)) -> Floats:
    """Return columns of an array or a SciPy sparse matrix as an array.

    Args:
        table: (rows, columns), an array or a SciPy sparse matrix.
        columns: index of the columns; default all.
    """
    chosen = table[:, columns]
    dense: Floats = chosen.toarray() if sp.issparse(chosen) else chosen
    return dense


def standard_ranks(table: Floats) -> Singles:
    """Return the mid-ranks of each column, scaled to mean 0 and variance 1: (columns, rows).

    Args:
        table: (rows, columns).
    """
    from scipy.stats import rankdata

    values = np.ascontiguousarray(table.T)
    order = np.argsort(values, axis=1)
    ranks = np.empty(values.shape, dtype=np.float32)
    places = np.arange(1, values.shape[1] + 1, dtype=np.float32)
    np.put_along_axis(ranks, order, np.broadcast_to(places, values.shape), axis=1)
    ordered = np.take_along_axis(values, order, axis=1)
    tied = (ordered[:, 1:] == ordered[:, :-1]).any(axis=1)
    if tied.any():  # rankdata takes three times as long as the lines above
        ranks[tied] = rankdata(values[tied], axis=1)
    return standardised(ranks)


def standardised(rows: Singles) -> Singles:
    """Return rows scaled to mean 0 and variance 1; constant rows become 0.

    Args:
        rows: (rows, values).
    """
    centred = rows - rows.mean(axis=1, keepdims=True)
    deviation = centred.std(axis=1, keepdims=True)
    scaled: Singles = centred / np.where(deviation > 1e-4, deviation, np.float32(np.inf))
    return scaled
