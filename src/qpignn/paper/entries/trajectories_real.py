"""How a training walks through coverage, width and loss, on the real data sets."""

from dataclasses import replace

from qpignn.paper.entries import trajectories_synthetic
from qpignn.paper.spec import REAL

SPEC = replace(
    trajectories_synthetic.SPEC,
    name="trajectories_real",
    title="Training in the space of coverage, width and loss, real data sets",
    place="appendix C.3, real",
    datasets=REAL,
)
