"""A quantile GNN: bounds at α/2 and 1 − α/2, each by its own pinball loss."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn

from qpignn.methods.net import NetMethod
from qpignn.methods.training_set import TrainingSet
from qpignn.nn.heads import IntervalHead
from qpignn.nn.interval_net import IntervalNet
from qpignn.objectives.joint import joint_loss
from qpignn.training.fused_steps import FusedResult, joint_steps


@dataclass(kw_only=True, eq=False, repr=False)
class QuantileGNN(NetMethod):
    """Plain quantile regression on a graph; wrapped in a conformal step it is CQR.

    Bounds are a value plus and minus half-widths, so they never cross. The pinball losses of both
    bounds together are the joint loss at λ = α/2 (:mod:`qpignn.objectives.joint`). Coverage on
    other units is not guaranteed.
    """

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return the head."""
        return IntervalHead(
            self.hidden,
            "softplus",
            generator=generator,
            levels=len(self.trained_levels()),
            symmetric=False,
            members=members,
        )

    def compute_value(self, outputs: tuple[Tensor, Tensor, Tensor]) -> Tensor:
        """Return the median."""
        return outputs[0]

    def compute_bounds(self, outputs: tuple[Tensor, Tensor, Tensor]) -> tuple[Tensor, Tensor]:
        """Return median − half-width below, median + half-width above."""
        value, below, above = outputs
        return value - below, value + above

    def fused_step(
        self, net: IntervalNet, training_set: TrainingSet, weight: Tensor | None
    ) -> Callable[[], FusedResult] | None:
        """Return the hand-written step of the joint loss."""
        levels = torch.tensor(self.trained_levels(), dtype=training_set.y.dtype).unsqueeze(1)
        return joint_steps(
            *(net, training_set.graph, training_set.y, weight),
            levels=levels,
            prices=(1 - levels) / 2,
            anchored=True,
        )

    def compute_loss(
        self, outputs: tuple[Tensor, Tensor, Tensor], y: Tensor, weight: Tensor | None
    ) -> Tensor:
        """Return the pinball losses of both bounds and of the median."""
        value = outputs[0].unsqueeze(0)  # the median is the interval of level 0
        lower, upper = (torch.cat([value, bound]) for bound in self.compute_bounds(outputs))
        levels = torch.tensor([0.0, *self.trained_levels()], dtype=y.dtype).unsqueeze(1)
        return joint_loss(
            lower,
            upper,
            y.expand_as(lower),
            confidence_level=levels,
            lambda_width=(1 - levels) / 2,
            weight=weight,
        )
