"""The range of feature columns on some nodes, and features cut at it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from qpignn.data.matrix import is_sparse, select_rows, to_scipy, with_values
from qpignn.runtime.memory import row_chunks

MOST = 20_000  # rows that quantiles are taken of
ROUNDING = 1e-6  # of the end of a range, which does not count as beyond it: that of float32 is less
FARTHEST = 1e100  # largest distance: its square is finite


@dataclass(frozen=True)
class FeatureRange:
    """Lowest and highest values of each column, (columns,) each.

    Attributes:
        low: lowest values.
        high: highest values.
        scale: what distances are measured in; infinite for columns that do not count.
    """

    low: Tensor
    high: Tensor
    scale: Tensor

    @classmethod
    def of(cls, x: Tensor, rows: Tensor, scale: Tensor, share: float = 0.0) -> Self:
        """Return the range of some rows.

        Args:
            x: (nodes, columns), dense or CSR. The range of a CSR column contains 0, whatever
                ``share`` is.
            rows: positions of the rows, at least one.
            scale: (columns,), the unit of distances.
            share: of the rows that lie below the range, and above it.
        """
        if share and not is_sparse(x):
            few = rows[:: -(-len(rows) // MOST)]
            low, high = np.quantile(x[few].double().numpy(), [share, 1 - share], axis=0)
            return cls(torch.from_numpy(low), torch.from_numpy(high), scale)
        if is_sparse(x):
            part = to_scipy(select_rows(x, rows))
            low, high = (extreme.toarray().ravel() for extreme in (part.min(0), part.max(0)))
            zero = np.zeros(len(low))
            low, high = np.minimum(low, zero), np.maximum(high, zero)
            return cls(torch.from_numpy(low).double(), torch.from_numpy(high).double(), scale)
        parts = [x[rows[chunk]].aminmax(dim=0) for chunk in row_chunks(len(rows))]
        low = torch.stack([part.min for part in parts]).amin(dim=0)
        high = torch.stack([part.max for part in parts]).amax(dim=0)
        return cls(low.double(), high.double(), scale)

    def cut(self, x: Tensor) -> tuple[Tensor, Any]:
        """Return features within the range, and how far beyond it they were.

        Args:
            x: (nodes, columns), dense or CSR.

        Returns:
            The features, the same tensor if none is beyond the range; and a SciPy CSR matrix of the
            same shape with distances in units of ``scale``, without columns that do not count.
        """
        if is_sparse(x):
            csr = to_scipy(x).astype(np.float64)
            rows, columns = _entries(csr)
            values = csr.data
            within = np.clip(values, self.low.numpy()[columns], self.high.numpy()[columns])
            apart = np.abs(values - within)
            apart[apart <= ROUNDING * np.abs(within)] = 0
            off = np.minimum(apart / self.scale.numpy()[columns], FARTHEST)
            if not off.any():
                return x, sp.csr_matrix(csr.shape)
            beyond = off > 0
            excess = sp.csr_matrix((off[beyond], (rows[beyond], columns[beyond])), csr.shape)
            kept = torch.from_numpy(np.where(beyond, within, values))
            return with_values(x, kept.to(x.dtype)), excess
        counts = self.scale.isfinite()
        low = self.low.masked_fill(~counts, -torch.inf).to(x.dtype)
        high = self.high.masked_fill(~counts, torch.inf).to(x.dtype)
        within, places, distances = x, [], []
        for chunk in row_chunks(len(x)):
            clipped = x[chunk].clamp(low, high)
            some = (clipped != x[chunk]).nonzero(as_tuple=True)
            apart = (x[chunk][some] - clipped[some]).abs() > ROUNDING * clipped[some].abs()
            some = (some[0][apart], some[1][apart])
            if not len(some[0]):
                continue
            within = x.clone() if within is x else within
            within[chunk][some] = clipped[some]
            off = (x[chunk][some].double() - clipped[some].double()).abs() / self.scale[some[1]]
            distances.append(off.clamp(max=FARTHEST).numpy())
            places.append(np.stack([some[0].numpy() + chunk.start, some[1].numpy()]))
        if within is x:
            return x, sp.csr_matrix(tuple(x.shape))
        data, ends = np.concatenate(distances), np.hstack(places)
        return within, sp.csr_matrix((data, (ends[0], ends[1])), shape=tuple(x.shape))


def _entries(csr: Any) -> tuple[Any, Any]:
    """Return row and column of every stored entry."""
    return np.repeat(np.arange(csr.shape[0]), np.diff(csr.indptr)), csr.indices
