"""The intervals themselves, model by model, on the real data sets."""

from dataclasses import replace

from qpignn.paper.entries import bands_synthetic
from qpignn.paper.spec import REAL

SPEC = replace(
    bands_synthetic.SPEC,
    name="bands_real",
    title="Intervals of test nodes, real data sets",
    place="appendix K, real",
    datasets=REAL,
)
