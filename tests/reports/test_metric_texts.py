from __future__ import annotations

import numpy as np

from qpignn.intervals import Intervals
from qpignn.metrics import summary
from qpignn.reports.metric_texts import metric_texts


def test_metric_texts_by_kind_leave_out_metrics_without_one() -> None:
    assert metric_texts("heading")["picp"] == "PICP"
    assert metric_texts("label")["mpiw"] == "mean width (MPIW), in train ranges"
    assert "parameters" not in metric_texts("heading")
    assert "winkler_one" not in metric_texts("label")


def test_metric_texts_explain_every_metric_of_a_result() -> None:
    y = np.arange(4.0)
    metrics = summary(Intervals(y, y - 1, y + 1, 0.9), y, y_given=y)
    assert {*metrics} <= {*metric_texts("about")}
