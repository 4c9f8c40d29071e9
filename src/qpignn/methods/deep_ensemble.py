"""A deep ensemble: several nets that each say a mean and a variance."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from qpignn.methods.normal import NormalMethod
from qpignn.nn.heads import LinearHead
from qpignn.objectives.gaussian import normal_nll

Outputs = Tensor
"""(2, members, nodes): mean and log-variance."""


class DeepEnsemble(NormalMethod):
    """Nets trained by the normal likelihood (Lakshminarayanan et al. 2017), mixed.

    The interval is that of a normal law with the mixture's mean and variance: right where noise is
    normal and members are honest; no promise otherwise.

    Args:
        members: how many nets.
        net: settings of every net method, see :class:`qpignn.methods.net.NetMethod`.
    """

    def __init__(
        self, confidence_level: float | list[float] = 0.9, *, members: int = 5, **net: Any
    ) -> None:
        super().__init__(confidence_level, members=members, **net)

    def _head(self, generator: torch.Generator) -> nn.Module:
        return LinearHead(self.hidden, 2, generator=generator, members=self._members())

    def _moments(self, outputs: Outputs) -> tuple[Tensor, Tensor, Tensor]:
        mean, log_variance = outputs
        return mean, log_variance.clamp(-20, 20).exp(), torch.zeros_like(mean)

    def _costs(self, outputs: Outputs, y: Tensor) -> Tensor:
        mean, log_variance = outputs
        return normal_nll(mean, log_variance.clamp(-20, 20), y)
