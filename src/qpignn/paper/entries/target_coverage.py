"""The baselines at other wanted coverages."""

from qpignn.paper.spec import REAL, Condition, Spec
from qpignn.paper.variants import CF_GNN, RQR, SQR

SPEC = Spec(
    title="Baselines at wanted coverages of 80, 85 and 95 %",
    place="appendix D",
    datasets=REAL,
    variants=(SQR, RQR, CF_GNN),
    conditions=tuple(
        Condition(f"{100 * level:g} %", {"confidence_level": level}) for level in (0.8, 0.85, 0.95)
    ),
)
