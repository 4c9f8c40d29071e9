"""The intervals themselves, model by model, on the real data sets."""

from qpignn.paper.entries import bands_synthetic
from qpignn.paper.spec import on_real

SPEC = on_real(bands_synthetic.SPEC)
