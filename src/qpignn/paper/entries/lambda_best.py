"""The best λ of each data set, drawn."""

from dataclasses import replace

from qpignn.paper.entries import lambda_opt

SPEC = replace(
    lambda_opt.SPEC,
    title="Best λ for each data set, drawn",
    place="appendix E, figure",
    picture="best_lambda",
    facts="lambda_opt",
)
