"""Graph attention networks (Veličković et al. 2018, https://arxiv.org/abs/1710.10903)."""

from __future__ import annotations

from itertools import pairwise
from typing import cast

import torch
from torch import Tensor, nn

from qpignn.data.matrix import is_sparse, to_scipy
from qpignn.encoders.base import Encoder, MemberNorm, uniform_parameter
from qpignn.encoders.inputs import EdgeInputs, GraphInputs, edge_features
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


class GatEncoder(Encoder):
    """A stack of attention layers; several heads share the units of a layer.

    Edge features (``edge_attr``) and edge weights, as one more edge feature, take part in the
    attention. Runs on whole graphs only.

    Args:
        inputs: number of input features.
        hidden: length of the hidden vectors.
        layers: number of layers.
        generator: draws initial weights and dropout's masks.
        dropout: share of hidden units that are zeroed while training.
        activation: a name in :data:`qpignn.encoders.activations.ACTIVATIONS`.
        residual: whether every layer from the second on adds its inputs to its outputs.
        norm: ``none``, or ``layer`` for layer normalisation before the activation.
        members: number of members.
        edge_columns: number of edge features, a weight included.
    """

    uses_edge_features = True

    def __init__(
        self,
        inputs: int,
        hidden: int,
        layers: int,
        *,
        generator: torch.Generator,
        dropout: float = 0.0,
        activation: str = "silu",
        residual: bool = False,
        norm: str = "none",
        members: int = 1,
        edge_columns: int = 0,
    ) -> None:
        super().__init__(
            hidden, generator=generator, dropout=dropout, activation=activation, members=members
        )
        heads = next(heads for heads in (4, 2, 1) if hidden % heads == 0)
        self.layers = nn.ModuleList(
            GatLayer(members, before, after, generator, heads=heads, edge_columns=edge_columns)
            for before, after in pairwise([inputs, *[hidden] * layers])
        )
        self.norms = nn.ModuleList(
            MemberNorm(members, hidden) for _ in range(layers if norm == "layer" else 0)
        )
        self.residual, self.edge_columns = residual, edge_columns

    @classmethod
    def prepare(
        cls,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        *,
        edge_attr: Tensor | None = None,
        first: Tensor | None = None,
        offset: Tensor | None = None,
        aggregation: str = "mean",
    ) -> GraphInputs:
        """Return the constants of a graph; see :meth:`qpignn.encoders.base.Encoder.prepare`.

        Args:
            x: (nodes, columns), dense or CSR, already scaled.
            edge_index: (2, edges), messages run from row 0 to row 1.
            edge_weight: (edges,), one more edge feature.
            edge_attr: (edges, edge features).
            first: positions of the wanted nodes; default all.
            offset: (columns,), added to every row of a CSR ``x``.
            aggregation: not used.

        Returns:
            The inputs of the encoder, with one self-loop per node.
        """
        nodes, columns = x.shape
        attr = edge_features(edge_attr, edge_index.shape[1], x.dtype)
        weight = edge_features(edge_weight, edge_index.shape[1], x.dtype)
        parts = [part for part in (attr, weight) if part is not None]
        kept = edge_index[0] != edge_index[1]
        ends = edge_index[:, kept]
        features = None
        if parts:
            features = torch.cat(parts, dim=1)[kept]
            means = features.new_zeros(nodes, features.shape[1])
            index = ends[1].unsqueeze(1).expand_as(features)
            means = means.scatter_reduce(0, index, features, "mean", include_self=False)
            features = torch.cat([features, means])
        return EdgeInputs(
            SparseMatrix.from_scipy(to_scipy(x), x.dtype, offset) if is_sparse(x) else x,
            columns,
            (),
            nodes if first is None else len(first),
            edge_index=torch.cat([ends, torch.arange(nodes).expand(2, -1)], dim=1),
            edge_attr=features,
            wanted=first,
        )

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
        hidden: Tensor | SparseMatrix = inputs.features
        for i, layer in enumerate(self.layers):
            z = cast(GatLayer, layer)(hidden, inputs)
            z = self.norms[i](z) if len(self.norms) else z
            outputs = self.dropped(self.activation(z))
            if self.residual and i > 0:
                assert isinstance(hidden, Tensor)
                outputs = outputs + hidden
            hidden = outputs
        assert isinstance(hidden, Tensor)
        return inputs.select(hidden)
