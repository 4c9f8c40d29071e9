"""Graph isomorphism networks (Xu et al. 2019, https://arxiv.org/abs/1810.00826)."""

from __future__ import annotations

import torch
from torch import Tensor

from qpignn.encoders.inputs import sum_matrix
from qpignn.encoders.sparse import SparseMatrix
from qpignn.encoders.stack import StackEncoder


def gin_matrix(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    nodes: int,
    order: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> SparseMatrix:
    """Return 1 + W, with the entry of the added 1 first in every row.

    Args:
        edge_index: (2, edges), sources and targets.
        edge_weight: (edges,); default all 1.
        nodes: number of nodes.
        order: the old position of each node, to renumber them; default as they are.
        dtype: of the values.
    """
    ends = torch.cat([torch.arange(nodes).expand(2, -1), edge_index], dim=1)
    if edge_weight is not None:
        edge_weight = torch.cat([edge_weight.new_ones(nodes), edge_weight])
    return sum_matrix(ends, edge_weight, nodes, order, dtype)


class GinEncoder(StackEncoder):
    """h' = f((h + Σ_{u → v} h_u)·N₁ + b₁)·N₂ + b₂: the numbers of PyG's ``GINConv`` with ε = 0.

    The map of ``GINConv`` is linear, activation, linear. Edge weights make the sum weighted. See
    :class:`~qpignn.encoders.stack.StackEncoder` for the arguments.
    """

    two_maps = True
    build_matrix = staticmethod(gin_matrix)
    self_loops = True
