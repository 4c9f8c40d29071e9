"""Two GraphSAGE layers with their gradient written out.

The numbers of :class:`qpignn.encoders.sage.SageEncoder`, for nets of two layers while they train
(:mod:`qpignn.training.byhand`). On a graph of a thousand nodes a step is mostly autograd's
bookkeeping; here there is none, and every pass writes over the numbers of the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import torch
from torch import Tensor

from qpignn.encoders.sparse import Operands, SparseMatrix

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

    A single member is computed with matrices of two dimensions, which are quicker. Go backward
    before going forward again.

    Args:
        weights: neighbour, bias and root of the first layer, then of the second; always these.
        gradients: where their gradients go.
        graph: what they run on.
        activation: its name.
        mask: draws dropout's mask for hidden vectors, or returns None.
    """

    def __init__(
        self,
        weights: Sequence[Tensor],
        gradients: Sequence[Tensor],
        graph: Operands,
        activation: str,
        mask: Mask,
    ) -> None:
        self.graph, self.mask = graph, mask
        self.activate, self.deactivate = ACTIVATIONS[activation]
        self.single = len(weights[0]) == 1
        self.add = torch.addmm if self.single else torch.baddbmm
        self.times = torch.mm if self.single else torch.bmm
        self.weights, self.gradients = self._bare(weights), self._bare(gradients)
        self.places: dict[str, Tensor] = {}

    def forward(self) -> Tensor:
        """Return hidden vectors of the wanted nodes, (members, rows, hidden)."""
        graph, (*first, neighbour, bias, root) = self.graph, self.weights
        self.z1 = self._projected(*first)
        h1, self.kept1 = self._activated(self.z1)
        self.around = graph.mean_for(0).multiply(h1)
        self.own = h1[..., : graph.rows, :]
        z2 = self._added("z2", bias, self.around, neighbour)
        self.z2 = self.add(z2, self.own, root, out=z2)
        hidden, self.kept2 = self._activated(self.z2)
        return hidden.unsqueeze(0) if self.single else hidden

    def backward(self, gradient: Tensor) -> None:
        """Write down the gradients of the weights; that of the hidden vectors is spoilt."""
        rows, out = self.graph.rows, self.gradients
        *_, neighbour, _, root = self.weights
        (to_z2,) = self._bare([gradient])
        self._deactivate(to_z2, self.z2, self.kept2)
        self.times(self.around.mT, to_z2, out=out[3])
        torch.sum(to_z2, -2, keepdim=True, out=out[4])
        self.times(self.own.mT, to_z2, out=out[5])
        back = self._multiplied("back", to_z2, neighbour.mT)
        to_h1 = self.graph.mean_for(0).multiply(back, transposed=True)
        top = to_h1[..., :rows, :]
        self.add(top, to_z2, root.mT, out=top)
        self._deactivate(to_h1, self.z1, self.kept1)
        torch.sum(to_h1, -2, keepdim=True, out=out[1])
        self._to_features(to_h1, out[0], out[2])

    def forget(self) -> None:
        """Give back the memory of the last pass."""
        self.places.clear()
        del self.z1, self.around, self.own, self.z2, self.kept1, self.kept2

    def _bare(self, tensors: Sequence[Tensor]) -> Sequence[Tensor]:
        """Leave out the axis of members where there is one only."""
        return [tensor[0] for tensor in tensors] if self.single else tensors

    def _projected(self, neighbour: Tensor, bias: Tensor, root: Tensor) -> Tensor:
        x = self.graph.features
        if isinstance(x, SparseMatrix):  # project first: A·(X·N), never A·X
            assert self.graph.own is not None
            z = self.graph.mean_for(1).multiply(x.multiply(neighbour))
            return z.add_(self.graph.own.multiply(root).add_(bias))
        weights = torch.cat([neighbour, root], dim=-2)
        return self._added(
            "z1", bias, x if self.single else x.expand(len(weights), -1, -1), weights
        )

    def _to_features(self, to_z1: Tensor, neighbour: Tensor, root: Tensor) -> None:
        x, columns = self.graph.features, self.graph.columns
        if isinstance(x, SparseMatrix):
            assert self.graph.own is not None
            root.copy_(self.graph.own.multiply(to_z1, transposed=True))
            around = self.graph.mean_for(1).multiply(to_z1, transposed=True)
            neighbour.copy_(x.multiply(around, transposed=True))
        else:
            turned = x.mT if self.single else x.mT.expand(len(to_z1), -1, -1)
            both = self.times(turned, to_z1)
            neighbour.copy_(both[..., :columns, :])
            root.copy_(both[..., columns:, :])

    def _added(self, name: str, bias: Tensor, left: Tensor, right: Tensor) -> Tensor:
        found: Tensor = self.add(bias, left, right, out=self._place(name, left, right))
        return found

    def _multiplied(self, name: str, left: Tensor, right: Tensor) -> Tensor:
        found: Tensor = self.times(left, right, out=self._place(name, left, right))
        return found

    def _place(self, name: str, left: Tensor, right: Tensor) -> Tensor:
        """Return where a product goes: always the same memory."""
        if name not in self.places:
            self.places[name] = left.new_empty((*left.shape[:-1], right.shape[-1]))
        return self.places[name]

    def _activated(self, z: Tensor) -> tuple[Tensor, Tensor | None]:
        hidden = self.activate(z)
        kept = self.mask(hidden)
        return (hidden, None) if kept is None else (hidden.mul_(kept), kept)

    def _deactivate(self, gradient: Tensor, z: Tensor, kept: Tensor | None) -> None:
        """Turn the gradient of what came out into that of what went in, in place."""
        if kept is not None:
            gradient.mul_(kept)
        self.deactivate(gradient, z)
