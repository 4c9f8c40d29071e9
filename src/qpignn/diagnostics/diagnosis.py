"""Diagnosis of the intervals of a graph on its held-out nodes.

Nodes are grouped only by quantities that do not depend on their target (degree, prediction, width,
a column): even perfect intervals miss more often where targets are extreme.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict, dataclass
from html import escape
from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from qpignn.data.graph import check_graph, given_nodes, labelled, test_nodes
from qpignn.data.matrix import column
from qpignn.data.structure import communities, neighbour_gap
from qpignn.diagnostics import findings, grouping
from qpignn.diagnostics.coverage import Coverage, Division, by_group, count_coverage
from qpignn.diagnostics.findings import Finding
from qpignn.diagnostics.shift import label_shift
from qpignn.diagnostics.two_sample import Shift
from qpignn.diagnostics.width_error import ErrorBin, distinct_widths, error_bins, rank_correlation
from qpignn.errors import ArrayError, SettingError, quoted
from qpignn.intervals import Intervals, covers

if TYPE_CHECKING:
    from torch_geometric.data import Data


@dataclass(frozen=True)
class Diagnosis:
    """Result of :func:`diagnose`. ``print`` shows the findings.

    Attributes:
        confidence_level: the nominal coverage.
        coverage: coverage of all held-out nodes; None if there are none.
        levels: coverage at every level, in increasing order: the calibration curve.
        divisions: coverage and width by group.
        side: ``both``, or the only bound of one-sided intervals: ``lower`` or ``upper``.
        unbounded: number of nodes whose interval lacks a bound that it should have.
        below, above: number of held-out targets below and above their interval.
        errors: mean prediction error in bins of width.
        shift: comparison of unlabelled with labelled nodes; None if there are too few of either.
        findings: the findings, warnings first.
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
        """The findings of severity ``warning``."""
        return [finding for finding in self.findings if finding.severity == "warning"]

    def to_dict(self) -> dict[str, Any]:
        """Return all fields as dictionaries, lists, numbers and strings."""
        return asdict(self)

    def _repr_html_(self) -> str:
        """Show the findings as a list in a notebook."""
        pairs = ((finding.severity, escape(finding.text)) for finding in self.findings)
        items = (f"<li><strong>{severity}</strong>: {text}</li>" for severity, text in pairs)
        return f"<ul>{''.join(items)}</ul>"

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
    """Assess the intervals of a whole graph on its held-out nodes (its ``test_mask``).

    A fitted method's own ``diagnose`` computes the intervals itself.

    Args:
        data: the graph, with its masks and all known targets.
        intervals: intervals of every node of the graph. If they use the known targets of
            neighbours, nodes are also grouped by how many of these they have, and a finding says
            how much narrower that makes the intervals.
        others: intervals at other levels, for the calibration curve.
        by: further groupings: names of feature columns, or a mapping from names to one value per
            node. Categorical columns are always included. The target itself is refused: even
            perfect intervals miss more often where it is extreme.
        calibration_nodes: number of calibration nodes; None for methods without calibration.
        training_warning: why training ended early, if it did.

    Returns:
        Coverage, groups, width and shift, with the findings as sentences.

    Raises:
        ArrayError: if the intervals are not one per node of the graph.
    """
    data = check_graph(data, need_target=False)
    for one in (intervals, *others):
        kind = type(one).__name__
        if not isinstance(one, Intervals):
            raise ArrayError(f"intervals: expected the result of predict_interval, got {kind}")
        if len(one) != data.x.shape[0]:
            raise ArrayError(
                f"expected intervals of all {data.x.shape[0]:,} nodes of the graph, got "
                f"{len(one):,}; predict without a mask"
            )
    columns = _columns(data, by)
    held_out, given = test_nodes(data).numpy(), given_nodes(data).numpy()
    level, n_labelled = intervals.confidence_level, int(labelled(data).sum())
    community = communities(data) if held_out.any() else None  # else only for the shift test
    shift = label_shift(data, community=community)
    side, needed = intervals.side, intervals.width if intervals.bound is None else intervals.bound
    unbounded = int((~np.isfinite(needed)).sum())
    reported = [
        *([] if training_warning is None else [Finding("training", "warning", training_warning)]),
        *findings.shift_findings(shift, n_labelled, len(intervals) - n_labelled),
        *findings.size_findings(calibration_nodes, level),
        *findings.unbounded_findings(unbounded, len(intervals), side),
        *findings.novelty_findings(intervals.select(~given)),
        *findings.neighbour_findings(intervals.select(~given)),
    ]
    if not held_out.any():
        text = "no nodes were held out, so the coverage on new nodes is unknown"
        ordered = findings.by_severity([*reported, Finding("coverage", "note", text)])
        return Diagnosis(level, None, [], [], side, unbounded, 0, 0, [], shift, ordered)
    y = data.y.double().numpy()
    curve = {one.confidence_level: one for one in (*others, intervals)}
    hits = {key: covers(y, curve[key].lower, curve[key].upper) for key in sorted(curve)}
    levels = [count_coverage(hit[held_out], key) for key, hit in hits.items()]
    overall = count_coverage(hits[level][held_out], level)
    width = distinct_widths(intervals) if side == "both" else None
    difference = neighbour_gap(data, intervals.prediction, np.where(given, y, np.nan))
    numbers = {"prediction": (intervals.prediction, "nodes with a prediction of {}")}
    if width is not None:
        numbers["width"] = (width, "nodes with an interval of width {}")
    count = intervals.known_neighbours
    groupings = [
        grouping.by_degree(data, held_out),
        grouping.by_community(data, held_out, community),
        grouping.by_distance(data, given, held_out),
        *([] if count is None else [grouping.by_known_neighbours(count, held_out)]),
        grouping.by_number(
            "homophily",
            difference,
            held_out,
            "nodes whose prediction differs by {} from their neighbours' targets",
            without=("no given neighbour", "nodes without a given neighbour"),
        ),
        *(grouping.by_number(name, one, held_out, text) for name, (one, text) in numbers.items()),
        *(grouping.by_column(name, values, held_out) for name, values in columns.items()),
    ]
    divisions = by_group(groupings, hits[level], width, held_out, level, bound=intervals.bound)
    below = int((y < intervals.lower)[held_out].sum())
    above = int((y > intervals.upper)[held_out].sum())
    error = np.abs(y - intervals.prediction)[held_out]
    errors = [] if width is None else error_bins(width[held_out], error)
    reported += [
        *findings.overall_findings(overall, side),
        *findings.level_findings(levels, level),
        *findings.group_findings(divisions, level),
        *findings.miss_findings(below, above, side),
    ]
    if width is not None and errors:  # no bins if a width is infinite
        reported += findings.width_findings(rank_correlation(width[held_out], error))
    return Diagnosis(
        *(level, overall, levels, divisions, side, unbounded),
        below=below,
        above=above,
        errors=errors,
        shift=shift,
        findings=findings.by_severity(reported),
    )


def _columns(data: Data, by: Mapping[str, Any] | Sequence[str]) -> dict[str, Any]:
    """Return the columns to group by: the categorical ones and those of ``by``."""
    coding = data.get("coding")
    columns: dict[str, Any] = {}
    if coding is not None:
        columns = {name: coding.categories_of(data.x, name) for name in coding.category_columns}
    if isinstance(by, Mapping):
        for name, values in by.items():
            _refuse_target(data, name, values)
        return {**columns, **by}
    if isinstance(by, str) or not isinstance(by, Iterable):
        raise SettingError(f"by: expected a list of columns, got {by!r}; write by=[{by!r}]")
    names = list(data.get("feature_names") or [])
    for name in by:
        if name in columns:
            continue
        if name not in names:
            listed = quoted([*columns, *names], 12)
            has = f"it has {listed}" if listed else "it has no names; pass by={name: values}"
            raise SettingError(f"by: expected a column of the graph, got {name!r}; {has}")
        columns[name] = column(data.x, names.index(name)).double().numpy()
    return columns


def _refuse_target(data: Data, name: str, values: Any) -> None:
    numbers = pd.to_numeric(pd.Series(values), errors="coerce").to_numpy(dtype=np.float64)
    mask = labelled(data).numpy()
    comparable = mask.any() and len(numbers) == len(mask)
    if comparable and np.array_equal(numbers[mask], data.y.double().numpy()[mask]):
        raise SettingError(
            f"by: expected columns that do not depend on the target, got the target itself as "
            f"{name!r}: even perfect intervals miss more often where it is extreme; see "
            f"'prediction', which is always included"
        )
