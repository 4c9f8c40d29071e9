"""Operations on node features that work for dense and sparse matrices.

``x`` is a (nodes, columns) tensor, dense or torch sparse CSR. PyG's own selection, ``isfinite`` and
``deepcopy`` fail on CSR tensors, so everything that touches rows goes through here.

The layout in which the user stored ``x`` does not matter: :func:`best_layout` chooses the layout to
compute with from the numbers alone, so a dense matrix and its CSR copy give the same results, bit
for bit.
"""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from qpignn.runtime.memory import free_memory, row_chunks

WIDE = 64
"""Columns from which CSR can be faster; narrower rows are smaller than the hidden rows of ten nets.

Measured with ``QpiGNN``'s training step on 1,000 and 3,000 nodes of degree 6 to 60: with 64 columns
both layouts take the same time, with 256 CSR is 1.2 to 3 times and with 1,024 2 to 10 times faster.
"""
FILLED = 0.25
"""Share of non-zeros up to which a matrix is mostly zeros; above, CSR saves no memory."""
BLOCK = 2**22  # cells of a dense matrix that are processed at once


def is_sparse(x: Tensor) -> bool:
    """Return whether ``x`` is stored as sparse CSR.

    Args:
        x: (nodes, columns), dense or CSR.
    """
    return x.layout == torch.sparse_csr


def integers_as_floats(x: Tensor) -> Tensor:
    """Return integer or boolean features as float32, or float64 where float32 would lose digits.

    float32 holds integers up to 2²⁴ exactly; larger ones, such as time stamps, would be rounded to
    one number for many nodes. Dense and CSR features get the same type.

    Args:
        x: (nodes, columns), dense or CSR.
    """
    values = stored_values(x)
    small, large = values.to(torch.float32), values.to(torch.float64)
    return with_values(x, small if torch.equal(small.double(), large) else large)


def to_scipy(x: Tensor) -> Any:
    """Return a CSR tensor as a SciPy CSR matrix that shares its memory.

    Args:
        x: (nodes, columns), CSR.
    """
    parts = (x.values(), x.col_indices(), x.crow_indices())
    return sp.csr_matrix(tuple(part.numpy() for part in parts), shape=tuple(x.shape))


def from_scipy(matrix: Any, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return any SciPy sparse matrix as a torch CSR tensor with sorted, unique columns per row.

    Args:
        matrix: (rows, columns).
        dtype: of the tensor's values.
    """
    csr = sp.csr_matrix(matrix)
    csr.sum_duplicates()
    starts, places = (torch.from_numpy(part.astype(np.int64)) for part in (csr.indptr, csr.indices))
    values = torch.from_numpy(csr.data).to(dtype)
    with warnings.catch_warnings():  # torch warns once per process that CSR is in beta state
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        return torch.sparse_csr_tensor(starts, places, values, csr.shape, check_invariants=False)


def mostly_zeros(x: Tensor) -> bool:
    """Return whether ``x`` is wide and has few non-zeros, so that CSR is the better layout.

    True if it has at least :data:`WIDE` columns and at most a share :data:`FILLED` of its cells is
    not zero.

    Args:
        x: (nodes, columns), dense or CSR.
    """
    return x.shape[1] >= WIDE and _non_zeros(x) <= FILLED * x.shape[0] * x.shape[1]


def to_csr(x: Tensor) -> Tensor:
    """Return ``x`` as CSR with sorted, unique columns per row and without stored zeros.

    A dense matrix is read in blocks of rows, so that only its non-zeros take additional memory.

    Args:
        x: (nodes, columns), dense or CSR.
    """
    if is_sparse(x):
        return _canonical(x)
    dtype = torch.promote_types(x.dtype, torch.float32)  # SciPy has no half precision
    blocks = [sp.csr_matrix(block.to(dtype).numpy()) for block in _blocks(x)]
    return from_scipy(sp.vstack(blocks), x.dtype)


def best_layout(x: Tensor) -> Tensor:
    """Return ``x`` in the layout to compute with, which depends on its numbers only.

    CSR where it is :func:`mostly_zeros`, else dense. A dense matrix, such as one mapped from disk,
    stays dense if its non-zeros would take more than half of the free memory.

    Args:
        x: (nodes, columns), dense or CSR.
    """
    if is_sparse(x):
        x = _canonical(x)
        return x if mostly_zeros(x) else x.to_dense()
    if x.shape[1] < WIDE:
        return x
    stored = _non_zeros(x)
    fits = stored * (8 + x.itemsize) < free_memory() / 2
    return to_csr(x) if stored <= FILLED * x.numel() and fits else x


def columns(x: Tensor, positions: Sequence[int]) -> Tensor:
    """Return some columns as a dense (nodes, len(positions)) tensor.

    Args:
        x: (nodes, columns), dense or CSR.
        positions: of the columns.
    """
    if not is_sparse(x):
        return x[:, torch.as_tensor(positions, dtype=torch.int64)]
    return torch.from_numpy(to_scipy(x)[:, [*positions]].toarray())


def column(x: Tensor, position: int) -> Tensor:
    """Return one column as a dense (nodes,) tensor.

    Args:
        x: (nodes, columns), dense or CSR.
        position: of the column.
    """
    return columns(x, [position])[:, 0]


def stack_rows(above: Tensor, below: Tensor) -> Tensor:
    """Return the rows of two matrices with the same columns, CSR if the first one is.

    Args:
        above: (rows, columns), dense or CSR.
        below: (other rows, columns), dense or CSR.
    """
    if not is_sparse(above):
        return torch.cat([above, below.to_dense() if is_sparse(below) else below])
    parts = [to_scipy(part if is_sparse(part) else to_csr(part)) for part in (above, below)]
    return from_scipy(sp.vstack(parts), torch.promote_types(above.dtype, below.dtype))


def _non_zeros(x: Tensor) -> int:
    """Return how many values are not zero."""
    parts = [x.values()] if is_sparse(x) else _blocks(x)
    return sum(int(part.count_nonzero()) for part in parts)


def _blocks(x: Tensor) -> tuple[Tensor, ...]:
    """Return the rows of a dense matrix, a few at a time."""
    return torch.split(x, max(BLOCK // x.shape[1], 1))


def _canonical(x: Tensor) -> Tensor:
    matrix = to_scipy(x)
    if matrix.has_canonical_format and not bool((x.values() == 0).any()):
        return x
    matrix = matrix.copy()  # what follows works in place, and the memory is the caller's
    matrix.sum_duplicates()
    matrix.eliminate_zeros()
    return from_scipy(matrix, x.dtype)


def stored_values(x: Tensor) -> Tensor:
    """Return the stored numbers: all of a dense matrix, the stored entries of a CSR matrix.

    Args:
        x: (nodes, columns), dense or CSR.
    """
    return x.values() if is_sparse(x) else x


def with_values(x: Tensor, values: Tensor) -> Tensor:
    """Return a matrix with the same sparsity pattern and other stored values.

    Args:
        x: (nodes, columns), dense or CSR.
        values: of the shape of :func:`stored_values`.
    """
    if not is_sparse(x):
        return values
    old = to_scipy(x)
    new = sp.csr_matrix((values.numpy(), old.indices, old.indptr), shape=old.shape)
    return from_scipy(new, values.dtype)


def with_columns(x: Tensor, positions: Tensor, values: Tensor) -> Tensor:
    """Return a CSR matrix with some columns replaced.

    Args:
        x: (nodes, columns), CSR.
        positions: of the columns.
        values: their new values, dense (nodes, len(positions)).
    """
    matrix = to_scipy(x).tocoo()
    kept = ~np.isin(matrix.col, positions.numpy())
    rows = np.repeat(np.arange(len(values)), len(positions))
    added = np.tile(positions.numpy(), len(values))
    entries = (
        np.concatenate([matrix.data[kept], values.numpy().ravel()]),
        (np.concatenate([matrix.row[kept], rows]), np.concatenate([matrix.col[kept], added])),
    )
    return from_scipy(sp.coo_matrix(entries, shape=matrix.shape), x.dtype)


def all_finite(x: Tensor) -> bool:
    """Return whether every stored value is a finite number.

    Args:
        x: (nodes, columns), dense or CSR.
    """
    values = stored_values(x)
    return all(bool(torch.isfinite(values[part]).all()) for part in row_chunks(len(values)))


def select_rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Return some rows of ``x``, in the order of ``nodes``.

    Args:
        x: (nodes, columns), dense or CSR.
        nodes: a boolean mask, or positions.
    """
    if not is_sparse(x):
        return x[nodes]
    return from_scipy(to_scipy(x)[nodes.numpy()], x.dtype)


def column_deviations(x: Tensor) -> Tensor:
    """Return each column's standard deviation over all rows, (columns,), float64.

    Args:
        x: (nodes, columns), dense or CSR.
    """
    if not is_sparse(x):
        return x.double().std(dim=0, correction=0)
    matrix = to_scipy(x).astype(np.float64)
    mean = np.asarray(matrix.mean(axis=0)).ravel()
    square = np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel()
    return torch.from_numpy(np.sqrt(np.maximum(square - mean**2, 0)))
