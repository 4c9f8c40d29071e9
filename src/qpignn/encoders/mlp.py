"""A multilayer perceptron: every node by itself, to show what the graph adds."""

from __future__ import annotations

from torch import Tensor

from qpignn.encoders.inputs import GraphInputs, GraphTensors, features_of
from qpignn.encoders.stack import StackEncoder


class MlpEncoder(StackEncoder):
    """h' = h·N + b at every node; edges are ignored by design.

    See :class:`~qpignn.encoders.base.LayeredEncoder` for the arguments.
    """

    uses_graph = False

    @classmethod
    def prepare_tensors(cls, graph: GraphTensors) -> GraphInputs:
        """Return the constants of a graph; see :meth:`qpignn.encoders.base.Encoder.prepare`.

        Returns:
            The inputs of the encoder, which has rows for the wanted nodes only.
        """
        features = features_of(graph.x, graph.offset, graph.first)
        if isinstance(features, Tensor):
            features = features.contiguous()
        return GraphInputs(features, graph.x.shape[1], (), features.shape[0])
