"""Heads: from hidden vectors to the numbers that define an interval."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Literal, NamedTuple

import torch
from torch import Tensor, nn

from qpignn.encoders.base import uniform_parameter

aten = torch.ops.aten


class PositiveFunction(NamedTuple):
    """A positive function d = f(r) and its gradient.

    Attributes:
        function: returns f(r), differentiable by autograd.
        backward: returns ∂L/∂r from ∂L/∂d, r and d.
    """

    function: Callable[[Tensor], Tensor]
    backward: Callable[[Tensor, Tensor, Tensor], Tensor]


Positive = Literal["softplus", "sigmoid"]
POSITIVE: dict[str, PositiveFunction] = {
    "softplus": PositiveFunction(
        aten.softplus.default,
        lambda gradient, r, d: aten.softplus_backward.default(gradient, r, 1, 20),
    ),
    "sigmoid": PositiveFunction(
        aten.sigmoid.default, lambda gradient, r, d: aten.sigmoid_backward.default(gradient, d)
    ),
}
"""Functions that make half-widths positive, each declared once with its gradient."""


class LinearHead(nn.Module):
    """Several numbers per node, each a linear map of the hidden vector.

    Args:
        hidden: length of the hidden vectors.
        outputs: how many numbers.
        generator: draws the initial weights.
        members: number of members.

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
        """Return the numbers, (outputs, members, nodes).

        Args:
            hidden: (members, nodes, hidden).
        """
        return torch.baddbmm(self.bias, self.weight, hidden.mT).transpose(0, 1)


class IntervalHead(LinearHead):
    """The value ŷ and half-widths d > 0.

    One half-width for both sides (the paper's dual head) or one for each. For several levels a
    half-width is that of the level inside it plus something positive, so intervals are nested.

    Args:
        hidden: length of the hidden vectors.
        positive: a name in :data:`POSITIVE`.
        generator: draws the initial weights.
        levels: number of levels, in ascending order.
        symmetric: whether both sides have the same half-width.
        members: number of members.

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
        self.positive = POSITIVE[positive].function
        self.positive_name = positive
        self.sides = sides

    def forward(self, hidden: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        """Return the value and the half-widths below and above it.

        Args:
            hidden: (members, nodes, hidden).
        """
        raw = super().forward(hidden)
        steps = self.positive(raw[1:]).chunk(self.sides)
        sides = [part.cumsum(dim=0) if len(part) > 1 else part for part in steps]
        return raw[0], sides[0], sides[-1]


class QuantileHead(nn.Module):
    """Any quantile: the level τ is an input beside the hidden vector, followed by a layer.

    While training, every node gets its own τ ~ U(0, 1) in each pass.

    Args:
        hidden: length of the hidden vectors.
        taus: levels of the quantiles that are returned.
        generator: draws the initial weights and τ.
        members: number of members.

    Shapes:
        (members, nodes, hidden) → quantiles (len(taus), members, nodes); while training the drawn
        τ (nodes,), its quantile (members, nodes), and a function that returns those quantiles
    """

    def __init__(
        self, hidden: int, taus: Sequence[float], *, generator: torch.Generator, members: int = 1
    ) -> None:
        super().__init__()
        self.taus = taus
        self.inner = uniform_parameter((members, hidden, hidden), hidden + 1, generator)
        self.inner_bias = uniform_parameter((members, 1, hidden), hidden + 1, generator)
        self.by_tau = uniform_parameter((members, 1, hidden), hidden + 1, generator)
        self.outer = LinearHead(hidden, 1, generator=generator, members=members)
        self.generator = generator

    def forward(self, hidden: Tensor) -> Any:
        """Return quantiles at ``self.taus``; while training also a drawn τ and its quantile.

        Args:
            hidden: (members, nodes, hidden).
        """
        inner = torch.baddbmm(self.inner_bias, hidden, self.inner)

        def at(tau: Tensor | float) -> Tensor:
            quantile: Tensor = self.outer(nn.functional.silu(inner + tau * self.by_tau))[0]
            return quantile

        def fixed() -> Tensor:
            return torch.stack([at(2 * tau - 1) for tau in self.taus])

        if not self.training:
            return fixed()
        drawn = torch.rand(hidden.shape[1], generator=self.generator).to(hidden)
        return drawn, at(2 * drawn.unsqueeze(1) - 1), fixed


class BayesianHead(nn.Module):
    """One linear map whose weights are independent normals, and a noise level, all learned.

    Args:
        hidden: length of the hidden vectors.
        generator: draws the initial weights.
        members: number of members.

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
        """Return the exact moments: a linear map of normal weights is normal.

        Args:
            hidden: (members, nodes, hidden).
        """
        mean = self.mean(hidden)[0]
        variance = torch.bmm(self.log_variance.exp(), hidden.square().mT).squeeze(1)
        return mean, variance, self.log_noise.expand_as(mean)
