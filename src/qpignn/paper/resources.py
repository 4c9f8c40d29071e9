"""What a fit costs: seconds, memory, weights."""

from qpignn.paper.spec import REAL, Spec
from qpignn.paper.variants import MODELS

SPEC = Spec(
    name="resources",
    title="Seconds, peak memory above the start (MB) and weights of a fit",
    place="appendix L",
    datasets=REAL,
    variants=MODELS,
    metrics=("fit_seconds", "peak_mb", "parameters"),
    seeds=10,
    facts="resources",
    note="The paper's seconds are of a V100 GPU, ours of one CPU core; its memory is of the whole "
    "process, and its two figures a cell for CF-GNN are left out.",
)
