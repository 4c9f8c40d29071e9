"""The ablation drawn: coverage against width, with SQR and RQR beside it."""

from qpignn.paper.spec import SYNTHETIC, Spec
from qpignn.paper.variants import ABLATION, RQR, SQR

SPEC = Spec(
    title="Coverage against width in the ablation, with SQR and RQR",
    place="5.2 figure, ablation",
    datasets=SYNTHETIC,
    variants=(*ABLATION, SQR, RQR),
    picture="scatter",
)
