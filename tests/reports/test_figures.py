from pathlib import Path

import matplotlib.image
import numpy as np
import pytest

from qpignn import Intervals
from qpignn.reports.figures import lambda_curve, save_figure


def test_the_band_marks_what_is_missed(tmp_path: Path) -> None:
    y = np.array([3.0, 1.0, 2.0])
    intervals = Intervals(y, y - np.array([1, 1, -0.5]), y + 1, 0.9)
    figure = intervals.plot(y)
    (axes,) = figure.axes
    assert axes.get_title() == "90 % intervals: 66.7 % of targets inside"
    lines = {line.get_label(): line.get_xydata().tolist() for line in axes.lines}
    assert lines["target, missed"] == [[1.0, 2.0]]  # second by prediction
    assert axes.get_legend().get_texts()[-1].get_text() == "target, missed (1 of 3)"
    assert lines["target, inside"] == [[0.0, 1.0], [2.0, 3.0]]
    save_figure(figure, tmp_path / "band.png")
    picture = matplotlib.image.imread(tmp_path / "band.png")
    assert picture.shape[:2] == (675, 1350)
    assert picture.std() > 0.05  # something is drawn


def test_the_curve_of_lambda_has_a_panel_each_and_the_theory() -> None:
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
