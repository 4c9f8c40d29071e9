"""The names that options may take, known without importing torch.

The command line checks names against these before anything slow is imported. Tests hold
:data:`DATASETS` and :data:`METHODS` to the catalogs they come from.
"""

from __future__ import annotations

PROTOCOLS = ("corrected", "published")
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
    *("quantile", "corrected", "ablation", "cfgnn", "cfgnn_tuned", "cqr", "qpignn_single"),
)
PREFIXES = ("conformal:", "ensemble:")
"""What may stand before the name of a method: a wrapper around it."""
