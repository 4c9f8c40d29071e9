"""Encoders: a graph's operands in, one hidden vector per wanted node out."""

from __future__ import annotations

from itertools import pairwise
from typing import Any

import torch
from torch import Tensor, nn

from qpignn.nn.propagate import Operands, SparseMatrix


class SageLayer(nn.Module):
    """GraphSAGE with mean aggregation (Hamilton et al. 2017, https://arxiv.org/abs/1706.02216).

    h'_v = mean_{u → v} h_u · N + h_v · R + b: the numbers of PyG's ``SAGEConv``, whose matrices
    are these transposed.

    Shapes:
        neighbour, root: (inputs, outputs); bias: (outputs,)
    """

    def __init__(self, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.neighbour = uniform_parameter((inputs, outputs), inputs, generator)
        self.bias = uniform_parameter((outputs,), inputs, generator)
        self.root = uniform_parameter((inputs, outputs), inputs, generator)

    def on_features(self, graph: Operands) -> Tensor:
        """Apply to the constant input features of all nodes."""
        x = graph.features
        if isinstance(x, SparseMatrix):  # project first: A·(X·N), never A·X
            return graph.mean @ (x @ self.neighbour) + (x @ self.root + self.bias)
        return torch.addmm(self.bias, x, torch.cat([self.neighbour, self.root]))

    def forward(self, hidden: Tensor, mean: SparseMatrix) -> Tensor:
        """Apply to hidden vectors of all nodes; outputs for the first ``mean.shape[0]`` nodes."""
        weights = (self.neighbour, self.root, self.bias)
        out: Tensor = _SageStep.apply(hidden, *weights, mean)  # type: ignore[no-untyped-call]
        return out


class _SageStep(torch.autograd.Function):
    """mean·h·N + h·R + b for the first rows of h.

    The gradient is written out because autograd would fill a whole matrix with zeros for the slice
    h[:rows], and add up in another what here goes into one.
    """

    @staticmethod
    def forward(  # noqa: PLR0917
        ctx: Any, hidden: Tensor, neighbour: Tensor, root: Tensor, bias: Tensor, mean: SparseMatrix
    ) -> Tensor:
        around = mean.multiply(hidden)
        own = hidden[: mean.shape[0]]
        ctx.mean = mean
        ctx.save_for_backward(around, own, neighbour, root)
        return torch.addmm(bias, around, neighbour).addmm_(own, root)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        around, own, neighbour, root = ctx.saved_tensors
        to_hidden = ctx.mean.multiply(gradient @ neighbour.t(), transposed=True)
        to_hidden[: len(own)].addmm_(gradient, root.t())
        return to_hidden, around.t() @ gradient, own.t() @ gradient, gradient.sum(dim=0), None


class SageEncoder(nn.Module):
    """A stack of GraphSAGE layers, each followed by ReLU and, while training, dropout.

    The input features are never dropped: that would spoil the first hop computed once.
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int,
        dropout: float,
        generator: torch.Generator,
    ) -> None:
        super().__init__()
        widths = [inputs, *[hidden] * layers]
        self.layers = nn.ModuleList(
            SageLayer(before, after, generator) for before, after in pairwise(widths)
        )
        self.dropout = dropout
        self.generator = generator

    def forward(self, graph: Operands) -> Tensor:
        """Return (graph.rows, hidden)."""
        first, *rest = self.layers
        assert isinstance(first, SageLayer)
        hidden = self._activated(first.on_features(graph))
        for layer in rest:
            mean = graph.mean_top if layer is rest[-1] else graph.mean
            hidden = self._activated(layer(hidden, mean))
        return hidden if len(hidden) == graph.rows else hidden[: graph.rows]

    def _activated(self, hidden: Tensor) -> Tensor:
        hidden = torch.relu_(hidden)
        if not self.training or self.dropout == 0:
            return hidden
        # one random byte a unit: a fifth of the time of a draw a unit, at shares of 1/256
        dropped = min(round(self.dropout * 256), 255)
        words = torch.empty(-(-hidden.numel() // 8), dtype=torch.int64)
        words.random_(-(2**63), None, generator=self.generator)
        kept = words.view(torch.uint8)[: hidden.numel()].view_as(hidden) >= dropped
        return hidden * kept * (256 / (256 - dropped))


def uniform_parameter(
    shape: tuple[int, ...], fan_in: int, generator: torch.Generator
) -> nn.Parameter:
    """Draw U(−1/√fan_in, 1/√fan_in), the default of PyG's and torch's linear layers."""
    bound = 1 / fan_in**0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))
