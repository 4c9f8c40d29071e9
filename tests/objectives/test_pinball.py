"""Hand-computed values, and comparison with scikit-learn."""

from __future__ import annotations

import pytest
import torch
from sklearn.metrics import mean_pinball_loss

from qpignn.errors import ArrayError
from qpignn.objectives.pinball import pinball

Y = torch.tensor([1.0, 3.0, -1.0, 9.0], dtype=torch.float64)
LOWER = torch.tensor([0.0, 1.0, 0.0, 3.0], dtype=torch.float64)
UPPER = torch.tensor([2.0, 3.0, 4.0, 7.0], dtype=torch.float64)


def test_pinball_hand_computed_and_equals_scikit_learn() -> None:
    costs = pinball(LOWER, Y, 0.1)
    assert costs.tolist() == pytest.approx([0.1, 0.2, 0.9, 0.6])
    assert costs.mean().item() == pytest.approx(mean_pinball_loss(Y, LOWER, alpha=0.1))
    taus = torch.tensor([0.5, 0.5, 0.9, 0.1])
    assert pinball(UPPER, Y, taus).tolist() == pytest.approx([0.5, 0.0, 0.5, 0.2])


def test_nodes_are_never_compared_with_other_nodes() -> None:
    with pytest.raises(ArrayError, match="one shape"):
        pinball(LOWER, Y.unsqueeze(1), 0.5)
