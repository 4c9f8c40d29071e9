"""Deep evidential regression (Amini et al. 2020, https://arxiv.org/abs/1910.02600).

A net outputs the four parameters of a normal-inverse-gamma distribution over mean μ and variance
σ² of a target,

    σ² ~ InverseGamma(a, b),  μ | σ² ~ N(γ, σ²/ν),  a > 1,

where ν is the number of observations that γ is worth. Marginalising over μ and σ² gives a Student-t
distribution with 2a degrees of freedom, location γ and squared scale b(1 + ν)/(νa).
"""

from __future__ import annotations

import torch
from torch import Tensor

from qpignn.objectives.joint import same_shape


def squared_scale(nu: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Return the squared scale b(1 + ν)/(νa) of the predictive Student-t distribution.

    Args:
        nu: ν > 0.
        a: a > 1, of the same shape.
        b: b > 0, of the same shape.
    """
    return b * (1 + nu) / (nu * a)


def evidential_nll(gamma: Tensor, nu: Tensor, a: Tensor, b: Tensor, y: Tensor) -> Tensor:
    """Return the negative log-density of the predictive Student-t distribution, elementwise.

    With squared scale s² = b(1 + ν)/(νa),

        log Γ(a) − log Γ(a + ½) + ½ log(2aπs²) + (a + ½) log(1 + (y − γ)²/(2as²)),

    which stays finite for targets many scales away.

    Args:
        gamma: location γ.
        nu: ν > 0.
        a: a > 1.
        b: b > 0.
        y: targets; all of one shape.
    """
    same_shape(gamma, nu, a, b, y)
    degrees = 2 * a
    scale2 = squared_scale(nu, a, b)
    distance = (y - gamma) ** 2 / (degrees * scale2)
    return (
        torch.lgamma(a)
        - torch.lgamma(a + 0.5)
        + 0.5 * torch.log(degrees * torch.pi * scale2)
        + (a + 0.5) * torch.log1p(distance)
    )


def misplaced_evidence(gamma: Tensor, nu: Tensor, a: Tensor, y: Tensor) -> Tensor:
    """Return |y − γ|·(2ν + a), elementwise: the penalty on evidence for a wrong mean.

    Args:
        gamma: location γ.
        nu: ν > 0.
        a: a > 1.
        y: targets; all of one shape.
    """
    same_shape(gamma, nu, a, y)
    return (y - gamma).abs() * (2 * nu + a)
