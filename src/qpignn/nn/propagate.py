"""Mean aggregation as one sparse product, and the constants of a graph that a net trains on.

What makes a training step fast here: the adjacency and its transpose are built once; the first hop
over the constant features is computed once, not per epoch; wide sparse features are projected
before they are aggregated and are never made dense; nodes that carry loss stand first, so that the
last layer is computed for those rows only.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from qpignn.data.matrix import is_sparse, select_rows, to_scipy


class SparseMatrix:
    """A constant sparse matrix that multiplies dense ones, keeping its transpose for the gradient.

    Shapes:
        self: (rows, columns); ``self @ dense``: (…, columns, width) → (…, rows, width)
    """

    def __init__(self, matrix: Any, dtype: torch.dtype = torch.float32) -> None:
        matrix = sp.csr_matrix(matrix)
        self.shape: tuple[int, int] = matrix.shape
        self._forward = _Rows(matrix, dtype)
        self._backward = _Rows(matrix.T.tocsr(), dtype)

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = _Product.apply(dense, self)  # type: ignore[no-untyped-call]
        return product

    def multiply(self, dense: Tensor, *, transposed: bool = False) -> Tensor:
        """Return the plain product, outside autograd."""
        rows = self._backward if transposed else self._forward
        if dense.dim() == 2:
            return rows.times(dense)
        if len(dense) == 1:
            return rows.times(dense[0]).unsqueeze(0)
        # one by one: what stays in the cache is one member's, not all
        return torch.stack([rows.times(part) for part in dense])


class _Rows:
    """CSR arrays as ``embedding_bag`` takes them: a bag of weighted rows is a sparse product."""

    def __init__(self, matrix: Any, dtype: torch.dtype) -> None:
        fits = max(matrix.nnz, *matrix.shape) < 2**31
        index = torch.int32 if fits else torch.int64
        self.starts = torch.from_numpy(matrix.indptr.astype(np.int64)).to(index)
        self.columns = torch.from_numpy(matrix.indices.astype(np.int64)).to(index)
        self.values = torch.from_numpy(matrix.data).to(dtype)

    def times(self, dense: Tensor) -> Tensor:
        product: Tensor = torch.embedding_bag(
            dense.contiguous(),
            self.columns,
            self.starts,
            mode=0,  # sum
            per_sample_weights=self.values.to(dense.dtype),
            include_last_offset=True,
        )[0]
        return product


class _Product(torch.autograd.Function):
    @staticmethod
    def forward(ctx: Any, dense: Tensor, matrix: SparseMatrix) -> Tensor:
        ctx.matrix = matrix
        return matrix.multiply(dense)

    @staticmethod
    def backward(ctx: Any, gradient: Tensor) -> tuple[Tensor, None]:
        return ctx.matrix.multiply(gradient, transposed=True), None


@dataclass(frozen=True)
class Operands:
    """What stays constant while a net trains on one graph.

    Attributes:
        features: the wanted nodes first. Sparse: (nodes, columns). Dense: (nodes, 2·columns), the
            mean over each node's neighbours (computed once) beside its own features.
        columns: number of input features.
        mean: (nodes, nodes), row v averages over the neighbours of v.
        mean_top: (rows, nodes), its first rows.
        rows: how many nodes, from the first, the net is to give outputs for.
    """

    features: Tensor | SparseMatrix
    columns: int
    mean: SparseMatrix
    mean_top: SparseMatrix
    rows: int


def prepare(
    x: Tensor,
    edge_index: Tensor,
    edge_weight: Tensor | None = None,
    *,
    first: Tensor | None = None,
) -> Operands:
    """Build the operands of a graph, once per fit or prediction.

    Args:
        x: (nodes, columns), dense or CSR, already scaled.
        edge_index, edge_weight: messages run from row 0 to row 1; weights make the mean weighted.
        first: positions of the nodes to give outputs for, in the wanted order; default all.
    """
    nodes = x.shape[0]
    adjacency = mean_adjacency(edge_index, edge_weight, nodes)
    rows = nodes
    if first is not None:
        rows = len(first)
        wanted = torch.zeros(nodes, dtype=torch.bool)
        wanted[first] = True
        order = torch.cat([first, (~wanted).nonzero().flatten()])
        adjacency = adjacency[order.numpy()][:, order.numpy()]
        x = select_rows(x, order)
    mean = SparseMatrix(adjacency, x.dtype)
    mean_top = mean if rows == nodes else SparseMatrix(adjacency[:rows], x.dtype)
    features: Tensor | SparseMatrix
    if is_sparse(x):
        features = SparseMatrix(to_scipy(x), x.dtype)
    else:
        features = torch.cat([mean.multiply(x), x], dim=1)
    return Operands(features, x.shape[1], mean, mean_top, rows)


def mean_adjacency(edge_index: Tensor, edge_weight: Tensor | None, nodes: int) -> Any:
    """Return the SciPy CSR matrix whose row v averages over the sources of edges into v.

    A node without neighbours, or whose weights are all zero, gets zeros.
    """
    source, target = edge_index.numpy()
    weight = np.ones(len(source)) if edge_weight is None else edge_weight.double().numpy()
    matrix = sp.csr_matrix((weight, (target, source)), shape=(nodes, nodes))
    total = np.asarray(matrix.sum(axis=1)).ravel()
    inverse = np.divide(1.0, total, out=np.zeros_like(total), where=total > 0)
    return sp.diags(inverse) @ matrix
