"""Encoders whose layers aggregate by one sparse product: a stack of affine maps.

Layer l of GraphSAGE, GCN, GIN and the perceptron is

    h⁽ˡ⁾ = dropout(f(norm(A·h⁽ˡ⁻¹⁾·N + h⁽ˡ⁻¹⁾·R + b))) [+ h⁽ˡ⁻¹⁾]

with a matrix A that is built once per graph, R only for GraphSAGE, A = 1 for the perceptron, and a
second affine map inside the layer for GIN. The residual sum starts at the second layer. Features
are never dropped: the first aggregation is computed once.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, ClassVar, cast

import torch
from torch import Tensor, nn

from qpignn.encoders.activations import ACTIVATIONS
from qpignn.encoders.base import LayeredEncoder, uniform_parameter
from qpignn.encoders.fused import FusedLayer, FusedLayers
from qpignn.encoders.held_out import member_inputs
from qpignn.encoders.inputs import GraphInputs, GraphTensors, prepare
from qpignn.encoders.sampling import Sampler
from qpignn.encoders.sparse import MaxMatrix, SparseMatrix
from qpignn.runtime import distributed
from qpignn.runtime.memory import allocate_tensor, row_chunks


class AffineLayer(nn.Module):
    """z = A·h·N [+ h·R] + b, for several members.

    Args:
        members: number of members.
        inputs: length of the input vectors.
        outputs: length of the output vectors.
        generator: draws the initial weights.
        root: whether there is a matrix R.
        aggregates: whether there is an aggregation A.

    Attributes:
        second: a map of the outputs that follows after an activation, or None.

    Shapes:
        neighbour (N), root (R): (members, inputs, outputs); bias: (members, 1, outputs)
    """

    def __init__(
        self,
        members: int,
        inputs: int,
        outputs: int,
        generator: torch.Generator,
        *,
        root: bool = True,
        aggregates: bool = True,
    ) -> None:
        super().__init__()
        self.aggregates = aggregates
        self.neighbour = uniform_parameter((members, inputs, outputs), inputs, generator)
        self.bias = uniform_parameter((members, 1, outputs), inputs, generator)
        self.root = uniform_parameter(self.neighbour.shape, inputs, generator) if root else None
        self.second: AffineLayer | None = None

    def on_features(self, inputs: GraphInputs, left: int = 1) -> Tensor:
        """Apply to the constant input features.

        Args:
            inputs: of the graph.
            left: how many aggregations come after this layer.

        Returns:
            (members, nodes, outputs)
        """
        x = inputs.features
        if not isinstance(x, SparseMatrix):
            return self.on_dense(x)
        z = x @ self.neighbour  # project first: A·(X·N), never A·X
        if self.aggregates:
            z = inputs.matrix_for(max(left, 1)) @ z
        if self.root is None:
            return z + self.bias
        assert inputs.own is not None
        return z + (inputs.own @ self.root + self.bias)

    def on_dense(self, x: Tensor) -> Tensor:
        """Apply to vectors that are aggregated already, beside the nodes' own where R is used.

        Args:
            x: (nodes, inputs), or with an axis of members.

        Returns:
            (members, nodes, outputs)
        """
        weights: Tensor = self.neighbour
        if self.root is not None:
            weights = torch.cat([self.neighbour, self.root], dim=1)
        return torch.baddbmm(self.bias, x.expand(len(weights), -1, -1), weights)

    def combined(self, aggregated: Tensor, own: Tensor) -> Tensor:
        """Apply to aggregated and own hidden vectors.

        Args:
            aggregated: (members, nodes, inputs).
            own: the same.

        Returns:
            (members, nodes, outputs)
        """
        z = torch.baddbmm(self.bias, aggregated, self.neighbour)
        return z if self.root is None else z.baddbmm_(own, self.root)

    def forward(self, hidden: Tensor, matrix: SparseMatrix) -> Tensor:
        """Aggregate and apply: (members, nodes, inputs) → (members, matrix rows, outputs).

        Args:
            hidden: the inputs of all nodes.
            matrix: of the aggregation, with the wanted rows.
        """
        if isinstance(matrix, MaxMatrix):
            return self.combined(matrix @ hidden, hidden[:, : matrix.shape[0]])
        weights = (self.neighbour, self.bias, self.root)
        z: Tensor = _AffineStep.apply(hidden, *weights, matrix)  # type: ignore[no-untyped-call]
        return z


class _AffineStep(torch.autograd.Function):
    """A·h·N + h·R + b for the first rows of h.

    Its gradient is written out because autograd would fill a matrix with zeros for the slice
    h[:, :rows], and add in another what is added in one here.
    """

    @staticmethod
    def forward(  # noqa: PLR0917
        ctx: Any,
        hidden: Tensor,
        neighbour: Tensor,
        bias: Tensor,
        root: Tensor | None,
        matrix: SparseMatrix,
    ) -> Tensor:
        aggregated, own = matrix.multiply(hidden), hidden[:, : matrix.shape[0]]
        ctx.matrix = matrix
        ctx.save_for_backward(aggregated, own, neighbour, root)
        z = torch.baddbmm(bias, aggregated, neighbour)
        return z if root is None else z.baddbmm_(own, root)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor | None, ...]:
        aggregated, own, neighbour, root = ctx.saved_tensors
        to_hidden = ctx.matrix.multiply(gradient @ neighbour.mT, transposed=True)
        to_root = None
        if root is not None:
            to_hidden[:, : own.shape[1]].baddbmm_(gradient, root.mT)
            to_root = own.mT @ gradient
        to_bias = gradient.sum(dim=1, keepdim=True)
        return to_hidden, aggregated.mT @ gradient, to_bias, to_root, None


class StackEncoder(LayeredEncoder):
    """A stack of layers, each an affine map of aggregated vectors and an activation.

    A class says which edges are aggregated over (``weighted_edges``) and which maps a layer has.
    See :class:`~qpignn.encoders.base.LayeredEncoder` for the arguments.
    """

    sampled_aggregations = ("mean", "sum")
    uses_graph: ClassVar[bool] = True
    """Whether layers aggregate over neighbours."""
    uses_own: ClassVar[bool] = False
    """Whether layers have a matrix R for the nodes' own vectors."""
    two_maps: ClassVar[bool] = False
    """Whether layers have a second affine map."""
    self_loops: ClassVar[bool] = False
    """Whether layers sum over edges of which the first ones lead from each node to itself."""

    @classmethod
    def prepare_tensors(cls, graph: GraphTensors) -> GraphInputs:
        """Return the constants of a graph; see :meth:`qpignn.encoders.base.Encoder.prepare`."""
        kind = "sum" if cls.self_loops else graph.aggregation
        ends, weight = cls.weighted_edges(graph.edge_index, graph.edge_weight, graph.x.shape[0])
        graph = graph._replace(edge_index=ends, edge_weight=weight, aggregation=kind)
        return prepare(graph, own=cls.uses_own, self_loops=cls.self_loops)

    @staticmethod
    def weighted_edges(
        edge_index: Tensor, edge_weight: Tensor | None, nodes: int
    ) -> tuple[Tensor, Tensor | None]:
        """Return the edges that layers aggregate over and their weights, by default the graph's.

        Args:
            edge_index: (2, edges), sources and targets.
            edge_weight: (edges,); None for all 1.
            nodes: number of nodes.
        """
        return edge_index, edge_weight

    def _add_layer(self, inputs: int, outputs: int) -> None:
        shape, draw = (self.members, inputs, outputs), self.generator
        layer = AffineLayer(*shape, draw, root=self.uses_own, aggregates=self.uses_graph)
        if self.two_maps:
            shape = (self.members, outputs, outputs)
            layer.second = AffineLayer(*shape, draw, root=False, aggregates=False)
        self.layers.append(layer)

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Return hidden vectors of the wanted nodes, (members, rows, hidden).

        Args:
            inputs: as ``prepare`` returned them.
        """
        hidden, last = torch.empty(0), len(self.layers) - 1
        for i, layer in enumerate(self._layers()):
            own = hidden
            if i == 0:
                z = layer.on_features(inputs, last)
            elif not layer.aggregates:
                z = layer.on_dense(hidden)
            elif i < last or torch.is_grad_enabled():
                matrix = inputs.matrix_for(last - i)
                z, own = layer(hidden, matrix), hidden[:, : matrix.shape[0]]
            else:
                aggregated, own = inputs.last_inputs(hidden)
                z = layer.combined(aggregated, own)
            hidden = self._outputs(z, i, own)
        return hidden if hidden.shape[1] == inputs.rows else hidden[:, : inputs.rows]

    def dropout_passes(
        self, inputs: GraphInputs, count: int, generator: torch.Generator
    ) -> Iterator[Tensor]:
        """Yield hidden vectors of several passes, each with other units dropped at all nodes.

        The first of two layers and its aggregation are the same in every pass: a factor per unit
        can be applied after them.

        Args:
            inputs: of the graph.
            count: number of passes.
            generator: draws the masks.
        """
        if len(self.layers) != 2 or not self._is_plain() or self.two_maps or not self.uses_graph:
            yield from super().dropout_passes(inputs, count, generator)
            return
        first, last = self._layers()
        with self._dropping_units(generator), torch.no_grad():
            hidden = self.activation(first.on_features(inputs))
            aggregated = inputs.last_inputs(hidden)
            for _ in range(count):
                mask = self.dropout_mask(hidden)
                kept = aggregated if mask is None else [part * mask for part in aggregated]
                yield self.dropped(self.activation(last.combined(*kept)))

    def fused(self, inputs: GraphInputs, part: slice) -> FusedLayers | None:
        """Return the hand-written passes; None with norms, residuals, a maximum or one layer.

        Args:
            inputs: of the graph.
            part: which members.
        """
        maximum = any(isinstance(matrix, MaxMatrix) for matrix in inputs.matrices)
        if not self._is_plain() or maximum or (self.uses_graph and len(self.layers) == 1):
            return None
        layers = []
        for layer in self._layers():
            maps = [layer] if layer.second is None else [layer, layer.second]
            for one in maps:
                parameters = [one.neighbour, one.bias, *([] if one.root is None else [one.root])]
                layers.append(FusedLayer(parameters, one.aggregates, drops=one is maps[-1]))
        activation = ACTIVATIONS[self.activation_name]
        return FusedLayers(layers, part, inputs, activation, self.dropout_mask)

    def sampler(self, inputs: GraphInputs, fan_out: int) -> Sampler | None:
        """Return a sampler of minibatches; None for the maximum over neighbours.

        Args:
            inputs: of the whole graph.
            fan_out: how many neighbours of a node are drawn, at most.
        """
        if any(isinstance(matrix, MaxMatrix) for matrix in inputs.matrices):
            return None
        return Sampler(inputs, len(self.layers) if self.uses_graph else 0, fan_out)

    def member_inputs(self, inputs: GraphInputs, positions: Tensor) -> GraphInputs | None:
        """Return inputs for evaluation of which every member computes its own nodes.

        Args:
            inputs: of the graph.
            positions: (members, rows), each member's nodes by their positions in ``inputs``.

        Returns:
            The inputs; None where the last layer does not aggregate hidden vectors.
        """
        if not self.uses_graph or len(self.layers) == 1:
            return None
        return member_inputs(inputs, positions)

    def in_chunks(self, inputs: GraphInputs) -> Iterator[Tensor]:
        """Yield hidden vectors of some wanted nodes at a time, outside training.

        Layer by layer: there are never more than two layers' vectors in memory.

        Args:
            inputs: of the graph, which may be larger than memory.
        """
        hidden: Tensor | None = None
        for i, layer in enumerate(self._layers()[:-1]):
            parts, bias = self._layer_in_chunks(i, inputs, hidden), layer.bias
            hidden = allocate_tensor((len(bias), inputs.nodes, bias.shape[-1]), bias.dtype)
            done = 0
            for part in parts:
                hidden[:, done : done + part.shape[1]] = part
                done += part.shape[1]
        yield from self._layer_in_chunks(len(self.layers) - 1, inputs, hidden)

    def _layer_in_chunks(
        self, i: int, inputs: GraphInputs, hidden: Tensor | None
    ) -> Iterator[Tensor]:
        """Yield a layer's outputs; where several ranks fit one model, each computes some."""
        layer, left = self._layers()[i], len(self.layers) - 1 - i
        x, bias = inputs.features, layer.bias
        projected = matrix = None
        if layer.aggregates:
            matrix = inputs.matrix if hidden is None else inputs.matrix_for(left)
        if hidden is None and matrix is not None and isinstance(x, SparseMatrix):
            projected = x.multiply(layer.neighbour)

        def some(part: slice) -> Tensor:
            if hidden is not None:
                own = hidden[:, part]
                if matrix is None:
                    return self._outputs(layer.on_dense(own), i, own)
                aggregated = matrix.some(part.start, part.stop).multiply(hidden)
                return self._outputs(layer.combined(aggregated, own), i, own)
            if not isinstance(x, SparseMatrix):
                return self._outputs(layer.on_dense(x[part]), i, bias)
            mine = x.some(part.start, part.stop)
            if projected is None or matrix is None:
                z = mine.multiply(layer.neighbour)
            else:
                z = matrix.some(part.start, part.stop).multiply(projected)
            z += bias if layer.root is None else mine.multiply(layer.root) + bias
            return self._outputs(z, i, bias)

        def empty(part: slice) -> Tensor:
            return bias.new_empty((len(bias), part.stop - part.start, bias.shape[2]))

        yield from distributed.split_work(
            [*row_chunks(inputs.nodes if left else inputs.rows)], some, empty
        )

    def _layers(self) -> list[AffineLayer]:
        return [cast(AffineLayer, layer) for layer in self.layers]

    def _is_plain(self) -> bool:
        """Whether a layer is its affine maps, activations and dropout."""
        return not self.residual and len(self.norms) == 0

    def _outputs(self, z: Tensor, i: int, own: Any) -> Tensor:
        second = self._layers()[i].second
        if second is not None:
            z = second.on_dense(self.activation(z))
        return super()._outputs(z, i, own)
