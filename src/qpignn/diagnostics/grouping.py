"""Which nodes belong together: by a number, by a word, or by their place in the graph."""

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

if TYPE_CHECKING:
    from torch_geometric.data import Data

Mask = npt.NDArray[np.bool_]
MOST = 12  # groups a page can show; the others are put together
FEWEST = 10  # judged nodes a community needs to stand alone, and a group to be named
FIFTHS = (0.2, 0.4, 0.6, 0.8)
DEGREE_SHARES = (0.25, 0.5, 0.75, 0.9)
ROUNDING = 1e-9  # numbers whose range is smaller than this, relative to their size, are equal
FEW_VALUES = 6  # a number with so few different values is taken as a word


@dataclass(frozen=True)
class Grouping:
    """A division of the nodes.

    Attributes:
        name: what it divides by.
        labels: the groups, in the order they are shown.
        who: how a sentence names the nodes of each group.
        member: the position of each node's group in ``labels``; −1 for none.
        column: whether it is a column of the user's.
    """

    name: str
    labels: list[str]
    who: list[str]
    member: npt.NDArray[np.int64]
    column: bool = False


def by_number(
    name: str,
    values: Any,
    judged: Mask,
    phrase: str,
    *,
    shares: Sequence[float] = FIFTHS,
    without: tuple[str, str] = ("unknown", "nodes for which it is unknown"),
) -> Grouping:
    """Divide by a number, at quantiles of the judged nodes; not where only rounding differs.

    Args:
        name, values: what to divide by.
        judged: the nodes that count.
        phrase: names the nodes of a group in a sentence, with {} for its range.
        shares: where to cut.
        without: label and phrase of the nodes that have no number.
    """
    numbers = np.asarray(values, dtype=np.float64)
    known = np.isfinite(numbers)
    seen = numbers[judged & known]
    show = _shown_numbers(numbers[known])
    differ = len(seen) > 0 and np.ptp(seen) > ROUNDING * np.abs(seen).max()
    edges = np.unique(np.quantile(seen, shares)) if differ else np.empty(0)
    bins = np.searchsorted(edges, numbers, side="left")
    labels: list[str] = []
    member = np.full(len(numbers), -1)
    for part in range(len(edges) + 1):
        inside = known & (bins == part)
        if not (inside & judged).any():
            continue
        low, high = show(numbers[inside].min()), show(numbers[inside].max())
        member[inside] = len(labels)
        labels.append(low if low == high else f"{low} to {high}")
    who = [_said(phrase, label) for label in labels]
    if (judged & ~known).any():
        member[~known] = len(labels)
        labels, who = [*labels, without[0]], [*who, without[1]]
    return Grouping(name, labels, who, member)


def _said(phrase: str, label: str) -> str:
    """Fill in a label; ``str.format`` would read the braces of the user's own names."""
    start, _, end = phrase.rpartition("{}")
    return f"{start}{label}{end}"


def _shown_numbers(values: npt.NDArray[np.float64]) -> Callable[[float], str]:
    """Return how to write numbers so that a hundredth of their range can be told apart."""
    spread = float(np.ptp(values)) if len(values) else 0.0
    if not 1e-6 < spread < 1e12:
        return lambda value: f"{value:.6g}"
    whole = bool((values == np.round(values)).all())
    places = 0 if whole else max(0, 2 - math.floor(math.log10(spread)))
    return lambda value: f"{value:,.{places}f}"


def by_word(name: str, words: Any, judged: Mask, phrase: str) -> Grouping:
    """Divide by a word; where there are many, those of the fewest judged nodes are put together."""
    column = pd.Series(words, dtype=object).map(str)
    counts = column[judged].value_counts()
    kept = sorted(counts.index if len(counts) <= MOST else counts.index[: MOST - 1])
    rest = [f"the other {len(counts) - len(kept)}"] if len(counts) > len(kept) else []
    place = {**dict.fromkeys(counts.index, len(kept)), **{kept[i]: i for i in range(len(kept))}}
    member = np.array([place.get(label, -1) for label in column])  # −1: words no judged node has
    return Grouping(name, kept + rest, [_said(phrase, label) for label in kept + rest], member)


def by_column(name: str, values: Any, judged: Mask) -> Grouping:
    """Divide by a column of the user's, whether it holds numbers or words."""
    column = pd.Series(values).reset_index(drop=True)
    if len(column) != len(judged):
        raise ArrayError(
            f"by: expected one value a node for {name!r} ({len(judged):,}), got {len(column):,}"
        )
    numeric = pd.api.types.is_numeric_dtype(column) and not pd.api.types.is_bool_dtype(column)
    if numeric and column.nunique() > FEW_VALUES:
        without = ("blank", f"nodes without {name}")
        found = by_number(name, column, judged, f"nodes with {name} {{}}", without=without)
    else:
        blank = column.isna()
        words = ["blank" if none else _plain(v) for v, none in zip(column, blank, strict=True)]
        if len(set(words)) > max(MOST, len(words) // 2):
            raise SettingError(
                f"by: expected a column with values that several nodes share, got {name!r} with "
                f"{len(set(words)):,} different ones on {len(words):,} nodes"
            )
        found = by_word(name, words, judged, f"nodes with {name} = {{}}")
    return replace(found, column=True)


def _plain(value: Any) -> str:
    return f"{value:g}" if isinstance(value, float) else str(value)


def by_degree(data: Data, judged: Mask) -> Grouping:
    """Divide by the number of neighbours; the best connected tenth is a group by itself."""
    found = by_number("degree", degrees(data), judged, "nodes with degree {}", shares=DEGREE_SHARES)
    if len(found.labels) > 1:
        share = np.mean(found.member[judged] == len(found.labels) - 1)
        found.who[-1] += f" (the highest {100 * share:.0f} %)"
        found.labels[-1] += f", top {100 * share:.0f} %"
    return found


def by_distance(data: Data, given: Mask, judged: Mask) -> Grouping:
    """Divide by the number of edges to the nearest given node."""
    far = distances(data, given)
    labels = ["1 edge", "2 edges", "3 or more edges", "no path"]
    who = [f"nodes {label} from the nearest given node" for label in labels[:-1]]
    who.append("nodes that no path joins to a given node")
    member = np.clip(far, 1, 3) - 1
    member[far == UNREACHABLE] = 3
    return _present(Grouping("distance", labels, who, member), judged)


def by_community(data: Data, judged: Mask, label: Integers | None = None) -> Grouping:
    """Divide by densely joined parts, each named after its best connected node.

    Args:
        data: the graph.
        judged: the nodes that count.
        label: the community of each node, where it is known already.
    """
    label = communities(data) if label is None else label
    counts = np.bincount(label[judged], minlength=label.max() + 1)
    order = np.argsort(-counts, kind="stable")
    large = [int(i) for i in order if counts[i] >= FEWEST][:MOST]
    ids, ranks = node_ids(data), degrees(data)
    member = np.full(len(label), len(large))
    labels = []
    for place, number in enumerate(large):
        inside = np.flatnonzero(label == number)
        member[inside] = place
        labels.append(f"{place + 1} (around {ids[inside[np.argmax(ranks[inside])]]})")
    who = [f"community {label}" for label in labels]
    labels, who = [*labels, "the smaller ones"], [*who, "the smaller communities"]
    return _present(Grouping("community", labels, who, member), judged)


def _present(grouping: Grouping, judged: Mask) -> Grouping:
    """Leave out groups without judged nodes."""
    there = sorted(set(grouping.member[judged]) - {-1})
    moved = np.full(len(grouping.labels) + 1, -1)
    moved[there] = np.arange(len(there))
    labels, who = ([words[i] for i in there] for words in (grouping.labels, grouping.who))
    return Grouping(grouping.name, labels, who, moved[grouping.member])
