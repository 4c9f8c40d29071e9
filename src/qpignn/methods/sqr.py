"""SQR-GNN: one net for all quantiles, with the level as an input."""

import copy
from dataclasses import dataclass, field
from typing import Any, ClassVar

import torch
from torch import Tensor, nn

from qpignn.encoders.inputs import GraphInputs
from qpignn.methods.net import NetMethod
from qpignn.methods.net_training import encoder_inputs
from qpignn.nn.heads import QuantileHead
from qpignn.nn.interval_net import IntervalNet
from qpignn.objectives.joint import mean_over_all
from qpignn.objectives.pinball import pinball
from qpignn.tasks.base import FitInputs


@dataclass(kw_only=True, eq=False, repr=False)
class SQR(NetMethod):
    """Simultaneous quantile regression (Tagasovska & Lopez-Paz 2019) on a graph.

    The head gets a level τ beside the hidden vector and is trained by the pinball loss over
    τ ~ U(0, 1); bounds are its quantiles at α/2 and 1 − α/2, at any level when predicting.
    Quantiles may cross: ``crossing_rate_`` is the share of given units where they did, and bounds
    are sorted. Coverage on other units is not guaranteed.

    Attributes:
        crossing_rate_: see above.

    Example:
        >>> from qpignn import load_dataset, make_method
        >>> data = load_dataset("basic", nodes=60)
        >>> model = make_method("sqr", epochs=5).fit(data)
        >>> model.predict_interval(data, confidence_level=0.3).confidence_level
        0.3
    """

    any_level: ClassVar[bool] = True

    crossing_rate_: float = field(init=False)

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return the head."""
        taus = taus_of(self.trained_levels())
        return QuantileHead(self.hidden, taus, generator=generator, members=members)

    def compute_loss(self, outputs: Any, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the pinball loss at the random levels that the head has drawn."""
        drawn, quantile, _ = outputs
        return mean_over_all(pinball(quantile, y.expand_as(quantile), drawn), weight).sum()

    def compute_value(self, outputs: Tensor) -> Tensor:
        """Return the median."""
        return outputs[-1]

    def compute_bounds(self, outputs: Any) -> tuple[Tensor, Tensor]:
        """Return the quantiles at α/2 and 1 − α/2, sorted."""
        quantiles = outputs if isinstance(outputs, Tensor) else outputs[2]()  # while training
        low, high = quantiles[:-1].chunk(2)
        return low.minimum(high), low.maximum(high)

    def _fit(self, inputs: FitInputs) -> int | None:
        calibrated_on = super()._fit(inputs)
        with torch.no_grad():
            low, high = self.net_(encoder_inputs(self, inputs.data))[:-1].chunk(2)
        self.crossing_rate_ = float((low > high)[..., inputs.given].double().mean())
        return calibrated_on

    def _run(self, net: IntervalNet, graph: GraphInputs) -> Any:
        head: Any = copy.copy(net.head)  # with the same weights, at the wanted levels
        head.taus = taus_of(self.trained_levels())
        return super()._run(IntervalNet(net.encoder, head).train(net.training), graph)


def taus_of(levels: list[float]) -> list[float]:
    """Return lower quantiles of the levels, upper ones, and the median.

    Args:
        levels: of central intervals.
    """
    return [(1 - c) / 2 for c in levels] + [(1 + c) / 2 for c in levels] + [0.5]
