"""Supplementary metrics: sharpness and Winkler score."""

from qpignn.paper.spec import REAL, SYNTHETIC, Spec
from qpignn.paper.variants import MODELS

SPEC = Spec(
    name="sharpness_winkler",
    title="Sharpness and Winkler score",
    place="appendix J, sharpness and Winkler score",
    datasets=(*SYNTHETIC, *REAL),
    variants=MODELS,
    metrics=("sharpness", "winkler"),
    seeds=10,
    facts="sharpness_winkler",
    note="Under the published protocol a unit missed counts once, as in the published code; "
    "otherwise 2/α times, which makes the score proper.",
)
