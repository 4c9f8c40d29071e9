"""Against scipy's Student law, by drawing from the laws it mixes, and by hand."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from qpignn.errors import ArrayError
from qpignn.objectives.evidential import evidential_nll, misplaced_evidence, squared_scale


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


def test_student_quantiles_equal_those_of_the_simulated_mixture() -> None:
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


def test_misplaced_evidence_hand_computed() -> None:
    one = torch.ones(1)
    assert misplaced_evidence(one, 2 * one, 3 * one, -one).item() == 2 * (2 * 2 + 3)


@pytest.mark.parametrize("column", range(5))
def test_nodes_are_never_compared_with_other_nodes(column: int) -> None:
    columns = [torch.ones(4) for _ in range(5)]
    columns[column] = torch.ones(4, 1)
    with pytest.raises(ArrayError, match="one shape"):
        evidential_nll(*columns)
    gamma, nu, a, _, y = columns
    if column != 3:  # b has no part in it
        with pytest.raises(ArrayError, match="one shape"):
            misplaced_evidence(gamma, nu, a, y)
