from __future__ import annotations

import pytest

from qpignn.paper.loss_curve import lambda_curve


def test_lambda_curve_has_a_panel_per_data_set_and_the_theory() -> None:
    rows = [
        {"loss": loss, "dataset": name, "lambda_width": lam, "picp": 1 - 2 * lam, "mpiw": 0.1 / lam}
        for name in ("er", "ba")
        for loss in ("printed", "published")
        for lam in (0.01, 0.1)
    ]
    own = {"loss": "self-calibrating", "lambda_width": "auto", "picp": 0.9, "mpiw": 0.2}
    rows += [{**own, "dataset": name} for name in ("er", "ba")]
    figure = lambda_curve(rows, 0.9)
    assert len(figure.axes) == 4
    coverage, width = figure.axes[0], figure.axes[2]
    theory, printed = coverage.lines[:2]
    assert theory.get_ydata() == pytest.approx(1 - 2 * theory.get_xdata())
    assert printed.get_xdata().tolist() == [0.01, 0.1]
    assert printed.get_ydata().tolist() == pytest.approx([0.98, 0.8])
    assert [line.get_xdata()[0] for line in width.lines if len(line.get_xdata()) == 2][-1] == (
        pytest.approx(0.05)
    )  # α/2 is marked
