from pathlib import Path

import matplotlib.image
import numpy as np

from qpignn import Intervals
from qpignn.reports.figures import save_figure


def test_plot_marks_missed_targets(tmp_path: Path) -> None:
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
