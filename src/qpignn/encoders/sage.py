"""GraphSAGE (Hamilton et al. 2017, https://arxiv.org/abs/1706.02216)."""

from __future__ import annotations

from torch import Tensor

from qpignn.encoders.base import AGGREGATIONS, FusedForm
from qpignn.encoders.inputs import GraphInputs, max_matrix, mean_matrix, prepare, sum_matrix
from qpignn.encoders.stack import StackEncoder
from qpignn.errors import GraphError, check_choice

MATRICES = {"mean": mean_matrix, "sum": sum_matrix, "max": max_matrix}


class SageEncoder(StackEncoder):
    """h'_v = aggregate_{u → v}(h_u)·N + h_v·R + b: the numbers of PyG's ``SAGEConv``.

    The aggregation is ``mean``, ``sum`` or ``max``. Edge weights make the mean and the sum
    weighted. PyG's matrices are the transposes of N and R. See
    :class:`~qpignn.encoders.stack.StackEncoder` for the arguments.
    """

    uses_own = True
    aggregations = AGGREGATIONS

    def fused(self, inputs: GraphInputs, part: slice) -> FusedForm | None:
        """Return the hand-written passes of two layers; see :meth:`StackEncoder.fused`.

        Args:
            inputs: of the graph.
            part: which members.

        Returns:
            None for more layers, whose results keep the rounding of earlier versions.
        """
        return super().fused(inputs, part) if len(self.layers) == 2 else None

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
            edge_index: (2, edges), messages run from row 0 to row 1.
            edge_weight: (edges,), of the mean or sum.
            edge_attr: not used.
            first: positions of the wanted nodes; default all.
            offset: (columns,), added to every row of a CSR ``x``.
            aggregation: ``mean``, ``sum`` or ``max``.

        Returns:
            The inputs of the encoder.

        Raises:
            GraphError: edges have different weights and the aggregation is ``max``.
        """
        build = MATRICES[check_choice("aggregation", aggregation, MATRICES)]
        if aggregation == "max" and edge_weight is not None and bool(edge_weight.diff().any()):
            raise GraphError(
                "aggregation: expected edges without weights for max, got edge_weight with "
                "different values; use mean or sum, or leave edge_weight out"
            )
        return prepare(x, edge_index, edge_weight, first=first, offset=offset, build=build)
