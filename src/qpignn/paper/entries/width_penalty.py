"""A linear against a squared price of width."""

from qpignn.paper.spec import REAL, SYNTHETIC, Spec, Variant
from qpignn.paper.variants import BEST

L2 = {"width": "l2"}
SPEC = Spec(
    title="L1 against L2 width penalty, each at its tuned λ",
    place="appendix F",
    datasets=(*SYNTHETIC, *REAL),
    variants=(
        Variant("L1", "qpignn", {"lambda_width": "tuned"}, {"lambda_width": BEST}, seeds=3),
        Variant("L2", "qpignn", {"lambda_width": "tuned", **L2}, {"lambda_width": BEST, **L2}, 3),
    ),
    note="Under published both have the λ that the paper reports as best, which is that of L1.",
)
