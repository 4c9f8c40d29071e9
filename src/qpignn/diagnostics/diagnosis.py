"""Judging the intervals of a graph on its held-out nodes.

Nodes are divided only by what is known before their target is (degree, prediction, width, a
column): even perfect intervals miss more often where targets are extreme.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from qpignn.data.graph import check_graph, given_nodes, labelled, test_nodes
from qpignn.data.matrix import column
from qpignn.data.structure import Integers, communities, neighbour_gap
from qpignn.diagnostics.coverage import Coverage, Division, Mask, count_coverage, divide
from qpignn.diagnostics.findings import (
    Finding,
    by_severity,
    group_findings,
    level_findings,
    miss_findings,
    overall_findings,
    shift_findings,
    size_findings,
    unbounded_findings,
    width_findings,
)
from qpignn.diagnostics.grouping import (
    Grouping,
    by_column,
    by_community,
    by_degree,
    by_distance,
    by_number,
)
from qpignn.diagnostics.shift import label_shift
from qpignn.diagnostics.two_sample import Shift
from qpignn.diagnostics.width_error import (
    ErrorBin,
    distinct_widths,
    error_bins,
    rank_correlation,
)
from qpignn.errors import ArrayError, SettingError, quoted
from qpignn.intervals import Floats, Intervals, covers

if TYPE_CHECKING:
    from torch_geometric.data import Data

WIDTH_GROUP = "nodes with an interval of width {}"


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
        shift: unlabelled compared with labelled nodes; None where there are too few of either.
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
    training_warning: str | None = None,
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
        training_warning: why the model was not trained to its end, if it was not.

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
    level, known = intervals.confidence_level, int(labelled(data).sum())
    community = communities(data) if judged.any() else None  # else only where it is needed
    shift = label_shift(data, community=community)
    side, unbounded = intervals.side, _unbounded(intervals)
    findings = [
        *([] if training_warning is None else [Finding("training", "warning", training_warning)]),
        *shift_findings(shift, known, len(intervals) - known),
        *size_findings(calibration_nodes, level),
        *unbounded_findings(unbounded, len(intervals), side),
    ]
    if not judged.any():
        text = "no nodes were held out, so nothing is known of the coverage on unseen nodes"
        findings.append(Finding("coverage", "note", text))
        ordered = by_severity(findings)
        return Diagnosis(level, None, [], [], side, unbounded, 0, 0, [], shift, ordered)
    y = data.y.double().numpy()
    hits, below, above = _hits(intervals, y), y < intervals.lower, y > intervals.upper
    overall = count_coverage(hits[judged], level)
    curve = {found.confidence_level: found for found in (*others, intervals)}
    levels = [count_coverage(_hits(curve[wanted], y)[judged], wanted) for wanted in sorted(curve)]
    width = distinct_widths(intervals) if side == "both" else None
    groupings = _groupings(
        data, intervals, judged, given, width=width, community=community, columns=columns
    )
    divisions = divide(groupings, hits, width, judged, level, bound=intervals.bound)
    misses = int(below[judged].sum()), int(above[judged].sum())
    error = np.abs(y - intervals.prediction)[judged]
    errors = [] if width is None else error_bins(width[judged], error)
    findings += [
        *overall_findings(overall, side),
        *level_findings(levels, level),
        *group_findings(divisions, level),
        *miss_findings(*misses, side),
        *([] if width is None else _width_findings(width[judged], error)),
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


def _width_findings(width: Floats, error: Floats) -> list[Finding]:
    """Say whether wider intervals go with larger errors; nothing where a width is infinite."""
    return width_findings(rank_correlation(width, error)) if np.isfinite(width).all() else []


def _unbounded(intervals: Intervals) -> int:
    """Return how many nodes lack a bound that they should have."""
    needed = intervals.width if intervals.bound is None else intervals.bound
    return int((~np.isfinite(needed)).sum())


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
            known = quoted([*words, *names], 12)
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
    data: Data,
    intervals: Intervals,
    judged: Mask,
    given: Mask,
    *,
    width: Floats | None,
    community: Integers | None,
    columns: Mapping[str, Any],
) -> list[Grouping]:
    y = data.y.double().numpy()
    unlike = neighbour_gap(data, intervals.prediction, np.where(given, y, np.nan))
    return [
        by_degree(data, judged),
        by_community(data, judged, community),
        by_distance(data, given, judged),
        by_number(
            "homophily",
            unlike,
            judged,
            "nodes whose prediction is {} away from their neighbours' targets",
            without=("no known neighbour", "nodes without a known neighbour"),
        ),
        by_number("prediction", intervals.prediction, judged, "nodes with a prediction of {}"),
        *([] if width is None else [by_number("width", width, judged, WIDTH_GROUP)]),
        *(by_column(name, values, judged) for name, values in columns.items()),
    ]
