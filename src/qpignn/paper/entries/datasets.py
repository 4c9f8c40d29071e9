"""How large the data sets are."""

from qpignn.paper.spec import REAL, SYNTHETIC, Spec

SPEC = Spec(
    title="Nodes, edges and features of the data sets",
    place="appendix G",
    datasets=(*SYNTHETIC, *REAL),
    metrics=("nodes", "edges", "features"),
    table="statistics",
    note="Under corrected an undirected edge counts once, and self-loops are gone.",
)
