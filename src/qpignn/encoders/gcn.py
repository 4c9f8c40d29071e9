"""Graph convolutional networks (Kipf & Welling 2017, https://arxiv.org/abs/1609.02907)."""

from __future__ import annotations

import torch
from torch import Tensor

from qpignn.encoders.stack import StackEncoder


def gcn_edges(edge_index: Tensor, edge_weight: Tensor | None, nodes: int) -> tuple[Tensor, Tensor]:
    """Return the edges of D^(−1/2)·(W + 1)·D^(−1/2) and their weights, the diagonal first.

    Args:
        edge_index: (2, edges), sources and targets.
        edge_weight: (edges,); default all 1.
        nodes: number of nodes.
    """
    weight = torch.ones(edge_index.shape[1]) if edge_weight is None else edge_weight
    weight, loops = weight.double(), edge_index[0] == edge_index[1]
    diagonal = torch.ones(nodes, dtype=torch.float64)
    diagonal[edge_index[0, loops]] = weight[loops]
    ends, weight = edge_index[:, ~loops], torch.cat([diagonal, weight[~loops]])
    ends = torch.cat([torch.arange(nodes).expand(2, -1), ends], dim=1)
    degree = torch.zeros(nodes, dtype=torch.float64).index_add_(0, ends[1], weight)
    root = degree.rsqrt().masked_fill_(degree == 0, 0)
    return ends, root[ends[0]] * weight * root[ends[1]]


class GcnEncoder(StackEncoder):
    """h' = D^(−1/2)·(W + 1)·D^(−1/2)·h·N + b: the numbers of PyG's ``GCNConv``.

    W holds the edge weights, D the sums of the rows of W + 1. A self-loop of the graph keeps its
    weight in the place of the added 1. For directed graphs row sums run over incoming edges. See
    :class:`~qpignn.encoders.base.LayeredEncoder` for the arguments.
    """

    weighted_edges = staticmethod(gcn_edges)
    self_loops = True
