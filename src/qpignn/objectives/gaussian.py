"""Normal likelihood, and the Kullback–Leibler divergence of normal distributions."""

from __future__ import annotations

import math

from torch import Tensor

from qpignn.objectives.joint import same_shape


def normal_nll(
    mean: Tensor, log_variance: Tensor, y: Tensor, mean_variance: Tensor | float = 0.0
) -> Tensor:
    """Return the expected negative log-likelihood of y ~ N(m, σ²), elementwise.

    Where the mean itself is random, m ~ N(μ, v), it is

        ½ (log σ² + ((y − μ)² + v)/σ² + log 2π).

    Args:
        mean: μ.
        log_variance: log σ².
        y: targets; all three of one shape.
        mean_variance: v; 0 for a mean that is not random.
    """
    same_shape(mean, log_variance, y)
    squared = (y - mean) ** 2 + mean_variance
    return 0.5 * (log_variance + squared * (-log_variance).exp() + math.log(2 * math.pi))


def normal_kl(mean: Tensor, log_variance: Tensor, prior_variance: float = 1.0) -> Tensor:
    """Return KL(N(μ, σ²) ‖ N(0, τ²)) = ½ ((σ² + μ²)/τ² − 1 − log σ² + log τ²), elementwise.

    Args:
        mean: μ.
        log_variance: log σ², of the same shape.
        prior_variance: τ².
    """
    same_shape(mean, log_variance)
    ratio = (log_variance.exp() + mean**2) / prior_variance
    return 0.5 * (ratio - 1 - log_variance + math.log(prior_variance))
