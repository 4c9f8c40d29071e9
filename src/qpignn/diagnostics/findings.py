"""Findings: the results of a diagnosis as sentences, each with a severity.

Every ``good`` and every ``warning`` that depends on a number of nodes is backed by a test, and by
enough nodes for the test to detect the deviation in question; with fewer nodes, a ``note`` says
that there are too few. The tests, their rates and the numbers of nodes are listed in the
documentation (What coverage means, "Reading a diagnosis").
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from qpignn.calibration.conformal import enough_for
from qpignn.diagnostics.coverage import SIGNIFICANCE, Coverage, Division, can_show_shortfall, holm
from qpignn.diagnostics.grouping import FEWEST
from qpignn.diagnostics.two_sample import FEWEST as FEWEST_COMPARED
from qpignn.diagnostics.two_sample import Shift
from qpignn.diagnostics.width_error import RankCorrelation
from qpignn.diagnostics.wording import WORDINGS, format_number, percent
from qpignn.errors import plural, quoted
from qpignn.intervals import Intervals

SEVERITIES = ("warning", "note", "good")
LOOSE = 0.03  # standard deviation of the coverage over calibration samples that is worth a note
VAGUE = 0.1  # error margin beyond which a coverage is too uncertain to assess
INFORMATIVE = 0.1  # rank correlation from which widths indicate where errors are large
EXCLUDED = 0.3  # rank correlation that must be excluded before widths are called uninformative
MISSES = 21  # with as many misses, a fifth of them on one side (4 of 21) is significant
ONE_SIDED = 0.01  # p-value below which misses are called one-sided
ALIKE = 0.6  # AUC that must be excluded before two sets of nodes are called alike
USUAL = 0.02  # share of nodes beyond what was learnt among nodes like the given ones, at most
RARELY = 0.01  # p-value below which more of them are a warning
NEGLIGIBLE = 0.01  # relative change of a width below which it is reported as none
NAMED = 3  # reasons and ids that a finding names
ERROR_BAR = 1.96  # standard errors in a 95 % interval


@dataclass(frozen=True)
class Finding:
    """One result of a diagnosis as a sentence.

    Attributes:
        kind: what was checked, such as ``coverage``, ``width`` or the name of a grouping.
        severity: ``warning``, ``note`` or ``good``.
        text: the sentence.
    """

    kind: str
    severity: str
    text: str


def overall_findings(coverage: Coverage, side: str = "both") -> list[Finding]:
    """Report whether the coverage of all held-out nodes agrees with the nominal level.

    A warning needs an exact binomial test at 5 % and a shortfall of more than 3 percentage points.

    Args:
        coverage: coverage of all held-out nodes.
        side: ``both``, or the only bound of one-sided intervals: ``lower`` or ``upper``.

    Returns:
        One finding.
    """
    level = percent(coverage.level)
    wording, one, several = WORDINGS[side], "node is covered", "nodes are covered"
    if side != "both":
        one = f"target is at or {wording.covered}".replace("bound", wording.one)
        several = f"targets are at or {wording.all_covered}".replace("bound", wording.one)
    counted = f"{coverage} of {coverage.nodes:,} held-out {one if coverage.nodes == 1 else several}"
    too_few, too_many = coverage.too_few < SIGNIFICANCE, coverage.too_many < SIGNIFICANCE
    severity = "note"
    if coverage.nodes < FEWEST or (coverage.margin > VAGUE and not (too_few or too_many)):
        result = f": too few nodes to tell whether the coverage is the nominal {level}"
    elif too_few and coverage.short:
        severity, result = "warning", f", below the nominal {level}"
    elif too_few:
        result = f", slightly below the nominal {level}"
    elif too_many:
        result = f", above the nominal {level}: the {wording.overcoverage}"
    else:
        severity, result = "good", f", consistent with the nominal {level}"
    return [Finding("coverage", severity, counted + result)]


def novelty_findings(intervals: Intervals) -> list[Finding]:
    """Report how many nodes lie beyond what was learnt, and what puts them there.

    A warning needs an exact binomial test at 1 % against the usual share of 2 %; else it is a note.

    Args:
        intervals: of the nodes in question.

    Returns:
        One finding, or none if no node does or the method does not say.
    """
    if intervals.novelty is None or intervals.novelty_reason is None:
        return []
    beyond = np.flatnonzero(intervals.novelty > 1)
    if not len(beyond):
        return []
    many = binomtest(len(beyond), len(intervals), USUAL, alternative="greater").pvalue < RARELY
    farthest = beyond[np.argsort(-intervals.novelty[beyond], kind="stable")]
    reasons = Counter(intervals.novelty_reason[farthest]).most_common()
    named = [f"{count:,} by {reason}" for reason, count in reasons[:NAMED]]
    rest = sum(count for _, count in reasons[NAMED:])
    named += [f"{rest:,} by others"] if rest else []
    one = len(beyond) == 1
    farther = "wider" if intervals.bound is None else "farther out"
    text = (
        f"{len(beyond):,} of {plural(len(intervals), 'node')} {'lies' if one else 'lie'} beyond "
        f"what was learnt: {', '.join(named)} "
        f"({quoted(intervals.node_id[farthest].tolist(), NAMED)}); their "
        f"{WORDINGS[intervals.side].many} are {farther}, and how often they cover is not known"
    )
    return [Finding("novelty", "warning" if many else "note", text)]


def neighbour_findings(intervals: Intervals) -> list[Finding]:
    """Report how much the known targets of neighbours change the widths.

    The mean width is compared with that without these targets. Where a few intervals are far wider
    than the others, it may grow although most intervals become narrower; the medians are added if
    they change in the other direction. Nodes beyond what was learnt are left out, because that
    widens their intervals, too. The finding is always a note: it describes widths and tests
    nothing; other findings report whether the intervals cover.

    Args:
        intervals: of the nodes in question: those whose own targets were not given.

    Returns:
        One finding; none if the method uses no targets of neighbours, for one-sided intervals, or
        if no node is left with finite widths to compare.
    """
    count, before = intervals.known_neighbours, intervals.width_without
    if count is None or before is None or intervals.bound is not None:
        return []
    compared = np.isfinite(intervals.width) & np.isfinite(before)
    if intervals.novelty is not None:
        compared &= intervals.novelty <= 1
    before, after = before[compared], intervals.width[compared]
    if not before.any():
        return []
    means, medians = ((float(of(after)), float(of(before))) for of in (np.mean, np.median))
    change = _width_change(*means)
    text = "known targets of neighbours hardly change the mean width: "
    if change:
        direction = f"{percent(abs(change), 0)} {'narrower' if change < 0 else 'wider'}"
        text = f"known targets of neighbours make intervals {direction} on average: mean width "
    text += " instead of ".join(map(format_number, means))
    opposite = _width_change(*medians)
    if opposite and change * opposite <= 0:
        text += f", but median width {' instead of '.join(map(format_number, medians))}"
    some = f"{len(before):,} of " * (len(before) < len(intervals))
    nodes = f"{some}{plural(len(intervals), 'node')} without a given target"
    linked = int((count[compared] > 0).sum())
    text += f" ({nodes}, {linked:,} of them with a neighbour that has one)"
    return [Finding("neighbours", "note", text)]


def _width_change(after: float, before: float) -> float:
    """Return the relative change of a width, or 0 if it is negligible."""
    change = after / before - 1 if before > 0 else 0.0
    return change if abs(change) >= NEGLIGIBLE else 0.0


def level_findings(levels: Sequence[Coverage], level: float) -> list[Finding]:
    """Report which other levels differ from their coverage (binomial tests, Holm's correction).

    Args:
        levels: coverage of the held-out nodes at every level.
        level: the level of the diagnosis itself, which is left out.

    Returns:
        One finding for each level that differs, or one for all; none without other levels.
    """
    others = [one for one in levels if one.level != level]
    if not others:
        return []
    named = ", ".join(percent(one.level) for one in others)
    if others[0].nodes >= FEWEST:
        rejected = holm([min(1.0, 2 * min(one.too_few, one.too_many)) for one in others])
        different = [
            f"at level {percent(one.level)}, {one} of held-out nodes are covered, "
            f"{'below' if one.share < one.level else 'above'} the nominal value"
            for one, differs in zip(others, rejected, strict=True)
            if differs
        ]
        if different:
            return [Finding("levels", "note", text) for text in different]
        if all(one.margin <= VAGUE for one in others):
            text = f"coverage at the other levels ({named}) is consistent with the nominal values"
            return [Finding("levels", "good", text)]
    text = f"too few held-out nodes to check the coverage at the other levels ({named})"
    return [Finding("levels", "note", text)]


def group_findings(divisions: Sequence[Division], level: float) -> list[Finding]:
    """Report every group with low coverage, or else the group with the largest shortfall.

    A warning needs an exact binomial test with Holm's correction over all groups of at least ten
    nodes, at 5 % for all of them together, and a shortfall of more than 3 percentage points.
    Without a warning, the finding says how many groups are large enough to detect a shortfall of
    20 percentage points.

    Args:
        divisions: coverage by group.
        level: the nominal coverage.

    Returns:
        One warning per group with low coverage, or one finding for all groups.
    """
    every = [(division.name, group) for division in divisions for group in division.groups]
    findings = []
    for name, group in every:
        if group.below:
            held_out = f"{group.coverage.nodes:,} held-out nodes"
            text = f"coverage for {group.description} is {group.coverage} ({held_out}), below the "
            text += f"nominal {percent(level)}"
            findings.append(Finding(name, "warning", text))
    if findings or not divisions:
        return findings
    tested = [group for _, group in every if group.coverage.nodes >= FEWEST]
    rate = SIGNIFICANCE / max(1, len(tested))
    checked = [one for one in tested if can_show_shortfall(one.coverage.nodes, level, rate)]
    if not checked:
        text = "too few held-out nodes to tell whether the coverage of some group is too low"
        return [Finding("groups", "note", text)]
    number = "all" if len(checked) == len(every) else f"{len(checked)} of"
    text = (
        f"no group has significantly low coverage ({number} {len(every)} groups have enough nodes "
        f"to detect a shortfall of 20 percentage points)"
    )
    worst = min(checked, key=lambda group: group.coverage.too_few)
    if worst.coverage.share < level:
        counted = f"{worst.coverage} of {worst.coverage.nodes:,} nodes"
        text += f"; the largest shortfall is for {worst.description}: {counted}"
    return [Finding("groups", "good", text)]


def miss_findings(below: int, above: int, side: str) -> list[Finding]:
    """Report whether missed targets lie mostly on one side of the intervals (sign test at 1 %).

    Args:
        below: number of held-out targets below their interval.
        above: number of held-out targets above their interval.
        side: ``both``, or the only bound of one-sided intervals: ``lower`` or ``upper``.

    Returns:
        One finding; none for one-sided intervals or without misses.
    """
    from scipy.stats import binomtest

    misses = below + above
    if misses == 0 or side != "both":
        return []
    lie = "target lies below its interval" if below == 1 else "targets lie below their intervals"
    text = f"{below:,} {lie} and {above:,} above"
    severity = "note"
    if binomtest(below, misses).pvalue < ONE_SIDED:
        text += f": missed targets are mostly too {'low' if below > above else 'high'}"
    elif misses < MISSES:
        text += ": too few misses to tell whether one side is missed more often"
    else:
        severity = "good"
    return [Finding("misses", severity, text)]


def unbounded_findings(unbounded: int, nodes: int, side: str) -> list[Finding]:
    """Report how many nodes lack a finite bound.

    Args:
        unbounded: number of nodes whose interval lacks a bound that it should have.
        nodes: number of nodes.
        side: ``both``, or the only bound of one-sided intervals: ``lower`` or ``upper``.

    Returns:
        A warning; none if all bounds are finite.
    """
    if not unbounded:
        return []
    what = "intervals are infinite on one or both sides"
    what = what if side == "both" else f"nodes have no finite {side} bound"
    why = "there were too few nodes to calibrate their level or group"
    return [Finding("unbounded", "warning", f"{unbounded:,} of {nodes:,} {what}: {why}")]


def width_findings(rank: RankCorrelation) -> list[Finding]:
    """Report whether wider intervals go with larger errors.

    ``good`` needs a rank correlation of at least 0.1 that is positive by a one-sided test at 5 %.
    Widths are called uninformative if the correlation is significant but smaller, or if its
    one-sided 95 % interval excludes 0.3.

    Args:
        rank: rank correlation between width and error.

    Returns:
        One finding.
    """
    value = "" if rank.value is None else f" (rank correlation {rank.value:.2f})"
    relation, significant = "wider intervals go with larger errors", rank.p_value < SIGNIFICANCE
    text = f"too few held-out nodes ({rank.nodes}) to tell whether {relation}"
    if rank.nodes >= FEWEST:
        if rank.value is None:
            text = "all intervals are equally wide, or all errors are equal, so widths do not "
            text += "indicate where errors are large"
        elif significant and rank.value >= INFORMATIVE:
            return [Finding("width", "good", relation + value)]
        elif significant or rank.high < EXCLUDED:
            text = f"interval widths say little about where errors are large{value}: a narrow "
            text += "interval does not indicate a more reliable prediction"
        else:
            text += value
    return [Finding("width", "note", text)]


def shift_findings(shift: Shift | None, labelled: int, unlabelled: int) -> list[Finding]:
    """Report whether the unlabelled nodes are like the labelled ones.

    Args:
        shift: result of :func:`qpignn.diagnostics.shift.label_shift`.
        labelled, unlabelled: numbers of nodes.

    Returns:
        One finding; none if all nodes are labelled.
    """
    if unlabelled == 0:
        return []
    if shift is None:
        text = (
            f"too few nodes to tell whether the {unlabelled:,} unlabelled nodes are like the "
            f"{labelled:,} labelled ones: at least {FEWEST_COMPARED} of each are needed"
        )
        return [Finding("shift", "note", text)]
    advice = "the coverage measured on labelled nodes may not hold for them"
    return [_compared(shift, f"the {unlabelled:,} unlabelled nodes", "the labelled nodes", advice)]


def graph_shift_findings(shift: Shift | None) -> list[Finding]:
    """Report whether the nodes of another graph are like those of the training graph.

    Args:
        shift: result of :func:`qpignn.diagnostics.shift.graph_shift`.

    Returns:
        One finding; none if ``shift`` is None.
    """
    if shift is None:
        return []
    advice = "the coverage measured on the training graph may not hold for them"
    nodes = f"the {shift.compared:,} nodes of this graph"
    return [_compared(shift, nodes, "those of the training graph", advice)]


def _compared(shift: Shift, compared: str, reference: str, advice: str) -> Finding:
    auc = f"classifier AUC {shift.auc:.2f} ± {ERROR_BAR * shift.error:.2f}"
    if not shift.significant and shift.auc + ERROR_BAR * shift.error > ALIKE:
        text = f"no difference between {compared} and {reference} was detected, but there are too "
        text += f"few nodes to rule one out ({auc}; 0.5 is chance)"
        return Finding("shift", "note", text)
    if not shift.significant:
        return Finding("shift", "good", f"{compared} are like {reference} ({auc}; 0.5 is chance)")
    named = " and ".join(name for name, _ in shift.columns[:2])
    where = f"most in {named}" if named else "in no single column, but in several together"
    p_value = "p < 0.001" if shift.p_value < 0.001 else f"p = {shift.p_value:.3f}"
    evidence = f"{where}; {auc}; {p_value}"
    if not shift.notable:
        return Finding("shift", "note", f"{compared} differ slightly from {reference} ({evidence})")
    return Finding("shift", "warning", f"{compared} differ from {reference} ({evidence}): {advice}")


def size_findings(calibrated: int | None, level: float) -> list[Finding]:
    """Report whether there were enough nodes for calibration.

    Args:
        calibrated: number of calibration nodes; None for methods without calibration.
        level: the nominal coverage.

    Returns:
        One finding; none if there were enough nodes.
    """
    if calibrated is None:
        return []
    needed = enough_for(level)
    deviation = math.sqrt(level * (1 - level) / (calibrated + 2))
    if calibrated < needed:
        text = "1 node is" if calibrated == 1 else f"{calibrated} nodes are"
        text += f" too few to calibrate a level of {percent(level)}: at least {needed} are needed, "
        text += "and several times as many for a stable coverage"
        return [Finding("calibration", "warning", text)]
    if deviation > LOOSE:
        text = f"calibrated on only {calibrated} nodes: with another sample of this size, the "
        text += f"coverage would differ by about ± {percent(deviation, 0)}"
        return [Finding("calibration", "note", text)]
    return []


def by_severity(findings: list[Finding]) -> list[Finding]:
    """Return findings in order of severity, warnings first.

    Args:
        findings: the findings, in any order.
    """
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
