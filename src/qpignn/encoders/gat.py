"""Graph attention networks (Veličković et al. 2018, https://arxiv.org/abs/1710.10903)."""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from qpignn.encoders.base import LayeredEncoder, uniform_parameter
from qpignn.encoders.inputs import (
    EdgeInputs,
    GraphInputs,
    GraphTensors,
    edge_features,
    features_of,
)
from qpignn.encoders.sparse import SparseMatrix
from qpignn.errors import GraphError

SLOPE = 0.2  # of LeakyReLU below 0


class GatLayer(nn.Module):
    """Attention over incoming edges and the node itself: the numbers of PyG's ``GATConv``.

    h'_v = Σ_{u → v} α_vu·h_u·W + b with α_v = softmax_u(LeakyReLU(s·h_u·W + t·h_v·W + r·e_vu·W_e)),
    per head; the heads' outputs are concatenated. A node's own edge features are the mean of those
    of its incoming edges.

    Args:
        members: number of members.
        inputs: length of the input vectors.
        outputs: length of the output vectors, of all heads together.
        generator: draws the initial weights.
        heads: number of heads.
        edge_columns: number of edge features.

    Shapes:
        weight: (members, inputs, outputs); source, target, edge: (members, heads, outputs / heads);
        edge_weight: (members, edge_columns, outputs); bias: (members, 1, outputs)
    """

    def __init__(
        self,
        members: int,
        inputs: int,
        outputs: int,
        generator: torch.Generator,
        *,
        heads: int,
        edge_columns: int,
    ) -> None:
        super().__init__()
        self.heads = heads
        self.weight = uniform_parameter((members, inputs, outputs), inputs, generator)
        shape = (members, heads, outputs // heads)
        self.source = uniform_parameter(shape, shape[-1], generator)
        self.target = uniform_parameter(shape, shape[-1], generator)
        self.bias = nn.Parameter(torch.zeros(members, 1, outputs))
        if edge_columns:
            edges = (members, edge_columns, outputs)
            self.edge_weight = uniform_parameter(edges, edge_columns, generator)
            self.edge = uniform_parameter(shape, shape[-1], generator)

    def forward(self, x: Tensor | SparseMatrix, inputs: EdgeInputs) -> Tensor:
        """Return (members, nodes, outputs).

        Args:
            x: (nodes, inputs), or (members, nodes, inputs).
            inputs: the edges, one self-loop per node among them.
        """
        source, target = inputs.edge_index
        projected = x @ self.weight
        by_head = _by_head(projected, self.heads)  # (members, nodes, heads, width)
        scores = (by_head * self.source.unsqueeze(1)).sum(-1)[:, source]
        scores = scores + (by_head * self.target.unsqueeze(1)).sum(-1)[:, target]
        if inputs.edge_attr is not None:
            by_edge = _by_head(self.edge_weight, self.heads)
            scores = scores + inputs.edge_attr @ (by_edge * self.edge.unsqueeze(1)).sum(-1)
        scores = nn.functional.leaky_relu(scores, SLOPE)  # (members, edges, heads)
        shape = (len(projected), inputs.nodes, self.heads)
        index = target.view(1, -1, 1).expand_as(scores)
        largest = scores.detach().new_zeros(shape)
        largest = largest.scatter_reduce(1, index, scores.detach(), "amax", include_self=False)
        weights = (scores - largest[:, target]).exp()
        totals = weights.new_zeros(shape).index_add(1, target, weights)
        shares = (weights / totals[:, target]).unsqueeze(-1)
        messages = (by_head[:, source] * shares).flatten(2)
        return torch.zeros_like(projected).index_add(1, target, messages) + self.bias


def _by_head(vectors: Tensor, heads: int) -> Tensor:
    return vectors.view(*vectors.shape[:-1], heads, -1)


class GatEncoder(LayeredEncoder):
    """A stack of attention layers; several heads share the units of a layer.

    Edge features (``edge_attr``) and edge weights, as one more edge feature, take part in the
    attention. Runs on whole graphs only. See :class:`~qpignn.encoders.base.LayeredEncoder` for the
    arguments.
    """

    uses_edge_features = True

    def _add_layer(self, inputs: int, outputs: int) -> None:
        heads = next(heads for heads in (4, 2, 1) if outputs % heads == 0)
        shape, columns = (self.members, inputs, outputs), self.edge_columns
        self.layers.append(GatLayer(*shape, self.generator, heads=heads, edge_columns=columns))

    @classmethod
    def prepare_tensors(cls, graph: GraphTensors) -> GraphInputs:
        """Return the constants of a graph; see :meth:`qpignn.encoders.base.Encoder.prepare`.

        Returns:
            The inputs of the encoder, with one self-loop per node.
        """
        x, edge_index = graph.x, graph.edge_index
        given = (graph.edge_attr, graph.edge_weight)
        columns = (edge_features(part, edge_index.shape[1], x.dtype) for part in given)
        parts = [part for part in columns if part is not None]
        kept = edge_index[0] != edge_index[1]
        ends = edge_index[:, kept]
        features = None
        if parts:
            features = torch.cat(parts, dim=1)[kept]
            means = features.new_zeros(x.shape[0], features.shape[1])
            index = ends[1].unsqueeze(1).expand_as(features)
            means = means.scatter_reduce(0, index, features, "mean", include_self=False)
            features = torch.cat([features, means])
        ends = torch.cat([ends, torch.arange(x.shape[0]).expand(2, -1)], dim=1)
        shape = (features_of(x, graph.offset), x.shape[1], (), graph.rows)
        return EdgeInputs(*shape, edge_index=ends, edge_attr=features, wanted=graph.first)

    def forward(self, inputs: GraphInputs) -> Tensor:
        """Return hidden vectors of the wanted nodes, (members, rows, hidden).

        Args:
            inputs: as :meth:`prepare` returned them.

        Raises:
            GraphError: the graph has another number of edge features than that of the fit.
        """
        assert isinstance(inputs, EdgeInputs)
        if inputs.edge_columns != self.edge_columns:
            raise GraphError(
                f"edge_attr and edge_weight: expected {self.edge_columns} numbers per edge, as in "
                f"the fit, got {inputs.edge_columns}; give the graph the edge features and weights "
                f"of the fit"
            )
        hidden: Any = inputs.features
        for i, layer in enumerate(self.layers):
            hidden = self._outputs(layer(hidden, inputs), i, hidden)
        return inputs.select(hidden)
