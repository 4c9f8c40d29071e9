"""A Bayesian net: a distribution over the weights of the last layer, and a learnt noise level."""

from __future__ import annotations

from dataclasses import replace

import torch
from torch import Tensor, nn

from qpignn.methods.normal import NormalMethod
from qpignn.methods.training_set import Seen
from qpignn.nn.heads import BayesianHead
from qpignn.objectives.gaussian import normal_kl, normal_nll
from qpignn.training.loop import StepResult

Outputs = tuple[Tensor, Tensor, Tensor]
"""Mean, variance of the mean, log-variance of the noise, each (members, nodes)."""


class Bayesian(NormalMethod):
    """Variational inference over the last layer (mean and log-variance per weight).

    It minimises the expected normal likelihood plus the divergence from a standard normal prior,
    spread over the training nodes. A linear layer of normal weights gives a normal prediction, so
    both are computed exactly, without sampling; the interval counts doubt and noise. One noise
    level serves all nodes. No promise of coverage.

    Args:
        net: settings of every net method, see :class:`qpignn.methods.net.NetMethod`.
    """

    def _head(self, generator: torch.Generator) -> nn.Module:
        return BayesianHead(self.hidden, generator=generator, members=self._members())

    def _moments(self, outputs: Outputs) -> tuple[Tensor, Tensor, Tensor]:
        mean, doubt, log_noise = outputs
        return mean, log_noise.exp(), doubt

    def _costs(self, outputs: Outputs, y: Tensor) -> Tensor:
        mean, doubt, log_noise = outputs
        return normal_nll(mean, log_noise, y, doubt)

    def _train(self, seen: Seen) -> None:
        self._nodes = (seen.weight * ~seen.held_out > 0).sum(dim=1)  # each member's own
        super()._train(seen)

    def _loss(self, outputs: Outputs, y: Tensor, weight: Tensor | None) -> StepResult:
        head = self.net_.head
        assert isinstance(head, BayesianHead)
        divergence = normal_kl(head.mean.weight, head.log_variance).sum(dim=(1, 2))
        likelihood = super()._loss(outputs, y, weight)
        loss = likelihood.loss + (divergence / self._nodes).sum()
        return replace(likelihood, loss=loss)
