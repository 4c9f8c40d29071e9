"""Distances of a graph's nodes from given ones: along edges, and between their features."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
import torch
from torch import Tensor

from qpignn.calibration.widening import UNREACHABLE, Distances, rows_of
from qpignn.calibration.width_scaling import Floats, Masks
from qpignn.data.matrix import is_sparse, to_scipy
from qpignn.data.scaling import Scaler
from qpignn.encoders.inputs import aggregation_matrix
from qpignn.runtime.memory import row_chunks
from qpignn.runtime.randomness import numpy_rng

if TYPE_CHECKING:
    from torch_geometric.data import Data

COMBINED = 16  # feature columns above which as many random combinations of them are compared
REGIONS = 5
RANDOM_FEATURES = 128  # of the small regression
LONGEST = 50  # edges of a path that are counted
CONSTANT = 1e-9  # variance up to which a term counts as constant: distances are not divided by it


class Surroundings:
    """The edges of a graph, as novelty needs them.

    Args:
        data: a checked graph.
    """

    def __init__(self, data: Data) -> None:
        nodes = data.x.shape[0]
        edges, weight = data.edge_index, data.get("edge_weight")
        if weight is not None and bool((weight == 0).any()):
            edges = edges[:, weight > 0]  # as if they were not there
        self.mean = aggregation_matrix(edges, None, nodes)
        self.degree = self.mean.starts.diff().float()

    def positions(self, combined: Tensor, rows: Tensor) -> Floats:
        """Return what positions of some nodes are: own, mean of the neighbours, their number.

        Args:
            combined: (nodes, terms), features or combinations of them.
            rows: positions of the wanted nodes, rising.

        Returns:
            (wanted, 2 · terms + 1)
        """
        wanted = np.zeros(len(combined), dtype=np.bool_)
        wanted[rows.numpy()] = True
        return np.concatenate([part[wanted[chunk]] for chunk, part in self._positions(combined)])

    def unusual(self, combined: Tensor, metric: Metric) -> Floats:
        """Return the distance of each node's position in a metric, (nodes,).

        Args:
            combined: (nodes, terms), features or combinations of them.
            metric: of the given units.
        """
        return np.concatenate([metric(part) for _, part in self._positions(combined)])

    def _positions(self, combined: Tensor) -> Iterator[tuple[slice, Floats]]:
        for chunk in row_chunks(len(combined)):
            around = self.mean.some(chunk.start, chunk.stop).multiply(combined)
            degree = self.degree[chunk].log1p().unsqueeze(1)
            yield chunk, torch.cat([combined[chunk], around, degree], dim=1).numpy()

    def distances(
        self, own: Any, start: Tensor, unusual: Floats, rows: Tensor | None = None
    ) -> Distances:
        """Return the distances of all nodes, or of some.

        Args:
            own: (nodes, columns), SciPy CSR, features beyond the range.
            start: boolean, (nodes,), the given units.
            unusual: (wanted,), as :meth:`unusual` returns them.
            rows: positions of the wanted nodes; default all.
        """
        around, hops = self._sparse_average(own), self.hops_to(start)
        chosen = slice(None) if rows is None else rows.numpy()
        return Distances(rows_of(own, chosen), rows_of(around, chosen), hops[chosen], unusual)

    def _sparse_average(self, own: Any) -> Any:
        """Return the mean over each node's neighbours where few nodes have numbers, as SciPy CSR.

        Args:
            own: (nodes, columns), SciPy CSR.
        """
        if not own.nnz:
            return own
        starts, columns = self.mean.starts.numpy(), self.mean.columns.numpy()
        entries = np.flatnonzero((np.diff(own.indptr) > 0)[columns])
        targets = np.searchsorted(starts, entries, side="right") - 1
        shares = 1 / (starts[targets + 1] - starts[targets])
        nodes = len(starts) - 1
        links = sp.csr_matrix((shares, (targets, columns[entries])), shape=(nodes, nodes))
        return links @ own

    def average(self, numbers: Tensor) -> Tensor:
        """Return the mean over each node's neighbours, (nodes, columns).

        Args:
            numbers: (nodes, columns).
        """
        return self.mean.multiply(numbers)

    def hops_to(self, start: Tensor) -> Floats:
        """Return the number of edges from the nearest start to each node, (nodes,).

        Args:
            start: boolean, (nodes,).
        """
        hops = np.full(len(start), UNREACHABLE)
        hops[start.numpy()] = 0
        left = np.flatnonzero((hops > 0) & (np.diff(self.mean.starts.numpy()) > 0))
        for steps in range(1, LONGEST + 1):
            reached = hops < steps
            touched = [self._any_neighbour(reached, left[part]) for part in row_chunks(len(left))]
            new = np.concatenate(touched) if touched else np.zeros(0, dtype=np.bool_)
            if not new.any():
                break
            hops[left[new]], left = steps, left[~new]
        return hops

    def _any_neighbour(self, reached: Masks, rows: npt.NDArray[np.int64]) -> Masks:
        """Return whether a neighbour of each row, which has some, is reached, (rows,)."""
        starts, columns = self.mean.starts.numpy(), self.mean.columns.numpy()
        sizes = starts[rows + 1] - starts[rows]
        first = np.cumsum(sizes) - sizes
        entries = np.arange(sizes.sum()) + np.repeat(starts[rows] - first, sizes)
        return np.logical_or.reduceat(reached[columns[entries]], first)

    def regions(self, start: Tensor) -> npt.NDArray[np.int64]:
        """Return the number of the nearest of a few distant nodes, (nodes,); −1 without a path.

        Args:
            start: boolean, (nodes,), nodes to choose from: first the one with the most edges, then
                again and again the one farthest from the others, by position where several are.
        """
        nearest = np.full(len(start), UNREACHABLE)
        region = np.full(len(start), -1)
        candidates = start.numpy()
        for number in range(REGIONS):
            reach = np.where(candidates & (nearest < UNREACHABLE), nearest, -1.0)
            if number == 0:
                reach = candidates * self.degree.numpy()
            own = self.hops_to(torch.arange(len(start)) == int(reach.argmax()))
            closer = own < nearest
            region[closer], nearest[closer] = number, own[closer]
        return region


@dataclass(frozen=True)
class Metric:
    """The distance of positions from their mean, in the metric of their covariance.

    Attributes:
        mean: (terms,)
        root: (terms, terms), whose product with its transpose is the inverse of the covariance.
    """

    mean: Floats
    root: Floats

    @classmethod
    def of(cls, positions: Floats) -> Self:
        """Return the metric of some units.

        Args:
            positions: (units, terms).
        """
        positions = positions.astype(np.float64)
        centred = positions - positions.mean(axis=0)
        covariance = centred.T @ centred / len(positions)
        spread = covariance.diagonal()
        ridge = np.where(spread > CONSTANT, 1e-3 * spread, 1.0)
        inverse = np.linalg.inv(covariance + np.diag(ridge))
        root = np.linalg.cholesky((inverse + inverse.T) / 2)
        return cls(positions.mean(axis=0), np.asarray(root, dtype=np.float64))

    def __call__(self, positions: Floats) -> Floats:
        """Return the distance of each unit, (units,); about 1 for the units of the metric.

        Args:
            positions: (units, terms).
        """
        root = self.root.astype(np.float32)
        moved = (positions - self.mean.astype(np.float32)) @ root
        squares = np.einsum("ij,ij->i", moved, moved) / len(root)
        return np.asarray(np.sqrt(squares, dtype=np.float64))


def combinations(x: Tensor, scaler: Scaler) -> Tensor:
    """Return scaled columns, or if there are many of them random combinations, (nodes, terms).

    Args:
        x: (nodes, columns), dense or CSR.
        scaler: of the columns.
    """
    if not is_sparse(x) and x.shape[1] <= COMBINED:
        return scaler.transform(x)
    weights = numpy_rng(0, "novelty combinations").normal(size=(x.shape[1], COMBINED))
    if is_sparse(x):
        scaled, offset = scaler.transform_sparse(x, torch.float64)
        moved = 0 if offset is None else offset.numpy() @ weights
        return torch.from_numpy(to_scipy(scaled) @ weights + moved).float()
    # scaled by the weights, in float64: x may be far from zero
    mixed = torch.from_numpy(weights) / scaler.scale.unsqueeze(1)
    shift = scaler.shift @ mixed
    parts = [(x[chunk].double() @ mixed - shift).float() for chunk in row_chunks(len(x))]
    return torch.cat(parts)


def regression_terms(two_hops: Tensor, positions: Floats) -> Floats:
    """Return the terms of the small regression: a constant, numbers and functions of them.

    Args:
        two_hops: (units, terms), mean over the neighbours of the neighbours.
        positions: (units, 2 · terms + 1).
    """
    linear = np.column_stack([positions, two_hops.double().numpy()])
    linear = (linear - linear.mean(axis=0)) / np.maximum(linear.std(axis=0), 1e-12)
    draw = numpy_rng(0, "novelty features")
    weights = draw.normal(size=(linear.shape[1], RANDOM_FEATURES)) / math.sqrt(linear.shape[1])
    hidden = np.maximum(linear @ weights + draw.normal(size=RANDOM_FEATURES), 0)
    return np.column_stack([np.ones(len(linear)), linear, hidden])
