"""Mean aggregation as one sparse product, and the constants of a graph that a net trains on.

What makes a training step fast here: the adjacency is built once, and its transpose when a gradient
first asks for it; the first hop over the constant features is computed once, not per epoch; wide
sparse features are projected before they are aggregated and are never made dense; nodes that carry
loss stand first, so that the last layer is computed for those rows only. What keeps it small: the
indices have 32 bits where they fit, and edges that all count alike carry no number of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from qpignn.data.matrix import is_sparse, select_rows, to_scipy
from qpignn.encoders.sums import pieces_of, sum_rows
from qpignn.runtime.memory import CHUNK_ROWS, allocate_tensor, row_chunks

LARGEST_32_BITS = 2**31 - 1
FEW_ENTRIES = 2**20  # or rows, of all members, for one product to be quicker than several


class SparseMatrix:
    """A constant sparse matrix that multiplies dense ones, and knows its transpose.

    Attributes:
        shape: (rows, columns); ``self @ dense``: (…, columns, width) → (…, rows, width).
        starts, columns: CSR arrays.
        values: of the stored entries; None where all are 1.
        scale: (rows, 1), what each row is multiplied by; None for nothing.
        offset: (columns,), added to every row, so that the matrix stands for S + 1·offsetᵀ without
            being filled; None for nothing. This is how sparse columns are centred.
    """

    def __init__(
        self,
        starts: Tensor,
        columns: Tensor,
        values: Tensor | None,
        shape: tuple[int, int],
        scale: Tensor | None = None,
        *,
        offset: Tensor | None = None,
    ) -> None:
        self.starts, self.columns, self.values = starts, columns, values
        self.shape, self.scale, self.offset = shape, scale, offset
        self._diagonals: dict[int, SparseMatrix] = {}

    @classmethod
    def from_scipy(
        cls, matrix: Any, dtype: torch.dtype = torch.float32, offset: Tensor | None = None
    ) -> Self:
        """Take over a SciPy matrix with its values; ``offset`` is added to every row."""
        matrix = sp.csr_matrix(matrix)
        values = torch.from_numpy(matrix.data).to(dtype)
        return cls(*_csr(matrix), values, matrix.shape, offset=offset)

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = _Product.apply(dense, self)  # type: ignore[no-untyped-call]
        return product

    @property
    def device(self) -> torch.device:
        """Where it is."""
        return self.columns.device

    def to(self, device: torch.device) -> SparseMatrix:
        """Bring the numbers to a device."""
        parts = (self.values, self.scale, self.offset)
        values, scale, offset = (None if part is None else part.to(device) for part in parts)
        starts, columns = self.starts.to(device), self.columns.to(device)
        return SparseMatrix(starts, columns, values, self.shape, scale, offset=offset)

    @property
    def dtype(self) -> torch.dtype:
        """Of what it is multiplied with."""
        number = self.scale if self.values is None else self.values
        return torch.float32 if number is None else number.dtype

    def multiply(self, dense: Tensor, *, transposed: bool = False) -> Tensor:
        """Return the plain product, outside autograd."""
        product = self._stored_product(dense, transposed)
        if self.offset is None:
            return product
        # (S + 1·oᵀ)·D = S·D + 1·(oᵀD), and transposed Sᵀ·D + o·(1ᵀD): one row, one outer product
        offset = self.offset.to(dense.dtype)
        if not transposed:
            return product.add_((offset @ dense).unsqueeze(-2))
        totals = dense.sum(dim=-2, keepdim=True)
        column = offset.unsqueeze(-1)
        if dense.dim() == 2:
            return product.addmm_(column, totals)
        return product.baddbmm_(column.expand(len(dense), -1, -1), totals)

    def _stored_product(self, dense: Tensor, transposed: bool) -> Tensor:
        """Multiply by the stored entries alone."""
        if dense.dim() == 2:
            return self._times(dense, transposed)
        if len(dense) == 1:
            return self._times(dense[0], transposed).unsqueeze(0)
        if len(dense) * max(len(self.columns), *self.shape) <= FEW_ENTRIES:
            product = self._repeated(len(dense))._times(dense.flatten(0, 1), transposed)
            return product.view(len(dense), -1, dense.shape[-1])
        # one by one: what stays in the cache is one member's, not all
        return torch.stack([self._times(part, transposed) for part in dense])

    def _repeated(self, times: int) -> SparseMatrix:
        """Return a matrix that has this one so many times along its diagonal, made once.

        A product with it is one call where there would be several: on small graphs a call costs as
        much as its arithmetic.
        """
        if times not in self._diagonals:
            (rows, columns), entries = self.shape, len(self.columns)
            turn = torch.arange(times, device=self.device).unsqueeze(1)
            starts = (self.starts[:-1] + turn * entries).flatten()
            end = starts.new_tensor([times * entries])
            self._diagonals[times] = SparseMatrix(
                torch.cat([starts, end]).to(self.starts.dtype),
                (self.columns + turn * columns).flatten().to(self.columns.dtype),
                None if self.values is None else self.values.repeat(times),
                (times * rows, times * columns),
                None if self.scale is None else self.scale.repeat(times, 1),
            )
        return self._diagonals[times]

    def some(self, start: int, end: int) -> Self:
        """Return the rows from ``start`` to before ``end``; nothing is copied but their starts."""
        if (start, end) == (0, self.shape[0]):
            return self
        low, high = int(self.starts[start]), int(self.starts[end])
        return type(self)(
            self.starts[start : end + 1] - low,
            self.columns[low:high],
            None if self.values is None else self.values[low:high],
            (end - start, self.shape[1]),
            None if self.scale is None else self.scale[start:end],
            offset=self.offset,
        )

    def _times(self, dense: Tensor, transposed: bool) -> Tensor:
        scale = None if self.scale is None else self.scale.to(dense.dtype)
        if transposed:
            return sum_rows(dense if scale is None else dense * scale, *self._transpose)
        product = sum_rows(dense, self.starts, self.columns, self.values, self._pieces)
        return product if scale is None else product.mul_(scale)

    @cached_property
    def _pieces(self) -> tuple[Tensor, Tensor] | None:
        return pieces_of(self.starts)

    @cached_property
    def _transpose(
        self,
    ) -> tuple[Tensor, Tensor, Tensor | None, tuple[Tensor, Tensor] | None]:
        """CSR arrays of the transpose and its pieces, without the scale; made when asked for."""
        shown = [None if p is None else p.cpu().numpy() for p in (self.values, self.columns)]
        data = np.ones(len(self.columns), dtype=np.int8) if shown[0] is None else shown[0]
        arrays = (data, shown[1], self.starts.cpu().numpy())
        turned = sp.csr_matrix(arrays, shape=self.shape).T.tocsr()
        values = None if self.values is None else torch.from_numpy(turned.data)
        starts, columns = (part.to(self.device) for part in _csr(turned))
        values = None if values is None else values.to(self.device)
        return starts, columns, values, pieces_of(starts)


def index_type(*sizes: int) -> type[np.signedinteger[Any]]:
    """Return what counts up to these sizes: 32 bits where they fit."""
    return np.int32 if max(sizes) <= LARGEST_32_BITS else np.int64


def _csr(matrix: Any) -> tuple[Tensor, Tensor]:
    """Return a SciPy matrix's starts and columns, with 32 bits where they fit."""
    index = index_type(matrix.nnz, *matrix.shape)
    arrays = (matrix.indptr, matrix.indices)
    starts, columns = (torch.from_numpy(array.astype(index, copy=False)) for array in arrays)
    return starts, columns


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
        means: what layers average with, from the last layer back: row v averages over the
            neighbours of v. The last layer has rows for the wanted nodes only; layers for which
            there is none of their own use the one that stands last.
        rows: how many nodes, from the first, the net is to give outputs for.
        own: sparse features of the nodes that the first layer gives outputs for; else None.
    """

    features: Tensor | SparseMatrix
    columns: int
    means: Sequence[SparseMatrix]
    rows: int
    own: SparseMatrix | None = None

    def to(self, device: torch.device) -> Operands:
        """Bring the numbers to a device."""
        if self.features.device == device:
            return self
        own = None if self.own is None else self.own.to(device)
        means = [mean.to(device) for mean in self.means]
        return replace(self, features=self.features.to(device), means=means, own=own)

    def first(self, rows: int) -> Operands:
        """Ask for outputs of fewer nodes: the first so many."""
        last, mean = self.means[0].some(0, rows), self.mean
        means = (last, mean) if len(self.means) == 1 else (last, *self.means[1:])
        return replace(self, means=means, rows=rows)

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return int(self.features.shape[0])

    @property
    def mean(self) -> SparseMatrix:
        """What all layers but the last average with."""
        return self.means[-1]

    def last_inputs(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return what the last layer is applied to: means over neighbours, and own vectors."""
        return self.means[0].multiply(hidden), hidden[:, : self.rows]

    def mean_for(self, left: int) -> SparseMatrix:
        """Return what a layer averages with that has ``left`` more after it."""
        return self.means[min(left, len(self.means) - 1)]


def prepare(
    x: Tensor,
    edge_index: Tensor,
    edge_weight: Tensor | None = None,
    *,
    first: Tensor | None = None,
    offset: Tensor | None = None,
) -> Operands:
    """Build the operands of a graph, once per fit or prediction.

    Args:
        x: (nodes, columns), dense or CSR, already scaled.
        edge_index, edge_weight: messages run from row 0 to row 1; weights make the mean weighted.
        first: positions of the nodes to give outputs for, in the wanted order; default all.
        offset: (columns,), added to every row of a CSR ``x`` (zeros included); default nothing.
    """
    nodes = x.shape[0]
    order = None if first is None else _first_of_all(first, nodes)
    rows = nodes if first is None else len(first)
    mean = mean_matrix(edge_index, edge_weight, nodes, order, x.dtype)
    means = (mean,) if rows == nodes else (mean.some(0, rows), mean)
    if is_sparse(x):
        x = x if order is None else select_rows(x, order)
        features = SparseMatrix.from_scipy(to_scipy(x), x.dtype, offset)
        return Operands(features, x.shape[1], means, rows, features)
    x = x if order is None else x[order]
    both = allocate_tensor((nodes, 2 * x.shape[1]), x.dtype)
    for part in row_chunks(nodes):
        both[part, : x.shape[1]] = mean.some(part.start, part.stop).multiply(x)
        both[part, x.shape[1] :] = x[part]
    return Operands(both, x.shape[1], means, rows)


def _first_of_all(first: Tensor, nodes: int) -> Tensor:
    """Return all positions, some of them first."""
    left = torch.ones(nodes, dtype=torch.bool)
    left[first] = False
    return torch.cat([first, left.nonzero().flatten()])


def mean_matrix(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    nodes: int,
    order: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
) -> SparseMatrix:
    """Return the matrix whose row v averages over the sources of edges into v.

    A node without neighbours, or whose weights are all zero, gets zeros; edges that are there
    twice count twice. ``order`` renumbers the nodes: where each of the new ones stood before.
    """
    if edge_weight is None and order is None and _by_target(edge_index[1]):
        totals = torch.bincount(edge_index[1], minlength=nodes)
        starts = torch.nn.functional.pad(totals.cumsum(0), (1, 0))
        values, columns = None, edge_index[0]  # as they are: they may be larger than memory
    else:
        matrix = _adjacency(edge_index, edge_weight, nodes, order)
        starts, columns = _csr(matrix)
        values = None if edge_weight is None else torch.from_numpy(matrix.data).to(dtype)
        totals = starts.diff() if values is None else torch.from_numpy(matrix @ np.ones(nodes))
    scale = totals.double().reciprocal().masked_fill_(totals == 0, 0).to(dtype)
    return SparseMatrix(starts, columns, values, (nodes, nodes), scale.unsqueeze(1))


def _by_target(targets: Tensor) -> bool:
    """Whether edges stand in the order of the nodes they run into."""
    size = 16 * CHUNK_ROWS
    starts = range(0, len(targets) - 1, size)
    return all(bool((targets[i : i + size + 1].diff() >= 0).all()) for i in starts)


def _adjacency(
    edge_index: Tensor, edge_weight: Tensor | None, nodes: int, order: Tensor | None
) -> Any:
    """Return a SciPy CSR matrix of the edges, row by row into a node."""
    index = index_type(nodes)
    place = np.arange(nodes, dtype=index)
    if order is not None:
        place[order.numpy()] = np.arange(nodes, dtype=index)
    source, target = (place[end.numpy()] for end in edge_index)
    data = np.ones(len(source), dtype=np.int8)  # a byte: nobody asks for it
    if edge_weight is not None:
        data = edge_weight.double().numpy()
    edges = sp.coo_matrix((data, (target, source)), shape=(nodes, nodes))
    edges.has_canonical_format = True  # else SciPy would merge repeated edges, and sort
    return edges.tocsr()
