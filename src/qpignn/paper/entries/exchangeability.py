"""Test nodes that are not like the given ones: those of high degree, other communities."""

from qpignn.paper.spec import REAL, Condition, Spec
from qpignn.paper.variants import ours

SPEC = Spec(
    title="Coverage and width under random, degree and community splits",
    place="5.2 table 3",
    datasets=REAL,
    variants=(ours(0.1),),
    conditions=tuple(Condition(by, {"split": by}) for by in ("random", "degree", "community")),
    columns="condition",
)
