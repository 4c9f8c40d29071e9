"""Judging the intervals of a graph on its held-out nodes.

Nodes are divided only by what is known before their target is (degree, prediction, width, a
column): even perfect intervals miss more often where targets are extreme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import Any

import numpy as np
import pandas as pd
from scipy.stats import spearmanr
from torch_geometric.data import Data

from qpignn.data.graph import check_graph, given_nodes, labelled, test_nodes
from qpignn.data.matrix import column
from qpignn.data.structure import neighbour_gap
from qpignn.diagnostics.coverage import Coverage, Division, Mask, count_coverage, divide
from qpignn.diagnostics.findings import (
    Finding,
    by_severity,
    error_findings,
    group_findings,
    level_findings,
    miss_findings,
    overall_findings,
    shift_findings,
    size_findings,
    unbounded_findings,
)
from qpignn.diagnostics.grouping import (
    Grouping,
    by_column,
    by_community,
    by_degree,
    by_distance,
    by_number,
)
from qpignn.diagnostics.shift import Shift, label_shift
from qpignn.errors import ArrayError, SettingError, listed
from qpignn.intervals import Floats, Intervals, covers

BINS = 8  # of widths, to set errors beside


@dataclass(frozen=True)
class ErrorBin:
    """Nodes of similar width: their mean width, and how far off their predictions are."""

    nodes: int
    width: float
    error: float


@dataclass(frozen=True)
class Diagnosis:
    """What :func:`diagnose` found. Print it for the sentences.

    Attributes:
        confidence_level: the wanted coverage.
        coverage: of all held-out nodes; None where there are none.
        levels: of every level that was looked at, rising: the calibration curve.
        divisions: coverage and width by group.
        side: ``both``, or ``lower`` or ``upper`` where intervals have that bound only.
        unbounded: intervals of any node without an end they should have.
        below, above: held-out targets that lie under, and over, their interval.
        errors: width beside actual error.
        shift: labelled against unlabelled nodes; None where there are too few of either.
        findings: sentences, the most serious first.
    """

    confidence_level: float
    coverage: Coverage | None
    levels: list[Coverage]
    divisions: list[Division]
    side: str
    unbounded: int
    below: int
    above: int
    errors: list[ErrorBin]
    shift: Shift | None
    findings: list[Finding]

    @property
    def warnings(self) -> list[Finding]:
        """The findings to act on."""
        return [finding for finding in self.findings if finding.severity == "warning"]

    def to_dict(self) -> dict[str, Any]:
        """Return plain numbers and words."""
        return asdict(self)

    def _repr_html_(self) -> str:
        """Show the findings as a list in a notebook."""
        lines = (
            f"<li><strong>{one.severity}</strong>: {escape(one.text)}</li>" for one in self.findings
        )
        return f"<ul>{''.join(lines)}</ul>"

    def __str__(self) -> str:
        return "\n".join(f"{finding.severity}: {finding.text}" for finding in self.findings)


def diagnose(
    data: Data,
    intervals: Intervals,
    others: Sequence[Intervals] = (),
    *,
    by: Mapping[str, Any] | Sequence[str] = (),
    calibration_nodes: int | None = None,
) -> Diagnosis:
    """Judge the intervals of a whole graph on its held-out nodes (its ``test_mask``).

    Args:
        data: the graph, with its masks and all known targets.
        intervals: of every node of the graph.
        others: the same at other levels, for the calibration curve.
        by: further divisions: names of feature columns, or names with one value a node. Columns
            of categories are looked at anyway. The target itself is refused: even perfect
            intervals miss more often where it is extreme.
        calibration_nodes: how many nodes the intervals were calibrated on, if they were.

    A method's own ``diagnose`` gathers the intervals by itself.
    """
    data = check_graph(data, need_target=False)
    for found in (intervals, *others):
        if not isinstance(found, Intervals):
            raise ArrayError(
                f"intervals: expected those of predict_interval, got {type(found).__name__}"
            )
        if len(found) != data.x.shape[0]:
            raise ArrayError(
                f"expected intervals of all {data.x.shape[0]:,} nodes of the graph, got "
                f"{len(found):,}; predict without a mask"
            )
    columns = _columns(data, by)
    judged, given = test_nodes(data).numpy(), given_nodes(data).numpy()
    level, shift = intervals.confidence_level, label_shift(data)
    side, unbounded = _ends(intervals)
    findings = [
        *shift_findings(shift),
        *size_findings(calibration_nodes, level),
        *unbounded_findings(unbounded, len(intervals), side),
    ]
    if not judged.any():
        text = "no nodes were held out, so nothing is known of the coverage on unseen nodes"
        findings.append(Finding("coverage", "note", text))
        told = by_severity(findings)
        return Diagnosis(level, None, [], [], side, unbounded, 0, 0, [], shift, told)
    y = data.y.double().numpy()
    hits, below, above = _hits(intervals, y), y < intervals.lower, y > intervals.upper
    overall = count_coverage(hits[judged], level)
    curve = {found.confidence_level: found for found in (*others, intervals)}
    levels = [count_coverage(_hits(curve[wanted], y)[judged], wanted) for wanted in sorted(curve)]
    groupings = _groupings(data, intervals, judged, given, columns)
    divisions = divide(groupings, hits, intervals.width, judged, level)
    misses = int(below[judged].sum()), int(above[judged].sum())
    errors, rank = _errors(intervals.select(judged), y[judged])
    findings += [
        *overall_findings(overall),
        *level_findings(levels, level),
        *group_findings(divisions, level),
        *miss_findings(*misses, side),
        *(error_findings(rank) if errors else []),
    ]
    return Diagnosis(
        confidence_level=level,
        coverage=overall,
        levels=levels,
        divisions=divisions,
        side=side,
        unbounded=unbounded,
        below=misses[0],
        above=misses[1],
        errors=errors,
        shift=shift,
        findings=by_severity(findings),
    )


def _ends(intervals: Intervals) -> tuple[str, int]:
    """Return which bounds there are, and how many intervals lack one of them."""
    low, high = np.isfinite(intervals.lower), np.isfinite(intervals.upper)
    if high.any() and not low.any():
        return "upper", int((~high).sum())
    if low.any() and not high.any():
        return "lower", int((~low).sum())
    return "both", int((~(low & high)).sum())


def _hits(intervals: Intervals, y: Floats) -> Mask:
    hits: Mask = covers(y, intervals.lower, intervals.upper)  # False where the target is unknown
    return hits


def _columns(data: Data, by: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Return the columns to divide by: categories, and what was asked for."""
    coding = data.get("coding")
    words: dict[str, Any] = {}
    if coding is not None:
        words = {name: coding.categories_of(data.x, name) for name in coding.category_columns}
    if isinstance(by, Mapping):
        for name, values in by.items():
            _refuse_target(data, name, values)
        return {**words, **by}
    if isinstance(by, str) or not hasattr(by, "__iter__"):
        raise SettingError(f"by: expected a list of columns, got {by!r}; write by=[{by!r}]")
    names = list(data.get("feature_names") or [])
    for name in by:
        if name in words:
            continue
        if name not in names:
            known = listed([*words, *names], 12)
            has = f"it has {known}" if known else "it has none with a name; pass by={name: values}"
            raise SettingError(f"by: expected a column of the graph, got {name!r}; {has}")
        words[name] = column(data.x, names.index(name)).double().numpy()
    return words


def _refuse_target(data: Data, name: str, values: Any) -> None:
    column = pd.to_numeric(pd.Series(values), errors="coerce").to_numpy(dtype=np.float64)
    known = labelled(data).numpy()
    if not known.any():
        return
    if len(column) == len(known) and np.array_equal(column[known], data.y.double().numpy()[known]):
        raise SettingError(
            f"by: expected columns known before the target, got the target itself as {name!r}: "
            f"even perfect intervals miss more often where it is extreme; look at 'prediction', "
            f"which is always shown"
        )


def _groupings(
    data: Data, intervals: Intervals, judged: Mask, given: Mask, columns: Mapping[str, Any]
) -> list[Grouping]:
    y = data.y.double().numpy()
    unlike = neighbour_gap(data, intervals.prediction, np.where(given, y, np.nan))
    return [
        by_degree(data, judged),
        by_community(data, judged),
        by_distance(data, given, judged),
        by_number(
            "homophily",
            unlike,
            judged,
            "nodes whose prediction is {} away from their neighbours' targets",
            without=("no known neighbour", "nodes without a known neighbour"),
        ),
        by_number("prediction", intervals.prediction, judged, "nodes with a prediction of {}"),
        by_number("width", intervals.width, judged, "nodes with an interval of width {}"),
        *(by_column(name, values, judged) for name, values in columns.items()),
    ]


def _errors(found: Intervals, y: Floats) -> tuple[list[ErrorBin], float | None]:
    """Return errors by rising width, and the rank correlation of the two."""
    off, width = np.abs(y - found.prediction), found.width
    if not np.isfinite(width).all():
        return [], None
    order = np.argsort(width, kind="stable")
    parts = np.array_split(order, min(BINS, max(1, len(order) // 5)))
    bins = [ErrorBin(len(p), float(width[p].mean()), float(off[p].mean())) for p in parts]
    if len(y) < 3 or len(np.unique(width)) < 2 or len(np.unique(off)) < 2:
        return bins, None
    return bins, float(spearmanr(width, off).statistic)
