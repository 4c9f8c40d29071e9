"""Findings as sentences: what was found, and whether to act on it.

Every ``good`` and every ``warning`` that rests on counting nodes rests on a test, and on enough
nodes for the test to show what it looks for; with fewer, a ``note`` says that it cannot be told.
The tests, their rates and the numbers of nodes are listed in the documentation (What coverage
means, "Reading a diagnosis").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from qpignn.calibration.cross_fit import enough_for
from qpignn.diagnostics.coverage import (
    RARE,
    Coverage,
    Division,
    Group,
    can_show_shortfall,
    holm,
    percent,
)
from qpignn.diagnostics.grouping import FEWEST
from qpignn.diagnostics.two_sample import FEWEST as FEWEST_COMPARED
from qpignn.diagnostics.two_sample import Shift
from qpignn.diagnostics.width_error import RankCorrelation

SEVERITIES = ("warning", "note", "good")
LOOSE = 0.03  # standard deviation of the coverage over calibration samples that is worth a note
VAGUE = 0.1  # an error bar longer than this tells little
TELLING = 0.1  # rank correlation from which widths tell where errors are large
SEEN = 0.3  # rank correlation that must be excluded before widths are called uninformative
MISSES = 21  # then one side with a fifth of the misses (4 of 21) is beyond chance
ONE_SIDED = 0.01  # p-value below which misses are called one-sided
ALIKE = 0.6  # AUC that must be excluded before two sets of nodes are called alike
ERROR_BAR = 1.96  # standard errors in a 95 % interval
BOUNDS = {
    "both": ("node is covered", "nodes are covered", "wider than needed"),
    "lower": (
        "target is at or above its lower bound",
        "targets are at or above their lower bound",
        "the bounds are lower than needed",
    ),
    "upper": (
        "target is at or below its upper bound",
        "targets are at or below their upper bound",
        "the bounds are higher than needed",
    ),
}


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing, as a sentence; ``severity`` is warning, note or good."""

    kind: str
    severity: str
    text: str


def overall_findings(coverage: Coverage, side: str = "both") -> list[Finding]:
    """Report how many held-out nodes are covered, and whether that agrees with the level.

    A warning is an exact binomial test at 5 % together with a shortfall of more than 3 points.
    """
    wanted = percent(coverage.level)
    one, several, generous = BOUNDS[side]
    counted = f"{coverage} of {coverage.nodes:,} held-out {one if coverage.nodes == 1 else several}"
    if coverage.nodes < FEWEST or (coverage.margin > VAGUE and not _off(coverage)):
        text = f"{counted}: too few nodes to tell whether the wanted {wanted} hold"
        return [Finding("coverage", "note", text)]
    if coverage.too_few < RARE and coverage.short:
        text, severity = f"{counted}, below the wanted {wanted}", "warning"
    elif coverage.too_few < RARE:
        text, severity = f"{counted}, a little below the wanted {wanted}", "note"
    elif coverage.too_many < RARE:
        text, severity = f"{counted}, above the wanted {wanted}: {generous}", "note"
    else:
        text, severity = f"{counted}, in agreement with the wanted {wanted}", "good"
    return [Finding("coverage", severity, text)]


def _off(coverage: Coverage) -> bool:
    return min(coverage.too_few, coverage.too_many) < RARE


def level_findings(levels: Sequence[Coverage], level: float) -> list[Finding]:
    """Report which levels besides the wanted one are off (binomial tests, Holm's correction)."""
    others = [one for one in levels if one.level != level]
    if not others:
        return []
    named = ", ".join(percent(one.level) for one in others)
    if others[0].nodes >= FEWEST:
        rare = holm([min(1.0, 2 * min(one.too_few, one.too_many)) for one in others])
        off = [one for one, is_off in zip(others, rare, strict=True) if is_off]
        if off:
            return [Finding("levels", "note", _level_text(one)) for one in off]
        if all(one.margin <= VAGUE for one in others):
            text = f"the other levels ({named}) agree with their coverage"
            return [Finding("levels", "good", text)]
    text = f"too few held-out nodes to tell whether the other levels ({named}) hold"
    return [Finding("levels", "note", text)]


def _level_text(coverage: Coverage) -> str:
    direction = "fewer" if coverage.share < coverage.level else "more"
    return (
        f"at the level {percent(coverage.level)}, {coverage} of held-out nodes are covered, "
        f"{direction} than wanted"
    )


def group_findings(divisions: Sequence[Division], level: float) -> list[Finding]:
    """Name every group that is covered less than wanted, or else the worst one.

    A warning is an exact binomial test with Holm's correction over all groups of at least ten
    nodes, at 5 % for all of them together, and a shortfall of more than 3 points. Without one, it
    is said how many groups are large enough to show a shortfall of 20 points.
    """
    findings = [
        _group_finding(division, group, level)
        for division in divisions
        for group in division.groups
        if group.below
    ]
    if findings or not divisions:
        return findings
    every = [group for division in divisions for group in division.groups]
    tested = [group for group in every if group.coverage.nodes >= FEWEST]
    checked = [
        group
        for group in tested
        if can_show_shortfall(group.coverage.nodes, level, RARE / len(tested))
    ]
    if not checked:
        text = "too few held-out nodes to tell whether some group is covered less than wanted"
        return [Finding("groups", "note", text)]
    number = "all" if len(checked) == len(every) else f"{len(checked)} of"
    text = (
        f"no group falls short of the wanted coverage beyond chance ({number} {len(every)} groups "
        f"have enough nodes to show a shortfall of 20 points)"
    )
    worst = min(checked, key=lambda group: group.coverage.too_few)
    if worst.coverage.share < level:
        counted = f"{worst.coverage} of {worst.coverage.nodes:,}"
        text += f"; furthest below it: {worst.who} with {counted}"
    return [Finding("groups", "good", text)]


def _group_finding(division: Division, group: Group, level: float) -> Finding:
    text = (
        f"coverage on {group.who} is {group.coverage} ({group.coverage.nodes:,} held-out nodes), "
        f"below the wanted {percent(level)}"
    )
    return Finding(division.name, "warning", text)


def miss_findings(below: int, above: int, side: str) -> list[Finding]:
    """Report on which side targets are missed, where both are possible (sign test at 1 %)."""
    from scipy.stats import binomtest

    misses = below + above
    if misses == 0 or side != "both":
        return []
    text = f"{below:,} {'target lies' if below == 1 else 'targets lie'} below the interval"
    text = f"{text}, {above:,} above"
    if binomtest(below, misses).pvalue < ONE_SIDED:
        more = "lower" if below > above else "higher"
        return [Finding("misses", "note", f"{text}: missed targets are mostly {more}")]
    if misses < MISSES:
        text = f"{text}: too few misses to tell whether one side is missed more often"
        return [Finding("misses", "note", text)]
    return [Finding("misses", "good", text)]


def unbounded_findings(unbounded: int, nodes: int, side: str) -> list[Finding]:
    """Report how many nodes lack a bound that they should have."""
    if not unbounded:
        return []
    what = "intervals have no end on one or both sides"
    what = what if side == "both" else f"nodes have no {side} bound"
    text = (
        f"{unbounded:,} of {nodes:,} {what}, so nothing is known about them: there were too few "
        f"nodes to calibrate their level or group with"
    )
    return [Finding("unbounded", "warning", text)]


def width_findings(rank: RankCorrelation) -> list[Finding]:
    """Report whether wider intervals go with larger errors.

    Good is a rank correlation of at least 0.1 that is above 0 by a one-sided test at 5 %;
    "hardly tell" needs a smaller one, or one of 0.3 excluded by its one-sided 95 % interval.
    """
    if rank.nodes < FEWEST:
        text = f"too few held-out nodes ({rank.nodes}) to tell whether wider intervals go with "
        return [Finding("width", "note", f"{text}larger errors")]
    if rank.value is None:
        text = "all intervals are equally wide, or all errors are equal, so widths do not tell "
        return [Finding("width", "note", f"{text}where errors are large")]
    value = f"rank correlation {rank.value:.2f}"
    if rank.p_value < RARE and rank.value >= TELLING:
        return [Finding("width", "good", f"wider intervals go with larger errors ({value})")]
    if rank.p_value < RARE or rank.high < SEEN:
        text = (
            f"widths hardly tell where errors are large ({value}): do not read a narrow interval "
            f"as a safer one"
        )
        return [Finding("width", "note", text)]
    text = (
        f"too few held-out nodes ({rank.nodes}) to tell whether wider intervals go with larger "
        f"errors ({value})"
    )
    return [Finding("width", "note", text)]


def shift_findings(shift: Shift | None, labelled: int, unlabelled: int) -> list[Finding]:
    """Report whether the unlabelled nodes are like the labelled ones.

    Args:
        shift: what :func:`qpignn.diagnostics.shift.label_shift` returned.
        labelled, unlabelled: numbers of nodes.
    """
    if unlabelled == 0:
        return []
    if shift is None:
        text = (
            f"too few nodes to tell whether the {unlabelled:,} unlabelled look like the "
            f"{labelled:,} labelled ones: at least {FEWEST_COMPARED} of each are needed"
        )
        return [Finding("shift", "note", text)]
    advice = "coverage measured on labelled nodes may not hold for them"
    return [_compared(shift, f"the {unlabelled:,} unlabelled nodes", "the labelled ones", advice)]


def graph_shift_findings(shift: Shift | None) -> list[Finding]:
    """Report whether the nodes of another graph are like those of the fit; none where shift is.

    Args:
        shift: what :func:`qpignn.diagnostics.shift.graph_shift` returned.
    """
    if shift is None:
        return []
    advice = "coverage measured on the graph of the fit may not hold for them"
    who = f"the {shift.compared:,} nodes of this graph"
    return [_compared(shift, who, "those of the fit", advice)]


def _compared(shift: Shift, who: str, like: str, advice: str) -> Finding:
    auc = f"AUC {shift.auc:.2f} ± {ERROR_BAR * shift.error:.2f}"
    if not shift.significant and shift.auc + ERROR_BAR * shift.error > ALIKE:
        text = (
            f"no difference was found between {who} and {like}, but there are too few nodes to "
            f"exclude one (a classifier tells them apart with {auc}; 0.5 is chance)"
        )
        return Finding("shift", "note", text)
    if not shift.significant:
        text = f"{who} look like {like} (a classifier tells them apart with {auc}; 0.5 is chance)"
        return Finding("shift", "good", text)
    named = " and ".join(name for name, _ in shift.columns[:2])
    where = f"most in {named}" if named else "in no single column, but in several together"
    p_value = "p < 0.001" if shift.p_value < 0.001 else f"p = {shift.p_value:.3f}"
    seen = f"{where}; a classifier tells them apart with {auc}; {p_value}"
    if not shift.found:
        return Finding("shift", "note", f"{who} differ slightly from {like} ({seen})")
    return Finding("shift", "warning", f"{who} differ from {like} ({seen}): {advice}")


def size_findings(calibrated: int | None, level: float) -> list[Finding]:
    """Report whether there were enough nodes to calibrate; None where a method does not."""
    if calibrated is None:
        return []
    needed = enough_for(level)
    if calibrated < needed:
        nodes = "1 node is" if calibrated == 1 else f"{calibrated} nodes are"
        text = (
            f"{nodes} too few to calibrate a level of {percent(level)}: at least {needed} are "
            f"needed, and several times as many for a coverage that varies little"
        )
        return [Finding("calibration", "warning", text)]
    deviation = float(np.sqrt(level * (1 - level) / (calibrated + 2)))
    if deviation > LOOSE:
        text = (
            f"calibrated on {calibrated} nodes only: with another sample of them the coverage "
            f"would differ by about ± {percent(deviation, 0)}"
        )
        return [Finding("calibration", "note", text)]
    return []


def by_severity(findings: list[Finding]) -> list[Finding]:
    """Return the most serious first."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
