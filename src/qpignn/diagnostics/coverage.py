"""Coverage of held-out nodes: error bars, groups of nodes, and groups with low coverage.

Error bars are 95 % Wilson intervals. A group is flagged if an exact binomial test rejects the
nominal coverage at 5 %, after Holm's correction for the number of groups of at least ten nodes.
Both assume independent nodes.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from qpignn.diagnostics.grouping import FEWEST, Grouping, Mask
from qpignn.diagnostics.wording import percent
from qpignn.intervals import Floats

SIGNIFICANCE = 0.05  # p-value below which coverage differs from the nominal level
SMALL = 0.03  # shortfalls up to this size need no action
LARGE = 0.2  # shortfall that the test of a group must be able to detect


@dataclass(frozen=True)
class Coverage:
    """Number of covered nodes with its error bar and binomial tests of the nominal level.

    Attributes:
        level: the nominal coverage.
        nodes: number of nodes.
        covered: number of covered nodes.
        share: covered / nodes.
        low, high: 95 % confidence interval of the share (Wilson).
        too_few, too_many: one-sided p-values: probability of at most, or at least, this many
            covered nodes if the true coverage equals the level.
    """

    level: float
    nodes: int
    covered: int
    share: float
    low: float
    high: float
    too_few: float
    too_many: float

    @property
    def margin(self) -> float:
        """Distance from the share to the further end of its error bar."""
        return max(self.share - self.low, self.high - self.share)

    @property
    def short(self) -> bool:
        """Whether the share is more than 3 percentage points below the nominal level."""
        return self.share < self.level - SMALL

    def __str__(self) -> str:
        digits = 0 if self.margin >= 0.01 else 1
        return f"{percent(self.share, digits)} ± {percent(self.margin, digits)}"


def count_coverage(hits: Mask, level: float) -> Coverage:
    """Count covered nodes and test the count against the nominal level.

    Args:
        hits: (nodes,), whether each node is covered.
        level: the nominal coverage.

    Returns:
        The share with its error bar and p-values.
    """
    from scipy.stats import binom, binomtest

    nodes, covered = len(hits), int(hits.sum())
    low, high = map(float, binomtest(covered, nodes).proportion_ci(0.95, "wilson"))
    too_few = float(binom.cdf(covered, nodes, level))
    too_many = float(binom.sf(covered - 1, nodes, level))
    return Coverage(
        *(level, nodes, covered, covered / nodes),
        low=low,
        high=high,
        too_few=too_few,
        too_many=too_many,
    )


class RenamedFields:
    """Base class of results whose fields have new names: old names still work, with a warning."""

    _renamed: ClassVar[Mapping[str, str]] = {}

    if not TYPE_CHECKING:  # type checkers still report unknown attributes

        def __getattr__(self, name: str) -> Any:
            if name not in self._renamed:
                raise AttributeError(f"{type(self).__name__!r} object has no attribute {name!r}")
            message = f"{name} is deprecated, use {self._renamed[name]}"
            warnings.warn(message, DeprecationWarning, stacklevel=2)
            return getattr(self, self._renamed[name])


@dataclass(frozen=True)
class Group(RenamedFields):
    """Coverage and mean width, or mean bound, of a group of nodes.

    Attributes:
        label: name of the group within its division.
        description: the group's nodes as a phrase, such as "nodes with degree 3".
        coverage: coverage of the group's held-out nodes.
        width: their mean width; None for one-sided intervals.
        bound: their mean bound; None for intervals with two bounds.
        below: whether the coverage is significantly below the nominal level (at least ten nodes,
            Holm's correction over all groups) and by more than 3 percentage points.
    """

    _renamed: ClassVar[Mapping[str, str]] = {"who": "description"}

    label: str
    description: str
    coverage: Coverage
    width: float | None
    bound: float | None
    below: bool


@dataclass(frozen=True)
class Division:
    """Coverage by group for one grouping of the nodes.

    Attributes:
        name: the quantity or column that defines the groups.
        column: whether that is a column of the user's table.
        groups: the groups, in the order in which they are shown.
    """

    name: str
    column: bool
    groups: list[Group]

    @property
    def worst(self) -> Group:
        """The group with the smallest p-value for coverage below the nominal level."""
        return min(self.groups, key=lambda group: group.coverage.too_few)


def by_group(
    groupings: Sequence[Grouping],
    hits: Mask,
    width: Floats | None,
    held_out: Mask,
    level: float,
    *,
    bound: Floats | None = None,
) -> list[Division]:
    """Compute the coverage of every group; groupings with a single group are left out.

    Args:
        groupings: groupings of all nodes.
        hits: (nodes,), whether each node is covered.
        width: (nodes,), widths; None for one-sided intervals.
        held_out: (nodes,), mask of the held-out nodes: only these are counted.
        level: the nominal coverage.
        bound: (nodes,), the bounds of one-sided intervals.

    Returns:
        One division per grouping.
    """
    kept = [grouping for grouping in groupings if len(grouping.labels) > 1]
    masks = [[held_out & (g.member == i) for i in range(len(g.labels))] for g in kept]
    coverages = [[count_coverage(hits[mask], level) for mask in row] for row in masks]
    flat = [coverage for row in coverages for coverage in row]
    rejected = iter(holm([coverage.too_few for coverage in flat if coverage.nodes >= FEWEST]))
    below = iter([one.nodes >= FEWEST and next(rejected) and one.short for one in flat])
    divisions = []
    for grouping, *columns in zip(kept, coverages, masks, strict=True):
        rows = zip(grouping.labels, grouping.descriptions, *columns, strict=True)
        groups = [
            Group(label, description, coverage, _mean(width, mask), _mean(bound, mask), next(below))
            for label, description, coverage, mask in rows
        ]
        divisions.append(Division(grouping.name, grouping.column, groups))
    return divisions


def _mean(values: Floats | None, mask: Mask) -> float | None:
    return None if values is None else float(values[mask].mean())


def can_show_shortfall(nodes: int, level: float, rate: float) -> bool:
    """Return whether the test would detect a coverage 20 percentage points below the level.

    Args:
        nodes: number of nodes in the group.
        level: the nominal coverage.
        rate: significance level of the group's test.
    """
    from scipy.stats import binom

    covered = np.floor(nodes * max(level - LARGE, level / 2))
    return bool(binom.cdf(covered, nodes, level) <= rate)


def holm(p_values: Sequence[float]) -> list[bool]:
    """Return which hypotheses Holm's step-down procedure rejects at 5 %.

    Args:
        p_values: one per hypothesis.
    """
    rejected = [False] * len(p_values)
    for rank, i in enumerate(np.argsort(p_values, kind="stable")):
        if p_values[i] > SIGNIFICANCE / (len(p_values) - rank):
            break
        rejected[i] = True
    return rejected
