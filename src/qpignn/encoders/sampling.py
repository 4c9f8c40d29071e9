"""Minibatches: some nodes, a few neighbours of each, a few of theirs.

A batch is a tree: every sampled neighbour is a row of its own, whether or not it stands elsewhere
in the batch too, and stands behind the row it was sampled for. So a mean over neighbours is a sum
over rows in sequence, and nothing has to be sorted or looked up. Where the features are dense, the
first hop is not sampled: it was computed once, over all neighbours.
"""

from __future__ import annotations

import scipy.sparse as sp
import torch
from torch import Tensor

from qpignn.encoders.sparse import Operands, SparseMatrix


class Sampler:
    """Draws the operands of minibatches from those of a whole graph.

    Args:
        graph: all nodes.
        layers: of the net that is to run on the batches.
        fan_out: how many neighbours of a node are drawn, at most. Every neighbour is equally
            likely and none is drawn twice (systematic sampling), so the mean over those drawn is
            right on average; a node with fewer neighbours has all of them.
    """

    def __init__(self, graph: Operands, layers: int, fan_out: int) -> None:
        self.graph, self.fan_out = graph, fan_out
        self.hops = layers if isinstance(graph.features, SparseMatrix) else layers - 1

    def batch(self, seeds: Tensor, draw: torch.Generator) -> Operands:
        """Return operands whose first rows are ``seeds``, positions in the graph."""
        graph, nodes = self.graph, seeds
        parents = torch.empty(0, dtype=torch.int64)
        values = torch.empty(0, dtype=graph.mean.dtype)
        newest, means = slice(0, len(seeds)), []
        for _ in range(self.hops):
            found, parent, value = self._neighbours(nodes[newest], draw)
            parents = torch.cat([parents, parent + newest.start])
            values = torch.cat([values, value])
            means.append(Tree(parents, values, newest.stop, len(seeds)))
            newest = slice(len(nodes), len(nodes) + len(found))
            nodes = torch.cat([nodes, found])
        if isinstance(graph.features, SparseMatrix):
            features = _rows_of(graph.features, nodes)
            own = features.some(0, means[-1].shape[0])
            return Operands(features, graph.columns, means, len(seeds), own)
        rows = graph.features.index_select(0, nodes)
        return Operands(rows, graph.columns, means, len(seeds))

    def _neighbours(self, nodes: Tensor, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Return neighbours of nodes, whose each is (a place in ``nodes``), and its share."""
        mean = self.graph.mean
        first = mean.starts[nodes].long()
        there = mean.starts[nodes + 1].long() - first
        taken = there.clamp(max=self.fan_out)
        # every (there/taken)-th neighbour, from a random one on
        spread = there / taken.clamp(min=1).double()
        begin = torch.rand(len(nodes), 1, dtype=torch.float64, generator=draw)
        turns = torch.arange(self.fan_out)
        places = ((turns + begin) * spread.unsqueeze(1)).long()
        places = places.minimum(there.unsqueeze(1) - 1).add_(first.unsqueeze(1))
        chosen = places[turns < taken.unsqueeze(1)]
        parent = torch.arange(len(nodes)).repeat_interleave(taken)
        found = mean.columns[chosen].long()
        if mean.values is None:
            return found, parent, taken.to(mean.dtype).reciprocal_()[parent]
        weight = mean.values[chosen]
        total = torch.zeros(len(nodes), dtype=weight.dtype).index_add_(0, parent, weight)
        return found, parent, (weight / total[parent]).nan_to_num_(0)


class Tree(SparseMatrix):
    """Means over the rows sampled for each row; every row but the first few has one parent.

    Args:
        parents: of the rows behind the first ``seeds`` ones, rising.
        values: each row's share in its parent's mean.
        rows: how many rows have a mean.
        seeds: how many rows nobody sampled.
    """

    def __init__(self, parents: Tensor, values: Tensor, rows: int, seeds: int) -> None:
        counts = torch.bincount(parents, minlength=rows)
        starts = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
        columns = torch.arange(seeds, seeds + len(parents), device=parents.device)
        super().__init__(starts, columns, values, (rows, seeds + len(parents)))
        self.counts = (rows, seeds)
        self.parents, self.seeds, self.shares = parents, seeds, values.unsqueeze(1)

    def to(self, device: torch.device) -> Tree:
        """Bring the numbers to a device."""
        return Tree(self.parents.to(device), self.shares.squeeze(1).to(device), *self.counts)

    def _times(self, dense: Tensor, transposed: bool) -> Tensor:
        if not transposed:
            return super()._times(dense, transposed)
        found = dense.new_empty((self.shape[1], dense.shape[1]))
        found[: self.seeds] = 0
        sampled = found[self.seeds :]
        torch.index_select(dense, 0, self.parents, out=sampled)
        sampled.mul_(self.shares)
        return found


def _rows_of(matrix: SparseMatrix, rows: Tensor) -> SparseMatrix:
    values = matrix.values
    assert values is not None
    arrays = (part.numpy() for part in (values, matrix.columns, matrix.starts))
    chosen = sp.csr_matrix(tuple(arrays), shape=matrix.shape)[rows.numpy()]
    return SparseMatrix.from_scipy(chosen, values.dtype, matrix.offset)
