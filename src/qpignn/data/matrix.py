"""Node features, dense or sparse: the few operations both kinds must offer.

``x`` is a (nodes, columns) tensor, dense or torch sparse CSR. PyG's own selection, ``isfinite`` and
``deepcopy`` fail on CSR tensors, so everything that touches rows goes through here. A sparse matrix
is never made dense.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from qpignn.room import row_chunks


def is_sparse(x: Tensor) -> bool:
    """Whether ``x`` is stored as sparse CSR."""
    return x.layout == torch.sparse_csr


def to_scipy(x: Tensor) -> Any:
    """Return a CSR tensor as a SciPy CSR matrix sharing its memory."""
    parts = (x.values(), x.col_indices(), x.crow_indices())
    return sp.csr_matrix(tuple(part.numpy() for part in parts), shape=tuple(x.shape))


def from_scipy(matrix: Any, dtype: torch.dtype = torch.float32) -> Tensor:
    """Return any SciPy sparse matrix as a torch CSR tensor with sorted, unique columns per row."""
    csr = sp.csr_matrix(matrix)
    csr.sum_duplicates()
    with warnings.catch_warnings():  # torch calls CSR "beta" once per process; users need not know
        warnings.filterwarnings("ignore", message="Sparse CSR tensor support")
        return torch.sparse_csr_tensor(
            torch.from_numpy(csr.indptr.astype(np.int64)),
            torch.from_numpy(csr.indices.astype(np.int64)),
            torch.from_numpy(csr.data).to(dtype),
            size=csr.shape,
            check_invariants=False,  # SciPy's own construction upholds them
        )


def stored_values(x: Tensor) -> Tensor:
    """Return the numbers that are really stored: all of a dense matrix, the nonzeros of a CSR."""
    return x.values() if is_sparse(x) else x


def with_values(x: Tensor, values: Tensor) -> Tensor:
    """Return a matrix of the same pattern holding other stored values."""
    if not is_sparse(x):
        return values
    matrix = to_scipy(x)
    return from_scipy(
        sp.csr_matrix((values.numpy(), matrix.indices, matrix.indptr), shape=matrix.shape),
        values.dtype,
    )


def all_finite(x: Tensor) -> bool:
    """Whether every stored value is a finite number."""
    values = stored_values(x)
    return all(bool(torch.isfinite(values[part]).all()) for part in row_chunks(len(values)))


def select_rows(x: Tensor, nodes: Tensor) -> Tensor:
    """Return the rows of ``x`` at a boolean mask or at positions, in that order."""
    if not is_sparse(x):
        return x[nodes]
    return from_scipy(to_scipy(x)[nodes.numpy()], x.dtype)


def column_deviations(x: Tensor) -> Tensor:
    """Return each column's standard deviation over all rows, float64."""
    if not is_sparse(x):
        return x.double().std(dim=0, correction=0)
    matrix = to_scipy(x).astype(np.float64)
    mean = np.asarray(matrix.mean(axis=0)).ravel()
    square = np.asarray(matrix.multiply(matrix).mean(axis=0)).ravel()
    return torch.from_numpy(np.sqrt(np.maximum(square - mean**2, 0)))


def column(x: Tensor, position: int) -> Tensor:
    """Return one column of ``x``, dense or CSR, as a dense (nodes,) tensor."""
    if not is_sparse(x):
        return x[:, position]
    return torch.from_numpy(to_scipy(x)[:, [position]].toarray()[:, 0])
