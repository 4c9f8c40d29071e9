"""The constants of a graph that a net trains on, prepared once per fit or prediction.

This is what makes a training step fast: the aggregation over neighbours is a sparse matrix that is
built once; the first aggregation, of the constant features, is computed once; wide sparse features
are projected before they are aggregated and never made dense; and the nodes of the loss come first,
so that the last layer is computed for those rows only.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass, field, fields, replace
from typing import Any, NamedTuple, Self

import numpy as np
import scipy.sparse as sp
import torch
from torch import Tensor

from qpignn.data.matrix import is_sparse, select_rows, to_scipy
from qpignn.encoders.sparse import MaxMatrix, SparseMatrix, csr_arrays, index_type
from qpignn.errors import GraphError, brief
from qpignn.runtime.memory import CHUNK_ROWS, allocate_tensor, row_chunks


class GraphTensors(NamedTuple):
    """A graph as encoders prepare it; see :meth:`qpignn.encoders.base.Encoder.prepare`.

    Attributes:
        x: (nodes, columns), dense or CSR, already scaled.
        edge_index: (2, edges), messages run from row 0 to row 1.
        edge_weight: (edges,), or None.
        edge_attr: (edges, edge features), or None.
        first: positions of the wanted nodes, in the wanted order; None for all.
        offset: (columns,), added to every row of a CSR ``x`` (zeros included), or None.
        aggregation: how neighbours are combined.
    """

    x: Tensor
    edge_index: Tensor
    edge_weight: Tensor | None = None
    edge_attr: Tensor | None = None
    first: Tensor | None = None
    offset: Tensor | None = None
    aggregation: str = "mean"

    @property
    def rows(self) -> int:
        """Number of wanted nodes."""
        return self.x.shape[0] if self.first is None else len(self.first)


@dataclass(frozen=True)
class GraphInputs:
    """The constants of one graph, as an encoder's ``prepare`` returns them.

    Attributes:
        features: (nodes, width), the wanted nodes first. Sparse features have one column per input
            feature. Dense ones are what the first layer multiplies: features aggregated over
            neighbours, and beside them the node's own where the layer uses both.
        columns: number of input features.
        matrices: of the aggregation, from the last layer back; layers without one of their own use
            the last of the sequence. That of the last layer has rows for the wanted nodes only.
        rows: number of wanted nodes, which come first.
        own: sparse features of the nodes that the first layer computes; None for dense features.
        self_loops: whether the first entry of every row of the matrices is the node itself, so
            that sampling of neighbours always keeps it.
    """

    features: Tensor | SparseMatrix
    columns: int
    matrices: Sequence[SparseMatrix]
    rows: int
    own: SparseMatrix | None = None
    self_loops: bool = False

    def to(self, device: torch.device) -> Self:
        """Return the inputs on a device.

        Args:
            device: the device.

        Returns:
            The same object if it is there already.
        """
        if self.features.device == device:
            return self
        values = {one.name: getattr(self, one.name) for one in fields(self)}
        return replace(self, **{name: _moved(value, device) for name, value in values.items()})

    def first(self, rows: int) -> Self:
        """Return the inputs with fewer wanted nodes.

        Args:
            rows: how many of them are kept, from the first.

        Returns:
            Inputs that share the arrays of these.
        """
        if not self.matrices:  # every node by itself
            x = self.features
            x = x.some(0, rows) if isinstance(x, SparseMatrix) else x[:rows]
            return replace(self, features=x, rows=rows)
        last = self.matrices[0].some(0, rows)
        rest = self.matrices if len(self.matrices) == 1 else self.matrices[1:]
        return replace(self, matrices=(last, *rest), rows=rows)

    @property
    def nodes(self) -> int:
        """Number of nodes."""
        return int(self.features.shape[0])

    @property
    def edge_columns(self) -> int:
        """Number of edge features that the encoder uses."""
        return 0

    @property
    def matrix(self) -> SparseMatrix:
        """The matrix of all layers but the last."""
        return self.matrices[-1]

    def matrix_for(self, left: int) -> SparseMatrix:
        """Return the matrix of an aggregation.

        Args:
            left: how many aggregations come after it.
        """
        return self.matrices[min(left, len(self.matrices) - 1)]

    def last_inputs(self, hidden: Tensor) -> tuple[Tensor, Tensor]:
        """Return the inputs of the last layer: aggregated, and own hidden vectors.

        Args:
            hidden: (members, nodes, width).
        """
        return self.matrices[0].multiply(hidden), hidden[:, : self.rows]


def _moved(value: Any, device: torch.device) -> Any:
    """Return a tensor, a matrix or several of them on a device, and any other value as it is."""
    if isinstance(value, Tensor | SparseMatrix):
        return value.to(device)
    return [one.to(device) for one in value] if isinstance(value, Sequence) else value


@dataclass(frozen=True)
class EdgeInputs(GraphInputs):
    """The constants of a graph for encoders that work on the list of edges.

    Attributes:
        edge_index: (2, edges), messages run from row 0 to row 1.
        edge_weight: (edges,), or None.
        edge_attr: (edges, edge features), or None.
        wanted: positions of the wanted nodes; None for all.
    """

    edge_index: Tensor = field(kw_only=True)
    edge_weight: Tensor | None = field(kw_only=True, default=None)
    edge_attr: Tensor | None = field(kw_only=True, default=None)
    wanted: Tensor | None = field(kw_only=True, default=None)

    def first(self, rows: int) -> Self:
        """Return the inputs with fewer wanted nodes.

        Args:
            rows: how many of them are kept, from the first.

        Returns:
            Inputs that share the arrays of these.
        """
        wanted = torch.arange(self.rows) if self.wanted is None else self.wanted
        return replace(self, wanted=wanted[:rows], rows=rows)

    @property
    def edge_columns(self) -> int:
        """Number of edge features."""
        return 0 if self.edge_attr is None else self.edge_attr.shape[1]

    def select(self, hidden: Tensor) -> Tensor:
        """Return the hidden vectors of the wanted nodes.

        Args:
            hidden: (members, nodes, units), of all nodes.
        """
        return hidden if self.wanted is None else hidden.index_select(1, self.wanted)


def edge_features(edge_attr: Tensor | None, edges: int, dtype: torch.dtype) -> Tensor | None:
    """Return edge features as (edges, columns), or None if there are none.

    Args:
        edge_attr: (edges,) or (edges, columns).
        edges: number of edges.
        dtype: of the result.

    Raises:
        GraphError: they have another shape or are not finite.
    """
    if edge_attr is None:
        return None
    columns = edge_attr
    if isinstance(columns, Tensor) and columns.dim() == 1:
        columns = columns.unsqueeze(1)
    right = isinstance(columns, Tensor) and columns.dim() == 2 and len(columns) == edges
    if not (right and bool(columns.isfinite().all())):
        raise GraphError(
            f"edge_attr: expected a tensor of finite numbers of shape ({edges}, edge features), "
            f"got {brief(edge_attr)}; give one row of numbers per edge"
        )
    return columns.to(dtype)


def count_edge_features(edge_attr: Tensor | None, edge_weight: Tensor | None) -> int:
    """Return the number of edge features of a graph, where a weight counts as one of them.

    Args:
        edge_attr: (edges,) or (edges, columns).
        edge_weight: (edges,).
    """
    columns = 0 if edge_attr is None else 1 if edge_attr.dim() == 1 else edge_attr.shape[1]
    return columns + (edge_weight is not None)


def features_of(
    x: Tensor, offset: Tensor | None, nodes: Tensor | None = None
) -> Tensor | SparseMatrix:
    """Return features as layers multiply them.

    Args:
        x: (nodes, columns), dense or CSR.
        offset: (columns,), added to every row of a CSR ``x`` (zeros included); default 0.
        nodes: positions of the rows, in the wanted order; default all.
    """
    if not is_sparse(x):
        return x if nodes is None else x[nodes]
    x = x if nodes is None else select_rows(x, nodes)
    return SparseMatrix.from_scipy(to_scipy(x), x.dtype, offset)


def prepare(graph: GraphTensors, *, own: bool, self_loops: bool) -> GraphInputs:
    """Build the inputs of an encoder whose layers aggregate with one sparse matrix.

    Args:
        graph: with the edges and weights of the aggregation.
        own: whether the first layer uses the nodes' own features beside aggregated ones.
        self_loops: see :class:`GraphInputs`.

    Returns:
        The inputs, with the wanted nodes first.
    """
    x, ends, weight, _, first, offset, kind = graph
    (nodes, columns), rows, order = x.shape, graph.rows, None
    if first is not None:
        left = torch.ones(nodes, dtype=torch.bool)
        left[first] = False
        order = torch.cat([first, left.nonzero().flatten()])
    matrix = aggregation_matrix(ends, weight, nodes, order, x.dtype, kind=kind)
    matrices = (matrix,) if rows == nodes else (matrix.some(0, rows), matrix)
    if is_sparse(x) and kind == "max":  # a maximum cannot follow the projection
        x, offset = x.to_dense() + (0 if offset is None else offset), None
    features = features_of(x, offset, order)
    if isinstance(features, SparseMatrix):
        return GraphInputs(features, columns, matrices, rows, features, self_loops)
    dense = allocate_tensor((nodes, 2 * columns if own else columns), x.dtype)
    for part in row_chunks(nodes):
        dense[part, :columns] = matrix.some(part.start, part.stop).multiply(features)
        if own:
            dense[part, columns:] = features[part]
    return GraphInputs(dense, columns, matrices, rows, self_loops=self_loops)


_SHARED: ContextVar[dict[Any, tuple[Any, SparseMatrix]] | None] = ContextVar("shared", default=None)


@contextmanager
def shared_matrices() -> Iterator[None]:
    """Build each matrix of a graph's edges once while the block runs.

    Within the block :func:`aggregation_matrix` returns the same object for the same tensors of
    edges, which must not be changed in place.

    Yields:
        Nothing.
    """
    token = _SHARED.set({})
    try:
        yield
    finally:
        _SHARED.reset(token)


def aggregation_matrix(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    nodes: int,
    order: Tensor | None = None,
    dtype: torch.dtype = torch.float32,
    *,
    kind: str = "mean",
) -> SparseMatrix:
    """Return the matrix whose row v combines the sources of the edges into v.

    A node without neighbours, or whose weights are all zero, gets zeros; repeated edges count
    repeatedly. See also :func:`shared_matrices`.

    Args:
        edge_index: (2, edges), sources and targets.
        edge_weight: (edges,), weights of the mean or sum; default all equal, in a sum 1.
        nodes: number of nodes.
        order: the old position of each node, to renumber them; default as they are.
        dtype: of the values.
        kind: ``mean``, ``sum`` or ``max``.
    """
    shared = _SHARED.get()
    if shared is None or order is not None:
        return _new_matrix(edge_index, edge_weight, nodes, order=order, dtype=dtype, kind=kind)
    key = (id(edge_index), id(edge_weight), nodes, dtype, kind)
    if key not in shared:  # the tensors are kept, too: an id is that of a living object only
        matrix = _new_matrix(edge_index, edge_weight, nodes, order=order, dtype=dtype, kind=kind)
        shared[key] = ((edge_index, edge_weight), matrix)
    return shared[key][1]


def _new_matrix(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    nodes: int,
    *,
    order: Tensor | None,
    dtype: torch.dtype,
    kind: str,
) -> SparseMatrix:
    """Build the matrix that :func:`aggregation_matrix` returns."""
    weight, shape = None if kind == "max" else edge_weight, (nodes, nodes)
    starts, columns, values, totals = _csr_edges(edge_index, weight, nodes, order, dtype)
    if kind == "max":
        return MaxMatrix(starts, columns, None, shape)
    if kind == "sum":
        return SparseMatrix(starts, columns, values, shape)
    scale = totals.double().reciprocal().masked_fill_(totals == 0, 0).to(dtype)
    return SparseMatrix(starts, columns, values, shape, scale.unsqueeze(1))


def _csr_edges(
    edge_index: Tensor,
    edge_weight: Tensor | None,
    nodes: int,
    order: Tensor | None,
    dtype: torch.dtype,
) -> tuple[Tensor, Tensor, Tensor | None, Tensor]:
    """Return the CSR arrays of the edges, by target, and the sum of every row."""
    if edge_weight is None and order is None and _by_target(edge_index[1]):
        totals = torch.bincount(edge_index[1], minlength=nodes)
        starts = torch.nn.functional.pad(totals.cumsum(0), (1, 0))
        return starts, edge_index[0], None, totals  # not copied: they may be larger than memory
    matrix = _adjacency(edge_index, edge_weight, nodes, order)
    starts, columns = csr_arrays(matrix)
    if edge_weight is None:
        return starts, columns, None, starts.diff()
    values = torch.from_numpy(matrix.data).to(dtype)
    return starts, columns, values, torch.from_numpy(matrix @ np.ones(nodes))


def _by_target(targets: Tensor) -> bool:
    """Whether edges are sorted by their targets."""
    size = 16 * CHUNK_ROWS
    starts = range(0, len(targets) - 1, size)
    return all(bool((targets[i : i + size + 1].diff() >= 0).all()) for i in starts)


def _adjacency(
    edge_index: Tensor, edge_weight: Tensor | None, nodes: int, order: Tensor | None
) -> Any:
    """Return a SciPy CSR matrix of the edges, one row per target; edges keep their order."""
    index = index_type(nodes)
    place = np.arange(nodes, dtype=index)
    if order is not None:
        place[order.numpy()] = np.arange(nodes, dtype=index)
    source, target = (place[end.numpy()] for end in edge_index)
    data = np.ones(len(source), dtype=np.int8)  # dummy values: only the pattern is used
    if edge_weight is not None:
        data = edge_weight.double().numpy()
    edges = sp.coo_matrix((data, (target, source)), shape=(nodes, nodes))
    edges.has_canonical_format = True  # else SciPy would merge repeated edges, and sort
    return edges.tocsr()
