"""A deep ensemble: several nets that each predict a mean and a variance."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from qpignn.methods.normal import NormalMethod
from qpignn.nn.heads import LinearHead
from qpignn.objectives.gaussian import normal_nll


@dataclass(kw_only=True, eq=False, repr=False)
class DeepEnsemble(NormalMethod):
    """Nets trained by the normal likelihood (Lakshminarayanan et al. 2017), mixed.

    The interval is that of a normal law with the mixture's mean and variance. It is correct where
    noise is normal and members estimate its variance well; coverage is not guaranteed otherwise.

    Args:
        members: how many nets.
    """

    members: int | None = 5

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return the head."""
        return LinearHead(self.hidden, 2, generator=generator, members=members)

    def compute_moments(self, outputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean and variance of the noise; a single net has no variance of its mean."""
        mean, log_variance = outputs
        return mean, log_variance.clamp(-20, 20).exp(), torch.zeros_like(mean)

    def compute_costs(self, outputs: Tensor, y: Tensor) -> Tensor:
        """Return the negative normal log-likelihood."""
        mean, log_variance = outputs
        return normal_nll(mean, log_variance.clamp(-20, 20), y)
