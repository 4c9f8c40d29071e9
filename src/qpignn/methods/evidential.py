"""Evidential regression: a law over the mean and the variance of each target."""

from __future__ import annotations

from typing import Any

import torch
from scipy.special import stdtrit
from torch import Tensor, nn

from qpignn.errors import check_non_negative
from qpignn.methods.net import NetMethod
from qpignn.nn.heads import LinearHead
from qpignn.objectives.evidential import evidential_nll, misplaced_evidence, squared_scale
from qpignn.objectives.joint import mean_over_all
from qpignn.training.loop import StepResult

SMALLEST = 1e-6  # of ν, a − 1 and b: keeps degenerate laws finite


class Evidential(NetMethod):
    """Deep evidential regression (Amini et al. 2020) on a graph.

    The net says the four numbers of a normal-inverse-gamma law; the interval is that of the
    Student-t law left when mean and variance are integrated out, at any level. No promise of
    coverage.

    Args:
        evidence_penalty: price of evidence claimed where the mean is wrong.
        net: settings of every net method, see :class:`qpignn.methods.net.NetMethod`.
    """

    any_level = True

    def __init__(
        self,
        confidence_level: float | list[float] = 0.9,
        *,
        evidence_penalty: float = 0.01,
        **net: Any,
    ) -> None:
        super().__init__(confidence_level, **net)
        self.evidence_penalty = evidence_penalty

    def check_settings(self) -> None:
        """Raise if a setting is outside the values it may take."""
        super().check_settings()
        check_non_negative("evidence_penalty", self.evidence_penalty)

    def _head(self, generator: torch.Generator) -> nn.Module:
        return LinearHead(self.hidden, 4, generator=generator, members=self._members())

    def _law(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor, Tensor]:
        """Return γ, ν, a, b."""
        nu, a, b = nn.functional.softplus(outputs[1:]) + SMALLEST
        return outputs[0], nu, a + 1, b

    def _value(self, outputs: Tensor) -> Tensor:
        return outputs[0]

    def _bounds(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        gamma, nu, a, b = self._law(outputs)
        scale = squared_scale(nu, a, b).sqrt()
        steps = [
            torch.from_numpy(stdtrit(2 * a.detach().double().numpy(), (1 + level) / 2)).to(gamma)
            for level in self._trained_levels()
        ]
        reach = torch.stack(steps) * scale
        return gamma - reach, gamma + reach

    def _loss(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> StepResult:
        gamma, nu, a, b = self._law(outputs)
        targets = y.expand_as(gamma)
        costs = evidential_nll(gamma, nu, a, b, targets)
        costs = costs + self.evidence_penalty * misplaced_evidence(gamma, nu, a, targets)
        return self._measured(mean_over_all(costs, weight).sum(), outputs, y, weight)
