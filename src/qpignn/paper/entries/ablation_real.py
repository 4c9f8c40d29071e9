"""What each part of QpiGNN is worth, on the real data sets."""

from qpignn.paper.entries import ablation_synthetic
from qpignn.paper.spec import on_real

SPEC = on_real(ablation_synthetic.SPEC)
