"""Minibatches: some nodes, a few neighbours of each, a few neighbours of those.

A batch is a tree: every sampled neighbour is a row of its own, whether or not it occurs elsewhere
in the batch, and comes after the row it was sampled for. So an aggregation over neighbours is a sum
over consecutive rows, and nothing has to be sorted or looked up. Where the features are dense, the
first aggregation is not sampled: it was computed once, over all neighbours.
"""

from __future__ import annotations

from typing import Self

import scipy.sparse as sp
import torch
from torch import Tensor

from qpignn.encoders.inputs import GraphInputs
from qpignn.encoders.sparse import SparseMatrix


class Sampler:
    """Draws the inputs of minibatches from those of a whole graph.

    Every neighbour is equally likely and none is drawn twice (systematic sampling). A mean is
    estimated by the weighted mean of those drawn, a sum by their sum times the number of neighbours
    divided by the number drawn. A node with few neighbours has all of them.

    Args:
        inputs: of all nodes.
        layers: number of aggregations of the encoder.
        fan_out: how many neighbours of a node are drawn, at most; a self-loop is not counted.
    """

    def __init__(self, inputs: GraphInputs, layers: int, fan_out: int) -> None:
        self.inputs, self.fan_out = inputs, fan_out
        cached = not isinstance(inputs.features, SparseMatrix)
        self.hops = max(0, layers - cached)

    def batch(self, seeds: Tensor, draw: torch.Generator) -> GraphInputs:
        """Return the inputs of a minibatch.

        Args:
            seeds: positions of its wanted nodes, which become the first rows.
            draw: draws the neighbours.
        """
        inputs, nodes = self.inputs, seeds
        parents = torch.empty(0, dtype=torch.int64)
        values = torch.empty(0, dtype=inputs.features.dtype)
        newest, matrices = slice(0, len(seeds)), []
        for _ in range(self.hops):
            sampled, parent, value = self._neighbours(nodes[newest], draw)
            parents = torch.cat([parents, parent + newest.start])
            values = torch.cat([values, value])
            matrices.append(Tree(parents, values, newest.stop, len(seeds)))
            newest = slice(len(nodes), len(nodes) + len(sampled))
            nodes = torch.cat([nodes, sampled])
        if isinstance(inputs.features, SparseMatrix):
            features = _rows_of(inputs.features, nodes)
            own = features.some(0, matrices[-1].shape[0] if matrices else len(nodes))
            return GraphInputs(features, inputs.columns, matrices, len(seeds), own)
        rows = inputs.features.index_select(0, nodes)
        return GraphInputs(rows, inputs.columns, matrices, len(seeds))

    def _neighbours(self, nodes: Tensor, draw: torch.Generator) -> tuple[Tensor, Tensor, Tensor]:
        """Return neighbours of nodes, each one's parent (an index of ``nodes``), and its share."""
        matrix, loops = self.inputs.matrix, int(self.inputs.self_loops)
        first = matrix.starts[nodes].long() + loops
        count = matrix.starts[nodes + 1].long() - first
        taken = count.clamp(max=self.fan_out)
        # every (count/taken)-th neighbour, starting from a random one
        spread = count / taken.clamp(min=1).double()
        begin = torch.rand(len(nodes), 1, dtype=torch.float64, generator=draw)
        slots = torch.arange(self.fan_out)
        entries = ((slots + begin) * spread.unsqueeze(1)).long()
        entries = entries.minimum(count.unsqueeze(1) - 1).add_(first.unsqueeze(1))
        chosen = slots < taken.unsqueeze(1)
        factor = torch.where(chosen, spread.unsqueeze(1), 1)
        if loops:  # the node itself, which comes first in its row, as it is
            itself = torch.ones(len(nodes), 1, dtype=torch.bool)
            entries = torch.cat([first.unsqueeze(1) - 1, entries], dim=1)
            chosen = torch.cat([itself, chosen], dim=1)
            factor = torch.nn.functional.pad(factor, (1, 0), value=1)
        parent = torch.arange(len(nodes)).repeat_interleave(taken + loops)
        entries = entries[chosen]
        neighbours = matrix.columns[entries].long()
        if matrix.scale is None:  # a sum
            shares = factor[chosen] * (1 if matrix.values is None else matrix.values[entries])
            return neighbours, parent, shares.to(self.inputs.features.dtype)
        if matrix.values is None:
            return neighbours, parent, taken.to(matrix.dtype).reciprocal_()[parent]
        weight = matrix.values[entries]
        total = torch.zeros(len(nodes), dtype=weight.dtype).index_add_(0, parent, weight)
        return neighbours, parent, (weight / total[parent]).nan_to_num_(0)


class Tree(SparseMatrix):
    """The aggregation over the rows sampled for each row; all rows but the seeds have one parent.

    Args:
        parents: of the rows after the first ``seeds`` ones, in ascending order.
        values: each row's share in its parent's aggregation.
        rows: number of rows with an aggregation.
        seeds: number of rows without a parent.
    """

    def __init__(self, parents: Tensor, values: Tensor, rows: int, seeds: int) -> None:
        counts = torch.bincount(parents, minlength=rows)
        starts = torch.nn.functional.pad(counts.cumsum(0), (1, 0))
        columns = torch.arange(seeds, seeds + len(parents), device=parents.device)
        super().__init__(starts, columns, values, (rows, seeds + len(parents)))
        self.counts = (rows, seeds)
        self.parents, self.seeds, self.shares = parents, seeds, values.unsqueeze(1)

    def to(self, device: torch.device) -> Self:
        """Return the matrix on a device.

        Args:
            device: the device.

        Returns:
            A matrix of the same class.
        """
        return type(self)(self.parents.to(device), self.shares.squeeze(1).to(device), *self.counts)

    def _times(self, dense: Tensor, transposed: bool) -> Tensor:
        if not transposed:
            return super()._times(dense, transposed)
        product = dense.new_empty((self.shape[1], dense.shape[1]))
        product[: self.seeds] = 0
        sampled = product[self.seeds :]
        torch.index_select(dense, 0, self.parents, out=sampled)
        sampled.mul_(self.shares)
        return product


def _rows_of(matrix: SparseMatrix, rows: Tensor) -> SparseMatrix:
    values = matrix.values
    assert values is not None
    arrays = (part.numpy() for part in (values, matrix.columns, matrix.starts))
    chosen = sp.csr_matrix(tuple(arrays), shape=matrix.shape)[rows.numpy()]
    return SparseMatrix.from_scipy(chosen, values.dtype, matrix.offset)
