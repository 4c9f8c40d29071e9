"""What each part of QpiGNN is worth, on the real data sets."""

from qpignn.paper.spec import REAL, Spec
from qpignn.paper.variants import ABLATION

SPEC = Spec(
    name="ablation_real",
    title="Ablation of architecture and loss, real data sets",
    place="appendix N, real",
    datasets=REAL,
    variants=ABLATION,
    facts="ablation_real",
    note="One net at a fixed λ and no calibration: α/2 under corrected, 0.5 under published.",
)
