"""Nodes of a fit, to be found again in other graphs."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import numpy.typing as npt
import pandas as pd
import torch
from torch import Tensor

from qpignn.data.matrix import is_sparse, to_csr
from qpignn.runtime.memory import row_chunks
from qpignn.runtime.randomness import numpy_rng

if TYPE_CHECKING:
    from torch_geometric.data import Data

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class KnownNodes:
    """Nodes by 64-bit hashes: of their ids, or without ids of their row and features.

    Attributes:
        hashes: one per node.
        have_ids: whether they are of ids.
    """

    hashes: Hashes
    have_ids: bool

    @classmethod
    def of(cls, data: Data, nodes: Tensor) -> Self:
        """Return some nodes of a graph.

        Args:
            data: a checked graph.
            nodes: boolean, (nodes,).
        """
        return cls(_hashes(data)[nodes.numpy()], data.get("node_id") is not None)

    def found_in(self, data: Data) -> Tensor:
        """Return which nodes of a graph are among these, boolean, (nodes,).

        None are if only one of the two graphs has ids.

        Args:
            data: a checked graph.
        """
        return torch.from_numpy(self.places_in(data) >= 0)

    def places_in(self, data: Data) -> npt.NDArray[np.int64]:
        """Return the place of each node of a graph among these, (nodes,); −1 for other nodes.

        Values that are stored beside these nodes are looked up so. If only one of the two graphs
        has ids, no node is among these.

        Args:
            data: a checked graph.
        """
        places = np.full(data.x.shape[0], -1, dtype=np.int64)
        if self.have_ids != (data.get("node_id") is not None) or not len(self.hashes):
            return places
        index, wanted = pd.Index(self.hashes), pd.Index(_hashes(data))
        unique = np.flatnonzero(~index.duplicated(keep=False))  # ids 1 and "1" have the same hash
        positions = index[unique].get_indexer(wanted)
        positions[wanted.duplicated(keep=False)] = -1
        return np.where(positions >= 0, unique[positions], places) if len(unique) else places

    def state(self) -> Tensor:
        """Return the nodes as a tensor, to be saved beside a model."""
        numbers = np.append(self.hashes, np.uint64(self.have_ids)).view(np.int64)
        return torch.from_numpy(numbers)

    @classmethod
    def from_state(cls, state: Tensor) -> Self:
        """Return what :meth:`state` described.

        Args:
            state: as read from a file; unchecked.

        Raises:
            ValueError: if it does not describe nodes.
        """
        if state.dtype != torch.int64 or state.dim() != 1 or len(state) < 2:
            raise ValueError(f"nodes of the fit: expected 64-bit hashes, got {tuple(state.shape)}")
        numbers = state.numpy().view(np.uint64)
        return cls(numbers[:-1], bool(numbers[-1]))


def _hashes(data: Data) -> Hashes:
    """Return a hash of every node of a graph."""
    ids = data.get("node_id")
    if ids is not None:
        texts = np.array([str(key) for key in ids], dtype=object)
        return np.asarray(pd.util.hash_array(texts, categorize=False))
    rows = np.arange(1, data.x.shape[0] + 1, dtype=np.uint64)
    return rows * np.uint64(0x9E3779B97F4A7C15) + feature_hashes(data.get("x_as_given", data.x))


def feature_hashes(x: Tensor) -> Hashes:
    """Return a hash of every row, (nodes,), the same for dense and CSR storage.

    It is Σⱼ cⱼ · bits(xⱼ) modulo 2⁶⁴, with a random odd cⱼ for every column; bits(0) is 0.

    Args:
        x: (nodes, columns), dense or CSR.
    """
    draw = numpy_rng(0, "feature hashes")
    factors = draw.integers(0, 2**63, x.shape[1], dtype=np.uint64) * np.uint64(2) + np.uint64(1)
    if is_sparse(x):
        stored = to_csr(x)
        terms = _bits(stored.values()) * factors[stored.col_indices().numpy()]
        totals = np.append(np.uint64(0), np.cumsum(terms, dtype=np.uint64))
        ends = stored.crow_indices().numpy()
        return np.asarray(totals[ends[1:]] - totals[ends[:-1]])
    parts = [(_bits(x[chunk]) * factors).sum(axis=1) for chunk in row_chunks(len(x))]
    return np.concatenate(parts)


def _bits(values: Tensor) -> Any:
    """Return the bits of numbers as integers; those of −0 are those of 0."""
    return (values.double() + 0.0).numpy().view(np.uint64)
