"""A multilayer perceptron: every node by itself, to show what the graph adds."""

from __future__ import annotations

import torch
from torch import Tensor

from qpignn.data.matrix import is_sparse, select_rows, to_scipy
from qpignn.encoders.inputs import GraphInputs
from qpignn.encoders.sparse import SparseMatrix
from qpignn.encoders.stack import StackEncoder


class MlpEncoder(StackEncoder):
    """h' = h·N + b at every node; edges are ignored by design.

    See :class:`~qpignn.encoders.stack.StackEncoder` for the arguments.
    """

    uses_graph = False

    @classmethod
    def prepare(
        cls,
        x: Tensor,
        edge_index: Tensor,
        edge_weight: Tensor | None = None,
        *,
        edge_attr: Tensor | None = None,
        first: Tensor | None = None,
        offset: Tensor | None = None,
        aggregation: str = "mean",
    ) -> GraphInputs:
        """Return the constants of a graph; see :meth:`qpignn.encoders.base.Encoder.prepare`.

        Args:
            x: (nodes, columns), dense or CSR, already scaled.
            edge_index: not used.
            edge_weight: not used.
            edge_attr: not used.
            first: positions of the wanted nodes; default all.
            offset: (columns,), added to every row of a CSR ``x``.
            aggregation: not used.

        Returns:
            The inputs of the encoder, which has rows for the wanted nodes only.
        """
        columns = x.shape[1]
        if is_sparse(x):
            x = x if first is None else select_rows(x, first)
            features = SparseMatrix.from_scipy(to_scipy(x), x.dtype, offset)
            return GraphInputs(features, columns, (), features.shape[0])
        x = x if first is None else x[first]
        return GraphInputs(x.to(memory_format=torch.contiguous_format), columns, (), len(x))
