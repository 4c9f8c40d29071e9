"""The best λ of each data set, drawn."""

from qpignn.paper.spec import REAL, SYNTHETIC, Spec
from qpignn.paper.variants import TUNED

SPEC = Spec(
    name="lambda_best",
    title="Best λ for each data set, drawn",
    place="appendix E, figure",
    datasets=(*SYNTHETIC, *REAL),
    variants=(TUNED,),
    metrics=("lambda_found", "mpiw"),
    seeds=10,
    picture="best_lambda",
    facts="lambda_opt",
    note="Under published the paper's own λ is taken: its search looked at the test nodes.",
)
