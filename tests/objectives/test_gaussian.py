"""Comparison with torch's normal distribution and with samples."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from qpignn.errors import ArrayError
from qpignn.objectives.gaussian import normal_kl, normal_nll


def test_normal_likelihood_and_divergence_by_torch() -> None:
    rng = np.random.default_rng(0)
    mean, variance = (
        torch.from_numpy(rng.normal(size=50)),
        torch.from_numpy(rng.uniform(0.1, 4, 50)),
    )
    y = torch.linspace(-3, 3, 50, dtype=torch.float64)
    theirs = torch.distributions.Normal(mean, variance.sqrt())
    torch.testing.assert_close(normal_nll(mean, variance.log(), y), -theirs.log_prob(y))
    for prior_variance in (1.0, 2.5):
        prior = torch.distributions.Normal(torch.zeros(50).double(), prior_variance**0.5)
        wanted = torch.distributions.kl_divergence(theirs, prior)
        torch.testing.assert_close(normal_kl(mean, variance.log(), prior_variance), wanted)
    standard = torch.distributions.Normal(torch.zeros(50).double(), 1.0)
    wanted = torch.distributions.kl_divergence(theirs, standard)
    torch.testing.assert_close(normal_kl(mean, variance.log()), wanted)  # what is left out is 1


def test_normal_nll_averages_over_the_variance_of_the_mean() -> None:
    draws = np.random.default_rng(3).normal(0.5, 2.0, 500_000)  # means
    sampled = -stats.norm.logpdf(1.0, draws, 1.5).mean()
    exact = normal_nll(
        torch.tensor([0.5]), torch.tensor([2 * np.log(1.5)]), torch.tensor([1.0]), 4.0
    )
    assert exact.item() == pytest.approx(sampled, abs=0.01)


def test_nodes_are_never_compared_with_other_nodes() -> None:
    flat, column = torch.zeros(4), torch.zeros(4, 1)
    for bad in ((column, flat, flat), (flat, column, flat), (flat, flat, column)):
        with pytest.raises(ArrayError, match="one shape"):
            normal_nll(*bad)
    with pytest.raises(ArrayError, match="one shape"):
        normal_kl(flat, column)
