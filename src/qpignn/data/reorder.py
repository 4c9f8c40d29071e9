"""Renumbering of nodes so that neighbours are close to each other in memory."""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
import torch
from scipy.sparse.csgraph import reverse_cuthill_mckee
from torch_geometric.data import Data

from qpignn.data.graph import check_graph, select_nodes


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
    nodes = data.x.shape[0]
    source, target = data.edge_index.numpy()
    ones = np.ones(len(source), dtype=np.int8)
    adjacency = sp.csr_matrix((ones, (source, target)), shape=(nodes, nodes))
    permutation = reverse_cuthill_mckee(adjacency, symmetric_mode=False)
    order = torch.from_numpy(permutation.astype(np.int64))
    place = torch.empty_like(order)
    place[order] = torch.arange(nodes)
    out = select_nodes(data, order)
    out.edge_index = place[data.edge_index]
    return out
