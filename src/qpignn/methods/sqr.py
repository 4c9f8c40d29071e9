"""SQR-GNN: one net for all quantiles, with the level as an input."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor, nn

from qpignn.methods.base import Bounds
from qpignn.methods.net import NetMethod
from qpignn.nn.heads import QuantileHead
from qpignn.objectives.joint import mean_over_all
from qpignn.objectives.pinball import pinball
from qpignn.training.loop import StepResult

if TYPE_CHECKING:
    from torch_geometric.data import Data


class SQR(NetMethod):
    """Simultaneous quantile regression (Tagasovska & Lopez-Paz 2019) on a graph.

    The net sees a level τ beside the node and is trained by the pinball loss over τ ~ U(0, 1);
    bounds are its quantiles at α/2 and 1 − α/2, at any level when predicting. Quantiles may cross:
    ``crossing_rate_`` is the share of given nodes where they did, and bounds are sorted. No
    promise of coverage on other nodes.

    Args:
        net: settings of every net method, see :class:`qpignn.methods.net.NetMethod`.

    Example:
        >>> from qpignn import load_dataset, make_method
        >>> data = load_dataset("basic", nodes=60)
        >>> model = make_method("sqr", epochs=5).fit(data)
        >>> model.predict_interval(data, confidence_level=0.3).confidence_level
        0.3
    """

    any_level = True

    def _head(self, generator: torch.Generator) -> nn.Module:
        head = QuantileHead(self.hidden, generator=generator, members=self._members())
        head.taus = taus_of(self._trained_levels())
        return head

    def _loss(self, outputs: Any, y: Tensor, weight: Tensor | None) -> StepResult:
        drawn, quantile, fixed = outputs
        costs = pinball(quantile, y.expand_as(quantile), drawn)
        loss = mean_over_all(costs, weight).sum()
        return StepResult(loss, lambda: self._measured(loss, fixed(), y, weight).metrics())

    def _value(self, outputs: Tensor) -> Tensor:
        return outputs[-1]

    def _bounds(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        low, high = outputs[:-1].chunk(2)
        return low.minimum(high), low.maximum(high)

    def _fit(self, data: Data, given: Tensor) -> None:
        super()._fit(data, given)
        with torch.no_grad():
            low, high = self.net_(self._operands(data))[:-1].chunk(2)
        self.crossing_rate_ = float((low > high)[..., given].double().mean())

    def _predict(self, data: Data, level: float) -> Bounds:
        head: Any = self.net_.head
        head.taus = taus_of([level])
        return super()._predict(data, level)


def taus_of(levels: list[float]) -> list[float]:
    """Lower quantiles of the levels, upper ones, and the median."""
    return [(1 - c) / 2 for c in levels] + [(1 + c) / 2 for c in levels] + [0.5]
