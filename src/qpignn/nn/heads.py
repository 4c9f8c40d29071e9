"""Heads: hidden vectors in, the numbers an interval is made of out."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import torch
from torch import Tensor, nn

from qpignn.encoders.sage import uniform_parameter

Positive = Literal["softplus", "sigmoid"]
POSITIVE: dict[str, Callable[[Tensor], Tensor]] = {
    "softplus": nn.functional.softplus,
    "sigmoid": torch.sigmoid,
}
"""Functions that make a half-width positive."""


class LinearHead(nn.Module):
    """Some numbers a node, each a linear map of the hidden vector.

    Shapes:
        (members, nodes, hidden) → (outputs, members, nodes)
    """

    def __init__(
        self, hidden: int, outputs: int, *, generator: torch.Generator, members: int = 1
    ) -> None:
        super().__init__()
        self.weight = uniform_parameter((members, outputs, hidden), hidden, generator)
        self.bias = uniform_parameter((members, outputs, 1), hidden, generator)

    def forward(self, hidden: Tensor) -> Any:
        """Return the numbers."""
        return torch.baddbmm(self.bias, self.weight, hidden.mT).transpose(0, 1)


class IntervalHead(LinearHead):
    """The value ŷ and half-widths d > 0.

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
        sides = 1 if symmetric else 2
        super().__init__(hidden, 1 + sides * levels, generator=generator, members=members)
        self.positive = POSITIVE[positive]
        self.positive_name = positive
        self.sides = sides

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the value and the half-widths below and above it."""
        raw = super().forward(hidden)
        steps = self.positive(raw[1:]).chunk(self.sides)
        sides = [part.cumsum(dim=0) if len(part) > 1 else part for part in steps]
        return raw[0], sides[0], sides[-1]


class QuantileHead(nn.Module):
    """Any quantile: τ goes in beside the hidden vector, through a layer of its own.

    While training, every node gets a τ ~ U(0, 1) of its own in each pass.

    Shapes:
        (members, nodes, hidden) → quantiles (len(taus), members, nodes); while training the drawn
        τ (nodes,), its quantile (members, nodes), and what gives those quantiles when asked
    """

    def __init__(self, hidden: int, *, generator: torch.Generator, members: int = 1) -> None:
        super().__init__()
        self.inner = uniform_parameter((members, hidden, hidden), hidden + 1, generator)
        self.inner_bias = uniform_parameter((members, 1, hidden), hidden + 1, generator)
        self.by_tau = uniform_parameter((members, 1, hidden), hidden + 1, generator)
        self.outer = LinearHead(hidden, 1, generator=generator, members=members)
        self.generator = generator
        self.taus: list[float] = [0.5]

    def forward(self, hidden: Tensor) -> Any:
        """Return quantiles at ``self.taus``; while training also a drawn τ and its quantile."""
        inner = torch.baddbmm(self.inner_bias, hidden, self.inner)

        def at(tau: Tensor | float) -> Tensor:
            found: Tensor = self.outer(nn.functional.silu(inner + tau * self.by_tau))[0]
            return found

        def fixed() -> Tensor:
            return torch.stack([at(2 * tau - 1) for tau in self.taus])

        if not self.training:
            return fixed()
        drawn = torch.rand(hidden.shape[1], generator=self.generator).to(hidden)
        return drawn, at(2 * drawn.unsqueeze(1) - 1), fixed


class BayesianHead(nn.Module):
    """One linear map whose weights are independent normals, and a noise level, all learnt.

    Shapes:
        (members, nodes, hidden) → mean, variance of the mean, log-variance of the noise: each
        (members, nodes)
    """

    def __init__(self, hidden: int, *, generator: torch.Generator, members: int = 1) -> None:
        super().__init__()
        self.mean = LinearHead(hidden, 1, generator=generator, members=members)
        self.log_variance = nn.Parameter(torch.full((members, 1, hidden), -6.0))
        self.log_noise = nn.Parameter(torch.zeros(members, 1))

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the exact moments: a linear map of normal weights is normal."""
        mean = self.mean(hidden)[0]
        doubt = torch.bmm(self.log_variance.exp(), hidden.square().mT).squeeze(1)
        return mean, doubt, self.log_noise.expand_as(mean)
