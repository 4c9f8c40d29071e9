"""Findings as plain sentences: what was seen, and whether to act on it."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from scipy.stats import binomtest

from qpignn.calibration import enough_for
from qpignn.diagnostics.coverage import RARE, Coverage, Division, Group, holm, percent
from qpignn.diagnostics.shift import Shift

SEVERITIES = ("warning", "note", "good")
FEW_JUDGED = 100  # held-out nodes below which the error bar deserves a word
LOOSE = 0.03  # deviation of the attained coverage from one calibration to another worth a word
TELLING = 0.1  # rank correlation from which widths tell where errors are large


@dataclass(frozen=True)
class Finding:
    """One thing worth knowing, as a sentence; ``severity`` is warning, note or good."""

    kind: str
    severity: str
    text: str


def overall_findings(found: Coverage) -> list[Finding]:
    """Say how many held-out nodes are covered, and whether that is what was wanted."""
    wanted = percent(found.level)
    said = f"{found} of {found.nodes:,} held-out nodes are covered"
    if found.too_few < RARE and found.short:
        text, severity = f"{said}, below the wanted {wanted}", "warning"
    elif found.too_few < RARE:
        text, severity = f"{said}, a little below the wanted {wanted}", "note"
    elif found.too_many < RARE:
        text, severity = f"{said}, above the wanted {wanted}: wider than needed", "note"
    else:
        text, severity = f"{said}, in agreement with the wanted {wanted}", "good"
    few = (
        f"only {found.nodes} held-out nodes: coverage is known to ± {percent(found.margin, 0)} only"
    )
    extra = [Finding("held-out nodes", "note", few)] if found.nodes < FEW_JUDGED else []
    return [Finding("coverage", severity, text), *extra]


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
    worst = min((one.worst for one in divisions), key=lambda group: group.coverage.too_few)
    text = (
        f"no group falls short of the wanted coverage beyond chance; furthest from it: {worst.who} "
        f"with {worst.coverage} of {worst.coverage.nodes:,}"
    )
    return [Finding("groups", "good", text)]


def _group_finding(division: Division, group: Group, level: float) -> Finding:
    text = (
        f"coverage on {group.who} is {group.coverage} ({group.coverage.nodes:,} held-out nodes), "
        f"below the wanted {percent(level)}"
    )
    return Finding(division.name, "warning", text)


def miss_findings(below: int, above: int) -> list[Finding]:
    """Say on which side targets are missed."""
    misses = below + above
    if misses == 0:
        return []
    text = f"{below:,} targets lie below their interval, {above:,} above"
    if binomtest(below, misses).pvalue >= 0.01:
        return [Finding("misses", "good", text)]
    side = "lower" if below > above else "higher"
    return [Finding("misses", "note", f"{text}: where it misses, targets are mostly {side}")]


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


def size_findings(given: int, level: float) -> list[Finding]:
    """Say whether there are enough nodes to calibrate with."""
    needed = enough_for(level)
    if given < needed:
        text = (
            f"{given} labelled nodes are too few to calibrate a level of {percent(level)}: "
            f"at least {needed} are needed, and several times as many to be steady"
        )
        return [Finding("calibration", "warning", text)]
    wander = float(np.sqrt(level * (1 - level) / (given + 2)))
    if wander > LOOSE:
        text = (
            f"calibrated on {given} nodes only: another draw of them would move the coverage by "
            f"about ± {percent(wander, 0)}"
        )
        return [Finding("calibration", "note", text)]
    return []


def by_severity(findings: list[Finding]) -> list[Finding]:
    """Return the most serious first."""
    return sorted(findings, key=lambda finding: SEVERITIES.index(finding.severity))
