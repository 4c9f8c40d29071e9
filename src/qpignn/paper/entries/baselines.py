"""What each baseline is good for, in words."""

from qpignn.paper.spec import Spec

SPEC = Spec(
    title="The baselines: strengths, limits, cost",
    place="appendix I",
    text=(
        ("method", "strengths", "limits", "nets trained"),
        ("SQR", "any level from one fit", "bounds may cross; covers too little", "1"),
        ("RQR", "free share of the two tails", "covers too little on new nodes", "1"),
        ("Bayesian", "doubt and noise, computed exactly", "one noise level; normal law", "1"),
        ("MC dropout", "added to any point prediction", "one noise level; 100 passes", "1"),
        ("evidential", "a law for each node", "sensitive to its penalty", "1"),
        ("deep ensemble", "noise by node, and disagreement", "normal law", "5"),
        ("CQR", "guaranteed coverage", "a quarter of the nodes calibrates", "1"),
        ("CF-GNN", "guaranteed coverage, learnt correction", "nodes for two more jobs", "2"),
        ("QpiGNN", "coverage by itself, narrow", "no finite-sample guarantee", "10 small"),
    ),
)
