"""Train on one synthetic graph, predict on the others."""

from qpignn.paper.spec import Condition, Spec
from qpignn.paper.variants import ours

GRAPHS = ("ba", "er", "basic", "grid", "tree")
SPEC = Spec(
    title="Trained on one kind of graph, judged on another",
    place="appendix M",
    datasets=GRAPHS,
    variants=(ours(0.5),),
    conditions=tuple(Condition(f"from {graph}", {"source": graph}) for graph in GRAPHS),
    rows="condition",
    columns="dataset",
    note="Columns of basic mean something else than those of the other graphs.",
)
