"""Encoders: a graph's operands in, one hidden vector per wanted node out."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import pairwise
from typing import Any, Literal, cast

import torch
from torch import Tensor, nn

from qpignn.encoders.fused import TwoLayers
from qpignn.encoders.sparse import Operands, SparseMatrix
from qpignn.runtime import distributed
from qpignn.runtime.memory import allocate_tensor, row_chunks

Activation = Literal["silu", "relu"]
ACTIVATIONS: dict[str, Callable[[Tensor], Tensor]] = {
    "silu": nn.functional.silu,
    "relu": torch.relu_,  # in place: nobody needs what it replaces
}
"""What follows each layer: ReLU in the paper; SiLU is smooth, and so are the curves it fits."""


WINDOWS = 2**18
"""How many masks for dropout there are."""


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

    def on_features(self, graph: Operands, left: int = 1) -> Tensor:
        """Apply to the constant input features: (members, nodes, outputs).

        ``left`` is how many layers come after it.
        """
        x = graph.features
        if isinstance(x, SparseMatrix):  # project first: A·(X·N), never A·X
            assert graph.own is not None
            mean = graph.mean_for(max(left, 1))
            return mean @ (x @ self.neighbour) + (graph.own @ self.root + self.bias)
        return self.on_dense(x)

    def on_dense(self, x: Tensor) -> Tensor:
        """Apply to means over neighbours and own features, side by side."""
        weights = torch.cat([self.neighbour, self.root], dim=1)
        return torch.baddbmm(self.bias, x.expand(len(weights), -1, -1), weights)

    def combined(self, around: Tensor, own: Tensor) -> Tensor:
        """Apply to means over neighbours and own hidden vectors."""
        return torch.baddbmm(self.bias, around, self.neighbour).baddbmm_(own, self.root)

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
        self._kept, self._kept_by = torch.empty(0), -1

    def forward(self, graph: Operands) -> Tensor:
        """Return (members, graph.rows, hidden)."""
        first, *rest = self.layers
        assert isinstance(first, SageLayer)
        hidden = self._activated(first.on_features(graph, len(rest)))
        for left, layer in reversed([*enumerate(reversed(rest))]):
            assert isinstance(layer, SageLayer)
            if left or torch.is_grad_enabled():
                found = layer(hidden, graph.mean_for(left))
            else:
                found = layer.combined(*graph.last_inputs(hidden))
            hidden = self._activated(found)
        return hidden if hidden.shape[1] == graph.rows else hidden[:, : graph.rows]

    def passes(self, graph: Operands, count: int) -> Iterator[Tensor]:
        """Yield what :meth:`forward` returns so many times, each with other units left out.

        Outside autograd. Where whole units are left out, the first of two layers and the means over
        its vectors are the same in every pass.
        """
        first, last = self.layers[0], self.layers[-1]
        if len(self.layers) != 2 or not self.drop_whole_units:
            yield from (self(graph) for _ in range(count))
            return
        assert isinstance(first, SageLayer)
        assert isinstance(last, SageLayer)
        hidden = self.activation(first.on_features(graph))
        inputs = graph.last_inputs(hidden)
        for _ in range(count):
            kept = self.kept_units(hidden)
            left = inputs if kept is None else [part * kept for part in inputs]
            yield self._activated(last.combined(*left))

    def in_chunks(self, graph: Operands) -> Iterator[Tensor]:
        """Yield hidden vectors of the wanted nodes, some at a time; for a net that is not training.

        Layer by layer: besides the features there are never more than two layers' vectors.
        """
        hidden: Tensor | None = None
        for left, layer in reversed([*enumerate(reversed(self.layers))]):
            assert isinstance(layer, SageLayer)
            rows = graph.nodes if left else graph.rows
            parts = self._layer_in_chunks(layer, graph, hidden, left, rows)
            if left == 0:
                yield from parts
                return
            hidden = allocate_tensor(
                (len(layer.bias), rows, layer.bias.shape[-1]), layer.bias.dtype
            )
            done = 0
            for part in parts:
                hidden[:, done : done + part.shape[1]] = part
                done += part.shape[1]

    def _layer_in_chunks(
        self, layer: SageLayer, graph: Operands, hidden: Tensor | None, left: int, rows: int
    ) -> Iterator[Tensor]:
        """Yield a layer's outputs; where several ranks fit one model, each computes some."""
        mean = graph.mean if hidden is None else graph.mean_for(left)
        x, bias = graph.features, layer.bias
        project = hidden is None and isinstance(x, SparseMatrix)
        projected = x.multiply(layer.neighbour) if project else None

        def some(part: slice) -> Tensor:
            if hidden is not None:
                around = mean.some(part.start, part.stop).multiply(hidden)
                found = layer.combined(around, hidden[:, part])
            elif isinstance(x, SparseMatrix):
                assert projected is not None
                found = mean.some(part.start, part.stop).multiply(projected)
                found += x.some(part.start, part.stop).multiply(layer.root) + bias
            else:
                found = layer.on_dense(x[part])
            return self.activation(found)

        def empty(part: slice) -> Tensor:
            return bias.new_empty((len(bias), part.stop - part.start, bias.shape[2]))

        yield from distributed.split_work([*row_chunks(rows)], some, empty)

    def sage_weights(self) -> list[Tensor]:
        """Return neighbour, bias and root of every layer."""
        names = ("neighbour", "bias", "root")
        return [cast(Tensor, getattr(layer, name)) for layer in self.layers for name in names]

    def written_out(self, graph: Operands, part: slice = slice(None)) -> TwoLayers:
        """Return two layers on a graph, with their gradient written out, for some members.

        Weights and their gradients must stay where they are.
        """
        weights = self.sage_weights()
        gradients = [cast(Tensor, weight.grad)[part] for weight in weights]
        return TwoLayers(
            [weight[part] for weight in weights],
            gradients,
            graph,
            self.activation_name,
            self.kept_units,
        )

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
        shape = hidden.shape[-1 if self.drop_whole_units else -2 :]
        # a window of numbers drawn once, somewhere else each time: a draw a unit takes as long as
        # the arithmetic of a small net
        seed = self.generator.initial_seed()
        if self._kept_by != seed or len(self._kept) < shape.numel() + WINDOWS:
            self._kept, self._kept_by = self._draw_kept(seed, shape.numel() + WINDOWS), seed
        start = int(torch.randint(WINDOWS, (), generator=self.generator))
        return self._kept[start : start + shape.numel()].view(shape).to(hidden)

    def _draw_kept(self, seed: int, count: int) -> Tensor:
        """Draw dropout's factors: the same for the same seed, whatever was drawn before."""
        draw = torch.Generator().manual_seed(seed)
        dropped = torch.empty(count).uniform_(generator=draw) < self.dropout
        return dropped.logical_not_().to(torch.float32).div_(1 - self.dropout)


def uniform_parameter(
    shape: tuple[int, ...], fan_in: int, generator: torch.Generator
) -> nn.Parameter:
    """Draw U(−1/√fan_in, 1/√fan_in), the default of PyG's and torch's linear layers."""
    bound = 1 / fan_in**0.5
    return nn.Parameter(torch.empty(shape).uniform_(-bound, bound, generator=generator))
