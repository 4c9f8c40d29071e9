"""Results of a fitted model on a graph: intervals of every node, diagnosis and metrics."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from qpignn.data.graph import check_graph, given_nodes, test_nodes
from qpignn.diagnostics.diagnosis import Diagnosis, diagnose
from qpignn.errors import SettingError, brief
from qpignn.intervals import Intervals
from qpignn.methods.base import IntervalMethod
from qpignn.metrics import summary

if TYPE_CHECKING:
    from torch_geometric.data import Data


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
) -> Results:
    """Predict the intervals of a whole graph at all levels and diagnose one level.

    Args:
        model: the fitted method.
        data: the graph, with its masks and all known targets.
        confidence_level: one of the fitted levels; default the highest.
        by: columns to group by; see :func:`qpignn.diagnostics.diagnosis.diagnose`.

    Returns:
        Intervals, diagnosis and metrics.

    Raises:
        SettingError: if ``model`` is not a method.
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
    return Results(data, intervals, diagnosis, held_out_figures(data, intervals))


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
