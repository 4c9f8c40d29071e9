"""Findings as plain sentences: what was seen, and whether to act on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from qpignn.calibration import enough_for
from qpignn.diagnostics.coverage import RARE, Coverage, Division, Group, holm, percent
from qpignn.diagnostics.grouping import FEWEST
from qpignn.diagnostics.shift import Shift

SEVERITIES = ("warning", "note", "good")
LOOSE = 0.03  # deviation of the attained coverage from one calibration to another worth a word
VAGUE = 0.1  # an error bar longer than this tells little
TELLING = 0.1  # rank correlation from which widths tell where errors are large


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing, as a sentence; ``severity`` is warning, note or good."""

    kind: str
    severity: str
    text: str


def overall_findings(found: Coverage, side: str = "both") -> list[Finding]:
    """Say how many held-out nodes are covered, and whether that is what was wanted.

    Args:
        found: the coverage of all held-out nodes.
        side: ``both``, or which bound a one-sided result has.
    """
    wanted = percent(found.level)
    nodes = "1 held-out node is" if found.nodes == 1 else f"{found.nodes:,} held-out nodes are"
    said = f"{found} of {nodes} covered"
    if found.too_few < RARE and found.short:
        text, severity = f"{said}, below the wanted {wanted}", "warning"
    elif found.too_few < RARE:
        text, severity = f"{said}, a little below the wanted {wanted}", "note"
    elif found.too_many < RARE:
        loose = "wider than needed" if side == "both" else "looser bounds than needed"
        text, severity = f"{said}, above the wanted {wanted}: {loose}", "note"
    elif found.margin > VAGUE:
        text, severity = f"{said}: too few nodes to tell whether the wanted {wanted} hold", "note"
    else:
        text, severity = f"{said}, in agreement with the wanted {wanted}", "good"
    return [Finding("coverage", severity, text)]


def level_findings(levels: Sequence[Coverage], level: float) -> list[Finding]:
    """Say which levels besides the wanted one are off, beyond chance."""
    others = [found for found in levels if found.level != level]
    if not others:
        return []
    rare = holm([min(1.0, 2 * min(found.too_few, found.too_many)) for found in others])
    found = [
        Finding(
            "levels",
            "note",
            f"at the level {percent(one.level)}, {one} of held-out nodes are covered",
        )
        for one, off in zip(others, rare, strict=True)
        if off
    ]
    named = ", ".join(percent(one.level) for one in others)
    text = f"the other levels ({named}) agree with their coverage"
    return found or [Finding("levels", "good", text)]


def group_findings(divisions: Sequence[Division], level: float) -> list[Finding]:
    """Name every group that is covered less than wanted, or else the worst one."""
    found = []
    for division in divisions:
        for group in division.groups:
            if group.below:
                found.append(_group_finding(division, group, level))
    if found or not divisions:
        return found
    every = [group for one in divisions for group in one.groups if group.coverage.nodes >= FEWEST]
    text = "no group falls short of the wanted coverage beyond chance"
    worst = min(every, key=lambda group: group.coverage.too_few, default=None)
    if worst is not None and worst.coverage.share < level:
        seen = f"{worst.coverage} of {worst.coverage.nodes:,}"
        text += f"; furthest below it: {worst.who} with {seen}"
    return [Finding("groups", "good", text)]


def _group_finding(division: Division, group: Group, level: float) -> Finding:
    text = (
        f"coverage on {group.who} is {group.coverage} ({group.coverage.nodes:,} held-out nodes), "
        f"below the wanted {percent(level)}"
    )
    return Finding(division.name, "warning", text)


def miss_findings(below: int, above: int, side: str) -> list[Finding]:
    """Say on which side targets are missed, where both are possible."""
    misses = below + above
    if misses == 0 or side != "both":
        return []
    text = f"{below:,} {'target lies' if below == 1 else 'targets lie'} below the interval"
    text = f"{text}, {above:,} above"
    if binomtest(below, misses).pvalue >= 0.01:
        return [Finding("misses", "good", text)]
    more = "lower" if below > above else "higher"
    return [Finding("misses", "note", f"{text}: where it misses, targets are mostly {more}")]


def unbounded_findings(unbounded: int, nodes: int, side: str) -> list[Finding]:
    """Say how many intervals lack an end that they should have."""
    if not unbounded:
        return []
    what = "intervals have no end on one or both sides"
    if side != "both":
        what = f"nodes have no {side} bound"
    text = (
        f"{unbounded:,} of {nodes:,} {what}, so they say nothing: there were too few nodes to "
        f"calibrate their level or group with"
    )
    return [Finding("unbounded", "warning", text)]


def error_findings(rank: float | None) -> list[Finding]:
    """Say whether widths tell where errors are large, by their rank correlation."""
    if rank is None:
        return [Finding("width", "note", "all intervals are equally wide, or all errors equal")]
    if rank > TELLING:
        text = f"wider intervals go with larger errors (rank correlation {rank:.2f})"
        return [Finding("width", "good", text)]
    text = (
        f"widths hardly tell where errors are large (rank correlation {rank:.2f}): do not read "
        f"a narrow interval as a safer one"
    )
    return [Finding("width", "note", text)]


def shift_findings(shift: Shift | None) -> list[Finding]:
    """Say whether unlabelled nodes are like the labelled ones."""
    if shift is None:
        return []
    if not shift.found:
        text = (
            f"the {shift.unlabelled:,} unlabelled nodes look like the labelled ones (a classifier "
            f"tells them apart with AUC {shift.auc:.2f}; 0.5 is chance)"
        )
        return [Finding("shift", "good", text)]
    text = (
        f"the {shift.unlabelled:,} unlabelled nodes differ from the labelled ones (a classifier "
        f"tells them apart with AUC {shift.auc:.2f}; most in "
        f"{' and '.join(name for name, _ in shift.columns[:2])}): coverage measured on labelled "
        f"nodes may not hold for them"
    )
    return [Finding("shift", "warning", text)]


def size_findings(calibrated: int | None, level: float) -> list[Finding]:
    """Say whether there were enough nodes to calibrate with; None where a method does not."""
    if calibrated is None:
        return []
    needed = enough_for(level)
    if calibrated < needed:
        text = (
            f"{calibrated} nodes are too few to calibrate a level of {percent(level)}: at least "
            f"{needed} are needed, and several times as many to be steady"
        )
        return [Finding("calibration", "warning", text)]
    wander = float(np.sqrt(level * (1 - level) / (calibrated + 2)))
    if wander > LOOSE:
        text = (
            f"calibrated on {calibrated} nodes only: another draw of them would move the coverage "
            f"by about ± {percent(wander, 0)}"
        )
        return [Finding("calibration", "note", text)]
    return []


def by_severity(findings: list[Finding]) -> list[Finding]:
    """Return the most serious first."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
