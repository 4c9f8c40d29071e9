"""The names that options may take, known without importing torch.

The command line checks names against these before anything slow is imported. Tests hold
:data:`DATASETS` and :data:`METHODS` to the catalogs they come from.
"""

from __future__ import annotations

PROTOCOLS = {
    "corrected": "qpignn.experiments.corrected:CORRECTED",
    "published": "qpignn.paper.published.protocol:PUBLISHED",
}
"""Built-in experiment protocols and the objects that implement them, the default first."""
VIEWS = ("transductive", "inductive", "isolated")
SPLITS = ("random", "degree", "community")
ENGINES = ("processes", "ray")
DATASETS = (
    *("basic", "gaussian", "uniform", "outlier", "edge", "ba", "er", "grid", "tree"),
    *("education", "election", "income", "unemployment"),
    *("twitch", "chameleon", "crocodile", "squirrel", "anaheim", "chicago"),
    *("migration", "birth", "death"),
)
METHODS = (
    *("qpignn", "sqr", "rqr", "mc_dropout", "bayesian", "evidential", "deep_ensemble"),
    *("quantile", "corrected", "ablation", "boosting_quantiles"),
    *("cfgnn", "cfgnn_tuned", "cqr", "qpignn_single", "boosting"),
)
PREFIXES = ("conformal:", "ensemble:")
"""What may stand before the name of a method: a wrapper around it."""


def without_prefixes(method: str) -> str:
    """Return the name of a method without the wrappers before it.

    Example:
        >>> without_prefixes("conformal:ensemble:sqr")
        'sqr'

    Args:
        method: name of a method.
    """
    while method.startswith(PREFIXES):
        method = method.partition(":")[2]
    return method


METHOD_GROUP, DATASET_GROUP = "qpignn.methods", "qpignn.datasets"
"""Groups of entry points by which installed packages add methods and data sets."""
