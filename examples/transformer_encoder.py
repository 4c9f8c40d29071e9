"""An encoder of your own: two layers of PyG's ``TransformerConv`` in the place of GraphSAGE.

The module is unchanged PyG code; every method takes it as ``encoder=``. Run it anywhere:

    python examples/transformer_encoder.py transformer.png
"""

from __future__ import annotations

import sys
import tempfile

import matplotlib.pyplot as plt
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


def main(picture: str) -> None:
    """Compare encoders under two methods, and load a model with a module of one's own.

    Args:
        picture: the file to draw to.
    """
    data = split_nodes(load_dataset("basic", nodes=200), test=0.3, seed=0)
    encoders = {"sage": "sage", "mlp": "mlp", "Transformer": Transformer}
    figure, panels = plt.subplots(1, 2, figsize=(12, 4), layout="constrained")
    for panel, method in zip(panels, ("cqr", "mc_dropout"), strict=True):
        for name, encoder in encoders.items():
            model = make_method(method, encoder=encoder, epochs=60).fit(data)
            intervals = model.predict_interval(data, data.test_mask)
            figures = summary(intervals, data.y[data.test_mask], y_given=data.y[data.train_mask])
            print(f"{method:12} {name:12} PICP {figures['picp']:.2f}  MPIW {figures['mpiw']:.2f}")
            panel.plot(sorted(intervals.width), label=name)
        panel.set(title=method, xlabel="test nodes by width", ylabel="width of the interval")
        panel.legend()
    with tempfile.TemporaryDirectory() as folder:
        model.save(folder)  # weights and a name: no code
        same = load_method(folder, encoder=Transformer)
        assert (same.predict(data) == model.predict(data)).all()
    figure.savefig(picture, dpi=110)


if __name__ == "__main__":
    main(sys.argv[1])
