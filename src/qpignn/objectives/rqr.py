r"""Relaxed quantile regression (Pouplin et al. 2024) with the paper's ordering penalty (Eq. 4–5).

With κ = (y − lower)(y − upper), negative inside the interval, the loss of a node is

    (c + 2λ − 1[inside])·κ + λ/2·(upper − lower)² + γ·(lower − upper)⁺.

Setting its expected derivatives in the two bounds to zero and subtracting them gives
P(inside) = c for every λ: **c is the wanted coverage** (the original calls it α, which everywhere
else here is the miss), and λ only decides which of the intervals with that coverage is taken.
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
    """Return the loss, element by element: a node is compared with its own target only."""
    same_shape(lower, upper, y)
    product = (y - lower) * (y - upper)
    inside: Tensor = covers(y, lower, upper).to(y.dtype)
    return (
        (wanted_coverage + 2 * lambda_width - inside) * product
        + lambda_width / 2 * (upper - lower) ** 2
        + gamma_order * torch.relu(lower - upper)
    )
