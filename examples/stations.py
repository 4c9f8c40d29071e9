"""From two tables to a map of predictions and of the widths of their intervals.

The data are synthetic measuring stations, a quarter of them without a measurement:

    python examples/stations.py stations.png
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

from qpignn import QpiGNN, example_tables, from_frames, split_nodes

stations, roads = example_tables()
data = split_nodes(from_frames(stations, roads, target="pollution"), test=0.2, seed=0)
model = QpiGNN(confidence_level=[0.5, 0.8, 0.9], y_min=0).fit(data)
print(model.diagnose(data))

intervals = model.predict_interval(data)
unmeasured = data.y.isnan().numpy()
table = intervals.select(unmeasured).to_frame()
print(table.head().round(1).to_string(index=False))

figure, panels = plt.subplots(1, 3, figsize=(16, 5), layout="constrained")
place = data.pos.numpy()
lines = place[data.edge_index.T.numpy()]
for panel, values, title in (
    (panels[0], intervals.prediction, "prediction"),
    (panels[1], intervals.width, "width of the 90 % interval"),
):
    panel.add_collection(LineCollection(lines, colors="0.85", linewidths=0.6, zorder=0))
    for some, marker in ((~unmeasured, "o"), (unmeasured, "D")):
        style = {"marker": marker, "s": 22, "edgecolors": "white", "linewidths": 0.3}
        scale = {"vmin": values.min(), "vmax": values.max(), "cmap": "viridis"}
        drawn = panel.scatter(*place[some].T, c=values[some], **style, **scale)
    figure.colorbar(drawn, ax=panel, shrink=0.8)
    panel.set_title(f"{title}  (diamonds: not measured)")
    panel.set_aspect(1 / np.cos(np.radians(place[:, 1].mean())))  # degrees of longitude are shorter
    panel.set_axis_off()
test = data.test_mask
intervals.select(test.numpy()).plot(data.y[test], axes=panels[2])
panels[2].set_title("held-out stations, by prediction")
panels[2].legend(frameon=False, loc="upper left")
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "stations.png", dpi=130)
