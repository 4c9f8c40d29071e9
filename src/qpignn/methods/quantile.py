"""A quantile GNN: bounds at α/2 and 1 − α/2, each by its own pinball loss."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import torch
from torch import Tensor, nn

from qpignn.calibration.cross_fit import Tails
from qpignn.methods.net import NetMethod
from qpignn.methods.training_set import TrainingSet
from qpignn.nn.heads import IntervalHead, Positive
from qpignn.nn.interval_net import IntervalNet
from qpignn.objectives.joint import ViolationForm, WidthForm, joint_loss
from qpignn.training.fused_steps import FusedResult, joint_steps

Outputs = tuple[Tensor, Tensor, Tensor]
"""value (members, units); half-widths below and above (levels, members, units)."""
LambdaChoice = Literal["auto", "tuned"]


class JointLossMethod(NetMethod):
    """A value and half-widths per unit, trained by the joint loss.

    Attributes:
        lambda_width: ``auto`` is α/2 of each level; the value is then trained, too, as the
            interval of level 0. Otherwise all levels have the price ``lambda_width_``.
        tails: as for QpiGNN.
        half_width: as for QpiGNN.
        violation: as for QpiGNN.
        width: as for QpiGNN.
    """

    lambda_width: float | LambdaChoice = "auto"
    tails: Tails | None = None
    half_width: Positive = "softplus"
    violation: ViolationForm = "all"
    width: WidthForm = "l1"
    lambda_width_: float

    @property
    def _auto_lambda(self) -> bool:
        """Whether λ is α/2 of each level."""
        return isinstance(self.lambda_width, str) and self.lambda_width == "auto"

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return the head: a value and half-widths."""
        tails = self.tails or ("free" if self._auto_lambda else "symmetric")
        return IntervalHead(
            self.hidden,
            self.half_width,
            generator=generator,
            levels=len(self.trained_levels()),
            symmetric=tails == "symmetric",
            members=members,
        )

    def compute_value(self, outputs: Outputs) -> Tensor:
        """Return the value that half-widths are counted from."""
        return outputs[0]

    def compute_bounds(self, outputs: Outputs) -> tuple[Tensor, Tensor]:
        """Return value − half-width below, value + half-width above."""
        value, below, above = outputs
        return value - below, value + above

    def _prices(self, dtype: torch.dtype) -> tuple[Tensor, Tensor]:
        """Return the trained levels and their λ, (levels, 1) each."""
        levels = torch.tensor(self.trained_levels(), dtype=dtype).unsqueeze(1)
        if self._auto_lambda:
            return levels, (1 - levels) / 2
        return levels, torch.full_like(levels, self.lambda_width_)

    def fused_step(
        self, net: IntervalNet, training_set: TrainingSet, weight: Tensor | None
    ) -> Callable[[], FusedResult] | None:
        """Return the hand-written step of the joint loss in its usual form."""
        if (self.violation, self.width) != ("all", "l1"):
            return None
        levels, prices = self._prices(training_set.y.dtype)
        return joint_steps(
            *(net, training_set.graph, training_set.y, weight),
            levels=levels,
            prices=prices,
            anchored=self._auto_lambda,
        )

    def compute_loss(self, outputs: Outputs, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the joint loss, see :mod:`qpignn.objectives.joint`."""
        lower, upper = self.compute_bounds(outputs)
        levels, price = (part.to(y.device) for part in self._prices(y.dtype))
        if self._auto_lambda:
            # the value itself is the interval of level 0: α = 1, no width, λ = 1/2
            value = outputs[0].unsqueeze(0)
            lower, upper = torch.cat([value, lower]), torch.cat([value, upper])
            levels = nn.functional.pad(levels, (0, 0, 1, 0))
            price = nn.functional.pad(price, (0, 0, 1, 0), value=0.5)
        return joint_loss(
            lower,
            upper,
            y.expand_as(lower),
            confidence_level=levels,
            lambda_width=price,
            violation_form=self.violation,
            width_form=self.width,
            weight=weight,
        )


@dataclass(kw_only=True, eq=False, repr=False)
class QuantileGNN(JointLossMethod):
    """Plain quantile regression on a graph; wrapped in a conformal step it is CQR.

    Bounds are a value plus and minus half-widths, so they never cross. The pinball losses of both
    bounds together are the joint loss at λ = α/2 (:mod:`qpignn.objectives.joint`), that of the
    median is the joint loss of level 0. Coverage on other units is not guaranteed.
    """
