"""Columns of nodes for methods on tables: features, and what is known of neighbours."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
from threadpoolctl import threadpool_limits
from torch import Tensor

from qpignn.calibration.neighbours import KnownErrors, neighbour_sums
from qpignn.data.adjacency import symmetric_adjacency
from qpignn.data.matrix import best_layout, column_deviations, is_sparse, to_scipy
from qpignn.methods.known_nodes import KnownNodes
from qpignn.runtime.memory import row_chunks

if TYPE_CHECKING:
    from torch_geometric.data import Data

Floats = npt.NDArray[np.float64]
WIDE = 64
"""Feature columns above which their first components are used in their place."""
TARGET_COLUMNS = 4
"""Columns of :meth:`KnownTargets.sums`."""


@dataclass(frozen=True)
class KnownTargets:
    """Nodes with known targets, to be found again in other graphs.

    Attributes:
        nodes: the nodes.
        y: (given,), their targets.
    """

    nodes: KnownNodes
    y: Floats

    def sums(self, places: npt.NDArray[np.int64], adjacency: Any) -> Floats:
        """Return mean targets and numbers of known nodes nearby, (nodes, 4).

        The columns are: weight of the edges to known neighbours, mean of their targets, the same
        for ways of two edges that do not lead back; means are NaN where there are none.

        Args:
            places: (nodes,), the place of each node of a graph among the known ones, or −1.
            adjacency: symmetric matrix of the graph, without entries on the diagonal.
        """
        there = np.flatnonzero(places >= 0)
        peak = (
            float(np.abs(self.y).max(initial=0)) or 1.0
        )  # products of targets and weights stay finite
        y = self.y[places[there]] / peak
        none = np.zeros_like(y)
        given = KnownErrors(np.ones_like(y), none, y, none).spread(len(places), there)
        n1, _, z1, _, n2, _, z2 = neighbour_sums(adjacency, given).T
        return np.stack([n1, peak * ratio(z1, n1), n2, peak * ratio(z2, n2)], axis=1)


@dataclass(frozen=True)
class GraphColumns:
    """What the columns of a graph's nodes are made of.

    Attributes:
        x: (nodes, features), features or their components.
        mean: (nodes, nodes), SciPy CSR, whose product with ``x`` are means over neighbours.
        degree: (nodes,), sum of the weights of each node's edges.
        sums: (nodes, 4), of :meth:`KnownTargets.sums`; without columns if targets are not used.
    """

    x: Floats
    mean: Any
    degree: Floats
    sums: Floats

    @classmethod
    def of(cls, data: Data, components: Floats | None, targets: KnownTargets | None) -> Self:
        """Return those of a graph.

        Args:
            data: a checked graph.
            components: of :func:`fit_components`.
            targets: nodes with known targets; None if targets are not used.
        """
        x, nodes = _dense(data.x, components), int(data.x.shape[0])
        places = None if targets is None else targets.nodes.places_in(data)
        given = None if places is None else places >= 0
        adjacency = symmetric_adjacency(data.edge_index, data.get("edge_weight"), nodes, given)
        degree = np.asarray(adjacency.sum(axis=1)).ravel()
        mean = adjacency.copy()  # rows without entries keep none
        mean.data /= np.repeat(degree, np.diff(adjacency.indptr))
        sums = np.empty((nodes, 0))
        if targets is not None and places is not None:
            sums = targets.sums(places, adjacency)
        return cls(x, mean, degree, sums)

    def rows(self, rows: Any) -> Floats:
        """Return the columns of some nodes, (rows, columns).

        Args:
            rows: positions of the nodes, or a slice.
        """
        with np.errstate(over="ignore", invalid="ignore"):
            near = self.mean[rows] @ self.x
        near[self.degree[rows] == 0] = np.nan
        parts = (self.x[rows], near, self.degree[rows].reshape(-1, 1), self.sums[rows])
        columns = np.hstack(parts)
        columns[np.isinf(columns)] = np.nan  # products beyond float64
        return columns

    def chunks(self) -> Iterator[Floats]:
        """Yield the columns of all nodes, some rows at a time."""
        for chunk in row_chunks(len(self.x)):
            yield self.rows(chunk)


def fit_components(x: Tensor, seed: int) -> Floats | None:
    """Return the first components of wide features, (features, components); None for others.

    Dense features are divided by their standard deviations first.

    Args:
        x: (nodes, features), dense or CSR.
        seed: of the randomised singular value decomposition.
    """
    from sklearn.decomposition import TruncatedSVD  # takes time to import

    if x.shape[1] <= WIDE:
        return None
    x = best_layout(x)
    matrix = to_scipy(x).astype(np.float64) if is_sparse(x) else x.double().numpy()
    scale = np.ones(x.shape[1])
    if not is_sparse(x):
        scale = column_deviations(x).numpy()
        scale[scale == 0] = 1
        matrix = matrix / scale
    decomposition = TruncatedSVD(min(WIDE, *x.shape), random_state=seed)
    with threadpool_limits(limits=1):
        decomposition.fit(matrix)
    return np.ascontiguousarray(decomposition.components_.T / scale[:, None])


def _dense(x: Tensor, components: Floats | None) -> Floats:
    """Return features, or their components, as a dense (nodes, columns) array."""
    x = best_layout(x)
    if components is None:
        return (x.to_dense() if is_sparse(x) else x).double().numpy()
    matrix = to_scipy(x).astype(np.float64) if is_sparse(x) else x.double().numpy()
    with threadpool_limits(limits=1), np.errstate(over="ignore", invalid="ignore"):
        return np.asarray(matrix @ components)


def ratio(total: Floats, count: Floats) -> Floats:
    """Return quotients, NaN where the divisor is 0.

    Args:
        total: (nodes,), dividends.
        count: (nodes,), divisors.
    """
    return np.divide(total, count, out=np.full_like(total, np.nan), where=count > 0)
