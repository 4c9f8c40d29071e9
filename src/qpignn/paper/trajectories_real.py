"""How a training walks through coverage, width and loss, on the real data sets."""

from qpignn.paper.spec import REAL, Spec, Variant

SPEC = Spec(
    name="trajectories_real",
    title="Training in the space of coverage, width and loss, real data sets",
    place="appendix C.3, real",
    datasets=REAL,
    variants=(Variant("QpiGNN", "qpignn", {"patience": None}, {"lambda_width": 0.5}),),
    seeds=1,
    picture="trajectories",
    keep=("history",),
    note="Coverage and width are those of the training nodes; scales differ between protocols.",
)
