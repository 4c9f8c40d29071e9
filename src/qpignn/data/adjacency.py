"""Who is whose neighbour, whatever the direction of edges: a symmetric sparse matrix."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from torch import Tensor


def symmetric_adjacency(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    nodes: int,
    given: npt.NDArray[np.bool_] | None = None,
) -> Any:
    """Return the symmetric matrix of a graph's edges, without self-loops, (nodes, nodes), CSR.

    Without weights its entries are 1, however often an edge is repeated. Weights of repeated edges
    are added, the larger of those of both directions counts, and all are divided by the mean of
    those between given nodes, so that a usual neighbour counts as 1, whatever other edges weigh;
    edges of weight 0 are left out.

    Args:
        edge_index: (2, edges), sources and targets.
        edge_weight: (edges,), from 0 up; default all equal.
        nodes: number of nodes.
        given: (nodes,), those whose edges decide what is usual; default, and where no edge is
            between them, all nodes.
    """
    source, target = edge_index.numpy()
    apart = source != target
    if edge_weight is not None:
        apart &= edge_weight.double().numpy() > 0
    source, target = source[apart], target[apart]
    if edge_weight is None:
        values = np.ones(len(source), dtype=np.int8)
    else:
        values = edge_weight.double().numpy()[apart]
    one_way = sp.csr_matrix((values, (target, source)), shape=(nodes, nodes))
    if edge_weight is None:
        one_way.data[:] = 1  # repeated edges were added, and 256 of them are 0 in 8 bits
    both = one_way.maximum(one_way.T.tocsr()).tocsr()
    if edge_weight is None:
        return both.astype(np.float64)
    usual = both.data
    if given is not None:
        between = np.repeat(given, np.diff(both.indptr)) & given[both.indices]
        usual = both.data[between] if between.any() else both.data
    both.data /= usual.mean() if both.nnz else 1.0
    return both
