"""Methods that predict a mean and a variance: intervals at any level from a normal law."""

from abc import abstractmethod
from dataclasses import dataclass
from typing import Any, ClassVar

import torch
from scipy.special import ndtri
from torch import Tensor

from qpignn.methods.base import Bounds
from qpignn.methods.net import NetMethod
from qpignn.objectives.joint import mean_over_all


@dataclass(kw_only=True, eq=False, repr=False)
class NormalMethod(NetMethod):
    """A normal law per unit: a mean, a variance of the noise, and a variance of the mean.

    With mean m, variances s² (noise) and v (of the mean), the interval at level c is
    m ± z·√(s² + v), where z is the (1 + c)/2 quantile of the standard normal law. A method
    implements :meth:`compute_moments` and :meth:`compute_costs`.
    """

    any_level: ClassVar[bool] = True

    @abstractmethod
    def compute_moments(self, outputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean, variance of the noise, variance of the mean: each (members, units).

        Args:
            outputs: of the head.
        """

    @abstractmethod
    def compute_costs(self, outputs: Any, y: Tensor) -> Tensor:
        """Return what to minimise on average, (members, units).

        Args:
            outputs: of the head.
            y: (members, units), targets in the nets' units.
        """

    def compute_value(self, outputs: Any) -> Tensor:
        """Return the mean."""
        return self.compute_moments(outputs)[0]

    def compute_bounds(self, outputs: Any) -> tuple[Tensor, Tensor]:
        """Return quantiles of each member's normal law."""
        value, noise, of_mean = self.compute_moments(outputs)
        deviation = (noise + of_mean).sqrt()
        half = torch.stack([ndtri((1 + level) / 2) * deviation for level in self.trained_levels()])
        return value - half, value + half

    def combine_members(self, outputs: Any, level: float) -> Bounds:
        """Return quantiles of a normal law with the mixture's mean and variance.

        With a calibrator, members are combined as in other methods.
        """
        if self.scalings_:
            return super().combine_members(outputs, level)
        mean, noise, of_mean = self.compute_moments(outputs)
        noise, of_mean = noise.mean(dim=0), of_mean.mean(dim=0) + mean.var(dim=0, correction=0)
        deviation = (noise + of_mean).sqrt()
        half = ndtri((1 + level) / 2) * deviation
        value = mean.mean(dim=0)
        certain = deviation == 0
        share = 1 - noise.sqrt() / deviation.masked_fill(certain, 1)
        return Bounds(value, value - half, value + half, share.masked_fill(certain, 0))

    def compute_loss(self, outputs: Any, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the mean cost, summed over members."""
        costs = self.compute_costs(outputs, y.expand_as(self.compute_value(outputs)))
        return mean_over_all(costs, weight).sum()
