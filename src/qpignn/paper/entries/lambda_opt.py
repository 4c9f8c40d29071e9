"""The λ that Bayesian optimisation finds on held-out nodes."""

from qpignn.paper.spec import REAL, SYNTHETIC, Spec
from qpignn.paper.variants import TUNED

SPEC = Spec(
    title="Best λ for each data set, and the width it gives",
    place="appendix E",
    datasets=(*SYNTHETIC, *REAL),
    variants=(TUNED,),
    metrics=("lambda_found", "mpiw"),
    seeds=10,
    note="Under published the paper's own λ is taken: its search looked at the test nodes.",
)
