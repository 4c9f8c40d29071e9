"""Evidential regression: a law over the mean and the variance of each target."""

from dataclasses import dataclass
from typing import ClassVar

import torch
from scipy.special import stdtrit
from torch import Tensor, nn

from qpignn.errors import check_non_negative
from qpignn.methods.net import NetMethod
from qpignn.nn.heads import LinearHead
from qpignn.objectives.evidential import evidential_nll, misplaced_evidence, squared_scale
from qpignn.objectives.joint import mean_over_all

SMALLEST = 1e-6  # of ν, a − 1 and b: keeps degenerate laws finite


@dataclass(kw_only=True, eq=False, repr=False)
class Evidential(NetMethod):
    """Deep evidential regression (Amini et al. 2020) on a graph.

    The net predicts the four parameters of a normal-inverse-gamma law; the interval is that of the
    Student-t law left when mean and variance are integrated out, at any level. No promise of
    coverage.

    Args:
        evidence_penalty: price of evidence claimed where the mean is wrong.
    """

    any_level: ClassVar[bool] = True

    evidence_penalty: float = 0.01

    def check_settings(self) -> None:
        """Raise SettingError if a setting has a value that is not allowed."""
        super().check_settings()
        check_non_negative("evidence_penalty", self.evidence_penalty)

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return the head."""
        return LinearHead(self.hidden, 4, generator=generator, members=members)

    def _law(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return γ, ν, a, b."""
        nu, a, b = nn.functional.softplus(outputs[1:]) + SMALLEST
        return outputs[0], nu, a + 1, b

    def compute_value(self, outputs: Tensor) -> Tensor:
        """Return γ."""
        return outputs[0]

    def compute_bounds(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return quantiles of the Student-t law."""
        gamma, nu, a, b = self._law(outputs)
        scale = squared_scale(nu, a, b).sqrt()
        steps = [
            torch.from_numpy(stdtrit(2 * a.detach().double().numpy(), (1 + level) / 2)).to(gamma)
            for level in self.trained_levels()
        ]
        half_width = torch.stack(steps) * scale
        return gamma - half_width, gamma + half_width

    def compute_loss(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the loss of :mod:`qpignn.objectives.evidential`."""
        gamma, nu, a, b = self._law(outputs)
        targets = y.expand_as(gamma)
        costs = evidential_nll(gamma, nu, a, b, targets)
        costs = costs + self.evidence_penalty * misplaced_evidence(gamma, nu, a, targets)
        return mean_over_all(costs, weight).sum()
