"""Supplementary metrics: error of the middle, and the coverage width criterion."""

from qpignn.paper.spec import REAL, SYNTHETIC, Spec
from qpignn.paper.variants import MODELS

SPEC = Spec(
    name="mpe_cwc",
    title="Mean prediction error (MPE) and coverage width criterion (CWC)",
    place="appendix J, MPE and CWC",
    datasets=(*SYNTHETIC, *REAL),
    variants=MODELS,
    metrics=("mpe", "cwc"),
    seeds=10,
    facts="mpe_cwc",
)
