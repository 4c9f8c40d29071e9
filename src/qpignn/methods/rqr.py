"""RQR-adj-GNN: both bounds from one head by relaxed quantile regression."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from qpignn.errors import check_non_negative
from qpignn.methods.net import NetMethod
from qpignn.nn.heads import LinearHead
from qpignn.objectives.joint import mean_over_all
from qpignn.objectives.rqr import rqr
from qpignn.training.loop import StepResult


class RQR(NetMethod):
    """Relaxed quantile regression (Pouplin et al. 2024) with the paper's ordering penalty.

    The loss (:mod:`qpignn.objectives.rqr`) rests where the wanted share of the training nodes is
    inside, whatever λ is. Each node is compared with its own target only, in memory linear in the
    nodes. No promise of coverage on other nodes.

    Args:
        lambda_width: pull towards narrow intervals among those of equal coverage.
        gamma_order: penalty on bounds in the wrong order.
        net: settings of every net method, see :class:`qpignn.methods.net.NetMethod`.
    """

    def __init__(
        self,
        confidence_level: float | list[float] = 0.9,
        *,
        lambda_width: float = 1.0,
        gamma_order: float = 1.0,
        **net: Any,
    ) -> None:
        super().__init__(confidence_level, **net)
        self.lambda_width = lambda_width
        self.gamma_order = gamma_order

    def check_settings(self) -> None:
        """Raise if a setting is outside the values it may take."""
        super().check_settings()
        check_non_negative("lambda_width", self.lambda_width)
        check_non_negative("gamma_order", self.gamma_order)

    def _head(self, generator: torch.Generator) -> nn.Module:
        outputs = 2 * len(self._trained_levels())
        return LinearHead(self.hidden, outputs, generator=generator, members=self._members())

    def _bounds(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        lower, upper = outputs.chunk(2)
        return lower, upper

    def _loss(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> StepResult:
        lower, upper = self._bounds(outputs)
        costs = rqr(
            lower,
            upper,
            y.expand_as(lower),
            wanted_coverage=torch.tensor(self._trained_levels(), dtype=y.dtype)[:, None, None],
            lambda_width=self.lambda_width,
            gamma_order=self.gamma_order,
        )
        return self._measured(mean_over_all(costs, weight).sum(), outputs, y, weight)
