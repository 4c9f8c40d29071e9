"""The same numbers as PyG's GINConv, in outputs and gradients."""

from __future__ import annotations

from typing import Any

import pytest
import torch
from tests.encoders.graphs import edges, features, make, prepared
from torch import nn
from torch_geometric.nn import GINConv

from qpignn.encoders.gin import GinEncoder, gin_edges
from qpignn.encoders.inputs import aggregation_matrix


def pyg_layer(pair: Any, member: int) -> tuple[GINConv, list[nn.Linear]]:
    linears = [nn.Linear(*layer.neighbour.shape[1:]).double() for layer in pair]
    conv = GINConv(nn.Sequential(linears[0], nn.SiLU(), linears[1]))  # draws the weights anew
    for layer, linear in zip(pair, linears, strict=True):
        linear.weight.data = layer.neighbour.data[member].t().clone()
        linear.bias.data = layer.bias.data[member, 0].clone()
    return conv, linears


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("layers", [1, 2, 3])
def test_outputs_and_gradients_agree_with_pyg(layers: int, sparse: bool) -> None:
    encoder, (ends, _), x = make("gin", layers), edges(), features()
    assert isinstance(encoder, GinEncoder)
    hidden = encoder(prepared("gin", sparse=sparse, weighted=False))
    upstream = torch.linspace(-1, 1, hidden.numel(), dtype=torch.float64).view_as(hidden)
    hidden.backward(upstream)
    layers: Any = encoder.layers
    pairs = [(layer, layer.second) for layer in layers]
    for member in range(3):
        theirs, linears = x, []
        for pair in pairs:
            conv, own = pyg_layer(pair, member)
            linears += own
            theirs = nn.functional.silu(conv(theirs, ends))
        torch.testing.assert_close(hidden[member], theirs, rtol=1e-5, atol=1e-5)
        theirs.backward(upstream[member])
        for layer, linear in zip([one for pair in pairs for one in pair], linears, strict=True):
            for got, expected in (
                (layer.neighbour.grad[member].t(), linear.weight.grad),
                (layer.bias.grad[member, 0], linear.bias.grad),
            ):
                torch.testing.assert_close(got, expected, rtol=1e-5, atol=1e-5)


def test_matrix_adds_weighted_neighbours_to_the_node() -> None:
    ends, weight = torch.tensor([[0, 2, 1], [1, 1, 1]]), torch.tensor([2.0, 0.5, 3.0])
    matrix = aggregation_matrix(*gin_edges(ends, weight, 3), 3, kind="sum")
    dense = matrix.multiply(torch.eye(3))
    assert dense.tolist() == [[1, 0, 0], [2, 4, 0.5], [0, 0, 1]]
