"""Graph isomorphism networks (Xu et al. 2019, https://arxiv.org/abs/1810.00826)."""

from __future__ import annotations

import torch
from torch import Tensor

from qpignn.encoders.stack import StackEncoder


def gin_edges(
    edge_index: Tensor, edge_weight: Tensor | None, nodes: int
) -> tuple[Tensor, Tensor | None]:
    """Return the edges of 1 + W and their weights, those of the added 1 first.

    Args:
        edge_index: (2, edges), sources and targets.
        edge_weight: (edges,); default all 1.
        nodes: number of nodes.
    """
    ends = torch.cat([torch.arange(nodes).expand(2, -1), edge_index], dim=1)
    if edge_weight is not None:
        edge_weight = torch.cat([edge_weight.new_ones(nodes), edge_weight])
    return ends, edge_weight


class GinEncoder(StackEncoder):
    """h' = f((h + Σ_{u → v} h_u)·N₁ + b₁)·N₂ + b₂: the numbers of PyG's ``GINConv`` with ε = 0.

    The map of ``GINConv`` is linear, activation, linear. Edge weights make the sum weighted. See
    :class:`~qpignn.encoders.base.LayeredEncoder` for the arguments.
    """

    two_maps = True
    weighted_edges = staticmethod(gin_edges)
    self_loops = True
