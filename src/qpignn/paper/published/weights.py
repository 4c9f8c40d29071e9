"""The initial weights of the authors' runs."""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch_geometric.nn import SAGEConv


def initial_weights(
    stream: torch.Generator, run: int, columns: int, hidden: int
) -> dict[str, Tensor]:
    """Return a run's initial weights, as PyG's and torch's layers draw them.

    Args:
        stream: generator in the state after data and split were drawn; it is not advanced.
        run: number of the run, from 0; runs draw their weights one after the other.
        columns: number of feature columns.
        hidden: size of the hidden vectors.

    Returns:
        Weights by name, for ``fit(initial_weights=...)``.
    """
    with torch.random.fork_rng(devices=[]):
        torch.set_rng_state(stream.get_state())
        for _ in range(run + 1):
            layers = [SAGEConv(columns, hidden), SAGEConv(hidden, hidden)]
            heads = [nn.Linear(hidden, 1), nn.Linear(hidden, 1)]
    weights = {
        "head.weight": torch.cat([head.weight.detach() for head in heads]),
        "head.bias": torch.stack([head.bias.detach() for head in heads]),
    }
    for i, layer in enumerate(layers):
        name = f"encoder.layers.{i}"
        weights[f"{name}.neighbour"] = layer.lin_l.weight.detach().t().contiguous()
        weights[f"{name}.bias"] = layer.lin_l.bias.detach().unsqueeze(0)
        weights[f"{name}.root"] = layer.lin_r.weight.detach().t().contiguous()
    return {name: weight.unsqueeze(0) for name, weight in weights.items()}  # (members=1, ...)
