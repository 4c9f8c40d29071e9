"""The baselines' losses: by hand, and against independent libraries."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from scipy import stats
from sklearn.metrics import mean_pinball_loss

from qpignn import metrics
from qpignn.errors import ArrayError
from qpignn.objectives.evidential import evidential_nll, misplaced_evidence, squared_scale
from qpignn.objectives.gaussian import normal_kl, normal_nll
from qpignn.objectives.pinball import pinball
from qpignn.objectives.rqr import rqr

Y = torch.tensor([1.0, 3.0, -1.0, 9.0], dtype=torch.float64)
LOWER = torch.tensor([0.0, 1.0, 0.0, 3.0], dtype=torch.float64)
UPPER = torch.tensor([2.0, 3.0, 4.0, 7.0], dtype=torch.float64)


def test_pinball_by_hand_and_by_scikit_learn() -> None:
    costs = pinball(LOWER, Y, 0.1)
    assert costs.tolist() == pytest.approx([0.1, 0.2, 0.9, 0.6])
    assert costs.mean().item() == pytest.approx(mean_pinball_loss(Y, LOWER, alpha=0.1))
    taus = torch.tensor([0.5, 0.5, 0.9, 0.1])
    assert pinball(UPPER, Y, taus).tolist() == pytest.approx([0.5, 0.0, 0.5, 0.2])


def test_rqr_by_hand() -> None:
    """κ = −1, 0, 5, 12; inside are the first two; widths 2, 2, 4, 4."""
    options = {"wanted_coverage": 0.9, "lambda_width": 1.0, "gamma_order": 1.0}
    costs = rqr(LOWER, UPPER, Y, **options)
    assert costs.tolist() == pytest.approx(
        [1.9 * -1 + 0.5 * 4, 0 + 0.5 * 4, 2.9 * 5 + 0.5 * 16, 2.9 * 12 + 0.5 * 16]
    )
    crossed = rqr(UPPER[:1], LOWER[:1], Y[:1], **options)  # nothing is inside [2, 0]
    assert crossed.item() == pytest.approx(2.9 * -1 + 0.5 * 4 + 2)


@pytest.mark.parametrize("lam", [0.0, 0.1, 1.0])
def test_rqr_rests_at_the_wanted_coverage_whatever_lambda_is(lam: float) -> None:
    y = torch.from_numpy(stats.norm.ppf((np.arange(20_000) + 0.5) / 20_000))
    bounds = torch.tensor([-1.0, 1.0], dtype=torch.float64, requires_grad=True)
    adam = torch.optim.Adam([bounds], lr=0.02)
    for _ in range(800):
        adam.zero_grad()
        lower, upper = (bound.expand(20_000) for bound in bounds)
        costs = rqr(lower, upper, y, wanted_coverage=0.8, lambda_width=lam, gamma_order=1.0)
        costs.mean().backward()
        adam.step()
    lower, upper = (bound.detach().expand(20_000) for bound in bounds)
    assert metrics.picp(y, lower, upper) == pytest.approx(0.8, abs=0.01)


def law(seed: int = 0) -> tuple[torch.Tensor, ...]:
    rng = np.random.default_rng(seed)
    numbers = rng.normal(size=50), *rng.uniform(0.1, 4, (3, 50))
    gamma, nu, a, b = (torch.from_numpy(column) for column in numbers)
    return gamma, nu, a + 1, b


def test_evidential_likelihood_is_that_of_a_student_law() -> None:
    gamma, nu, a, b = law()
    y = torch.from_numpy(np.random.default_rng(1).normal(size=50) * 3)
    scale = squared_scale(nu, a, b).sqrt()
    wanted = -stats.t.logpdf(y, df=2 * a, loc=gamma, scale=scale)
    np.testing.assert_allclose(evidential_nll(gamma, nu, a, b, y), wanted, rtol=1e-9)


def test_the_student_law_is_the_mixture_it_should_be() -> None:
    """Draw variance and mean as a normal-inverse-gamma law says, then a target: same quantiles."""
    rng = np.random.default_rng(2)
    gamma, nu, a, b = 1.0, 2.0, 3.0, 1.5
    variance = b / rng.gamma(a, size=400_000)
    mean = rng.normal(gamma, np.sqrt(variance / nu))
    draws = rng.normal(mean, np.sqrt(variance))
    scale = squared_scale(*(torch.tensor(number) for number in (nu, a, b))).sqrt().item()
    for share in (0.05, 0.5, 0.95):
        wanted = stats.t.ppf(share, df=2 * a, loc=gamma, scale=scale)
        assert np.quantile(draws, share) == pytest.approx(wanted, abs=0.02)


@pytest.mark.parametrize("far", [1e3, 1e8, 1e15])
def test_extreme_targets_cost_a_finite_amount(far: float) -> None:
    gamma, nu, a, b = (column.float().requires_grad_() for column in law())
    cost = evidential_nll(gamma, nu, a, b, torch.full((50,), far)).sum()
    cost.backward()
    assert torch.isfinite(cost)
    assert torch.isfinite(gamma.grad).all()


def test_misplaced_evidence_by_hand() -> None:
    one = torch.ones(1)
    assert misplaced_evidence(one, 2 * one, 3 * one, -one).item() == 2 * (2 * 2 + 3)


def test_normal_likelihood_and_divergence_by_torch() -> None:
    gamma, nu, _, b = law()
    y = torch.linspace(-3, 3, 50, dtype=torch.float64)
    theirs = torch.distributions.Normal(gamma, nu.sqrt())
    torch.testing.assert_close(normal_nll(gamma, nu.log(), y), -theirs.log_prob(y))
    prior = torch.distributions.Normal(torch.zeros(50).double(), b[0].sqrt().expand(50))
    wanted = torch.distributions.kl_divergence(theirs, prior)
    torch.testing.assert_close(normal_kl(gamma, nu.log(), b[0].item()), wanted)


def test_doubt_about_the_mean_is_averaged_over() -> None:
    draws = np.random.default_rng(3).normal(0.5, 2.0, 500_000)  # means
    sampled = -stats.norm.logpdf(1.0, draws, 1.5).mean()
    exact = normal_nll(
        torch.tensor([0.5]), torch.tensor([2 * np.log(1.5)]), torch.tensor([1.0]), 4.0
    )
    assert exact.item() == pytest.approx(sampled, abs=0.01)


@pytest.mark.parametrize(
    "call",
    [
        lambda y: pinball(LOWER, y, 0.5),
        lambda y: rqr(LOWER, UPPER, y, wanted_coverage=0.9, lambda_width=1.0, gamma_order=1.0),
        lambda y: normal_nll(LOWER, UPPER, y),
        lambda y: evidential_nll(LOWER, UPPER, UPPER, UPPER, y),
    ],
)
def test_nodes_are_never_compared_with_other_nodes(call: Any) -> None:
    with pytest.raises(ArrayError, match="one shape"):
        call(Y.unsqueeze(1))
