"""How a training walks through coverage, width and loss, on the synthetic data sets."""

from qpignn.paper.spec import SYNTHETIC, Spec, Variant

SPEC = Spec(
    title="Training in the space of coverage, width and loss, synthetic data sets",
    place="appendix C.3, synthetic",
    datasets=SYNTHETIC,
    variants=(Variant("QpiGNN", "qpignn", {"patience": None}, {"lambda_width": 0.5}),),
    seeds=1,
    picture="trajectories",
    keep=("history",),
    note="Coverage and width are those of the training nodes; scales differ between protocols.",
)
