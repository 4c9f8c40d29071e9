"""A Bayesian net: a distribution over the weights of the last layer, and a learnt noise level."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from qpignn.methods.normal import NormalMethod
from qpignn.nn.heads import BayesianHead
from qpignn.nn.interval_net import IntervalNet
from qpignn.objectives.gaussian import normal_kl, normal_nll

Outputs = tuple[Tensor, Tensor, Tensor]
"""Mean, variance of the mean, log-variance of the noise, each (members, units)."""


@dataclass(kw_only=True, eq=False, repr=False)
class Bayesian(NormalMethod):
    """Variational inference over the last layer (mean and log-variance per weight).

    It minimises the expected normal likelihood plus the divergence from a standard normal prior,
    divided by the number of training units. A linear layer of normal weights gives a normal
    prediction, so both are computed exactly, without sampling; the interval includes the variance
    of the mean and the noise. All units share one noise level. Coverage is not guaranteed.
    """

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return the head."""
        return BayesianHead(self.hidden, generator=generator, members=members)

    def compute_moments(self, outputs: Outputs) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean, variance of the noise, variance of the mean."""
        mean, of_mean, log_noise = outputs
        return mean, log_noise.exp(), of_mean

    def compute_costs(self, outputs: Outputs, y: Tensor) -> Tensor:
        """Return the expected negative log-likelihood."""
        mean, of_mean, log_noise = outputs
        return normal_nll(mean, log_noise, y, of_mean)

    def weight_penalty(self, net: IntervalNet, units: Tensor) -> Tensor | None:
        """Return the divergence from the prior, per training unit."""
        head = net.head
        assert isinstance(head, BayesianHead)
        divergence = normal_kl(head.mean.weight, head.log_variance).sum(dim=(1, 2))
        return (divergence / units).sum()
