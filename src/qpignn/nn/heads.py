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


class IntervalHead(nn.Module):
    """Linear heads on one hidden vector: the value ŷ and half-widths d > 0.

    One half-width for both sides (the paper's dual head) or one for each. For several levels a
    half-width is that of the level inside it plus something positive, so intervals are nested.

    Shapes:
        (members, nodes, hidden) → value (members, nodes), below and above (levels, members, nodes)
    """

    def __init__(
        self,
        hidden: int,
        positive: str,
        *,
        generator: torch.Generator,
        levels: int = 1,
        symmetric: bool = True,
        members: int = 1,
    ) -> None:
        super().__init__()
        self.positive = POSITIVE[positive]
        self.sides = 1 if symmetric else 2
        outputs = 1 + self.sides * levels
        self.weight = uniform_parameter((members, outputs, hidden), hidden, generator)
        self.bias = uniform_parameter((members, outputs, 1), hidden, generator)

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the value and the half-widths below and above it."""
        raw = torch.baddbmm(self.bias, self.weight, hidden.mT)  # (members, outputs, nodes)
        steps = self.positive(raw[:, 1:]).transpose(0, 1)
        sides = [part.cumsum(dim=0) for part in steps.chunk(self.sides)]
        return raw[:, 0], sides[0], sides[-1]
