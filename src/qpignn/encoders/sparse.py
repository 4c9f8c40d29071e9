"""Sparse matrices that multiply dense ones: the aggregation over neighbours as one product.

The transpose is built when a gradient first needs it. Indices have 32 bits where they fit, and
matrices whose entries are all equal store no values, which keeps them small.

A float32 sum over a million numbers in sequence loses what is small beside the running total: the
mean of equal numbers comes out wrong by a hundredth. Rows with many entries are therefore summed in
pieces, and then the pieces are.
"""

from __future__ import annotations

from functools import cached_property
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

LARGEST_32_BITS = 2**31 - 1
PIECE = 1024  # entries summed in sequence: a float32 sum of so many is exact to about 1e-5
FEW_ENTRIES = 2**20  # or rows, of all members, up to which one product is faster than several


class SparseMatrix:
    """A constant sparse matrix that multiplies dense ones, also transposed.

    ``self @ dense`` maps (…, columns, width) to (…, rows, width), differentiably.

    Args:
        starts: (rows + 1,), where each row's entries start.
        columns: (entries,), the column of each stored entry.
        values: (entries,), the stored entries; None where all are 1.
        shape: (rows, columns).
        scale: (rows, 1), the factor of each row; None for 1.
        offset: (columns,), added to every row, so that the matrix stands for S + 1·offsetᵀ without
            being filled; None for 0. This is how sparse columns are centred.
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
        """Return a SciPy matrix with its values.

        Args:
            matrix: any SciPy sparse matrix.
            dtype: of the values.
            offset: (columns,), added to every row; default 0.

        Returns:
            The matrix; its arrays share the memory of a CSR matrix where types agree.
        """
        matrix = sp.csr_matrix(matrix)
        values = torch.from_numpy(matrix.data).to(dtype)
        return cls(*csr_arrays(matrix), values, matrix.shape, offset=offset)

    def __matmul__(self, dense: Tensor) -> Tensor:
        product: Tensor = _Product.apply(dense, self)  # type: ignore[no-untyped-call]
        return product

    @property
    def device(self) -> torch.device:
        """The device of the arrays."""
        return self.columns.device

    def to(self, device: torch.device) -> Self:
        """Return the matrix on a device.

        Args:
            device: the device.

        Returns:
            A matrix of the same class.
        """
        parts = (self.values, self.scale, self.offset)
        values, scale, offset = (None if part is None else part.to(device) for part in parts)
        starts, columns = self.starts.to(device), self.columns.to(device)
        return type(self)(starts, columns, values, self.shape, scale, offset=offset)

    @property
    def dtype(self) -> torch.dtype:
        """The type of the values."""
        number = self.scale if self.values is None else self.values
        return torch.float32 if number is None else number.dtype

    def multiply(self, dense: Tensor, *, transposed: bool = False) -> Tensor:
        """Return the product, without a gradient.

        Args:
            dense: (…, columns, width), or (…, rows, width) if transposed.
            transposed: whether to multiply with the transpose.
        """
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
        # member by member: the numbers of one fit in the cache
        return torch.stack([self._times(part, transposed) for part in dense])

    def _repeated(self, times: int) -> SparseMatrix:
        """Return the block-diagonal matrix of copies of this one, built once.

        A product with it is one call in the place of several: on small graphs the overhead of a
        call is as large as its arithmetic.
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
        """Return a range of rows; only their starts are copied.

        Args:
            start: the first row.
            end: the row after the last.
        """
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
            return _sum_rows(dense if scale is None else dense * scale, *self._transpose)
        product = _sum_rows(dense, self.starts, self.columns, self.values, self._pieces)
        return product if scale is None else product.mul_(scale)

    @cached_property
    def _pieces(self) -> tuple[Tensor, Tensor] | None:
        return _pieces_of(self.starts)

    @cached_property
    def _transpose(
        self,
    ) -> tuple[Tensor, Tensor, Tensor | None, tuple[Tensor, Tensor] | None]:
        """CSR arrays of the transpose and its pieces, without the scale."""
        values, columns, starts = (
            None if part is None else part.cpu().numpy()
            for part in (self.values, self.columns, self.starts)
        )
        data = np.ones(len(self.columns), dtype=np.int8) if values is None else values
        arrays = (data, columns, starts)
        turned = sp.csr_matrix(arrays, shape=self.shape).T.tocsr()
        entries = None if values is None else torch.from_numpy(turned.data).to(self.device)
        row_starts, indices = (part.to(self.device) for part in csr_arrays(turned))
        return row_starts, indices, entries, _pieces_of(row_starts)


def index_type(*sizes: int) -> type[np.signedinteger[Any]]:
    """Return the integer type for indices: 32 bits where they fit.

    Args:
        sizes: the largest values that occur.
    """
    return np.int32 if max(sizes) <= LARGEST_32_BITS else np.int64


def csr_arrays(matrix: Any) -> tuple[Tensor, Tensor]:
    """Return the row starts and column indices of a SciPy CSR matrix.

    Args:
        matrix: the matrix; its indices are converted to 32 bits where they fit.
    """
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


class MaxMatrix(SparseMatrix):
    """The elementwise maximum over the entries of each row, in the place of their sum.

    ``self @ dense``: row v is max_{u in row v} dense_u, and 0 for a row without entries.
    """

    def __matmul__(self, dense: Tensor) -> Tensor:
        return self.multiply(dense)

    def multiply(self, dense: Tensor, *, transposed: bool = False) -> Tensor:
        """Return the maxima; differentiable by autograd.

        Args:
            dense: (…, columns, width).
            transposed: not supported: a maximum is no linear map.

        Returns:
            (…, rows, width)
        """
        assert not transposed
        entries = dense.index_select(-2, self.columns)  # (…, entries, width)
        rows = self._rows.unsqueeze(1).expand(entries.shape)
        out = dense.new_zeros((*dense.shape[:-2], self.shape[0], dense.shape[-1]))
        return out.scatter_reduce(-2, rows, entries, "amax", include_self=False)

    @cached_property
    def _rows(self) -> Tensor:
        """The row of every stored entry."""
        return torch.arange(self.shape[0], device=self.device).repeat_interleave(
            self.starts.diff().long()
        )


def _pieces_of(starts: Tensor) -> tuple[Tensor, Tensor] | None:
    """Return where each piece of the long rows starts, and the first piece of each row.

    Both end with a count, of all entries and of all pieces. None where no row is long.
    """
    counts = starts.diff()
    if len(counts) == 0 or int(counts.max()) <= PIECE:
        return None
    needed = (counts + PIECE - 1) // PIECE
    first = torch.nn.functional.pad(needed.cumsum(0), (1, 0))
    turn = torch.arange(int(first[-1]), device=starts.device) - first[:-1].repeat_interleave(needed)
    cuts = starts[:-1].repeat_interleave(needed) + PIECE * turn
    return torch.cat([cuts, starts[-1:]]).to(starts.dtype), first


def _sum_rows(
    dense: Tensor,
    starts: Tensor,
    columns: Tensor,
    values: Tensor | None,
    pieces: tuple[Tensor, Tensor] | None,
) -> Tensor:
    """Multiply CSR arrays with a dense matrix; float64 is precise enough without pieces."""
    if pieces is None or dense.dtype == torch.float64:
        return _embedding_bag(dense, starts, columns, values)
    cuts, first = pieces
    parts = _embedding_bag(dense, cuts, columns, values)
    indices = torch.arange(len(parts), device=parts.device)
    return _sum_rows(parts, first, indices, None, _pieces_of(first))


def _embedding_bag(dense: Tensor, starts: Tensor, columns: Tensor, values: Tensor | None) -> Tensor:
    """Multiply: for ``embedding_bag``, a sparse product is a bag of weighted rows."""
    product: Tensor = torch.embedding_bag(
        dense.contiguous(),
        columns,
        starts,
        mode=0,  # sum
        per_sample_weights=None if values is None else values.to(dense.dtype),
        include_last_offset=True,
    )[0]
    return product
