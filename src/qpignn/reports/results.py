"""Results of a fitted model on a graph: intervals of every node, diagnosis and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch_geometric.data import Data

from qpignn.data.graph import check_graph, given_nodes, test_nodes
from qpignn.diagnostics.diagnosis import Diagnosis, diagnose
from qpignn.diagnostics.findings import Finding, by_severity
from qpignn.diagnostics.graph_effect import graph_effect
from qpignn.errors import SettingError, SplitError, brief
from qpignn.intervals import Intervals
from qpignn.methods.base import IntervalMethod
from qpignn.methods.without_graph import fit_without_graph
from qpignn.metrics import summary


@dataclass(frozen=True)
class Results:
    """Results that a report shows.

    Attributes:
        data: the graph.
        intervals: intervals of every node, at the reported level.
        diagnosis: diagnosis on the held-out nodes.
        figures: metrics of the held-out nodes; None if there are none.
    """

    data: Data
    intervals: Intervals
    diagnosis: Diagnosis
    figures: dict[str, float | None] | None


def examine(
    model: IntervalMethod,
    data: Data,
    *,
    confidence_level: float | None = None,
    by: Mapping[str, Any] | Sequence[str] = (),
    without_graph: bool = False,
) -> Results:
    """Predict the intervals of a whole graph at all levels and diagnose one level.

    Args:
        model: the fitted method.
        data: the graph, with its masks and all known targets.
        confidence_level: one of the fitted levels; default the highest.
        by: columns to group by; see :func:`qpignn.diagnostics.diagnosis.diagnose`.
        without_graph: whether to compare with a fit of the same method without edges.

    Returns:
        Intervals, diagnosis and metrics.

    Raises:
        SettingError: if ``model`` is not a method, or cannot be fitted without the graph.
        SplitError: if it is to be compared on held-out nodes, and there are none.
    """
    if not isinstance(model, IntervalMethod):
        raise SettingError(f"model: expected a fitted method, got {brief(model)}")
    data = check_graph(data, need_target=False)
    intervals, *others = model.predict_levels(data, confidence_level=confidence_level)
    diagnosis = diagnose(
        data,
        intervals,
        others,
        by=by,
        calibration_nodes=model.fitted_.calibrated_on,
        training_warning=model.history_.warning(),
    )
    if without_graph:
        finding = graph_finding(model, data, intervals)
        diagnosis = replace(diagnosis, findings=by_severity([*diagnosis.findings, finding]))
    return Results(data, intervals, diagnosis, held_out_figures(data, intervals))


def graph_finding(model: IntervalMethod, data: Data, intervals: Intervals) -> Finding:
    """Return whether the graph helps, on the held-out nodes.

    Args:
        model: the fitted method.
        data: the graph of its fit, with its masks and all known targets.
        intervals: of every node.

    Raises:
        SplitError: if no labelled nodes were held out.
    """
    test = test_nodes(data)
    if not bool(test.any()):
        raise SplitError(
            "expected held-out nodes to compare with a fit without the graph, got none; mark some "
            "in the graph's test_mask (fit --test-fraction 0.2)"
        )
    level = intervals.confidence_level
    plain = fit_without_graph(model, data).predict_interval(data, test, confidence_level=level)
    return graph_effect(intervals.select(test.numpy()), plain, data.y[test]).finding()


def held_out_figures(data: Data, intervals: Intervals) -> dict[str, float | None] | None:
    """Return the metrics of all held-out nodes, as ``qpignn evaluate --json`` prints them.

    Args:
        data: the graph, with its masks and all known targets.
        intervals: intervals of every node.
    """
    test = test_nodes(data)
    if not bool(test.any()):
        return None
    chosen = intervals.select(test.numpy())
    figures = summary(chosen, data.y[test], y_given=data.y[given_nodes(data)])
    return {"confidence_level": chosen.confidence_level, "n_test": int(test.sum()), **figures}
