"""Normal likelihoods, and the divergence between normal laws."""

from __future__ import annotations

import math

from torch import Tensor

from qpignn.objectives.joint import same_shape


def normal_nll(
    mean: Tensor, log_variance: Tensor, y: Tensor, doubt: Tensor | float = 0.0
) -> Tensor:
    """Negative log-likelihood of y ~ N(mean, variance), element by element.

    ``doubt`` is the variance of the mean itself, where that is a random quantity: the result is
    then the expected negative log-likelihood over it.
    """
    same_shape(mean, log_variance, y)
    squared = (y - mean) ** 2 + doubt
    return 0.5 * (log_variance + squared * (-log_variance).exp() + math.log(2 * math.pi))


def normal_kl(mean: Tensor, log_variance: Tensor, prior_variance: float = 1.0) -> Tensor:
    """KL(N(mean, variance) ‖ N(0, prior variance)), element by element."""
    same_shape(mean, log_variance)
    ratio = (log_variance.exp() + mean**2) / prior_variance
    return 0.5 * (ratio - 1 - log_variance + math.log(prior_variance))
