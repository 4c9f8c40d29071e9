"""All weights of a net in one vector: one optimiser call a step, one copy to keep the best."""

from __future__ import annotations

from collections.abc import Iterable

import torch
from torch import Tensor, nn


class FlatWeights:
    """Adam over a net's weights, which become views of one vector (as do their gradients).

    On small graphs an optimiser call per weight costs as much as the arithmetic of the step.
    """

    def __init__(self, weights: Iterable[nn.Parameter], lr: float, weight_decay: float) -> None:
        weights = list(weights)
        self.vector = nn.Parameter(torch.cat([w.detach().flatten() for w in weights]))
        self.gradient = torch.zeros_like(self.vector)
        self.vector.grad = self.gradient
        start = 0
        for weight in weights:
            part = slice(start, start + weight.numel())
            weight.data = self.vector.data[part].view_as(weight)
            weight.grad = self.gradient[part].view_as(weight)
            start += weight.numel()
        self._adam = torch.optim.Adam([self.vector], lr=lr, weight_decay=weight_decay, fused=True)

    def clear_gradient(self) -> None:
        """Start a step."""
        self.gradient.zero_()

    def step(self) -> None:
        """Move along the gradient that ``backward`` has filled in."""
        self._adam.step()

    def copy(self) -> Tensor:
        """Return the weights as they are now."""
        return self.vector.detach().clone()

    def restore(self, vector: Tensor) -> None:
        """Put back weights taken with :meth:`copy`."""
        self.vector.data.copy_(vector)
