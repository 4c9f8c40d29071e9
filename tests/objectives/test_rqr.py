"""Hand-computed values, and the coverage at which the loss has its minimum."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from scipy import stats

from qpignn import metrics
from qpignn.errors import ArrayError
from qpignn.objectives.rqr import rqr

Y = torch.tensor([1.0, 3.0, -1.0, 9.0], dtype=torch.float64)
LOWER = torch.tensor([0.0, 1.0, 0.0, 3.0], dtype=torch.float64)
UPPER = torch.tensor([2.0, 3.0, 4.0, 7.0], dtype=torch.float64)


def test_rqr_hand_computed() -> None:
    """κ = −1, 0, 5, 12; inside are the first two; widths 2, 2, 4, 4."""
    options = {"wanted_coverage": 0.9, "lambda_width": 1.0, "gamma_order": 1.0}
    costs = rqr(LOWER, UPPER, Y, **options)
    assert costs.tolist() == pytest.approx(
        [1.9 * -1 + 0.5 * 4, 0 + 0.5 * 4, 2.9 * 5 + 0.5 * 16, 2.9 * 12 + 0.5 * 16]
    )
    crossed = rqr(UPPER[:1], LOWER[:1], Y[:1], **options)  # nothing is inside [2, 0]
    assert crossed.item() == pytest.approx(2.9 * -1 + 0.5 * 4 + 2)


@pytest.mark.parametrize("lam", [0.0, 0.1, 1.0])
def test_rqr_converges_to_the_wanted_coverage_for_any_lambda(lam: float) -> None:
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


def test_nodes_are_never_compared_with_other_nodes() -> None:
    options = {"wanted_coverage": 0.9, "lambda_width": 1.0, "gamma_order": 1.0}
    for bad in ((LOWER[:, None], UPPER, Y), (LOWER, UPPER[:, None], Y), (LOWER, UPPER, Y[:, None])):
        with pytest.raises(ArrayError, match="one shape"):
            rqr(*bad, **options)
