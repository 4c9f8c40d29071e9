"""A quantile GNN: bounds at α/2 and 1 − α/2, each by its own pinball loss."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from qpignn.methods.net import NetMethod
from qpignn.methods.training_set import Seen
from qpignn.nn.heads import IntervalHead
from qpignn.objectives.joint import joint_loss
from qpignn.training.byhand import Stepped, joint_steps
from qpignn.training.loop import StepResult


class QuantileGNN(NetMethod):
    """Plain quantile regression on a graph; wrapped in a conformal step it is CQR.

    Bounds are a value plus and minus half-widths, so they never cross. The pinball losses of both
    bounds together are the joint loss at λ = α/2 (:mod:`qpignn.objectives.joint`). No promise of
    coverage on other nodes.

    Args:
        net: settings of every net method, see :class:`qpignn.methods.net.NetMethod`.
    """

    def _head(self, generator: torch.Generator) -> nn.Module:
        return IntervalHead(
            self.hidden,
            "softplus",
            generator=generator,
            levels=len(self._trained_levels()),
            symmetric=False,
            members=self._members(),
        )

    def _value(self, outputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        return outputs[0]

    def _bounds(self, outputs: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        value, below, above = outputs
        return value - below, value + above

    def _by_hand(self, seen: Seen, weight: Tensor | None) -> Callable[[], Stepped] | None:
        levels = torch.tensor(self._trained_levels(), dtype=seen.y.dtype).unsqueeze(1)
        return joint_steps(
            *(self.net_, seen.graph, seen.y, weight),
            levels=levels,
            prices=(1 - levels) / 2,
            anchored=True,
        )

    def _loss(
        self, outputs: tuple[Tensor, Tensor, Tensor], y: Tensor, weight: Tensor | None
    ) -> StepResult:
        value = outputs[0].unsqueeze(0)  # the median is the interval of level 0
        lower, upper = (torch.cat([value, bound]) for bound in self._bounds(outputs))
        levels = torch.tensor([0.0, *self._trained_levels()], dtype=y.dtype).unsqueeze(1)
        loss = joint_loss(
            lower,
            upper,
            y.expand_as(lower),
            confidence_level=levels,
            lambda_width=(1 - levels) / 2,
            weight=weight,
        )
        return self._measured(loss, outputs, y, weight)
