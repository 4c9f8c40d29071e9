"""Coverage and width against λ on the ER graph."""

from qpignn.paper.spec import Condition, Spec, Variant

LAMBDAS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.3, 0.4, 0.45, 0.5, 0.55, 0.6, 0.8, 1.0)
# so that λ alone decides: nothing else shrinks or widens, and no early stop picks an epoch
PLAIN = {"dropout": 0.0, "weight_decay": 0.0, "lr": 5e-3, "patience": None}
SPEC = Spec(
    title="Coverage and width against λ on ER",
    place="5.2 figure, λ",
    datasets=("er",),
    variants=(Variant("QpiGNN", "qpignn", PLAIN),),
    conditions=tuple(
        Condition(f"λ={lam:g}", {"settings": {"lambda_width": lam}}) for lam in LAMBDAS
    ),
    rows="condition",
    columns="dataset",
    picture="lambda_curve",
)
