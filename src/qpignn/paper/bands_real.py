"""The intervals themselves, model by model, on the real data sets."""

from qpignn.paper.spec import REAL, Spec
from qpignn.paper.variants import BAYESIAN, CF_GNN, MC_DROPOUT, RQR, SQR, ours

SPEC = Spec(
    name="bands_real",
    title="Intervals of test nodes, real data sets",
    place="appendix K, real",
    datasets=REAL,
    variants=(SQR, RQR, BAYESIAN, MC_DROPOUT, CF_GNN, ours(0.5)),
    seeds=1,
    picture="bands",
    keep=("intervals",),
)
