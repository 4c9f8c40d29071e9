"""One epoch of each variant: forward, loss, backward and Adam, once over all nodes with a target.

Every variant trains the same net: two GraphSAGE layers of 64 with ReLU, a value and a softplus
half-width, the joint loss at λ = 0.05, Adam.

PyG: ``SAGEConv`` on ``edge_index`` with dense ``x`` and default Adam, as one writes it.
PyG CSR: the same with a torch CSR adjacency.
ours: a step on the whole graph.
ours, ten: ten such nets trained together.
ours, minibatch: steps on some nodes at a time, with a few of their neighbours.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import count

import torch
from torch import Tensor, nn
from torch_geometric.nn import GCNConv, GINConv, SAGEConv

from qpignn.encoders.catalog import encoder_class
from qpignn.methods.net_training import batch_steps, measure
from qpignn.methods.qpignn import QpiGNN
from qpignn.methods.training_set import Batch, TrainingSet
from qpignn.runtime.memory import retain_freed_memory
from qpignn.training.loop import once
from qpignn.training.weights import FlatWeights
from shapes import CSR, MINIBATCH, PYG, TEN, Shape, make_graph
from timing import Run

WIDTH, LAMBDA, LR = 64, 0.05, 1e-3
BATCH_SIZE, FAN_OUT = 8192, 10


@dataclass(frozen=True)
class Epoch:
    """An epoch that is ready to run.

    Attributes:
        run: runs it.
        nets: how many it trains; they share its time.
        seen: what ours trains on; None for PyG.
    """

    run: Run
    nets: int = 1
    seen: TrainingSet | None = None


def make_epoch(variant: str, shape: Shape) -> Epoch:
    """Prepare all that stays the same from epoch to epoch."""
    if variant in (PYG, CSR):
        return plain_epoch(shape, csr=variant == CSR)
    return our_epoch(
        shape,
        nets=10 if variant == TEN else 1,
        batch_size=BATCH_SIZE if variant == MINIBATCH else None,
    )


def gin_layer(inputs: int, outputs: int) -> GINConv:
    maps = nn.Linear(inputs, outputs), nn.ReLU(), nn.Linear(outputs, outputs)
    return GINConv(nn.Sequential(*maps))


LAYERS = {"sage": SAGEConv, "gcn": GCNConv, "gin": gin_layer}


class Plain(nn.Module):
    """What one writes with PyG's own layers."""

    def __init__(self, features: int, encoder: str = "sage") -> None:
        super().__init__()
        layer = LAYERS[encoder]
        self.first, self.second = layer(features, WIDTH), layer(WIDTH, WIDTH)
        self.value, self.half_width = nn.Linear(WIDTH, 1), nn.Linear(WIDTH, 1)

    def forward(self, x: Tensor, edges: Tensor) -> tuple[Tensor, Tensor]:
        hidden = self.second(self.first(x, edges).relu(), edges).relu()
        value = self.value(hidden).squeeze(1)
        return value, nn.functional.softplus(self.half_width(hidden)).squeeze(1)


def plain_epoch(shape: Shape, *, csr: bool, encoder: str = "sage") -> Epoch:
    x, edges, y, carry_loss = make_graph(shape)
    x = x if shape.ones is None else x.to_dense()
    if csr:
        size = (shape.nodes, shape.nodes)
        edges = torch.sparse_coo_tensor(
            edges.flip(0), torch.ones(shape.edges), size
        ).to_sparse_csr()
    net = Plain(shape.features, encoder)
    adam = torch.optim.Adam(net.parameters(), lr=LR)
    y = y[carry_loss]

    def run() -> None:
        adam.zero_grad()
        value, half_width = (column[carry_loss] for column in net(x, edges))
        lower, upper = value - half_width, value + half_width
        coverage = ((lower <= y) & (y <= upper)).float().mean()
        violation = (torch.relu(lower - y) + torch.relu(y - upper)).mean()
        loss = (coverage - 0.9) ** 2 + violation + LAMBDA * (upper - lower).mean()
        loss.backward()
        adam.step()

    return Epoch(run)


def our_epoch(
    shape: Shape, *, nets: int = 1, batch_size: int | None = None, encoder: str = "sage"
) -> Epoch:
    x, edges, y, carry_loss = make_graph(shape)
    given = carry_loss.nonzero().flatten()
    method = QpiGNN(
        lambda_width=LAMBDA,
        members=nets,
        encoder=encoder,
        hidden=WIDTH,
        activation="relu",
        dropout=0.0,
        fan_out=FAN_OUT,
        device="cpu",
    )
    method.lambda_width_ = LAMBDA
    net = method._new_net(shape.features).train()
    weights = FlatWeights(net.parameters(), lr=LR, weight_decay=0.0)
    graph = encoder_class(encoder).prepare(x, edges, first=None if batch_size else given)
    del x, edges
    none = torch.zeros(nets, len(given), dtype=torch.bool)
    batch = Batch(batch_size, given) if batch_size else None
    seen = TrainingSet(graph, y[given], torch.ones(len(given)), none, batch)
    steps = batch_steps(method, net, seen) if batch else once(measure(method, net, seen))
    epochs = count()
    retain_freed_memory()  # as every fit does; the rivals in this process have it, too

    def run() -> None:
        for measured in steps(next(epochs)):
            measured.backward()
            weights.step()
            weights.clear_gradient()

    return Epoch(run, nets, seen)
