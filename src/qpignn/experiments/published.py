"""The authors' way of running, mistakes included: the one place where it is imitated.

One draw of the data and one split serve all runs. 80 % of the nodes and 20 % become two separate
graphs. Each graph's edges are renumbered by a random order of its nodes while features and targets
stay in index order, so **edges connect the wrong nodes**. Runs differ in their initial weights
only, which go on drawing from the same random stream; since the published loss has no common
gradient in the half-widths at λ = 0.5, where a run starts decides where it ends.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn
from torch_geometric.data import Data
from torch_geometric.nn import SAGEConv

from qpignn.data.catalog import find_dataset, load_dataset
from qpignn.data.matrix import select_rows
from qpignn.data.settings import View, make_view
from qpignn.data.sources.synthetic import PUBLISHED_SEED
from qpignn.data.split import split_nodes
from qpignn.methods.base import IntervalMethod
from qpignn.methods.qpignn import QpiGNN
from qpignn.runtime.randomness import LegacyStreams

TEST_SHARE = 0.2


def published_view(
    dataset: str,
    split: str = "random",
    options: dict[str, Any] | None = None,
    *,
    whole: bool = False,
) -> tuple[View, torch.Generator]:
    """Return the published split, the same for all runs, and the stream after it.

    ``whole`` leaves the graph in one piece, with its edges where they belong.
    """
    streams = LegacyStreams(PUBLISHED_SEED)
    drawn = find_dataset(dataset).origin == "synthetic"
    # the split goes on drawing where the data stopped
    own = {**({"streams": streams} if drawn else {}), **(options or {})}
    data = load_dataset(dataset, "published", **own)
    nodes = data.x.shape[0]
    order = torch.randperm(nodes, generator=streams.torch)
    if split != "random":  # those chosen for test first, each part still in random order
        judged = split_nodes(data, test=TEST_SHARE, by=split, seed=PUBLISHED_SEED).test_mask
        order = torch.cat([order[judged[order]], order[~judged[order]]])
    test, train = order[: int(TEST_SHARE * nodes)], order[int(TEST_SHARE * nodes) :]
    if whole:
        data.test_mask = torch.zeros(nodes, dtype=torch.bool)
        data.test_mask[test] = True
        data.train_mask = ~data.test_mask
        return make_view(data), streams.torch
    fit, predict = (_part(data, part) for part in (train, test))
    y_test = predict.y
    predict.y = torch.full_like(y_test, float("nan"))
    return View(fit, predict, torch.ones(len(test), dtype=torch.bool), y_test), streams.torch


def start_as_published(
    method: IntervalMethod, view: View, stream: torch.Generator, run: int
) -> None:
    """Let the next fit begin at the initial weights of a run (runs count from 0).

    Only QpiGNN's start is imitated bit for bit; the baselines draw their own from the seed.
    """
    if not isinstance(method, QpiGNN):
        return
    weights = published_weights(stream, run, view.fit.x.shape[1], method.hidden)
    method.start_from(weights)


def published_weights(
    stream: torch.Generator, run: int, columns: int, hidden: int
) -> dict[str, Tensor]:
    """Return a run's initial weights (runs count from 0), as PyG's and torch's layers draw them."""
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
    return {name: weight.unsqueeze(0) for name, weight in weights.items()}  # of the one member


def _part(data: Data, nodes: Tensor) -> Data:
    inside = torch.zeros(data.x.shape[0], dtype=torch.bool)
    inside[nodes] = True
    number = torch.full_like(inside, 0, dtype=torch.long)
    number[nodes] = torch.arange(len(nodes))  # edges: by the random order
    kept = inside[data.edge_index[0]] & inside[data.edge_index[1]]
    return Data(
        x=select_rows(data.x, inside),  # features and targets: by index
        y=data.y[inside],
        edge_index=number[data.edge_index[:, kept]],
    )
