"""QpiGNN's two heads trained by RQR's loss instead of its own."""

from qpignn.paper.spec import REAL, SYNTHETIC, Spec
from qpignn.paper.variants import AUTO, TUNED, fixed, part

SPEC = Spec(
    title="QpiGNN's heads with RQR's loss",
    place="appendix B",
    datasets=(*SYNTHETIC, *REAL),
    variants=(
        part("QpiGNN with RQR's loss", loss="rqr", lambda_width=0.1),
        fixed(0.5),
        TUNED,
        AUTO,
    ),
)
