"""Encoders: a graph's operands in, one hidden vector per wanted node out."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, cast

import torch
from torch import Tensor, nn

from qpignn.nn.propagate import Operands, SparseMatrix
from qpignn.nn.two_layers import TwoLayers, encode

ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": nn.functional.silu,
    "relu": torch.relu_,  # in place: nobody needs what it replaces
}
"""What follows each layer: ReLU in the paper; SiLU is smooth, and so are the curves it fits."""


class SageLayer(nn.Module):
    """GraphSAGE with mean aggregation (Hamilton et al. 2017, https://arxiv.org/abs/1706.02216).

    h'_v = mean_{u → v} h_u · N + h_v · R + b: the numbers of PyG's ``SAGEConv``, whose matrices
    are these transposed. Several members, nets without a weight in common, stand side by
    side in the first axis.

    Shapes:
        neighbour, root: (members, inputs, outputs); bias: (members, 1, outputs)
    """

    def __init__(self, members: int, inputs: int, outputs: int, generator: torch.Generator) -> None:
        super().__init__()
        self.neighbour = uniform_parameter((members, inputs, outputs), inputs, generator)
        self.bias = uniform_parameter((members, 1, outputs), inputs, generator)
        self.root = uniform_parameter((members, inputs, outputs), inputs, generator)

    def on_features(self, graph: Operands) -> Tensor:
        """Apply to the constant input features of all nodes: (members, nodes, outputs)."""
        x = graph.features
        if isinstance(x, SparseMatrix):  # project first: A·(X·N), never A·X
            return graph.mean @ (x @ self.neighbour) + (x @ self.root + self.bias)
        weights = torch.cat([self.neighbour, self.root], dim=1)
        return torch.baddbmm(self.bias, x.expand(len(weights), -1, -1), weights)

    def forward(self, hidden: Tensor, mean: SparseMatrix) -> Tensor:
        """Apply to (members, nodes, inputs); outputs for the first ``mean.shape[0]`` nodes."""
        weights = (self.neighbour, self.root, self.bias)
        out: Tensor = _SageStep.apply(hidden, *weights, mean)  # type: ignore[no-untyped-call]
        return out


class _SageStep(torch.autograd.Function):
    """mean·h·N + h·R + b for the first rows of h.

    The gradient is written out because autograd would fill a whole matrix with zeros for the slice
    h[:, :rows], and add up in another what here goes into one.
    """

    @staticmethod
    def forward(  # noqa: PLR0917
        ctx: Any, hidden: Tensor, neighbour: Tensor, root: Tensor, bias: Tensor, mean: SparseMatrix
    ) -> Tensor:
        around = mean.multiply(hidden)
        own = hidden[:, : mean.shape[0]]
        ctx.mean = mean
        ctx.save_for_backward(around, own, neighbour, root)
        return torch.baddbmm(bias, around, neighbour).baddbmm_(own, root)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        around, own, neighbour, root = ctx.saved_tensors
        to_hidden = ctx.mean.multiply(gradient @ neighbour.mT, transposed=True)
        to_hidden[:, : own.shape[1]].baddbmm_(gradient, root.mT)
        to_bias = gradient.sum(dim=1, keepdim=True)
        return to_hidden, around.mT @ gradient, own.mT @ gradient, to_bias, None


class SageEncoder(nn.Module):
    """A stack of GraphSAGE layers, each followed by an activation and, while training, dropout.

    The input features are never dropped: that would spoil the first hop computed once.
    """

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int,
        *,
        generator: torch.Generator,
        dropout: float = 0.0,
        activation: str = "silu",
        members: int = 1,
    ) -> None:
        super().__init__()
        widths = [inputs, *[hidden] * layers]
        self.layers = nn.ModuleList(
            SageLayer(members, before, after, generator) for before, after in pairwise(widths)
        )
        self.activation = ACTIVATIONS[activation]
        self.activation_name = activation
        self.dropout = dropout
        self.drop_whole_units = False  # a unit at all nodes at once, not at each by itself
        self.generator = generator

    def forward(self, graph: Operands) -> Tensor:
        """Return (members, graph.rows, hidden)."""
        if len(self.layers) == 2 and torch.is_grad_enabled():
            return encode(self.written_out(graph))
        first, *rest = self.layers
        assert isinstance(first, SageLayer)
        hidden = self._activated(first.on_features(graph))
        for layer in rest:
            mean = graph.mean_top if layer is rest[-1] else graph.mean
            hidden = self._activated(layer(hidden, mean))
        return hidden if hidden.shape[1] == graph.rows else hidden[:, : graph.rows]

    def sage_weights(self) -> list[Tensor]:
        """Return neighbour, bias and root of every layer."""
        names = ("neighbour", "bias", "root")
        return [cast(Tensor, getattr(layer, name)) for layer in self.layers for name in names]

    def written_out(
        self, graph: Operands, *, reuse: bool = False, part: slice | None = None
    ) -> TwoLayers:
        """Return two layers on a graph, with their gradient written out, for some members."""
        weights = self.sage_weights()
        if part is not None:
            weights = [weight[part] for weight in weights]
        return TwoLayers(weights, graph, self.activation_name, self.kept_units, reuse=reuse)

    def _activated(self, hidden: Tensor) -> Tensor:
        hidden = self.activation(hidden)
        kept = self.kept_units(hidden)
        return hidden if kept is None else hidden * kept

    def kept_units(self, hidden: Tensor) -> Tensor | None:
        """Draw dropout's mask for (…, nodes, units): 0, or what keeps the mean; None if off.

        It has the shape (nodes, units), or (units,) where units are dropped at all nodes at once.
        """
        if not self.training or self.dropout == 0:
            return None
        # one mask for all members, and one random byte a unit: a fifth of the time of a draw a
        # unit, at shares of 1/256
        shape = hidden.shape[-1 if self.drop_whole_units else -2 :]
        dropped = min(round(self.dropout * 256), 255)
        words = torch.empty(-(-shape.numel() // 8), dtype=torch.int64)
        words.random_(-(2**63), None, generator=self.generator)
        kept = words.view(torch.uint8)[: shape.numel()].view(shape) >= dropped
        return kept.to(hidden.dtype) * (256 / (256 - dropped))


def uniform_parameter(
    shape: tuple[int, ...], fan_in: int, generator: torch.Generator
) -> nn.Parameter:
    """Draw U(−1/√fan_in, 1/√fan_in), the default of PyG's and torch's linear layers."""
    bound = 1 / fan_in**0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))
