"""The intervals themselves, model by model, on the synthetic data sets."""

from qpignn.paper.spec import SYNTHETIC, Spec
from qpignn.paper.variants import BAYESIAN, CF_GNN, MC_DROPOUT, RQR, SQR, ours

SPEC = Spec(
    title="Intervals of test nodes, synthetic data sets",
    place="appendix K, synthetic",
    datasets=SYNTHETIC,
    variants=(SQR, RQR, BAYESIAN, MC_DROPOUT, CF_GNN, ours(0.5)),
    seeds=1,
    picture="bands",
    keep=("intervals",),
)
