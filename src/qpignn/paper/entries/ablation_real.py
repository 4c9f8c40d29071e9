"""What each part of QpiGNN is worth, on the real data sets."""

from dataclasses import replace

from qpignn.paper.entries import ablation_synthetic
from qpignn.paper.spec import REAL

SPEC = replace(
    ablation_synthetic.SPEC,
    name="ablation_real",
    title="Ablation of architecture and loss, real data sets",
    place="appendix N, real",
    datasets=REAL,
    facts="ablation_real",
)
