"""Deep evidential regression (Amini et al. 2020, https://arxiv.org/abs/1910.02600).

A net says the four numbers of a normal-inverse-gamma law over the mean and variance of a target:
γ (the mean's mean), ν (how many observations that is worth), a > 1 and b (the variance's law).
Integrating mean and variance out leaves a Student-t law with 2a degrees of freedom, centre γ and
squared scale b(1 + ν)/(νa).
"""

from __future__ import annotations

import torch
from torch import Tensor

from qpignn.objectives.joint import same_shape


def squared_scale(nu: Tensor, a: Tensor, b: Tensor) -> Tensor:
    """Of the predictive Student-t law."""
    return b * (1 + nu) / (nu * a)


def evidential_nll(gamma: Tensor, nu: Tensor, a: Tensor, b: Tensor, y: Tensor) -> Tensor:
    """Negative log-density of the predictive Student-t law, element by element.

    Written with the logarithm of 1 + z²/df, so targets a million scales away stay finite.
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
    """|y − γ|·(2ν + a): evidence claimed where the mean is wrong."""
    same_shape(gamma, nu, a, y)
    return (y - gamma).abs() * (2 * nu + a)
