"""What damage to the ER graph does: noise on features, noise on targets, lost edges."""

from qpignn.paper.spec import Condition, Spec, Variant
from qpignn.paper.variants import RQR, SQR

LEVELS = {
    "feature_noise": (0.1, 0.2, 0.3),
    "target_noise": (0.1, 0.2, 0.3),
    "edge_dropout": (0.2, 0.4, 0.6),
}
SPEC = Spec(
    title="Coverage and width on damaged ER graphs",
    place="5.2 table 2",
    datasets=("er",),
    variants=(
        Variant("QpiGNN", "qpignn", {}, {"lambda_width": 0.05, "weight_decay": 0.0}),
        SQR,
        RQR,
    ),
    conditions=tuple(
        Condition(f"{kind.replace('_', ' ')} {level:g}", {"damage": {kind: level}})
        for kind, levels in LEVELS.items()
        for level in levels
    ),
    rows="condition",
    note="Under corrected the whole graph is damaged, feature noise in multiples of a column's "
    "deviation; under published only what is trained on, in the columns' own units.",
)
