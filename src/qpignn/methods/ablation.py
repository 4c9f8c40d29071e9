"""QpiGNN with a part taken out or exchanged: what each part is worth."""

from dataclasses import dataclass, field
from typing import Any, ClassVar, Literal, get_args

import torch
from torch import Tensor, nn

from qpignn.errors import check_choice, check_non_negative
from qpignn.methods.net import NetMethod
from qpignn.methods.scaled_data import Scalers
from qpignn.nn.heads import POSITIVE, IntervalHead, LinearHead, Positive
from qpignn.objectives.joint import VIOLATIONS, ViolationForm, joint_loss, mean_over_all, width
from qpignn.objectives.rqr import rqr
from qpignn.tasks.base import FitInputs

HeadKind = Literal["dual", "single", "fixed"]
LossKind = Literal["full", "coverage", "width", "none", "rqr"]


@dataclass(kw_only=True, eq=False, repr=False)
class Ablation(NetMethod):
    """One net at a fixed λ, without calibration, for the paper's ablations; not for use.

    It is in the catalog, and not in :mod:`qpignn.paper`, because the paper's ablations are also run
    under the protocol ``corrected``, which makes methods by the catalog's names, and because saved
    models of version 0.1 name it.

    Args:
        head: ``dual`` (value and half-width), ``single`` (two bounds of their own) or ``fixed``
            (a value and one half-width for all units, which is not learnt).
        margin: that half-width, in multiples of the given targets' range.
        loss: ``full`` (coverage, violation, width), ``coverage`` (without width), ``width`` (of
            it alone), ``none`` (squared error of the middle) or ``rqr``.
        lambda_width: price of width; default α/2 of the highest level.
        half_width: as for QpiGNN.
        violation: as for QpiGNN.

    Attributes:
        margin_: the half-width of the ``fixed`` head, in the nets' units.
    """

    saved_numbers: ClassVar[tuple[str, ...]] = ("margin",)

    head: HeadKind = "dual"
    margin: float = 0.05
    loss: LossKind = "full"
    lambda_width: float | None = None
    half_width: Positive = "softplus"
    violation: ViolationForm = "all"

    margin_: Tensor = field(init=False)

    def check_settings(self) -> None:
        """Raise SettingError if a setting has a value that is not allowed."""
        super().check_settings()
        check_choice("head", self.head, get_args(HeadKind))
        check_choice("loss", self.loss, get_args(LossKind))
        check_choice("half_width", self.half_width, POSITIVE)
        check_choice("violation", self.violation, VIOLATIONS)
        check_non_negative("margin", self.margin)
        check_non_negative("lambda_width", self._price())

    def _price(self) -> float:
        given = self.lambda_width
        return (1 - self.trained_levels()[-1]) / 2 if given is None else given

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return the head."""
        levels = len(self.trained_levels())
        if self.head == "dual":
            return IntervalHead(
                self.hidden, self.half_width, generator=generator, levels=levels, members=members
            )
        outputs = 1 if self.head == "fixed" else 2 * levels
        return LinearHead(self.hidden, outputs, generator=generator, members=members)

    def _fit(self, inputs: FitInputs) -> int | None:
        scalers = Scalers.fit(inputs.data, inputs.given, self.scaling, self.limits_)
        y = scalers.y.transform(inputs.targets, torch.float64)
        self.margin_ = self.margin * (y.max() - y.min())
        return super()._fit(inputs)

    def compute_bounds(self, outputs: Any) -> tuple[Tensor, Tensor]:
        """Return the bounds of the chosen head."""
        if self.head == "dual":
            value, below, above = outputs
            return value - below, value + above
        if self.head == "fixed":
            value = outputs.expand(len(self.trained_levels()), *outputs.shape[1:])
            return value - self.margin_.to(value), value + self.margin_.to(value)
        one, other = outputs.chunk(2)
        return one.minimum(other), one.maximum(other)

    def compute_loss(self, outputs: Any, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the chosen loss."""
        lower, upper = self.compute_bounds(outputs)
        return self._loss_of_bounds(lower, upper, y.expand_as(lower), weight)

    def _loss_of_bounds(
        self, lower: Tensor, upper: Tensor, y: Tensor, weight: Tensor | None
    ) -> Tensor:
        levels = torch.tensor(self.trained_levels(), dtype=y.dtype).unsqueeze(1)
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
