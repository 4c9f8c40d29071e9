"""Upper bounds on road flows in Anaheim, to plan the capacity of roads.

Flows are known on four fifths of the roads. For the others the model predicts a bound that the true
flow does not exceed nine times out of ten. Needs the data set anaheim, which is read from the
folder QPIGNN_DATA_DIR or downloaded:

    python examples/roads.py roads.png
"""

from __future__ import annotations

import sys

import matplotlib.pyplot as plt
import numpy as np
from matplotlib.collections import LineCollection

from qpignn import QpiGNN, load_dataset, split_nodes
from qpignn.data.structure import adjacency
from qpignn.reports.layout import lay_out

data = split_nodes(load_dataset("anaheim"), test=0.2, seed=0)
test = data.test_mask.numpy()
flow = data.y.numpy()

bound = QpiGNN(0.9, side="upper").fit(data).predict_interval(data)
kept = float((flow[test] <= bound.upper[test]).mean())
lucky = float((flow[test] <= bound.prediction[test]).mean())
print(f"{test.sum()} roads without a known flow (flows are standardised)")
print(f"built for the prediction, {lucky:.0%} of them would suffice; for the bound, {kept:.0%}")

figure, panels = plt.subplots(1, 2, figsize=(14, 6), layout="constrained")
place = lay_out(adjacency(data))
lines = place[data.edge_index.T.numpy()]
panels[0].add_collection(LineCollection(lines, colors="0.85", linewidths=0.4, zorder=0))
margin = bound.upper - bound.prediction
style = {"cmap": "viridis", "s": 16, "edgecolors": "white", "linewidths": 0.2}
drawn = panels[0].scatter(*place.T, c=margin, vmax=np.quantile(margin, 0.98), **style)
figure.colorbar(drawn, ax=panels[0], shrink=0.8, label="bound − prediction")
panels[0].set_title("where the bound is far above the prediction")
panels[0].set_aspect("equal")
panels[0].set_axis_off()

order = np.flatnonzero(test)[np.argsort(bound.upper[test])]
rank = np.arange(len(order))
panels[1].fill_between(
    rank, bound.prediction[order], bound.upper[order], color="#9ecae1", label="reserve"
)
over = flow[order] > bound.upper[order]
panels[1].plot(rank[~over], flow[order][~over], ".", color="#08306b", label="true flow")
panels[1].plot(rank[over], flow[order][over], "x", color="#d95f02", label="true flow, above")
panels[1].set_xlabel("roads without a known flow, by bound")
panels[1].set_ylabel("flow (standardised)")
panels[1].set_title(f"{kept:.0%} stay below their bound (wanted 90 %)")
panels[1].legend(frameon=False)
panels[1].spines[["top", "right"]].set_visible(False)
figure.savefig(sys.argv[1] if len(sys.argv) > 1 else "roads.png", dpi=130)
