"""Heads: hidden vectors in, the numbers an interval is made of out."""

from __future__ import annotations

from collections.abc import Callable

import torch
from torch import Tensor, nn

from qpignn.nn.encoders import uniform_parameter

POSITIVE: dict[str, Callable[[Tensor], Tensor]] = {
    "softplus": nn.functional.softplus,
    "sigmoid": torch.sigmoid,
}
"""What makes a half-width positive: softplus in the paper, sigmoid in the published code."""


class DualHead(nn.Module):
    """Two linear heads on one hidden vector: the value ŷ and the half-width d > 0.

    Shapes:
        (nodes, hidden) → value (nodes,), half-width (nodes,)
    """

    def __init__(self, hidden: int, positive: str, generator: torch.Generator) -> None:
        super().__init__()
        self.positive = POSITIVE[positive]
        self.weight = uniform_parameter((2, hidden), hidden, generator)
        self.bias = uniform_parameter((2, 1), hidden, generator)

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return value and half-width."""
        value, raw = torch.addmm(
            self.bias, self.weight, hidden.t()
        )  # (2, nodes): fast for few rows
        return value, self.positive(raw)
