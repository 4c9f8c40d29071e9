r"""Relaxed quantile regression (Pouplin et al. 2024) with the paper's ordering penalty (Eq. 4–5).

With κ = (y − lower)(y − upper), negative inside the interval, the loss of a node is

    (c + 2λ − 1[inside])·κ + λ/2·(upper − lower)² + γ·(lower − upper)⁺.

Setting its expected derivatives in the two bounds to zero and subtracting them gives
P(inside) = c for every λ: **c is the wanted coverage** (the original calls it α, which elsewhere
in this package is the miscoverage rate), and λ only selects among the intervals of that coverage.
"""

from __future__ import annotations

import torch
from torch import Tensor

from qpignn.intervals import covers
from qpignn.objectives.joint import same_shape


def rqr(
    lower: Tensor,
    upper: Tensor,
    y: Tensor,
    *,
    wanted_coverage: Tensor | float,
    lambda_width: float,
    gamma_order: float,
) -> Tensor:
    """Return the loss of every node, elementwise; the module's docstring has the equation.

    Args:
        lower: lower bounds.
        upper: upper bounds.
        y: targets; all three of one shape.
        wanted_coverage: c; broadcast.
        lambda_width: λ, weight of the squared width.
        gamma_order: γ, weight of the penalty on crossed bounds.
    """
    same_shape(lower, upper, y)
    product = (y - lower) * (y - upper)
    inside: Tensor = covers(y, lower, upper).to(y.dtype)
    return (
        (wanted_coverage + 2 * lambda_width - inside) * product
        + lambda_width / 2 * (upper - lower) ** 2
        + gamma_order * torch.relu(lower - upper)
    )
