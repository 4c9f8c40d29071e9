"""A linear against a squared price of width."""

from qpignn.paper.spec import REAL, SYNTHETIC, Spec, Variant
from qpignn.paper.variants import BEST

SPEC = Spec(
    name="width_penalty",
    title="L1 against L2 width penalty, each at its tuned λ",
    place="appendix F",
    datasets=(*SYNTHETIC, *REAL),
    variants=tuple(
        Variant(
            form.upper(),
            "qpignn",
            {"lambda_width": "tuned", "width": form},
            {"lambda_width": BEST, "width": form},
            seeds=3,
        )
        for form in ("l1", "l2")
    ),
    facts="width_penalty",
)
