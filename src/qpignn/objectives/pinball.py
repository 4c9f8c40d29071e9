"""The pinball loss: what a quantile minimises."""

from __future__ import annotations

from torch import Tensor

from qpignn.objectives.joint import same_shape


def pinball(quantile: Tensor, y: Tensor, tau: Tensor | float) -> Tensor:
    """(τ − 1[y < q])·(y − q), element by element; smallest where P(y < q) = τ."""
    same_shape(quantile, y)
    above = y - quantile
    return (tau * above).maximum((tau - 1) * above)
