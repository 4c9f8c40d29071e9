"""Methods that say a mean and a variance: intervals at any level from a law of their own."""

from __future__ import annotations

from abc import abstractmethod
from typing import Any

import torch
from scipy.special import ndtri
from torch import Tensor

from qpignn.methods.base import Bounds
from qpignn.methods.net import NetMethod
from qpignn.objectives.joint import mean_over_all
from qpignn.training.loop import StepResult


class NormalMethod(NetMethod):
    """A mean, a variance of the noise, and doubt about the mean; the sum is read as normal.

    A method says the three numbers (:meth:`_moments`) and what each node costs (:meth:`_costs`).
    """

    any_level = True

    @abstractmethod
    def _moments(self, outputs: Any) -> tuple[Tensor, Tensor, Tensor]:
        """Return mean, variance of the noise, variance of the mean: each (members, nodes)."""

    @abstractmethod
    def _costs(self, outputs: Any, y: Tensor) -> Tensor:
        """Return what to minimise on average, (members, nodes)."""

    def _reach(self, outputs: Any, level: float) -> Tensor:
        """Return half-widths at a level, (members, nodes)."""
        _, noise, doubt = self._moments(outputs)
        reach: Tensor = ndtri((1 + level) / 2) * (noise + doubt).sqrt()
        return reach

    def _value(self, outputs: Any) -> Tensor:
        return self._moments(outputs)[0]

    def _bounds(self, outputs: Any) -> tuple[Tensor, Tensor]:
        value = self._value(outputs)
        reach = torch.stack([self._reach(outputs, level) for level in self._trained_levels()])
        return value - reach, value + reach

    def _interval(self, outputs: Any, level: float) -> Bounds:
        """Members are mixed: their means' variance is doubt too."""
        mean, noise, doubt = self._moments(outputs)
        noise, doubt = noise.mean(dim=0), doubt.mean(dim=0) + mean.var(dim=0, correction=0)
        deviation = (noise + doubt).sqrt()
        reach = ndtri((1 + level) / 2) * deviation
        value = mean.mean(dim=0)
        certain = deviation == 0
        share = 1 - noise.sqrt() / deviation.masked_fill(certain, 1)
        return Bounds(value, value - reach, value + reach, share.masked_fill(certain, 0))

    def _loss(self, outputs: Any, y: Tensor, weight: Tensor | None) -> StepResult:
        costs = self._costs(outputs, y.expand_as(self._value(outputs)))
        return self._measured(mean_over_all(costs, weight).sum(), outputs, y, weight)
