"""The pinball loss, whose minimiser is a quantile."""

from __future__ import annotations

from torch import Tensor

from qpignn.objectives.joint import same_shape


def pinball(quantile: Tensor, y: Tensor, tau: Tensor | float) -> Tensor:
    """Return (τ − 1[y < q])·(y − q), elementwise; its mean is smallest where P(y < q) = τ.

    Args:
        quantile: predicted quantiles q.
        y: targets, of the same shape.
        tau: level τ of the quantile, strictly between 0 and 1; broadcast.
    """
    same_shape(quantile, y)
    above = y - quantile
    return (tau * above).maximum((tau - 1) * above)
