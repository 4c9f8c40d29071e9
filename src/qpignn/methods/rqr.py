"""RQR-adj-GNN: both bounds from one head by relaxed quantile regression."""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from qpignn.errors import check_non_negative
from qpignn.methods.net import NetMethod
from qpignn.nn.heads import LinearHead
from qpignn.objectives.joint import mean_over_all
from qpignn.objectives.rqr import rqr


@dataclass(kw_only=True, eq=False, repr=False)
class RQR(NetMethod):
    """Relaxed quantile regression (Pouplin et al. 2024) with the paper's ordering penalty.

    The loss (:mod:`qpignn.objectives.rqr`) rests where the wanted share of the training nodes is
    inside, whatever λ is. Each node is compared with its own target only, in memory linear in the
    nodes. No promise of coverage on other nodes.

    Args:
        lambda_width: pull towards narrow intervals among those of equal coverage.
        gamma_order: penalty on bounds in the wrong order.
    """

    lambda_width: float = 1.0
    gamma_order: float = 1.0

    def check_settings(self) -> None:
        """Raise SettingError if a setting has a value that is not allowed."""
        super().check_settings()
        check_non_negative("lambda_width", self.lambda_width)
        check_non_negative("gamma_order", self.gamma_order)

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return the head."""
        outputs = 2 * len(self.trained_levels())
        return LinearHead(self.hidden, outputs, generator=generator, members=members)

    def compute_bounds(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the two halves of the outputs."""
        lower, upper = outputs.chunk(2)
        return lower, upper

    def compute_loss(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the loss of :mod:`qpignn.objectives.rqr`."""
        lower, upper = self.compute_bounds(outputs)
        costs = rqr(
            lower,
            upper,
            y.expand_as(lower),
            wanted_coverage=torch.tensor(self.trained_levels(), dtype=y.dtype)[:, None, None],
            lambda_width=self.lambda_width,
            gamma_order=self.gamma_order,
        )
        return mean_over_all(costs, weight).sum()
