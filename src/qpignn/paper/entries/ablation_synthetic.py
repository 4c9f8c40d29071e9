"""What each part of QpiGNN is worth, on the synthetic data sets."""

from qpignn.paper.spec import SYNTHETIC, Spec
from qpignn.paper.variants import ABLATION

SPEC = Spec(
    title="Ablation of architecture and loss, synthetic data sets",
    place="appendix N, synthetic",
    datasets=SYNTHETIC,
    variants=ABLATION,
    note="One net at a fixed λ and no calibration: α/2 under corrected, 0.5 under published.",
)
