"""What a fit costs: seconds, memory, weights."""

from dataclasses import replace

from qpignn.paper.entries import main
from qpignn.paper.spec import REAL

SPEC = replace(
    main.SPEC,
    title="Seconds, peak memory above the start (MB) and weights of a fit",
    place="appendix L",
    datasets=REAL,
    metrics=("fit_seconds", "peak_mb", "parameters"),
    note="The paper's seconds are of a V100 GPU, ours of one CPU core; its memory is of the whole "
    "process, and its two figures a cell for CF-GNN are left out.",
)
