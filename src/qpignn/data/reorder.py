"""Renumbering of nodes so that neighbours are close to each other in memory."""

from __future__ import annotations

import numpy as np
import torch
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch_geometric.data import Data

from qpignn.data.graph import check_graph, select_nodes
from qpignn.data.structure import adjacency


def reorder_nodes(data: Data) -> Data:
    """Return the same graph with its nodes in reverse Cuthill–McKee order, ids included.

    A node's neighbours then have numbers close to its own. On a graph of a million nodes in random
    order (shuffled blocks or a shuffled grid), aggregation afterwards takes half to two thirds of
    the time; where the order follows the structure already, or there is no structure, nothing is
    gained.

    Args:
        data: the graph.
    """
    data = check_graph(data, need_target=False)
    permutation = reverse_cuthill_mckee(adjacency(data), symmetric_mode=False)
    order = torch.from_numpy(permutation.astype(np.int64))
    out = select_nodes(data, order)
    out.edge_index = order.argsort()[data.edge_index]
    return out
