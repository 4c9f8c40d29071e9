"""Layers with a hand-written forward and backward pass.

The numbers of :class:`qpignn.encoders.stack.StackEncoder` without autograd, for training
(:mod:`qpignn.training.fused_steps`). On a graph of a thousand nodes most of a step's time is
autograd's overhead; here there is none, and every pass reuses the memory of the last one.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple, cast

import torch
from torch import Tensor, nn

from qpignn.encoders.activations import Activation
from qpignn.encoders.inputs import GraphInputs
from qpignn.encoders.sparse import SparseMatrix

Mask = Callable[[Tensor], Tensor | None]


class FusedLayer(NamedTuple):
    """A layer z = a·N [+ h·R] + b, where a are the inputs h aggregated over neighbours.

    Attributes:
        parameters: N, b and, if the layer has it, R.
        aggregates: whether inputs are aggregated; otherwise a = h.
        drops: whether dropout follows the activation.
    """

    parameters: Sequence[nn.Parameter]
    aggregates: bool
    drops: bool


class _Pass(NamedTuple):
    """What the backward pass needs of a layer."""

    z: Tensor
    mask: Tensor | None
    aggregated: Tensor | None = None
    own: Tensor | None = None
    matrix: SparseMatrix | None = None


class FusedLayers:
    """Forward and backward pass through layers on one graph.

    A single member is computed with two-dimensional matrices, which is faster. The parameters'
    gradients must be allocated at the first forward pass, and both must then stay where they are.

    Args:
        layers: what is computed, each followed by the activation.
        part: for which members.
        inputs: of the graph.
        activation: the function and its gradient.
        mask: draws dropout's mask for hidden vectors, or returns None.
    """

    def __init__(
        self,
        layers: Sequence[FusedLayer],
        part: slice,
        inputs: GraphInputs,
        activation: Activation,
        mask: Mask,
    ) -> None:
        self.layers, self.part, self.inputs = layers, part, inputs
        self.activation, self.mask = activation, mask
        self.hops = sum(layer.aggregates for layer in layers)
        self.buffers: dict[str, Tensor] = {}
        self.passes: list[_Pass] = []
        self.weights: list[list[Tensor]] = []

    def forward(self) -> Tensor:
        """Return hidden vectors of the wanted nodes, (members, rows, hidden).

        Every forward pass must be followed by a backward pass, or none.
        """
        if not self.weights:
            self._bind()
        self.passes, hidden = [], torch.empty(0)
        left = self.hops
        for i, (layer, weights) in enumerate(zip(self.layers, self.weights, strict=True)):
            left -= layer.aggregates
            hidden, record = self._forward_layer(i, layer, weights, hidden, left)
            self.passes.append(record)
        return hidden.unsqueeze(0) if self.single else hidden

    def _forward_layer(
        self, i: int, layer: FusedLayer, weights: Sequence[Tensor], hidden: Tensor, left: int
    ) -> tuple[Tensor, _Pass]:
        """Return a layer's outputs, and what its backward pass needs."""
        neighbour, bias, *root = weights
        aggregated = own = matrix = None
        if i == 0:
            z = self._project(neighbour, bias, *root)
        elif layer.aggregates:
            matrix = self.inputs.matrix_for(left)
            aggregated, own = matrix.multiply(hidden), hidden[..., : matrix.shape[0], :]
            z = self._affine(f"z{i}", bias, aggregated, neighbour)
            if root:
                z = self.add(z, own, root[0], out=z)
        else:
            aggregated = hidden
            z = self._affine(f"z{i}", bias, hidden, neighbour)
        hidden = self.activation.function(z)
        mask = self.mask(hidden) if layer.drops else None
        hidden = hidden if mask is None else hidden.mul_(mask)
        return hidden, _Pass(z, mask, aggregated, own, matrix)

    def backward(self, gradient: Tensor) -> None:
        """Write the gradients of the weights.

        Args:
            gradient: of the hidden vectors; overwritten.
        """
        (to_hidden,) = self._unbatched([gradient])
        for i in reversed(range(len(self.layers))):
            (neighbour, _, *root), (to_neighbour, to_bias, *to_root) = self.weights[i], self.out[i]
            z, mask, aggregated, own, matrix = self.passes[i]
            to_z = to_hidden if mask is None else to_hidden.mul_(mask)
            self.activation.backward(to_z, z)
            if aggregated is None:  # the first layer
                torch.sum(to_z, -2, keepdim=True, out=to_bias)
                self._to_features(to_z, to_neighbour, *to_root)
                return
            self.times(aggregated.mT, to_z, out=to_neighbour)
            torch.sum(to_z, -2, keepdim=True, out=to_bias)
            to_hidden = self._product(f"back{i}", to_z, neighbour.mT)
            if matrix is not None:
                to_hidden = matrix.multiply(to_hidden, transposed=True)
            if root:
                assert own is not None
                self.times(own.mT, to_z, out=to_root[0])
                top = to_hidden[..., : own.shape[-2], :]
                self.add(top, to_z, root[0].mT, out=top)

    def release(self) -> None:
        """Free the memory of the last pass."""
        self.buffers.clear()
        self.passes.clear()

    def _bind(self) -> None:
        """Take the weights and their gradients, now that they are where the optimiser has them."""
        members = range(len(self.layers[0].parameters[0]))[self.part]
        self.single = len(members) == 1
        self.add = torch.addmm if self.single else torch.baddbmm
        self.times = torch.mm if self.single else torch.bmm
        for layer in self.layers:
            self.weights.append(self._unbatched([p.detach()[self.part] for p in layer.parameters]))
        self.out = [
            self._unbatched([cast(Tensor, p.grad)[self.part] for p in layer.parameters])
            for layer in self.layers
        ]

    def _unbatched(self, tensors: list[Tensor]) -> list[Tensor]:
        """Remove the axis of members if there is only one."""
        return [tensor[0] for tensor in tensors] if self.single else tensors

    def _project(self, neighbour: Tensor, bias: Tensor, *root: Tensor) -> Tensor:
        """Apply the first layer, to the constant features."""
        inputs, x = self.inputs, self.inputs.features
        if isinstance(x, SparseMatrix):  # project first: A·(X·N), never A·X
            z = x.multiply(neighbour)
            if self.layers[0].aggregates:
                z = inputs.matrix_for(self.hops - 1).multiply(z)
            if not root:
                return z.add_(bias)
            assert inputs.own is not None
            return z.add_(inputs.own.multiply(root[0]).add_(bias))
        weights = torch.cat([neighbour, *root], dim=-2) if root else neighbour
        return self._affine("z0", bias, x if self.single else x.expand(len(bias), -1, -1), weights)

    def _to_features(self, to_z: Tensor, neighbour: Tensor, *root: Tensor) -> None:
        """Write the gradients of the first layer's matrices."""
        inputs, x = self.inputs, self.inputs.features
        if isinstance(x, SparseMatrix):
            if root:
                assert inputs.own is not None
                root[0].copy_(inputs.own.multiply(to_z, transposed=True))
            if self.layers[0].aggregates:
                to_z = inputs.matrix_for(self.hops - 1).multiply(to_z, transposed=True)
            neighbour.copy_(x.multiply(to_z, transposed=True))
            return
        transposed = x.mT if self.single else x.mT.expand(len(to_z), -1, -1)
        both = self.times(transposed, to_z)
        neighbour.copy_(both[..., : inputs.columns, :])
        if root:
            root[0].copy_(both[..., inputs.columns :, :])

    def _affine(self, name: str, bias: Tensor, left: Tensor, right: Tensor) -> Tensor:
        z: Tensor = self.add(bias, left, right, out=self._buffer(name, left, right))
        return z

    def _product(self, name: str, left: Tensor, right: Tensor) -> Tensor:
        product: Tensor = self.times(left, right, out=self._buffer(name, left, right))
        return product

    def _buffer(self, name: str, left: Tensor, right: Tensor) -> Tensor:
        """Return where a product is written: always the same memory."""
        if name not in self.buffers:
            self.buffers[name] = left.new_empty((*left.shape[:-1], right.shape[-1]))
        return self.buffers[name]
