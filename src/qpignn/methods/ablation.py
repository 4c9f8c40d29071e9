"""QpiGNN with a part taken out or exchanged: what each part is worth."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from qpignn.errors import check_choice, check_non_negative
from qpignn.io.tensors import check_scalar
from qpignn.methods.base import Fitted
from qpignn.methods.net import NetMethod
from qpignn.nn.heads import POSITIVE, IntervalHead, LinearHead
from qpignn.objectives.joint import VIOLATIONS, joint_loss, mean_over_all, width
from qpignn.objectives.rqr import rqr
from qpignn.training.loop import StepResult

if TYPE_CHECKING:
    from torch_geometric.data import Data

HEADS = ("dual", "single", "fixed")
LOSSES = ("full", "coverage", "width", "none", "rqr")


class Ablation(NetMethod):
    """One net at a fixed λ, without calibration, for the paper's ablations; not for use.

    Args:
        head: ``dual`` (value and half-width), ``single`` (two bounds of their own) or ``fixed``
            (a value and one half-width for all nodes, which is not learnt).
        margin: that half-width, in multiples of the given targets' range.
        loss: ``full`` (coverage, violation, width), ``coverage`` (without width), ``width`` (of
            it alone), ``none`` (squared error of the middle) or ``rqr``.
        lambda_width: price of width; default α/2 of the highest level.
        half_width, violation: as for QpiGNN.
        net: settings of every net method, see :class:`qpignn.methods.net.NetMethod`.
    """

    def __init__(
        self,
        confidence_level: float | list[float] = 0.9,
        *,
        head: str = "dual",
        margin: float = 0.05,
        loss: str = "full",
        lambda_width: float | None = None,
        half_width: str = "softplus",
        violation: str = "all",
        **net: Any,
    ) -> None:
        super().__init__(confidence_level, **net)
        self.head = head
        self.margin = margin
        self.loss = loss
        self.lambda_width = lambda_width
        self.half_width = half_width
        self.violation = violation

    def check_settings(self) -> None:
        """Raise if a setting is outside the values it may take."""
        super().check_settings()
        check_choice("head", self.head, HEADS)
        check_choice("loss", self.loss, LOSSES)
        check_choice("half_width", self.half_width, POSITIVE)
        check_choice("violation", self.violation, VIOLATIONS)
        check_non_negative("margin", self.margin)
        check_non_negative("lambda_width", self._price())

    def _price(self) -> float:
        given = self.lambda_width
        return (1 - self._trained_levels()[-1]) / 2 if given is None else given

    def _head(self, generator: torch.Generator) -> nn.Module:
        levels, members = len(self._trained_levels()), self._members()
        if self.head == "dual":
            return IntervalHead(
                self.hidden, self.half_width, generator=generator, levels=levels, members=members
            )
        outputs = 1 if self.head == "fixed" else 2 * levels
        return LinearHead(self.hidden, outputs, generator=generator, members=members)

    def _fit_scalers(self, data: Data, given: Tensor, transform: str = "none") -> None:
        super()._fit_scalers(data, given, transform)
        y = self.y_scaler_.transform(data.y[given], torch.float64)
        self.margin_ = self.margin * (y.max() - y.min())

    def _bounds(self, outputs: Any) -> tuple[Tensor, Tensor]:
        if self.head == "dual":
            value, below, above = outputs
            return value - below, value + above
        if self.head == "fixed":
            value = outputs.expand(len(self._trained_levels()), *outputs.shape[1:])
            return value - self.margin_.to(value), value + self.margin_.to(value)
        one, other = outputs.chunk(2)
        return one.minimum(other), one.maximum(other)

    def _loss(self, outputs: Any, y: Tensor, weight: Tensor | None) -> StepResult:
        lower, upper = self._bounds(outputs)
        loss = self._compared(lower, upper, y.expand_as(lower), weight)
        return self._measured(loss, outputs, y, weight)

    def _compared(self, lower: Tensor, upper: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        levels = torch.tensor(self._trained_levels(), dtype=y.dtype).unsqueeze(1)
        if self.loss in ("full", "coverage"):
            return joint_loss(
                lower,
                upper,
                y,
                confidence_level=levels,
                lambda_width=self._price() if self.loss == "full" else 0.0,
                violation_form=self.violation,
                weight=weight,
            )
        if self.loss == "rqr":
            wanted, price = levels.unsqueeze(1), self._price()
            costs = rqr(
                lower, upper, y, wanted_coverage=wanted, lambda_width=price, gamma_order=1.0
            )
        elif self.loss == "width":
            costs = width(lower, upper)
        else:
            costs = (y - (lower + upper) / 2) ** 2
        return mean_over_all(costs, weight).sum()

    def _state(self) -> dict[str, Tensor]:
        return {**super()._state(), "margin": self.margin_}

    def _restore(self, state: dict[str, Tensor], fitted: Fitted) -> None:
        super()._restore(state, fitted)
        self.margin_ = check_scalar(state["margin"])
