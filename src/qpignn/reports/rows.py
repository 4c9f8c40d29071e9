"""Rows of the report page: selection of the listed and drawn nodes, and their digits."""

from __future__ import annotations

from typing import Any

import numpy as np
from torch_geometric.data import Data

from qpignn.data.graph import given_nodes, labelled, node_ids, test_nodes
from qpignn.data.structure import Integers, degrees
from qpignn.intervals import Floats, Intervals
from qpignn.reports.markup import rounded
from qpignn.runtime.randomness import numpy_rng

GIVEN, HELD_OUT, UNLABELLED, UNUSED = range(4)
BAND_NODES = 400
TABLE_NODES = 100_000


def listed_nodes(data: Data) -> Integers:
    """Return the nodes in the table: all, or 100,000 of them with the unlabelled ones first.

    Args:
        data: the graph.
    """
    nodes = data.x.shape[0]
    if nodes <= TABLE_NODES:
        return np.arange(nodes)
    order = numpy_rng(0, "report rows").permutation(nodes)
    priority = np.array([2, 1, 0, 3])[_roles(data)[order]]
    return np.sort(order[np.argsort(priority, kind="stable")][:TABLE_NODES])


def _roles(data: Data) -> Integers:
    roles = np.where(given_nodes(data).numpy(), GIVEN, UNUSED)
    roles[test_nodes(data).numpy()] = HELD_OUT
    roles[~labelled(data).numpy()] = UNLABELLED
    return roles


def nodes_content(data: Data, intervals: Intervals, shown: Integers) -> dict[str, Any]:
    """Return the table: ids, roles and intervals of the listed nodes.

    Args:
        data: the graph.
        intervals: intervals of every node.
        shown: indices of the listed nodes.
    """
    of = len(intervals)
    y = data.y.double().numpy() if data.get("y") is not None else np.full(of, np.nan)
    hits = intervals.covers(np.where(np.isnan(y), intervals.prediction, y))
    inside = np.where(np.isnan(y), 0, np.where(hits, 1, 2))
    note = "" if len(shown) == of else "unlabelled and held-out nodes first, the others at random"
    return {
        "id": [str(name) for name in node_ids(data)[shown]],
        "role": _roles(data)[shown].tolist(),
        **_figures(intervals, y, shown),
        "inside": inside[shown].tolist(),
        "degree": degrees(data)[shown].tolist(),
        "shown": len(shown),
        "of": of,
        "note": note,
    }


def band_content(data: Data, intervals: Intervals, place: Integers) -> dict[str, Any] | None:
    """Return held-out nodes in order of prediction; at most 400, evenly spaced by rank.

    The order is not by target: even perfect intervals miss more often where targets are extreme.

    Args:
        data: the graph.
        intervals: intervals of every node.
        place: (nodes,), row of each node in the page's table; −1 for nodes that are not listed.
    """
    test = np.flatnonzero(test_nodes(data).numpy())
    if not len(test):
        return None
    y = data.y.double().numpy()
    order = test[np.argsort(intervals.prediction[test], kind="stable")]
    sample = order[np.unique(np.linspace(0, len(order) - 1, BAND_NODES).round().astype(int))]
    columns = _figures(intervals, y, sample)
    return {
        "node": place[sample].tolist(),
        "target": columns.pop("target"),
        **columns,
        "inside": intervals.select(sample).covers(y[sample]).tolist(),
        "shown": len(sample),
        "of": len(test),
    }


def _figures(intervals: Intervals, y: Floats, rows: Integers) -> dict[str, list[float | None]]:
    """Return prediction, bounds and target; the bound a one-sided result lacks is infinite."""
    columns = {"prediction": intervals.prediction, "lower": intervals.lower}
    columns |= {"upper": intervals.upper, "target": y}
    if intervals.bound is not None:
        lacking, value = ("lower", -np.inf) if intervals.side == "upper" else ("upper", np.inf)
        columns[lacking] = np.full_like(y, value)
    digits = _digits(intervals)
    return {name: rounded(column[rows], digits) for name, column in columns.items()}


def _digits(intervals: Intervals) -> int:
    """Return the significant digits that give the median width four correct digits.

    For one-sided results, the distance from prediction to bound takes the place of the width.
    """
    ends = np.concatenate([intervals.prediction, intervals.lower, intervals.upper])
    size = np.abs(ends[np.isfinite(ends)]).max(initial=0.0)
    width, bound = intervals.width, intervals.bound
    if bound is not None:
        width = np.abs(bound - intervals.prediction)
    width = width[np.isfinite(width) & (width > 0)]
    if not len(width) or not size:
        return 9
    return int(np.clip(np.ceil(np.log10(size / np.median(width))) + 5, 6, 17))
