"""Two GraphSAGE layers with their gradient written out.

The numbers of :class:`qpignn.nn.encoders.SageEncoder`, which uses this for nets of two layers while
training. On a graph of a thousand nodes a step is mostly autograd's bookkeeping; here there is one
node of it, or none where the caller works without autograd and gives the places for the gradients.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from qpignn.nn.propagate import Operands, SparseMatrix

aten = torch.ops.aten
ACTIVATIONS: dict[str, tuple[Callable[[Tensor], Tensor], Callable[[Tensor, Tensor], Any]]] = {
    "silu": (
        aten.silu.default,
        lambda gradient, z: aten.silu_backward.grad_input(gradient, z, grad_input=gradient),
    ),
    "relu": (
        torch.relu_,
        lambda gradient, z: aten.threshold_backward.grad_input(gradient, z, 0, grad_input=gradient),
    ),
}
"""What follows a layer, and its gradient (in place) from what went in; for ReLU, what came out."""

Mask = Callable[[Tensor], Tensor | None]


class TwoLayers:
    """Forward and backward through two layers on one graph.

    Members stand side by side in the columns, (nodes, members·hidden), so that one product and one
    aggregation serve all of them where they share what is multiplied; where each has a matrix of
    its own, they are seen as (members, nodes, hidden).

    Args:
        weights: neighbour, bias and root of the first layer, then of the second.
        graph: what they run on.
        activation: its name.
        mask: draws dropout's mask for hidden vectors, or returns None.
        reuse: whether every pass writes over the numbers of the last one; for callers that go
            backward before they go forward again.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        graph: Operands,
        activation: str,
        mask: Mask,
        *,
        reuse: bool = False,
    ) -> None:
        self.weights, self.graph, self.mask, self.reuse = weights, graph, mask, reuse
        self.activate, self.deactivate = ACTIVATIONS[activation]
        self.members, _, self.width = weights[0].shape
        self.places: dict[str, Tensor] = {}

    def forward(self) -> Tensor:
        """Return hidden vectors of the wanted nodes, (members, rows, hidden)."""
        *first, neighbour, bias, root = self.weights
        self.z1 = self._projected(*first)
        h1, self.kept1 = self._activated(self.z1)
        self.around = self.graph.mean_for(0).multiply(h1)
        self.own = h1[: self.graph.rows]
        self.z2 = self._place("z2", len(self.own))
        self._add(self.z2, bias, self.around, neighbour)
        self._add(self.z2, None, self.own, root)
        hidden, self.kept2 = self._activated(self.z2)
        return self.apart(hidden)

    def backward(self, gradient: Tensor, out: Sequence[Tensor]) -> None:
        """Write the gradients of the weights into ``out``, from that of the hidden vectors."""
        _, _, _, neighbour, _, root = self.weights
        to_z2 = gradient.transpose(0, 1).reshape(len(self.own), -1)
        if not self.reuse and to_z2.data_ptr() == gradient.data_ptr():
            to_z2 = to_z2.clone()  # it is the caller's
        self._deactivate(to_z2, self.z2, self.kept2)
        torch.bmm(self.apart(self.around).mT, self.apart(to_z2), out=out[3])
        torch.sum(to_z2, 0, out=out[4].view(-1))
        torch.bmm(self.apart(self.own).mT, self.apart(to_z2), out=out[5])
        back = self._place("back", len(to_z2))
        torch.bmm(self.apart(to_z2), neighbour.mT, out=self.apart(back))
        to_h1 = self.graph.mean_for(0).multiply(back, transposed=True)
        self._add(to_h1[: len(to_z2)], None, to_z2, root.mT)
        self._deactivate(to_h1, self.z1, self.kept1)
        torch.sum(to_h1, 0, out=out[1].view(-1))
        self._to_features(to_h1, out[0], out[2])

    def forget(self) -> None:
        """Give back the memory of the last pass."""
        del self.z1, self.around, self.own, self.z2, self.kept1, self.kept2

    def apart(self, columns: Tensor) -> Tensor:
        """See (nodes, members·hidden) as (members, nodes, hidden)."""
        return columns.view(len(columns), self.members, self.width).transpose(0, 1)

    def gradient_place(self) -> Tensor:
        """Return (members, rows, hidden) to put the gradient of the hidden vectors in."""
        return self.apart(self._place("gradient", len(self.own)))

    def _columns(self, weight: Tensor) -> Tensor:
        """Put the members' matrices side by side: (inputs, members·outputs)."""
        return weight[0] if self.members == 1 else weight.transpose(0, 1).flatten(1)

    def _projected(self, neighbour: Tensor, bias: Tensor, root: Tensor) -> Tensor:
        x = self.graph.features
        if isinstance(x, SparseMatrix):  # project first: A·(X·N), never A·X
            assert self.graph.own is not None
            z = self.graph.mean_for(1).multiply(x.multiply(self._columns(neighbour)))
            return z.add_(self.graph.own.multiply(self._columns(root)).add_(bias.view(1, -1)))
        weights = self._columns(torch.cat([neighbour, root], dim=1))
        return torch.addmm(bias.view(1, -1), x, weights, out=self._place("z1", len(x)))

    def _to_features(self, to_z1: Tensor, neighbour: Tensor, root: Tensor) -> None:
        x, columns = self.graph.features, self.graph.columns
        if isinstance(x, SparseMatrix):
            assert self.graph.own is not None
            own = self.graph.own.multiply(to_z1, transposed=True)
            around = self.graph.mean_for(1).multiply(to_z1, transposed=True)
            around = x.multiply(around, transposed=True)
        else:
            both = x.mT @ to_z1
            around, own = both[:columns], both[columns:]
        neighbour.copy_(self.apart(around))
        root.copy_(self.apart(own))

    def _add(self, place: Tensor, bias: Tensor | None, left: Tensor, right: Tensor) -> None:
        """Write bias + left·right, member by member; without a bias, add to what is there."""
        there = self.apart(place)
        torch.baddbmm(there if bias is None else bias, self.apart(left), right, out=there)

    def _place(self, name: str, rows: int) -> Tensor:
        """Return where numbers go: always the same memory, where that may be."""
        if not self.reuse:
            return self.weights[0].new_empty((rows, self.members * self.width))
        if name not in self.places:
            self.places[name] = self.weights[0].new_empty((rows, self.members * self.width))
        return self.places[name]

    def _activated(self, z: Tensor) -> tuple[Tensor, Tensor | None]:
        hidden = self.activate(z)
        kept = self.mask(self.apart(hidden))
        if kept is not None:
            self.apart(hidden).mul_(kept)
        return hidden, kept

    def _deactivate(self, gradient: Tensor, z: Tensor, kept: Tensor | None) -> None:
        """Turn the gradient of what came out into that of what went in, in place."""
        if kept is not None:
            self.apart(gradient).mul_(kept)
        self.deactivate(gradient, z)


class _Encoded(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, layers: TwoLayers, *weights: Tensor) -> Tensor:
        ctx.layers = layers
        return layers.forward()

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        layers = ctx.layers
        found = [torch.empty_like(weight) for weight in layers.weights]
        layers.backward(gradient, found)
        return None, *found


def encode(layers: TwoLayers) -> Tensor:
    """Run two layers as one step of autograd."""
    hidden: Tensor = _Encoded.apply(layers, *layers.weights)  # type: ignore[no-untyped-call]
    return hidden
