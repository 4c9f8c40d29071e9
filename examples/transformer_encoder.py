"""An encoder of your own: two layers of PyG's ``TransformerConv`` in the place of GraphSAGE.

The module is unchanged PyG code; every method takes it as ``encoder=``. Run it anywhere:

    python examples/transformer_encoder.py
"""

from __future__ import annotations

import tempfile

from torch import Tensor, nn
from torch_geometric.nn import TransformerConv

from qpignn import load_dataset, load_method, make_method, split_nodes
from qpignn.metrics import summary


class Transformer(nn.Module):
    """Two attention layers over the neighbours of a node.

    Args:
        in_channels: number of input features.
        hidden: length of the hidden vectors.
    """

    def __init__(self, in_channels: int, hidden: int) -> None:
        super().__init__()
        self.first = TransformerConv(in_channels, hidden // 4, heads=4)
        self.second = TransformerConv(hidden, hidden // 4, heads=4)

    def forward(self, x: Tensor, edge_index: Tensor) -> Tensor:
        """Return one hidden vector per node.

        Args:
            x: (nodes, in_channels).
            edge_index: (2, edges).
        """
        hidden = self.first(x, edge_index).relu()
        out: Tensor = self.second(hidden, edge_index).relu()
        return out


if __name__ == "__main__":
    data = split_nodes(load_dataset("basic", nodes=200), test=0.3, seed=0)
    for encoder in ("sage", "mlp", Transformer):
        model = make_method("cqr", encoder=encoder, epochs=60).fit(data)
        intervals = model.predict_interval(data, data.test_mask)
        figures = summary(intervals, data.y[data.test_mask], y_given=data.y[data.train_mask])
        name = encoder if isinstance(encoder, str) else encoder.__name__
        print(f"{name:12} coverage {figures['picp']:.2f}  width {figures['mpiw']:.2f}")
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)  # weights and a name: no code
        same = load_method(folder, encoder=Transformer)
    assert (same.predict(data) == model.predict(data)).all()
