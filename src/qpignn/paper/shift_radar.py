"""The structural shift, drawn: a plot for each graph trained on."""

from qpignn.paper.spec import Condition, Spec
from qpignn.paper.variants import ours

GRAPHS = ("ba", "er", "basic", "grid", "tree")
SPEC = Spec(
    name="shift_radar",
    title="Structural shift as radar plots",
    place="5.2 figure, structural shift",
    datasets=GRAPHS,
    variants=(ours(0.5),),
    conditions=tuple(Condition(f"from {graph}", {"source": graph}) for graph in GRAPHS),
    rows="condition",
    columns="dataset",
    picture="radar",
    note="Columns of basic mean something else than those of the other graphs.",
)
