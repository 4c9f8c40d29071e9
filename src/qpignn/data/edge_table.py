"""A table of edges: two columns of node ids, and optionally one of weights."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from qpignn.data.columns import LARGEST_WEIGHT, numbers, require_columns, several
from qpignn.data.ids import NodeIndex, known_ends
from qpignn.errors import GraphError, QpignnWarning, plural, quoted


def edge_ends_and_weights(
    edges: pd.DataFrame | None,
    ids: NodeIndex,
    ends: Sequence[str] | None,
    weight: str | None,
    *,
    among: str = "the node table",
) -> tuple[Tensor, Tensor | None]:
    """Return the positions of an edge table's ends among the nodes, (2, edges), and its weights.

    Args:
        edges: the edge table; ``None`` for a graph without edges.
        ids: the nodes' ids.
        ends: the edge table's two id columns, as in :func:`end_columns`.
        weight: column of weights, if there is one.
        among: where ids are looked up, for messages.
    """
    if edges is None:
        return torch.empty((2, 0), dtype=torch.long), None
    ends = end_columns(edges, ends)
    require_columns("edge", edges, [weight] if weight is not None else [])
    positions = np.stack([end_positions(edges[end], ids, among=among) for end in ends])
    refuse_loops(len(edges), int((positions[0] == positions[1]).sum()), ends)
    values = None if weight is None else torch.from_numpy(edge_weights(edges[weight]))
    return torch.from_numpy(positions), values


def refuse_loops(edges: int, loops: int, ends: tuple[str, str]) -> None:
    """Raise where all edges of a table are self-loops.

    Args:
        edges: number of edges.
        loops: number of those that are self-loops.
        ends: names of the two id columns.

    Raises:
        GraphError: if there are edges, and none between different nodes.
    """
    if edges == loops > 0:
        raise GraphError(
            f"expected edges between different nodes, got {edges} that all join a node to "
            f"itself; are {quoted(ends)} the columns of the two ends (edge_ends=...)?"
        )


def warn_of_merged(ends: Tensor, nodes: int, *, weighted: bool) -> None:
    """Warn of self-loops that were left out and repeated edges that were merged.

    An undirected edge that is listed both ways is not repeated.

    Args:
        ends: the edges of the table, (2, edges).
        nodes: number of nodes.
        weighted: whether edges have weights.
    """
    source, target = ends[:, ends[0] != ends[1]]
    again = len(source) - len(torch.unique(source * nodes + target))
    warn_of_counts(ends.shape[1] - len(source), again, weighted=weighted)


def warn_of_counts(left_out: int, again: int, *, weighted: bool) -> None:
    """Warn of self-loops that were left out and repeated edges that were merged.

    Args:
        left_out: number of self-loops.
        again: number of repeated edges.
        weighted: whether edges have weights.
    """
    changes = []
    if left_out:
        changes.append(f"{plural(left_out, 'self-loop')} left out")
    if again:
        merged = "merged, weights averaged" if weighted else "merged"
        changes.append(f"{plural(again, 'repeated edge')} {merged}")
    if changes:
        warnings.warn(
            f"the edge table: {' and '.join(changes)}; if they carry information, add it as a "
            f"feature of the node or a weight of the edge",
            QpignnWarning,
            stacklevel=4,
        )


def edge_weights(column: pd.Series[Any], *, before: int = 0) -> npt.NDArray[np.float32]:
    """Return edge weights as float32, (edges,).

    Args:
        column: the weights of some edges.
        before: number of rows of the table that come before these, for messages.

    Raises:
        GraphError: if one is negative, not finite, or too large to be summed.
    """
    rows = pd.RangeIndex(before + 1, before + len(column) + 1)
    what = f"edge weight column {column.name!r}"
    with np.errstate(over="ignore"):
        weights = numbers(column, rows, what).astype(np.float32)
    wrong = np.flatnonzero(~((weights >= 0) & (weights <= LARGEST_WEIGHT)))
    if len(wrong):
        first = int(wrong[0])
        raise GraphError(
            f"{what}: expected finite numbers from 0 up to {LARGEST_WEIGHT:g}, got "
            f"{quoted([column.iloc[first]])} in edge row {rows[first]}; correct them, divide all "
            f"weights by the largest (only their ratios matter), or leave the weights out"
        )
    return weights


def end_columns(edges: pd.DataFrame, ends: Sequence[str] | None) -> tuple[Any, Any]:
    """Return the names of an edge table's two id columns.

    Args:
        edges: the edge table, or some of its first rows.
        ends: the columns that the user named; ``None`` for those called from and to or the like,
            else the first two, with a warning.

    Raises:
        GraphError: if a column is missing, or if the first two of several columns would be taken
            although one of them has another value in every row, as a column of edge ids has.
    """
    require_columns("edge", edges, [])
    if ends is None:
        if edges.shape[1] < 2:
            raise GraphError(
                f"the edge table: expected two columns of node ids, got "
                f"{quoted(edges.columns) or 'no column'}; add the missing one"
            )
        return known_ends([*edges.columns]) or _first_two(edges)
    named = several("edge_ends", ends)
    if len(named) != 2:
        raise GraphError(f"edge_ends: expected two columns, got {quoted(named)}; name both ends")
    require_columns("edge", edges, named)
    return named[0], named[1]


def _first_two(edges: pd.DataFrame) -> tuple[Any, Any]:
    first, second, *others = edges.columns
    advice = "name the columns of the two ends with edge_ends=... (--edge-ends FROM,TO)"
    unique = [name for name in (first, second) if edges[name].is_unique]
    if others and len(edges) > 1 and unique:
        raise GraphError(
            f"the edge table: expected columns called from and to or the like, got "
            f"{quoted(edges.columns, 12)}; {quoted(unique[:1])} has a different value in every "
            f"row, as a column of edge ids has: {advice}"
        )
    warnings.warn(
        f"the edge table: no columns are called from and to or the like, so the first two, "
        f"{quoted([first, second])}, are taken as the ends of edges; if they are not, {advice}",
        QpignnWarning,
        stacklevel=5,
    )
    return first, second


def end_positions(
    end: pd.Series[Any], ids: NodeIndex, *, among: str = "the node table", before: int = 0
) -> npt.NDArray[np.int64]:
    """Return the positions of ids among the nodes, (edges,).

    Args:
        end: the ids of one end of some edges.
        ids: the nodes' ids.
        among: where ids are looked up, for messages.
        before: number of rows of the table that come before these, for messages.

    Raises:
        GraphError: if an id is blank or not a node's.
    """
    named = pd.Index(end, tupleize_cols=False)
    if named.hasnans:
        rows = np.flatnonzero(named.isna()) + before + 1
        raise GraphError(
            f"edge column {end.name!r}: got blank ids in edge rows {quoted(rows)}; fill them or "
            f"drop those rows"
        )
    positions = ids.positions(named)
    unknown = np.flatnonzero(positions < 0)
    if len(unknown):
        lacking = named[unknown].unique()
        raise GraphError(
            f"edge column {end.name!r} names nodes that {among} lacks: {quoted(lacking)}, first in "
            f"edge row {before + int(unknown[0]) + 1}{ids.explain(lacking)}"
        )
    return positions
