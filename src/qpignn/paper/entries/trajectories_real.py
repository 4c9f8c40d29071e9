"""How a training walks through coverage, width and loss, on the real data sets."""

from qpignn.paper.entries import trajectories_synthetic
from qpignn.paper.spec import on_real

SPEC = on_real(trajectories_synthetic.SPEC)
