"""How fast coverage comes to the wanted one with more nodes: the O(1/√N) claim."""

from qpignn.paper.spec import SEED, Condition, Spec
from qpignn.paper.variants import ours

SIZES = (100, 200, 400, 800, 1600, 3200)
SPEC = Spec(
    title="Error of coverage against the number of nodes",
    place="appendix C.1",
    datasets=("basic", "gaussian", "uniform"),
    variants=(ours(0.05),),
    conditions=tuple(
        Condition(f"{size} nodes", {"options": {"nodes": size, "draw": SEED}}) for size in SIZES
    ),
    metrics=("coverage_error", "picp", "mpiw"),
    rows="condition",
    columns="dataset",
    seeds=20,
    picture="coverage_error",
    note="Each seed is another draw of the graph. A fifth of the nodes is judged, so their own "
    "chance error falls as 1/√N too. Under published one draw and one split serve all runs.",
)
