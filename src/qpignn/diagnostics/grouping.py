"""Groupings of the nodes: by a number, by a category, or by position in the graph."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from qpignn.data.graph import node_ids
from qpignn.data.structure import UNREACHABLE, Integers, communities, degrees, distances
from qpignn.errors import ArrayError, SettingError
from qpignn.intervals import Floats

if TYPE_CHECKING:
    from torch_geometric.data import Data

Mask = npt.NDArray[np.bool_]
MOST = 12  # groups of a grouping; smaller groups beyond are merged
FEWEST = 10  # held-out nodes that a community, or a group under test, must have
FIFTHS = (0.2, 0.4, 0.6, 0.8)
DEGREE_SHARES = (0.25, 0.5, 0.75, 0.9)
ROUNDING = 1e-9  # numbers whose relative range is smaller count as equal
KNOWN_CUTS = (0, 1, 2, 4)  # numbers of known neighbours: 0, 1, 2, 3 to 4, 5 or more
FEW_VALUES = 6  # numeric columns with at most this many distinct values count as categories


@dataclass(frozen=True)
class Grouping:
    """Assignment of the nodes to groups.

    Attributes:
        name: the quantity or column that defines the groups.
        labels: names of the groups, in the order in which they are shown.
        descriptions: the nodes of each group as a phrase, such as "nodes with degree 3".
        member: (nodes,), position of each node's group in ``labels``; −1 for none.
        column: whether ``name`` is a column of the user's table.
    """

    name: str
    labels: list[str]
    descriptions: list[str]
    member: npt.NDArray[np.int64]
    column: bool = False


def by_number(
    name: str,
    values: Any,
    held_out: Mask,
    phrase: str,
    *,
    shares: Sequence[float] = FIFTHS,
    cuts: Sequence[float] | None = None,
    without: tuple[str, str] = ("unknown", "nodes with an unknown value"),
) -> Grouping:
    """Group by a number, with cuts at quantiles of the held-out nodes or at given values.

    Values that differ only by rounding form one group.

    Args:
        name: name of the quantity.
        values: (nodes,), one number per node.
        held_out: (nodes,), mask of the held-out nodes.
        phrase: phrase for the nodes of a group, with {} in place of the group's range.
        shares: quantiles at which to cut.
        cuts: values at which to cut instead, in increasing order; each belongs to the group below.
        without: label and phrase of the nodes without a finite number.

    Returns:
        The grouping. Groups without held-out nodes are left out.
    """
    numbers = np.asarray(values, dtype=np.float64)
    finite = np.isfinite(numbers)
    sample = numbers[held_out & finite]
    show = _number_format(numbers[finite])
    differ = len(sample) > 0 and np.ptp(sample) > ROUNDING * np.abs(sample).max()
    ends = np.quantile(sample, shares) if differ and cuts is None else cuts
    edges = np.unique(ends) if differ and ends is not None else np.empty(0)
    bins = np.searchsorted(edges, numbers, side="left")
    labels: list[str] = []
    member = np.full(len(numbers), -1)
    for part in range(len(edges) + 1):
        inside = finite & (bins == part)
        if not (inside & held_out).any():
            continue
        low, high = show(numbers[inside].min()), show(numbers[inside].max())
        member[inside] = len(labels)
        labels.append(low if low == high else f"{low} to {high}")
    descriptions = [_fill(phrase, label) for label in labels]
    if (held_out & ~finite).any():
        member[~finite] = len(labels)
        labels, descriptions = [*labels, without[0]], [*descriptions, without[1]]
    return Grouping(name, labels, descriptions, member)


def _fill(phrase: str, label: str) -> str:
    """Insert a label; ``str.format`` would interpret braces in names of the user's table."""
    start, _, end = phrase.rpartition("{}")
    return f"{start}{label}{end}"


def _number_format(values: npt.NDArray[np.float64]) -> Callable[[float], str]:
    """Return a formatter with enough decimals to resolve a hundredth of the values' range."""
    spread = float(np.ptp(values)) if len(values) else 0.0
    if not 1e-6 < spread < 1e12:
        return lambda value: f"{value:.6g}"
    whole = bool((values == np.round(values)).all())
    places = 0 if whole else max(0, 2 - math.floor(math.log10(spread)))
    return lambda value: f"{value:,.{places}f}"


def by_category(name: str, categories: Any, held_out: Mask, phrase: str) -> Grouping:
    """Group by category; beyond 12, the categories with the fewest held-out nodes are merged.

    Args:
        name: name of the column.
        categories: (nodes,), one category per node.
        held_out: (nodes,), mask of the held-out nodes.
        phrase: phrase for the nodes of a group, with {} in place of the category.

    Returns:
        The grouping. Nodes of categories that no held-out node has belong to no group.
    """
    column = pd.Series(categories, dtype=object).map(str)
    counts = column[held_out].value_counts()
    kept = sorted(counts.index if len(counts) <= MOST else counts.index[: MOST - 1])
    labels = [*kept, *([f"the other {len(counts) - len(kept)}"] * (len(counts) > len(kept)))]
    place = {**dict.fromkeys(counts.index, len(kept)), **{kept[i]: i for i in range(len(kept))}}
    member = np.array([place.get(label, -1) for label in column])
    return Grouping(name, labels, [_fill(phrase, label) for label in labels], member)


def by_column(name: str, values: Any, held_out: Mask) -> Grouping:
    """Group by a column of the user's table: numbers at quantiles, otherwise by category.

    Args:
        name: name of the column.
        values: (nodes,), one value per node; missing values form a group of their own.
        held_out: (nodes,), mask of the held-out nodes.

    Returns:
        The grouping, marked as a column of the user's table.

    Raises:
        ArrayError: if there is not one value per node.
        SettingError: if nearly every node has a category of its own.
    """
    column = pd.Series(values).reset_index(drop=True)
    if len(column) != len(held_out):
        raise ArrayError(
            f"by: expected one value per node for {name!r} ({len(held_out):,}), got {len(column):,}"
        )
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if numeric and column.nunique() > FEW_VALUES:
        without = ("blank", f"nodes without {name}")
        grouping = by_number(name, column, held_out, f"nodes with {name} {{}}", without=without)
    else:
        blank = column.isna()
        labels = ["blank" if none else _plain(v) for v, none in zip(column, blank, strict=True)]
        if len(set(labels)) > max(MOST, len(labels) // 2):
            raise SettingError(
                f"by: expected a column with values that several nodes share, got {name!r} with "
                f"{len(set(labels)):,} different ones on {len(labels):,} nodes"
            )
        grouping = by_category(name, labels, held_out, f"nodes with {name} = {{}}")
    return replace(grouping, column=True)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def by_degree(data: Data, held_out: Mask) -> Grouping:
    """Group by the number of neighbours; the tenth with the highest degree is a group.

    Args:
        data: the graph.
        held_out: (nodes,), mask of the held-out nodes.

    Returns:
        The grouping.
    """
    phrase = "nodes with degree {}"
    grouping = by_number("degree", degrees(data), held_out, phrase, shares=DEGREE_SHARES)
    if len(grouping.labels) > 1:
        share = np.mean(grouping.member[held_out] == len(grouping.labels) - 1)
        grouping.descriptions[-1] += f" (the highest {100 * share:.0f} %)"
        grouping.labels[-1] += f", top {100 * share:.0f} %"
    return grouping


def by_distance(data: Data, given: Mask, held_out: Mask) -> Grouping:
    """Group by the number of edges to the nearest given node.

    Args:
        data: the graph.
        given: (nodes,), mask of the nodes whose targets were given to the fit.
        held_out: (nodes,), mask of the held-out nodes.

    Returns:
        The grouping. Groups without held-out nodes are left out.
    """
    steps = distances(data, given)
    labels = ["1 edge", "2 edges", "3 or more edges", "no path"]
    descriptions = [f"nodes {label} from the nearest given node" for label in labels[:-1]]
    descriptions.append("nodes without a path to a given node")
    member = np.clip(steps, 1, 3) - 1
    member[steps == UNREACHABLE] = 3
    return _nonempty(Grouping("distance", labels, descriptions, member), held_out)


def by_known_neighbours(count: Floats, held_out: Mask) -> Grouping:
    """Group by the number of neighbours whose targets an interval uses: 0, 1, 2, 3 to 4, or more.

    Args:
        count: (nodes,), ``known_neighbours`` of the intervals; fractions if edges have weights.
        held_out: (nodes,), mask of the held-out nodes.

    Returns:
        The grouping. Groups without held-out nodes are left out.
    """
    numbers = np.round(count, 9)  # sums of weights over their mean
    grouping = by_number("known neighbours", numbers, held_out, "{}", cuts=KNOWN_CUTS)
    few = {"0": "no neighbour", "1": "1 neighbour"}
    texts = [few.get(label, f"{label} neighbours") for label in grouping.labels]
    described = [f"nodes with {text} whose target is known" for text in texts]
    return replace(grouping, descriptions=described)


def by_community(data: Data, held_out: Mask, label: Integers | None = None) -> Grouping:
    """Group by Louvain community, each named after its node of highest degree.

    Args:
        data: the graph.
        held_out: (nodes,), mask of the held-out nodes.
        label: (nodes,), the community of each node, if it has been computed already.

    Returns:
        The grouping. Communities with fewer than ten held-out nodes form one group.
    """
    label = communities(data) if label is None else label
    counts = np.bincount(label[held_out], minlength=label.max() + 1)
    order = np.argsort(-counts, kind="stable")
    large = [int(i) for i in order if counts[i] >= FEWEST][:MOST]
    ids, degree = node_ids(data), degrees(data)
    member = np.full(len(label), len(large))
    labels = []
    for place, number in enumerate(large):
        inside = np.flatnonzero(label == number)
        member[inside] = place
        labels.append(f"{place + 1} (around {ids[inside[np.argmax(degree[inside])]]})")
    descriptions = [f"community {label}" for label in labels]
    labels, descriptions = [*labels, "smaller ones"], [*descriptions, "the smaller communities"]
    return _nonempty(Grouping("community", labels, descriptions, member), held_out)


def _nonempty(grouping: Grouping, held_out: Mask) -> Grouping:
    """Leave out groups without held-out nodes."""
    kept = sorted(set(grouping.member[held_out]) - {-1})
    moved = np.full(len(grouping.labels) + 1, -1)
    moved[kept] = np.arange(len(kept))
    both = grouping.labels, grouping.descriptions
    labels, descriptions = ([texts[i] for i in kept] for texts in both)
    return Grouping(grouping.name, labels, descriptions, moved[grouping.member])
