"""Coverage as a count: error bars, groups of nodes, and which of them fall short.

Error bars are 95 % Wilson intervals. A group is called out only where an exact binomial test says
that so few hits would be rare if the wanted coverage held, after Holm's correction for the number
of groups of at least ten nodes. All of them take the nodes as independent.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from qpignn.diagnostics.grouping import FEWEST, Grouping
from qpignn.intervals import Floats

Mask = npt.NDArray[np.bool_]
RARE = 0.05  # chance below which a deviation is called one
SMALL = 0.03  # a shortfall up to here is nothing to act on
LARGE = 0.2  # a shortfall that a group must be able to show before it counts as checked


def percent(share: float, digits: int | None = None) -> str:
    """Show a share as per cents, with so many digits after the point, or as many as it has."""
    return f"{100 * share:g} %" if digits is None else f"{100 * share:.{digits}f} %"


@dataclass(frozen=True)
class Coverage:
    """How many of some nodes are covered, and what that says.

    Attributes:
        share: covered over nodes.
        low, high: its 95 % interval (Wilson).
        too_few, too_many: chance of so few, or so many, hits if the wanted level held exactly.
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
        """How far the true coverage may be from the share: to the further end of the error bar."""
        return max(self.share - self.low, self.high - self.share)

    @property
    def short(self) -> bool:
        """Whether the coverage is short of the wanted one by more than a little."""
        return self.share < self.level - SMALL

    def __str__(self) -> str:
        digits = 0 if self.margin >= 0.01 else 1
        return f"{percent(self.share, digits)} ± {percent(self.margin, digits)}"


def count_coverage(hits: Mask, level: float) -> Coverage:
    """Count covered nodes."""
    from scipy.stats import binom, binomtest

    nodes, covered = len(hits), int(hits.sum())
    bar = binomtest(covered, nodes).proportion_ci(0.95, "wilson")
    return Coverage(
        level=level,
        nodes=nodes,
        covered=covered,
        share=covered / nodes,
        low=float(bar.low),
        high=float(bar.high),
        too_few=float(binom.cdf(covered, nodes, level)),
        too_many=float(binom.sf(covered - 1, nodes, level)),
    )


@dataclass(frozen=True)
class Group:
    """Some nodes, how many of them are covered, and their mean width or bound.

    Attributes:
        label: of the group, within its division.
        who: names the nodes in a sentence.
        coverage: of the group's held-out nodes.
        width: their mean width; None for a one-sided result.
        bound: their mean bound; None for intervals with two bounds.
        below: whether they are at least ten nodes whose coverage is short of the wanted one beyond
            chance, all groups considered, and by enough to matter.
    """

    label: str
    who: str
    coverage: Coverage
    width: float | None
    bound: float | None
    below: bool


@dataclass(frozen=True)
class Division:
    """The groups of one division of the nodes; ``column`` tells whether by the user's own."""

    name: str
    column: bool
    groups: list[Group]

    @property
    def worst(self) -> Group:
        """The group furthest below the wanted coverage, measured in what chance would do."""
        return min(self.groups, key=lambda group: group.coverage.too_few)


def divide(
    groupings: Sequence[Grouping],
    hits: Mask,
    width: Floats | None,
    judged: Mask,
    level: float,
    *,
    bound: Floats | None = None,
) -> list[Division]:
    """Count the coverage of every group; divisions into one group only are left out.

    Args:
        groupings: of all nodes.
        hits: which of all nodes are covered; those of ``judged`` ones count.
        width: of all nodes; None for a one-sided result.
        judged: the held-out nodes.
        level: the wanted coverage.
        bound: of all nodes, for a one-sided result.
    """
    kept = [grouping for grouping in groupings if len(grouping.labels) > 1]
    insides = [
        [judged & (grouping.member == i) for i in range(len(grouping.labels))] for grouping in kept
    ]
    counts = [[count_coverage(hits[nodes], level) for nodes in parts] for parts in insides]
    every = [found for parts in counts for found in parts]
    rare = iter(holm([found.too_few for found in every if found.nodes >= FEWEST]))
    below = iter([found.nodes >= FEWEST and next(rare) and found.short for found in every])
    return [
        Division(
            grouping.name,
            grouping.column,
            [
                Group(
                    label=label,
                    who=who,
                    coverage=found,
                    width=None if width is None else float(width[nodes].mean()),
                    bound=None if bound is None else float(bound[nodes].mean()),
                    below=next(below),
                )
                for label, who, found, nodes in zip(
                    grouping.labels, grouping.who, parts, inside, strict=True
                )
            ],
        )
        for grouping, parts, inside in zip(kept, counts, insides, strict=True)
    ]


def can_show_shortfall(nodes: int, level: float, rate: float) -> bool:
    """Whether a coverage of 20 points below the wanted level would be called out.

    Args:
        nodes: how many there are in the group.
        level: the wanted coverage.
        rate: of false alarms that the group's test is allowed.
    """
    from scipy.stats import binom

    covered = np.floor(nodes * max(level - LARGE, level / 2))
    return bool(binom.cdf(covered, nodes, level) <= rate)


def holm(chances: Sequence[float]) -> list[bool]:
    """Return which of several chances are rare, allowing for how many were looked at."""
    rare = [False] * len(chances)
    for rank, i in enumerate(np.argsort(chances, kind="stable")):
        if chances[i] > RARE / (len(chances) - rank):
            break
        rare[i] = True
    return rare
