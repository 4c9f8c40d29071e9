"""GraphSAGE (Hamilton et al. 2017, https://arxiv.org/abs/1706.02216)."""

from __future__ import annotations

from qpignn.encoders.base import AGGREGATIONS
from qpignn.encoders.fused import FusedLayers
from qpignn.encoders.inputs import GraphInputs, GraphTensors
from qpignn.encoders.stack import StackEncoder
from qpignn.errors import GraphError, check_choice


class SageEncoder(StackEncoder):
    """h'_v = aggregate_{u → v}(h_u)·N + h_v·R + b: the numbers of PyG's ``SAGEConv``.

    The aggregation is ``mean``, ``sum`` or ``max``. Edge weights make the mean and the sum
    weighted. PyG's matrices are the transposes of N and R. See
    :class:`~qpignn.encoders.base.LayeredEncoder` for the arguments.
    """

    uses_own = True
    aggregations = AGGREGATIONS

    def fused(self, inputs: GraphInputs, part: slice) -> FusedLayers | None:
        """Return the hand-written passes of two layers; see :meth:`StackEncoder.fused`.

        Args:
            inputs: of the graph.
            part: which members.

        Returns:
            None for more layers, whose results keep the rounding of earlier versions.
        """
        return super().fused(inputs, part) if len(self.layers) == 2 else None

    @classmethod
    def prepare_tensors(cls, graph: GraphTensors) -> GraphInputs:
        """Return the constants of a graph; see :meth:`qpignn.encoders.base.Encoder.prepare`.

        Raises:
            GraphError: edges have different weights and the aggregation is ``max``.
        """
        weight = graph.edge_weight
        check_choice("aggregation", graph.aggregation, AGGREGATIONS)
        if graph.aggregation == "max" and weight is not None and bool(weight.diff().any()):
            raise GraphError(
                "aggregation: expected edges without weights for max, got edge_weight with "
                "different values; use mean or sum, or leave edge_weight out"
            )
        return super().prepare_tensors(graph)
