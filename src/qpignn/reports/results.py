"""A fitted model examined on a graph: intervals of every node, diagnosis and figures."""

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
    """What a report is about.

    Attributes:
        data: the graph.
        intervals: of every node, at the level reported.
        diagnosis: on the held-out nodes.
        figures: the metrics of the held-out nodes; None where there are none.
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
    """Predict on a whole graph at every level there is, and judge one of them.

    Args:
        model: the fitted method.
        data: the graph, with its masks and all known targets.
        confidence_level: which of the fitted levels to judge; default the highest.
        by: columns to divide by; see :func:`qpignn.diagnostics.diagnosis.diagnose`.
    """
    if not isinstance(model, IntervalMethod):
        raise SettingError(f"model: expected a fitted method, got {brief(model)}")
    data = check_graph(data, need_target=False)
    intervals, *others = model.predict_levels(data, confidence_level=confidence_level)
    calibrated = model.fitted_.calibrated_on
    found = diagnose(
        data,
        intervals,
        others,
        by=by,
        calibration_nodes=calibrated,
        training_warning=model.history_.warning(),
    )
    return Results(data, intervals, found, held_out_figures(data, intervals))


def held_out_figures(data: Data, intervals: Intervals) -> dict[str, float | None] | None:
    """Return the metrics of all held-out nodes, as ``qpignn evaluate --json`` prints them."""
    test = test_nodes(data)
    if not bool(test.any()):
        return None
    chosen = intervals.select(test.numpy())
    figures = summary(chosen, data.y[test], y_given=data.y[given_nodes(data)])
    return {"confidence_level": chosen.confidence_level, "n_test": int(test.sum()), **figures}
