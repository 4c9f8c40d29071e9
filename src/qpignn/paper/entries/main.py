"""The paper's main table: coverage and width of every model on every data set."""

from qpignn.paper.spec import REAL, SYNTHETIC, Spec
from qpignn.paper.variants import MODELS

SPEC = Spec(
    title="Coverage and width of every model on every data set",
    place="5.2 table 1",
    datasets=(*SYNTHETIC, *REAL),
    variants=MODELS,
    seeds=10,
    note="CF-GNN's published widths are in the target's own unit, not in train ranges. The "
    "published coverage of RQR and Bayesian held every interval against every target; ours is "
    "that of each node.",
)
