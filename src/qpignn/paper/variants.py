"""The paper's models under our names, and the ones we add."""

from __future__ import annotations

from qpignn.paper.spec import Variant, best_lambdas

SQR = Variant("SQR", "sqr")
RQR = Variant("RQR", "rqr")
BAYESIAN = Variant("Bayesian", "bayesian")
MC_DROPOUT = Variant("MC dropout", "mc_dropout")
CF_GNN = Variant("CF-GNN", "cfgnn")
CF_GNN_TUNED = Variant("CF-GNN tuned", "cfgnn_tuned", seeds=3)
# strong baselines the paper gives no figures for
EVIDENTIAL = Variant("evidential", "evidential", published=None)
ENSEMBLE = Variant("deep ensemble", "deep_ensemble", published=None)
CQR = Variant("CQR", "cqr", published=None)

BEST = best_lambdas()


def fixed(price: float) -> Variant:
    """QpiGNN at a fixed λ: as printed under ``corrected``, as published under ``published``.

    Args:
        price: the width penalty λ.

    Returns:
        The variant.
    """
    settings = {"lambda_width": price}
    return Variant(f"QpiGNN λ={price:g}", "qpignn", settings, settings)


# the published search judged λ by the test nodes: its outcome is taken, not the search
TUNED = Variant("QpiGNN λ tuned", "qpignn", {"lambda_width": "tuned"}, {"lambda_width": BEST}, 3)
AUTO = Variant("QpiGNN", "qpignn", {}, None)

BASELINES = (SQR, RQR, BAYESIAN, MC_DROPOUT, CF_GNN, CF_GNN_TUNED, EVIDENTIAL, ENSEMBLE, CQR)
MODELS = (*BASELINES, fixed(0.5), fixed(0.1), TUNED, AUTO)


def ours(price: float, label: str = "QpiGNN") -> Variant:
    """The default under ``corrected``, the published loss at a fixed λ under ``published``.

    Args:
        price: the width penalty λ under ``published``.
        label: label in the table.

    Returns:
        The variant.
    """
    return Variant(label, "qpignn", {}, {"lambda_width": price})


def part(label: str, **settings: object) -> Variant:
    """An ablation: one net trained to the end, so that nothing but the part decides.

    Args:
        label: label in the table.
        **settings: settings of the ablation.

    Returns:
        The variant.
    """
    return Variant(label, "ablation", {"patience": None, **settings}, settings)


ABLATION = (
    part("dual head"),
    part("fixed margin 0.05", head="fixed", margin=0.05),
    part("fixed margin 0.10", head="fixed", margin=0.1),
    part("single head", head="single"),
    part("full loss"),
    part("coverage only", loss="coverage"),
    part("width only", loss="width"),
    part("no loss", loss="none"),
)
