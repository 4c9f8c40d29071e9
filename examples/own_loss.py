"""A loss of your own in a method: quantile regression with a smooth pinball loss.

With error e = y − q, the pinball loss τ·e⁺ + (1 − τ)·e⁻ has a kink at 0. Replaced by
ρ(e) = τ·e + s·log(1 + exp(−e/s)) it is smooth, and tends to the pinball loss as s → 0
(Zheng 2011, https://doi.org/10.1007/s13042-011-0031-2).

    python examples/own_loss.py
"""

from dataclasses import dataclass

import torch
from torch import Tensor, nn

from qpignn import Conformal, load_dataset, metrics, split_nodes
from qpignn.errors import check_positive
from qpignn.methods import NetMethod
from qpignn.nn.heads import LinearHead
from qpignn.objectives.joint import mean_over_all


def smooth_pinball(quantile: Tensor, y: Tensor, tau: Tensor, smoothness: float) -> Tensor:
    """Return the smooth pinball loss, element by element.

    Args:
        quantile: predicted quantiles q.
        y: targets, of the same shape.
        tau: levels of the quantiles, broadcastable.
        smoothness: s > 0, in units of the target.
    """
    error = y - quantile
    return tau * error + smoothness * nn.functional.softplus(-error / smoothness)


@dataclass(kw_only=True, eq=False, repr=False)
class SmoothQuantile(NetMethod):
    """Quantiles at α/2 and 1 − α/2 by the smooth pinball loss.

    Args:
        smoothness: s, in units of the targets' standard deviation.
    """

    smoothness: float = 0.1

    def check_settings(self) -> None:
        """Raise SettingError if a setting has a value that is not allowed."""
        super().check_settings()
        check_positive("smoothness", self.smoothness)

    def make_head(self, generator: torch.Generator, members: int) -> nn.Module:
        """Return a linear layer with two outputs per level and node."""
        outputs = 2 * len(self.trained_levels())
        return LinearHead(self.hidden, outputs, generator=generator, members=members)

    def compute_loss(self, outputs: Tensor, y: Tensor, weight: Tensor | None) -> Tensor:
        """Return the losses of all quantiles."""
        alpha = 1 - torch.tensor(self.trained_levels(), dtype=y.dtype, device=y.device)
        tau = torch.cat([alpha / 2, 1 - alpha / 2])[:, None, None]  # (2 · levels, 1, 1)
        costs = smooth_pinball(outputs, y.expand_as(outputs), tau, self.smoothness)
        return mean_over_all(costs, weight).sum()

    def compute_bounds(self, outputs: Tensor) -> tuple[Tensor, Tensor]:
        """Return the quantiles, sorted."""
        low, high = outputs.chunk(2)
        return low.minimum(high), low.maximum(high)


if __name__ == "__main__":
    data = split_nodes(load_dataset("er"))
    for method in (SmoothQuantile(0.9), Conformal(SmoothQuantile(0.9))):
        intervals = method.fit(data).predict_interval(data, data.test_mask)
        y = data.y[data.test_mask]
        print(
            f"{type(method).__name__}: "
            f"coverage {metrics.picp(y, intervals.lower, intervals.upper):.3f}, "
            f"mean width {metrics.mpiw(y, intervals.lower, intervals.upper):.3f}"
        )
